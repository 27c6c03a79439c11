// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"crypto/subtle"
	"errors"
	"fmt"
	"time"

	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/slot"
)

// refuse answers an event with an error.
func (e *Engine) refuse(ref Ref, code int, err error) {
	if !ref.IsZero() {
		e.emit(Reply{Ref: ref, Code: code, Err: err})
	}
	if ref.By == Fetcher {
		e.breakPromise(ref)
	}
}

func (e *Engine) claimRequested(ev ClaimRequested) {
	sl, err := e.offered(ev)
	if err != nil {
		e.refuse(ev.Ref, command.RefusedClaimNotFound, err)
		return
	}
	e.claimSlot(sl, ev)
	if !sl.after.waitsFor(ev.Ref) {
		e.spoil(sl, ev.Capability)
	}
}

func (e *Engine) claimSlot(sl *slotState, ev ClaimRequested) {
	const op = "ep.Claim"
	switch {
	case ev.Job == nil:
		e.refuse(ev.Ref, command.RefusedBadRequest, errs.E(op, errs.Invalid, sl.name, errors.New("the request has no job")))
		return
	case standardUniverse(ev.Job):
		e.refuse(ev.Ref, command.RefusedNoMatch, errs.E(op, errs.Unsupported, sl.name, errStandard()))
		e.unmatch(sl)
		return
	case e.shutdown.begun:
		e.refuse(ev.Ref, int(reason.StartdShutdown), errs.E(op, errs.Conflict, sl.name, errors.New("the execution point is shutting down")))
		return
	case e.refusesClaims() != nil:
		e.refuse(ev.Ref, int(reason.StartdDraining), errs.E(op, errs.Conflict, sl.name, e.refusesClaims()))
		return
	case sl.s.Broken != nil:
		e.refuse(ev.Ref, command.RefusedBroken, errs.E(op, errs.Broken, sl.name, errors.New(sl.s.Broken.Reason)))
		return
	case e.refusing(sl) != nil:
		e.refuse(ev.Ref, command.RefusedBroken, e.refusedFor(op, sl, e.refusing(sl)))
		e.unmatch(sl)
		return
	}
	if sl.pair == policy.BackfillBusy || sl.pair == policy.BackfillKilling {
		e.claimBackfill(sl, ev)
		return
	}
	if sl.s.Kind == slot.Partitionable {
		e.claimPart(sl, ev)
		return
	}
	if !ev.Capability.IsZero() && ev.Capability.Public == sl.ids.split.Public {
		e.claimSplit(sl, ev)
		return
	}
	if ev.Whole || len(ev.Evict) > 0 || ev.DynamicSlots > 0 {
		e.refuse(ev.Ref, command.RefusedBadRequest, errs.E(op, errs.Invalid, sl.name, errors.New("only a partitionable slot can be claimed in that way")))
		return
	}
	switch sl.pair.State {
	case policy.Owner, policy.Unclaimed, policy.Matched, policy.Drained, policy.Backfill:
		e.claimWhole(sl, ev)
	case policy.Claimed:
		e.claimOver(sl, ev)
	default:
		e.refuse(ev.Ref, command.RefusedUnclaimed, errs.E(op, errs.Conflict, sl.name, fmt.Errorf("the slot is %v", sl.pair)))
	}
}

// standardUniverse reports whether a job is of the standard universe, which
// nothing runs any more. Its IS_VALID_CHECKPOINT_PLATFORM is not asked.
func standardUniverse(job *classad.Ad) bool {
	n, ok := job.EvalInt("JobUniverse", nil)
	return ok && n == policy.UniverseStandard
}

func errStandard() error { return errors.New("there is no standard universe any more") }

// refusalOf returns the code for a request that cannot be granted.
func refusalOf(err error) int {
	if errs.Is(err, errs.Invalid) {
		return command.RefusedBadRequest
	}
	return command.RefusedNoMatch
}

// whyDenied adds what START says to the refusal of a request by the slot's
// Requirements.
func (e *Engine) whyDenied(sl *slotState, job *classad.Ad, err error) error {
	if !errs.Is(err, errs.Denied) {
		return err
	}
	if verdict := policy.Starts(e.policyViewWith(sl, job)); !verdict.OK {
		return errs.E("", errs.Denied, "", fmt.Errorf("START does not accept the job: %v", traces(verdict.Trace)))
	}
	return err
}

// claimWhole claims a slot without a claim.
func (e *Engine) claimWhole(sl *slotState, ev ClaimRequested) {
	if err := e.unwilling(sl, ev.Job); err != nil {
		e.refuse(ev.Ref, command.RefusedNoMatch, errs.E("ep.Claim", errs.Denied, sl.name, err))
		e.unmatch(sl)
		return
	}
	e.take(sl, ev)
}

// unwilling says why the policy of a slot does not take the job, nil if it
// does. What keeps a slot from being claimed is found out before the claim,
// not after it.
func (e *Engine) unwilling(sl *slotState, job *classad.Ad) error {
	v := e.policyViewWith(sl, job)
	if verdict := policy.Starts(v); !verdict.OK {
		return fmt.Errorf("START does not accept the job: %v", traces(verdict.Trace))
	}
	if policy.Owned(v) {
		return fmt.Errorf("IS_OWNER keeps the slot for its owner: %v", traces(policy.ExplainOwner(v)))
	}
	return nil
}

// policyViewWith is policyView of a slot with a job that is not in it.
func (e *Engine) policyViewWith(sl *slotState, job *classad.Ad) *policy.View {
	v := e.policyView(sl)
	v.Slot, v.Job = sl.ad.WithoutJob(), job
	return v
}

// traces prints a trace on one line.
type traces []policy.Trace

// String joins the entries with semicolons.
func (t traces) String() string {
	s := ""
	for i, tr := range t {
		if i > 0 {
			s += "; "
		}
		s += tr.String()
	}
	return s
}

// take gives the slot to the request. The slot must be free for it.
func (e *Engine) take(sl *slotState, ev ClaimRequested) {
	sl.waiting = e.newWaiting(sl, ev)
	sl.waiting.claim.ID = e.idFor(sl, ev)
	e.moveOn(sl, policy.ClaimedIdle, policy.ClaimTaken, policy.ByClaim, "")
}

// claimOver lets a request wait for a slot whose present claim is worth less.
func (e *Engine) claimOver(sl *slotState, ev ClaimRequested) {
	const op = "ep.Claim"
	if err := e.unwilling(sl, ev.Job); err != nil {
		e.refuse(ev.Ref, command.RefusedNoMatch, errs.E(op, errs.Denied, sl.name, err))
		return
	}
	w := e.newWaiting(sl, ev)
	have, who := sl.cur.Rank, "present"
	if sl.waiting != nil {
		have, who = sl.waiting.claim.Rank, "waiting"
	}
	if w.claim.Rank < have || w.claim.Rank == have && !ev.Priority {
		e.refuse(ev.Ref, command.RefusedPreempted, errs.E(op, errs.Denied, sl.name,
			fmt.Errorf("rank %g is not above %g of the %s claim", w.claim.Rank, have, who)))
		return
	}
	e.dropWaiting(sl)
	w.claim.ID = e.idFor(sl, ev)
	w.reason = policy.WaitsByPriority
	if w.claim.Rank > sl.cur.Rank {
		w.reason = policy.WaitsByRank
	}
	sl.waiting = w
	e.emit(ClaimWaits{Slot: sl.s.ID, Name: sl.name, Why: w.reason, Fetched: ev.work != nil})
	e.ads.Preempted(w.reason == policy.WaitsByRank, e.now)
	sl.ad.SetWaiting(w.claim)
	e.emit(AdChanged{Slot: sl.s.ID})
	e.evaluate(sl)
}

// newWaiting makes the claim of a request, not yet in force.
func (e *Engine) newWaiting(sl *slotState, ev ClaimRequested) *waiting {
	interval := ev.AliveInterval
	if interval <= 0 {
		interval = e.times.Alive
	}
	lease := ev.Lease
	if lease <= 0 {
		lease = interval * time.Duration(e.times.AlivesMissed)
	}
	kept, said := ev.Job.EvalBool("StarterHandlesAlives", nil)
	v := e.policyViewWith(sl, ev.Job)
	return &waiting{ref: ev.Ref, req: ev, claim: &claim.Claim{
		Slot: sl.s.ID, Client: ev.Client, Request: ev.Job, Rank: policy.RankOf(v),
		Granted: lease, KeptByStarter: kept || !said, Work: ev.work,
	}}
}

// beginClaim puts the waiting claim in force.
func (e *Engine) beginClaim(sl *slotState) {
	c := sl.waiting.claim
	c.Since = e.now
	c.Lease = claim.NewLease(c.Granted, e.now)
	sl.cur, sl.ending.byClient, sl.ending.why = c, false, vacate{}
	e.slots.byClaim[c.ID.Public] = sl
	sl.ad.SetClaim(c, e.now)
	e.schedule.setTimer(c.Lease.Until)
	if sl.ids.first.IsZero() {
		e.mint(sl)
	}
}

// grant tells the client that it has the slot, and those that it got before by
// the same request.
func (e *Engine) grant(sl *slotState) {
	w := sl.waiting
	sl.waiting = nil
	delete(e.fetch.promised, w.ref)
	if w.silent {
		return
	}
	var got []Grant
	for _, o := range append(w.others[:len(w.others):len(w.others)], sl) {
		if o.cur != nil {
			got = append(got, Grant{
				Claim: o.cur.ID, Slot: o.s.ID, Name: o.full, Ad: o.ad.Snapshot(e.now), Job: o.cur.Request, Lease: o.cur.Lease.Duration,
			})
		}
	}
	g := got[0]
	g.More = got[1:]
	if w.rest != nil {
		g.Leftovers = e.leftovers(w.rest, g.Name)
	}
	e.emit(Reply{Ref: w.ref, Granted: &g})
}

// endClaim ends the present claim and tells its client.
func (e *Engine) endClaim(sl *slotState) {
	c := sl.cur
	if c == nil {
		return
	}
	e.fade(sl)
	delete(e.slots.byClaim, c.ID.Public)
	e.evictWork(sl, c)
	e.emit(ClaimEnded{Claim: c.ID, Slot: sl.s.ID, Client: c.Client, Reason: sl.ending.why.reason, Code: sl.ending.why.code, ByClient: sl.ending.byClient})
	sl.cur, sl.ending.byClient, sl.commanded, sl.ending.why = nil, false, false, vacate{}
	sl.ad.ClearClaim()
}

// dropWaiting refuses the request that still waits, if any.
func (e *Engine) dropWaiting(sl *slotState) {
	if w := sl.waiting; w != nil {
		sl.waiting = nil
		sl.ad.ClearWaiting()
		e.refuse(w.ref, command.RefusedPreempted, errSlotTaken(sl))
	}
}

func errSlotTaken(sl *slotState) error {
	return errs.E("ep.Claim", errs.Conflict, sl.name, errors.New("the slot went another way"))
}

func (e *Engine) claimWithdrawn(ev ClaimWithdrawn) {
	for _, sl := range e.slots.all {
		sl.after.withdraw(ev.Ref)
		if sl.waiting != nil && sl.waiting.ref == ev.Ref {
			sl.waiting = nil // the present claim goes on at the next look
			sl.ad.ClearWaiting()
			e.emit(AdChanged{Slot: sl.s.ID})
			return
		}
	}
}

// held returns the slot of a claim if id is wholly right.
func (e *Engine) held(id claim.ID) (*slotState, bool) {
	sl, ok := e.slots.byClaim[id.Public]
	if !ok || subtle.ConstantTimeCompare([]byte(sl.cur.ID.Secret.Reveal()), []byte(id.Secret.Reveal())) != 1 {
		return nil, false
	}
	return sl, true
}

// holder is held, or a refusal for the event.
func (e *Engine) holder(op string, ref Ref, id claim.ID) (*slotState, bool) {
	sl, ok := e.held(id)
	if !ok {
		e.refuse(ref, command.RefusedClaimNotFound, errs.E(op, errs.NotFound, id.String(), errors.New("no such claim")))
	}
	return sl, ok
}

func (e *Engine) leaseRenewed(ev LeaseRenewed) {
	if sl, ok := e.held(ev.Claim); ok && sl.pair.State == policy.Claimed && !sl.cur.Fixed {
		e.renewLease(sl, ev.By)
	}
}

func (e *Engine) releaseRequested(ev ReleaseRequested) {
	const op = "ep.Release"
	sl, ok := e.holder(op, ev.Ref, ev.Claim)
	if !ok {
		return
	}
	if sl.pair.State != policy.Claimed {
		e.refuse(ev.Ref, command.RefusedUnclaimed, errs.E(op, errs.Conflict, sl.name, fmt.Errorf("the slot is %v", sl.pair)))
		return
	}
	if !ev.Ref.IsZero() {
		e.emit(Reply{Ref: ev.Ref})
	}
	sl.ending.byClient = true
	e.kill(sl, int(reason.StartdReleaseCommand), policy.ByCommand, "received RELEASE_CLAIM command")
}

func (e *Engine) workEnded(ev WorkEnded) {
	const op = "ep.WorkEnded"
	sl, ok := e.holder(op, ev.Ref, ev.Claim)
	if !ok {
		return
	}
	if sl.pair != policy.ClaimedIdle {
		e.refuse(ev.Ref, command.RefusedUnclaimed, errs.E(op, errs.Conflict, sl.name, fmt.Errorf("the slot is %v", sl.pair)))
		return
	}
	if !ev.Ref.IsZero() {
		e.emit(Reply{Ref: ev.Ref})
	}
	sl.ending.byClient = true
	e.moveOn(sl, policy.PreemptingVacating, policy.Commanded, policy.ByCommand, "no more work was fetched")
}

// kill ends a claim at once, whatever goes on under it.
func (e *Engine) kill(sl *slotState, code int, cause policy.Cause, why string) {
	switch {
	case sl.pair == policy.ClaimedCleaning:
		if code != 0 {
			sl.ending.why = e.vacateFor(code)
		}
		sl.cur.Released = true
		e.hardKill(sl, nil)
	case sl.pair.State == policy.Claimed, sl.pair == policy.PreemptingVacating:
		if code != 0 {
			sl.ending.why = e.vacateFor(code)
		}
		e.moveOn(sl, policy.PreemptingKilling, policy.Commanded, cause, why)
	}
}

// retire lets the job under a claim finish within its retirement, irrevocably;
// Peaceful waits for it without end.
func (e *Engine) retire(sl *slotState, code int, m Manner, cause policy.Cause, why string) {
	if sl.pair.State != policy.Claimed {
		return
	}
	sl.ending.why = e.vacateFor(code)
	if sl.act != nil {
		sl.act.Irrevocable = true
		sl.act.Peaceful = sl.act.Peaceful || m == Peaceful
	}
	switch sl.pair.Activity {
	case policy.Idle, policy.Busy, policy.Suspended:
		e.moveOn(sl, policy.ClaimedRetiring, policy.Commanded, cause, why)
	case policy.Cleaning:
		// Only the starter is left to wait for, and the claim ends with it, as HTCondor's test
		// of Cleaning has it for condor_vacate. Its startd notes the reason alone then, and the
		// claim goes on. A schedd may be told of the end of a claim at any time.
		sl.cur.Released = true
	}
}
