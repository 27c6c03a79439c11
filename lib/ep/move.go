// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"cmp"
	"errors"
	"strings"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/reason"
)

// policyView fills the view with one slot. It holds until the next call.
func (e *Engine) policyView(sl *slotState) *policy.View {
	e.emitWarnings() // of the slot before
	e.policy.show(sl)
	v := &e.policy.view
	v.Now, v.Pair, v.Slot, v.Exprs = e.now, sl.pair, sl.ad.Ad(), sl.exprs
	v.Job, v.Claim, v.Activation, v.Waiting, v.Commanded = sl.job(), sl.cur, nil, policy.NobodyWaits, sl.commanded
	if sl.act != nil {
		v.Activation = &sl.act.Activation
	}
	if sl.waiting != nil {
		v.Waiting = sl.waiting.reason
	}
	v.CanBenchmark, v.CanBackfill = e.mayBenchmark(sl), e.mayBackfill(sl)
	d := &e.drain
	v.Draining, v.DrainLeft, v.DrainStart, v.AllDrained, v.ActivationDelay = d.on, d.drainLeftFor(sl.act), d.start, d.over, e.times.DrainActivation
	v.Location, v.Rand = e.cfg.Location, e.cfg.Rand
	return v
}

// evaluate looks at the policy of a slot and carries out what it decides.
func (e *Engine) evaluate(sl *slotState) { e.settle(sl, maxSettle) }

// maxSettle bounds how many moves follow from one another at one instant. A
// policy that contradicts itself (an IS_OWNER that asks for the State) goes on
// at the next Tick instead of for ever.
const maxSettle = 8

func (e *Engine) settle(sl *slotState, left int) {
	if left == 0 || sl.leaving() {
		return
	}
	d := policy.Decide(e.policyView(sl))
	if sl.removing && d.To.State == policy.Drained {
		return // a dynamic slot at its end has nothing to drain
	}
	if !d.Moves() {
		if d.Cause == policy.ByPreempt { // already Retiring; from now on for good
			sl.act.PreemptWasTrue, sl.act.Irrevocable = true, true
			sl.ending.why = e.decided(&d)
		}
		return
	}
	if d.Cause == policy.ByPreempt {
		sl.act.PreemptWasTrue, sl.act.Irrevocable = true, true
	}
	if d.Code != 0 {
		sl.ending.why = e.decided(&d)
	}
	e.move(sl, d, policy.Evaluated, left-1)
}

// decided is why a claim ends by d.
func (e *Engine) decided(d *policy.Decision) vacate {
	why := e.vacateFor(d.Code)
	for _, t := range d.Trace {
		// "PREEMPT", and for slots or universes of their own "SLOT_TYPE_1_PREEMPT" and "PREEMPT_VANILLA".
		if strings.Contains(t.Name, d.Cause.String()) && t.Text != "" && strings.HasSuffix(t.Taken, "TRUE") {
			why.rule = Rule{Name: t.Name, Text: t.Text, Origin: "the job"}
			if !t.OfJob {
				why.rule.Origin = t.Origin.String()
			}
		}
	}
	return why
}

// leaving reports whether the job was already told to leave while the slot is
// Claimed: nothing that an expression says would change that.
func (sl *slotState) leaving() bool {
	return sl.pair.State == policy.Claimed && sl.act != nil && sl.act.Phase >= claim.Vacating
}

// moveOn moves a slot because of an event rather than an expression.
func (e *Engine) moveOn(sl *slotState, to policy.Pair, on policy.Class, cause policy.Cause, why string) {
	e.move(sl, policy.Decision{From: sl.pair, To: to, Cause: cause, Reason: why, Code: sl.ending.why.code}, on, maxSettle)
}

// move carries out one row of the table with its duties, and what follows from
// being in the new pair.
func (e *Engine) move(sl *slotState, d policy.Decision, on policy.Class, left int) {
	row, err := policy.Move(sl.pair, d.To, on)
	if err != nil {
		panic(err) // whoever asked for this move is wrong
	}
	d.Number = row.Number
	if d.Reason == "" {
		d.Reason = row.Reason
	}
	if row.Duties.Has(policy.ContinueJob) {
		e.continueJob(sl)
	}
	kills := row.Duties&(policy.SoftKillJob|policy.HardKillJob) != 0 && sl.act != nil
	if kills {
		var trace []policy.Trace
		d.Hold, trace = policy.WantsHold(e.policyView(sl))
		d.Trace = append(d.Trace, trace...)
	}
	if e.drain.on && d.To.State == policy.Preempting && sl.act != nil {
		sl.act.drained = true
	}
	if row.Duties.Has(policy.EndClaim) {
		e.endClaim(sl)
	}
	if row.Duties.Has(policy.DropWaiting) {
		e.dropWaiting(sl)
	}
	if d.To == policy.BackfillKilling && d.Cause == policy.ByEvictBackfill {
		sl.after.next = nextOwner
	}
	from := sl.pair
	e.enter(sl, d.To)
	if from.State == policy.Backfill && d.To.State != policy.Backfill {
		e.backfillLeft()
	}
	sl.last.decision, sl.last.at = d, e.now
	if sl.act != nil {
		sl.last.activation = sl.act.ID
	}
	t := Transitioned{Slot: sl.s.ID, Name: sl.name, From: from, To: d.To, On: on, Number: d.Number, Decision: d}
	if sl.act != nil {
		t.Activation = sl.act.ID
	}
	if row.Duties.Has(policy.BeginClaim) {
		e.beginClaim(sl)
	}
	sl.ad.SetPair(sl.pair, e.now)
	switch {
	case row.Duties.Has(policy.Withhold):
		sl.ad.Offer(false)
	case row.Duties.Has(policy.Offer):
		sl.ad.Offer(true)
	}
	e.emit(t)
	e.emit(AdChanged{Slot: sl.s.ID})
	e.emit(UpdateDue{Slot: sl.s.ID})
	if row.Duties.Has(policy.BeginClaim) {
		e.grant(sl)
	}
	if d.To == policy.ClaimedIdle || d.To == policy.ClaimedBusy {
		sl.ending.why = vacate{} // whatever it was, the claim stays
	}
	switch {
	case row.Duties.Has(policy.RunBenchmark):
		e.runBenchmarks(sl)
	case from == policy.UnclaimedBenchmarking && on != policy.BenchmarksOver:
		e.stopBenchmarks()
	case row.Duties.Has(policy.StartTimer):
		e.matched(sl)
	case row.Duties.Has(policy.SpawnClient):
		e.spawnBackfill(sl)
	case row.Duties.Has(policy.KillClient):
		e.stopBackfill()
	case row.Duties.Has(policy.SuspendJob):
		e.suspendJob(sl)
	case kills && row.Duties.Has(policy.SoftKillJob):
		e.softKill(sl, d.Hold)
	case kills:
		e.hardKill(sl, d.Hold)
	}
	switch {
	case d.To.State == policy.Preempting && sl.act == nil:
		e.leavePreempting(sl)
	case row.Duties.Has(policy.Reevaluate):
		e.settle(sl, left)
	}
}

// leavePreempting goes on when no starter is left: to the claim that waited,
// if the policy still lets it in, or to Owner.
func (e *Engine) leavePreempting(sl *slotState) {
	if w := sl.waiting; w != nil {
		closed := e.closed(sl)
		v := e.policyViewWith(sl, w.claim.Request)
		v.Claim = w.claim
		switch {
		case closed != nil:
			e.moveOn(sl, policy.OwnerIdle, policy.StarterGone, policy.ByStarter, "preempting claim refused - "+closed.Error())
		case policy.StartIsFalse(v):
			e.moveOn(sl, policy.OwnerIdle, policy.StarterGone, policy.ByStarter, "preempting claim refused - START is false")
		case policy.Owned(v):
			e.moveOn(sl, policy.OwnerIdle, policy.StarterGone, policy.ByOwner, "preempting claim refused - IS_OWNER is true")
		default:
			e.moveOn(sl, policy.ClaimedIdle, policy.StarterGone, policy.ByPreemptingClaim, "preempting claim exists - START is true or undefined")
		}
		return
	}
	e.moveOn(sl, policy.OwnerIdle, policy.StarterGone, policy.ByStarter, "No preempting claim, returning to owner")
}

// closed says why a slot takes no claim now, whatever its policy says of the job; nil if
// it does. HTCondor's START is false then.
func (e *Engine) closed(sl *slotState) error {
	switch c := e.refusing(sl); {
	case e.shutdown.begun:
		return errors.New("the execution point is shutting down")
	case sl.s.Broken != nil:
		return errors.New(sl.s.Broken.Reason)
	case c != nil:
		return errors.New("the machine takes no jobs: " + c.reason)
	}
	return e.refusesClaims()
}

// vacateFor words the end of a claim as jobs are told it.
func (e *Engine) vacateFor(code int) vacate {
	text := ""
	switch reason.Code(code) {
	case reason.StartdPreemptExpression:
		text = "PREEMPT expression evaluated to True"
	case reason.StartdVacateCommand:
		text = "Claim vacated by the administrator"
	case reason.StartdShutdown:
		text = cmp.Or(e.cfg.Shutdown, "Startd was shutdown")
	case reason.StartdDraining:
		text = "Startd was draining"
	case reason.StartdRehoming:
		text = "rehome"
	case reason.StartdCoalesce:
		text = "Claim was coalesced"
	case reason.StartdReleaseCommand:
		text = "Schedd released the claim"
	case reason.StartdPreemptingClaimRank:
		text = "Preempted for a higher Ranked job"
	case reason.StartdPreemptingClaimUserPrio:
		text = "Preempted for a Priority user"
	case reason.ClaimDeactivated:
		text = "Claim deactivated"
	}
	return vacate{reason: text, code: code}
}
