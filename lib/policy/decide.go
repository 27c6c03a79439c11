// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	"github.com/execpoint/execpoint/lib/reason"
)

// Decide says where the slot in v is to go by its policy. It makes one step:
// whoever carries it out asks again when the row of the table says so. A
// decision that moves brings its trace; one that does not costs no
// allocation.
func Decide(v *View) Decision {
	v.prepare()
	d := v.decide()
	if !d.Moves() {
		return d
	}
	return Explain(v)
}

// Explain is Decide with a trace in any case.
func Explain(v *View) Decision {
	v.prepare()
	t := tracer{}
	v.tracer = &t
	d := v.decide()
	v.tracer = nil
	d.Trace = t.list
	return d
}

func (v *View) decide() Decision {
	switch v.Pair.State {
	case Owner:
		return v.decideOwner()
	case Unclaimed:
		return v.decideUnclaimed()
	case Claimed:
		return v.decideClaimed()
	case Preempting:
		return v.decidePreempting()
	case Backfill:
		return v.decideBackfill()
	case Drained:
		return v.decideDrained()
	}
	return v.decideMatched()
}

// decideMatched gives a match up when START is false whatever the job, as the
// documents promise the owner; HTCondor waits for the timer, and refuses
// the claim. IS_OWNER is not asked: the slot was matched with a job which
// START lets in all the same.
func (v *View) decideMatched() Decision {
	if ok, defined := truth(v.local(Start)); defined && !ok {
		return v.move(OwnerIdle, ByStart, "START is FALSE")
	}
	return v.stay("matched, waiting for the claim")
}

// stay is the decision to change nothing.
func (v *View) stay(why string) Decision {
	return Decision{From: v.Pair, To: v.Pair, Reason: why}
}

// move is the decision to go to the given pair, which the table must have.
func (v *View) move(to Pair, cause Cause, why string) Decision {
	d := Decision{From: v.Pair, To: to, Cause: cause, Reason: why}
	if row, err := Move(v.Pair, to, Evaluated); err == nil {
		d.Number = row.Number
	}
	return d
}

func (v *View) decideOwner() Decision {
	if !v.owner() {
		return v.move(UnclaimedIdle, ByOwner, "IS_OWNER is false")
	}
	if v.Draining {
		return v.move(DrainedRetiring, ByDraining, "entering Drained state (from owner)")
	}
	return v.stay("IS_OWNER is TRUE")
}

func (v *View) decideUnclaimed() Decision {
	if v.Draining {
		return v.move(DrainedRetiring, ByDraining, "entering Drained state (from unclaimed)")
	}
	if v.owner() {
		return v.move(OwnerIdle, ByOwner, "IS_OWNER is TRUE")
	}
	if v.CanBackfill && v.condition(StartBackfill, false) {
		return v.move(BackfillIdle, ByStartBackfill, "START_BACKFILL is TRUE")
	}
	if v.CanBenchmark && v.Pair.Activity == Idle && v.condition(RunBenchmarks, false) {
		return v.move(UnclaimedBenchmarking, ByBenchmarks, "RunBenchmarks is TRUE")
	}
	return v.stay("IS_OWNER is false")
}

// decideClaimed asks in the order of the field's daemon, which decides what
// wins when several conditions hold at once: the end of retirement before
// PREEMPT, PREEMPT before SUSPEND and before CONTINUE.
func (v *View) decideClaimed() Decision {
	act := v.Pair.Activity
	if act == Cleaning {
		return v.stay("the starter is being reaped")
	}
	preempted := v.Activation != nil && v.Activation.PreemptWasTrue
	if v.Activation == nil && (act == Retiring || act == Idle && v.Waiting != NobodyWaits) {
		return v.retired() // nothing is left to wait for
	}
	if act != Idle && v.mustLeave() && v.retirementOver() {
		return v.retired()
	}
	wantSuspend := act != Idle && v.condition(WantSuspend, false)
	if act == Busy && !wantSuspend || act == Retiring && !wantSuspend && !preempted || act == Suspended && !preempted {
		if v.condition(PreemptExpr, false) {
			return v.preempt()
		}
	}
	switch act {
	case Retiring:
		if !v.inRetirement() {
			return v.move(ClaimedBusy, ByUnretirement, "unretiring because no preempting claim exists")
		}
		if wantSuspend && v.condition(SuspendExpr, false) {
			return v.move(ClaimedSuspended, BySuspend, "SUSPEND is TRUE")
		}
		return v.stay("retirement is not over")
	case Busy:
		if wantSuspend && v.condition(SuspendExpr, false) {
			return v.move(ClaimedSuspended, BySuspend, "SUSPEND is TRUE")
		}
		if v.inRetirement() {
			return v.retire()
		}
		if wantSuspend {
			return v.stay("SUSPEND is FALSE")
		}
		return v.stay("PREEMPT is FALSE")
	case Suspended:
		if v.Commanded {
			return v.stay("suspended by command")
		}
		if !v.condition(ContinueExpr, false) {
			return v.stay("CONTINUE is FALSE")
		}
		if v.inRetirement() {
			d := v.move(ClaimedRetiring, ByContinue, "CONTINUE is TRUE")
			d.Code = v.waitingCode()
			return d
		}
		return v.move(ClaimedBusy, ByContinue, "CONTINUE is TRUE")
	}
	return v.decideIdleClaim()
}

// preempt begins irrevocable retirement; in Retiring, where the slot already
// is, it makes the retirement irrevocable.
func (v *View) preempt() Decision {
	if v.Pair.Activity == Retiring {
		d := v.stay("PREEMPT is TRUE")
		d.Cause, d.Code = ByPreempt, int(reason.StartdPreemptExpression)
		return d
	}
	d := v.move(ClaimedRetiring, ByPreempt, "PREEMPT is TRUE")
	d.Code = int(reason.StartdPreemptExpression)
	return d
}

// retire begins retirement that is taken back if its cause goes away.
func (v *View) retire() Decision {
	if v.Waiting == NobodyWaits {
		d := v.move(ClaimedRetiring, ByDraining, "retiring due to draining")
		d.Code = int(reason.StartdDraining)
		return d
	}
	d := v.move(ClaimedRetiring, ByPreemptingClaim, "retiring due to preempting claim")
	d.Code = v.waitingCode()
	return d
}

// waitingCode is the vacate code for the claim that has to make room.
func (v *View) waitingCode() int {
	switch v.Waiting {
	case WaitsByRank:
		return int(reason.StartdPreemptingClaimRank)
	case WaitsByPriority:
		return int(reason.StartdPreemptingClaimUserPrio)
	}
	return 0
}

// retired ends the claim because its retirement is over.
func (v *View) retired() Decision {
	cause := ByRetirement
	switch {
	case v.Waiting != NobodyWaits:
		cause = ByPreemptingClaim
	case v.admitted() && !v.Activation.PreemptWasTrue:
		cause = ByDraining
	}
	to := PreemptingVacating
	if v.Activation != nil && v.Activation.PreemptWasTrue && !v.condition(WantVacate, true) {
		to = PreemptingKilling
	}
	d := v.move(to, cause, "claim retirement ended/expired")
	d.Code = v.waitingCode()
	if cause == ByDraining || v.drainedAtOnce() {
		d.Code = int(reason.StartdDraining)
	}
	return d
}

// drainedAtOnce reports whether draining ends a job that has no retirement. Of
// one that has, the reason was told when its retirement began.
func (v *View) drainedAtOnce() bool {
	a := v.Activation
	return v.Draining && v.Waiting == NobodyWaits && v.Pair.Activity != Retiring && a != nil && !a.Irrevocable && !a.PreemptWasTrue
}

func (v *View) decideIdleClaim() Decision {
	if v.owner() {
		return v.move(PreemptingVacating, ByOwner, "IS_OWNER is true")
	}
	if life := v.worklife(); v.Claim.WorklifeOver(life, v.Now) {
		return v.move(PreemptingVacating, ByWorklife, "idle claim shutting down due to CLAIM_WORKLIFE")
	}
	if v.Draining && v.Now.Sub(v.Claim.Since) >= v.ActivationDelay {
		d := v.move(PreemptingVacating, ByDraining, "idle claim shutting down due to draining of this slot")
		d.Code = int(reason.StartdDraining)
		return d
	}
	return v.stay("idle claim")
}

func (v *View) decidePreempting() Decision {
	if v.Pair.Activity == Vacating && v.condition(KillExpr, false) {
		return v.move(PreemptingKilling, ByKill, "KILL is TRUE")
	}
	return v.stay("the starter has not exited yet")
}

func (v *View) decideBackfill() Decision {
	if v.Pair.Activity == Killing || !v.condition(EvictBackfill, false) {
		return v.stay("EVICT_BACKFILL is FALSE")
	}
	if v.Pair.Activity == Idle {
		return v.move(OwnerIdle, ByEvictBackfill, "EVICT_BACKFILL is TRUE")
	}
	return v.move(BackfillKilling, ByEvictBackfill, "EVICT_BACKFILL is TRUE")
}

func (v *View) decideDrained() Decision {
	if !v.Draining {
		return v.move(OwnerIdle, ByDrainingOver, "slot is no longer draining")
	}
	if v.Pair.Activity == Retiring && v.AllDrained {
		return v.move(DrainedIdle, ByDrainComplete, "draining is complete")
	}
	return v.stay("draining")
}

// ExplainOwner is the trace of what IS_OWNER says now.
func ExplainOwner(v *View) []Trace {
	v.prepare()
	t := tracer{}
	v.tracer = &t
	v.owner()
	v.tracer = nil
	return t.list
}

// WantsHold says whether the job that is about to leave Claimed goes on hold.
// It is asked only for one that PREEMPT sent away, and nil means no. The trace
// is nil unless it is asked.
func WantsHold(v *View) (*Hold, []Trace) {
	if v.Activation == nil || !v.Activation.PreemptWasTrue {
		return nil, nil
	}
	v.prepare()
	t := tracer{}
	v.tracer = &t
	defer func() { v.tracer = nil }()
	if !v.condition(WantHold, false) {
		return nil, t.list
	}
	hold := &Hold{Code: int(reason.StartdHeldJob)}
	val := v.value(WantHoldReason)
	if s, ok := val.AsString(); ok {
		hold.Reason = s
		v.withdrawWarning(WantHoldReason)
	} else {
		v.warn(WantHoldReason, val, "the stock reason is given")
	}
	if hold.Reason == "" {
		hold.Reason = fmt.Sprintf("The startd put this job on hold.  (At preemption time, WANT_HOLD evaluated to true: WANT_HOLD = %v)",
			v.Exprs.list[WantHold].Expr)
	}
	val = v.value(WantHoldSubcode)
	if n, ok := whole(val); ok {
		hold.Subcode = int(n)
		v.withdrawWarning(WantHoldSubcode)
	} else {
		v.warn(WantHoldSubcode, val, "taken as 0")
	}
	return hold, t.list
}
