// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"errors"
	"fmt"
	"time"

	"github.com/execpoint/execpoint/lib/ad"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/slot"
)

func (e *Engine) activateRequested(ev ActivateRequested) {
	const op = "ep.Activate"
	sl, ok := e.holder(op, ev.Ref, ev.Claim)
	if !ok {
		return
	}
	no := func(kind errs.Kind, code int, why error) {
		e.refuse(ev.Ref, code, errs.E(op, kind, sl.name, why))
	}
	switch {
	case ev.Job == nil:
		no(errs.Invalid, command.RefusedBadRequest, errors.New("there is no job"))
	case standardUniverse(ev.Job):
		no(errs.Unsupported, command.RefusedNoMatch, errStandard())
	case sl.s.Kind == slot.Partitionable:
		no(errs.Invalid, command.RefusedBadRequest, errors.New("a partitionable slot runs no job itself"))
	case e.shutdown.begun:
		no(errs.Conflict, int(reason.StartdShutdown), errors.New("the execution point is shutting down"))
	case sl.pair.State != policy.Claimed:
		no(errs.Conflict, command.RefusedUnclaimed, fmt.Errorf("the slot is %v", sl.pair))
	case sl.act != nil && sl.act.Phase >= claim.Vacating:
		no(errs.Transient, command.RefusedStillCleaning, errors.New("the last job is not cleaned up yet"))
	case sl.pair.Activity != policy.Idle:
		no(errs.Conflict, command.RefusedNotIdle, fmt.Errorf("the slot is %v", sl.pair))
	case sl.s.Broken != nil:
		no(errs.Broken, command.RefusedBroken, errors.New(sl.s.Broken.Reason))
	case sl.cur.Closing:
		no(errs.Expired, command.RefusedWorklifeExpired, errors.New("the claim takes no more jobs"))
	case e.refusing(sl) != nil:
		e.refuse(ev.Ref, command.RefusedBroken, e.refusedFor(op, sl, e.refusing(sl)))
	default:
		if why := e.unacceptable(sl, ev.Job); why != nil {
			no(errs.Denied, command.RefusedNoMatch, why)
			return
		}
		if ev.Fault != nil {
			e.failed(sl, *ev.Fault)
			no(errs.Transient, command.RefusedBroken, fmt.Errorf("the machine takes no jobs: %s", ev.Fault.Reason))
			return
		}
		e.activate(sl, ev)
	}
}

// unacceptable says why the slot's Requirements do not accept the job, nil if
// they do.
func (e *Engine) unacceptable(sl *slotState, job *classad.Ad) error {
	v := e.policyViewWith(sl, job)
	if verdict := policy.Starts(v); !verdict.OK {
		return fmt.Errorf("START does not accept the job: %v", traces(verdict.Trace))
	}
	env := e.env()
	env.Target = job
	mine := v.Slot
	if ok, _ := mine.EvalBool("Requirements", env); ok {
		return nil
	}
	if expr, ok := mine.Lookup("WithinResourceLimits"); ok {
		return fmt.Errorf("the job wants more than the slot has: WithinResourceLimits = %v is %v",
			expr, mine.Eval("WithinResourceLimits", env))
	}
	return fmt.Errorf("the slot's Requirements are %v", mine.Eval("Requirements", env))
}

// activate starts a job under the claim.
func (e *Engine) activate(sl *slotState, ev ActivateRequested) {
	e.granted()
	v := e.policyViewWith(sl, ev.Job)
	sl.cur.Rank = policy.RankOf(v)
	universe := policy.UniverseVanilla
	if n, ok := ev.Job.EvalInt("JobUniverse", nil); ok {
		universe = int(n)
	}
	id := claim.NewActivationID(sl.name, e.issued.activation())
	sl.act = &activation{Activation: claim.Start(id, ev.Job, universe, policy.Pledge(v), e.now), job: jobNameOf(ev.Job)}
	if e.drain.on {
		sl.act.Admitted = true
		sl.ad.SetAdmitted(true)
	}
	sl.cur.Activations++
	e.slots.byActivation[id] = sl
	e.ads.JobStarted(e.now)
	length := claim.LeaseLength(ev.Job, 0, 0)
	if length == 0 {
		length = sl.cur.Granted
	}
	sl.cur.Lease = sl.cur.Lease.Resize(length, e.now)
	e.schedule.setTimer(sl.cur.Lease.Until)
	if sl.cur.KeptByStarter {
		e.emitKeptAlive(sl, SignStarter)
	}
	if user, ok := ev.Job.EvalString("User", nil); ok {
		sl.cur.Client.User = user
	}
	machine := sl.ad.Snapshot(e.now) // as the job found it
	sl.ad.SetActivation(sl.cur, &sl.act.Activation, e.now)
	sl.ad.SetRank(sl.cur.Rank)
	sl.ad.SetRetirement(policy.RetirementLeft(e.policyView(sl)))
	if sl.act.mayCheckpoint() {
		// The first checkpoint is due as long after the start as others after
		// one another.
		sl.act.checkpointed = e.now
		sl.ad.SetCheckpoint(e.now.Wall)
	}
	e.emit(Reply{Ref: ev.Ref, Activation: id})
	e.moveOn(sl, policy.ClaimedBusy, policy.Activated, policy.ByStarter, "")
	e.emit(StartStarter{
		Activation: id, Claim: sl.cur.ID, Split: e.splittable(sl), Slot: sl.s.ID, SlotName: sl.name, FullName: sl.full,
		Job: ev.Job, MachineAd: machine, Given: sl.s.Total, MaxVacate: policy.MaxVacate(e.policyView(sl)),
		Fetched: sl.cur.Work != nil,
	})
}

// running returns the slot of an activation that is not over.
func (e *Engine) running(id claim.ActivationID) (*slotState, bool) {
	sl, ok := e.slots.byActivation[id]
	return sl, ok
}

func (e *Engine) starterStarted(ev StarterStarted) {
	if sl, ok := e.running(ev.Activation); ok {
		sl.act.proc = ev.Proc
		sl.ad.SetStarter(ev.Proc.PID)
		e.emit(AdChanged{Slot: sl.s.ID})
	}
}

func (e *Engine) starterReached(ev StarterReached) {
	if sl, ok := e.running(ev.Activation); ok {
		sl.act.address = ev.Address
	}
}

func (e *Engine) jobRunning(ev JobRunning) {
	sl, ok := e.running(ev.Activation)
	if !ok || !sl.act.ranFrom.IsZero() || sl.act.Phase == claim.Ended {
		return
	}
	if sl.act.Phase == claim.Starting { // one that was suspended meanwhile, or told to leave, stays so
		e.enterPhase(sl, claim.Running)
	}
	sl.act.ranFrom = e.now
	e.programRan(sl)
	sl.ad.SetJobPid(ev.Proc.PID)
}

func (e *Engine) jobUsage(ev JobUsage) {
	if sl, ok := e.running(ev.Activation); ok {
		sl.act.used.measure(ev.Usage, sl.act.RunTime(e.now))
		sl.act.used.diskKiB = ev.DiskKiB
		sl.ad.SetUsage(ad.Usage{
			Cpus: sl.act.used.cpus, ImageSizeKiB: ev.Usage.ImageSizeKiB, ResidentKiB: max(ev.Usage.RSSKiB, ev.Usage.PeakRSSKiB),
			DiskKiB: ev.DiskKiB, Files: ev.Files, Processes: ev.Usage.Procs,
		})
	}
}

// enterPhase moves the activation on. A move that it does not have would be a
// defect here.
func (e *Engine) enterPhase(sl *slotState, p claim.Phase) {
	if err := sl.act.Enter(p, e.now); err != nil {
		panic(err)
	}
	sl.ad.SetActivation(sl.cur, &sl.act.Activation, e.now)
}

// outputMoved gives an ended job time to send its output. A job that is done is
// not thrown away for a shutdown as long as its output moves: HTCondor has no
// limit for it after a soft kill either, and KILLING_TIMEOUT after a hard one.
func (e *Engine) outputMoved(ev OutputMoved) {
	sl, ok := e.running(ev.Activation)
	if !ok || sl.act.Phase == claim.Ended {
		return
	}
	a := sl.act
	a.limits.outputMoved = e.now.Boot
	if a.Phase != claim.Killing || a.limits.hard == 0 {
		return
	}
	// The starter stops at flowUntil by itself, and tells the shadow.
	if until := min(e.now.Boot+e.times.Killing, a.limits.output+e.times.Killing/2); until > a.limits.hard {
		a.limits.hard = until
		e.schedule.setTimer(until)
	}
}

// outputLimit is how long the output of an ended job may go on after a hard
// kill. Half of KILLING_TIMEOUT leaves the other half for telling the shadow that
// the rest does not come. In a fast shutdown condor_master kills this daemon
// after SHUTDOWN_FAST_TIMEOUT, and all starters have to be gone by then.
func (e *Engine) outputLimit() time.Duration {
	limit := e.times.Killing / 2
	if s := &e.shutdown; s.begun && s.manner == Fast {
		limit = max(limit, s.fastAt+e.times.ShutdownFast-e.times.Killing-e.now.Boot)
	}
	return limit
}

// jobEnded waits for the starter to follow its job.
func (e *Engine) jobEnded(ev JobEnded) {
	sl, ok := e.running(ev.Activation)
	if !ok || sl.act.Phase == claim.Ended {
		return
	}
	e.enterPhase(sl, claim.Ended)
	sl.act.limits.soft = 0
	sl.act.used.usage, sl.act.outcome.exit, sl.act.outcome.exited = ev.Exit.Usage, ev.Exit, true
	sl.act.outcome.broken, sl.act.outcome.fault = ev.Exit.Broken, ev.Exit.Fault
	if ev.Exit.Status.Ended() && !ev.Exit.Evicted {
		sl.act.order.why = vacate{} // its program had ended before the order came
	}
	e.ads.Transferred(ev.Exit.BytesIn, ev.Exit.BytesOut)
	if !sl.act.ranFrom.IsZero() {
		e.ads.JobLasted(e.now.Sub(sl.act.ranFrom), e.now)
	}
	switch sl.pair {
	case policy.ClaimedBusy, policy.ClaimedSuspended, policy.ClaimedRetiring:
		e.moveOn(sl, policy.ClaimedCleaning, policy.JobGone, policy.ByStarter, "")
	}
}

// starterFailed ends an activation that never had a starter.
func (e *Engine) starterFailed(ev StarterFailed) {
	if sl, ok := e.running(ev.Activation); ok {
		sl.act.outcome.fault = ev.Fault
		e.starterGone(StarterExited{Activation: ev.Activation})
	}
}

// starterExited ends an activation whose starter is gone. What it said itself
// about the machine counts.
func (e *Engine) starterExited(ev StarterExited) {
	if sl, ok := e.running(ev.Activation); ok {
		if sl.act.outcome.fault == nil {
			sl.act.outcome.fault = ev.Fault
		}
		if e.askedBreak && sl.act.outcome.broken == nil && ev.Status.Exited && ev.Status.Code == 0 && asksToBreak(sl.act.Job) {
			sl.act.outcome.broken = &slot.BrokenReason{Code: slot.BrokenUnclean, Reason: "Could not clean up after job"}
		}
		e.starterGone(ev)
	}
}

// asksToBreak reports whether a job wants its slot broken when its starter has
// ended well, as owners who try out what becomes of broken slots have it. Without
// their TEST_JOB_CAN_BREAK_SLOT no job is asked.
func asksToBreak(job *classad.Ad) bool {
	v := job.Eval("StarterShouldExitBroken", nil)
	n, ok := v.AsInt()
	return v.IsTrue() || ok && n != 0
}

// starterGone ends an activation, however its starter ended; of one that never had
// a starter the event names the activation alone.
func (e *Engine) starterGone(ev StarterExited) {
	sl, ok := e.running(ev.Activation)
	if !ok {
		return
	}
	a := sl.act
	if a.outcome.broken == nil {
		a.outcome.broken = ev.Broken
	}
	if ev.Immortal > 0 && a.outcome.broken == nil && e.leftoversBreak {
		a.outcome.broken = &slot.BrokenReason{Code: slot.BrokenHungProcess, Reason: "Could not terminate all job processes"}
	}
	delete(e.slots.byActivation, ev.Activation)
	e.emitActivationEnded(sl)
	e.ads.StarterLived(e.now.Sub(a.Began), e.now)
	sl.cur.Add(&a.Activation, e.now)
	if a.drained {
		e.drain.badput += processorTime(a.RunTime(e.now), sl.s.Total.Cpus)
	}
	if a.Admitted {
		sl.ad.SetAdmitted(false)
	}
	sl.act, sl.commanded = nil, false
	sl.ad.ClearActivation(sl.cur, e.now)
	if sl.cur.KeptByStarter {
		sl.cur.Lease = sl.cur.Lease.Renew(e.now)
		e.schedule.setTimer(sl.cur.Lease.Until)
	}
	if a.outcome.broken != nil {
		e.breakSlot(sl, *a.outcome.broken, ev.Activation, a.Job)
	}
	if a.outcome.fault != nil {
		// Only now: its sandbox, which may have filled the disk, is removed.
		e.failed(sl, *a.outcome.fault)
	}
	why := "starter exited, was in " + sl.pair.String()
	switch sl.pair {
	case policy.ClaimedBusy, policy.ClaimedSuspended:
		released := sl.cur.Released // its client knows that it is over
		e.moveOn(sl, policy.ClaimedIdle, policy.StarterGone, policy.ByStarter, why)
		if released && sl.pair == policy.ClaimedIdle && sl.s.Broken == nil {
			e.moveOn(sl, policy.PreemptingVacating, policy.Commanded, policy.ByCommand, "Claim deactivated")
		}
	case policy.ClaimedRetiring:
		e.moveOn(sl, policy.PreemptingVacating, policy.StarterGone, policy.ByStarter, why)
	case policy.ClaimedCleaning:
		if sl.cur.Released || sl.waiting != nil {
			e.moveOn(sl, policy.PreemptingVacating, policy.StarterGone, policy.ByStarter, why)
		} else {
			e.moveOn(sl, policy.ClaimedIdle, policy.StarterGone, policy.ByStarter, why)
		}
	case policy.PreemptingVacating, policy.PreemptingKilling:
		e.leavePreempting(sl)
	}
	if ev.ClientLost && sl.pair.State == policy.Claimed {
		e.kill(sl, 0, policy.ByLease, "claim lease expired (condor_schedd gone?), evicting claim")
	}
}

// deactivateRequested ends the job under a claim in the client's name. The
// slot stays as it is until the job is gone, unless the claim is closing.
func (e *Engine) deactivateRequested(ev DeactivateRequested) {
	const op = "ep.Deactivate"
	sl, ok := e.holder(op, ev.Ref, ev.Claim)
	if !ok {
		return
	}
	closing := sl.pair.State != policy.Claimed || sl.pair.Activity == policy.Retiring || sl.waiting != nil ||
		sl.cur.Closing || sl.cur.Released || sl.cur.WorklifeOver(policy.Worklife(e.policyView(sl)), e.now) ||
		e.drain.on && (sl.act == nil || !sl.act.Admitted) || e.refusing(sl) != nil || sl.act != nil && sl.act.outcome.fault != nil && !sl.act.outcome.fault.Doubtful
	if !ev.Ref.IsZero() {
		e.emit(Reply{Ref: ev.Ref, Closing: closing})
	}
	if ev.How == Asking || sl.pair.State != policy.Claimed {
		return
	}
	sl.cur.Closing = closing
	if sl.act != nil && ev.How != JobDone {
		sl.act.order.final, sl.act.order.to = ev.Final, ev.Purpose
		sl.ending.why = e.vacateFor(int(reason.ClaimDeactivated))
		if ev.How == Forcibly {
			sl.ending.why.reason = "Claim deactivated forcibly"
			e.hardKill(sl, nil)
		} else {
			e.softKill(sl, nil)
		}
	}
	if !closing {
		return
	}
	// The client was told that the claim closes and will not release it.
	sl.ending.byClient = true
	if sl.pair == policy.ClaimedCleaning || sl.act != nil && ev.How == JobDone {
		sl.cur.Released = true
		return
	}
	e.moveOn(sl, policy.PreemptingVacating, policy.Commanded, policy.ByCommand, "Claim deactivated")
}

func (e *Engine) suspendRequested(ev SuspendRequested) {
	const op = "ep.Suspend"
	sl, ok := e.holder(op, ev.Ref, ev.Claim)
	if !ok {
		return
	}
	if (sl.pair != policy.ClaimedBusy && sl.pair != policy.ClaimedRetiring) || sl.leaving() {
		e.refuse(ev.Ref, 0, errs.E(op, errs.Conflict, sl.name, fmt.Errorf("no job to suspend, the slot is %v", sl.pair)))
		return
	}
	if !ev.Ref.IsZero() {
		e.emit(Reply{Ref: ev.Ref})
	}
	sl.commanded = true
	e.moveOn(sl, policy.ClaimedSuspended, policy.Commanded, policy.ByCommand, "received SUSPEND_CLAIM command")
}

func (e *Engine) continueRequested(ev ContinueRequested) {
	const op = "ep.Continue"
	sl, ok := e.holder(op, ev.Ref, ev.Claim)
	if !ok {
		return
	}
	if sl.pair != policy.ClaimedSuspended || !sl.commanded {
		e.refuse(ev.Ref, 0, errs.E(op, errs.Conflict, sl.name, fmt.Errorf("nothing was suspended by command, the slot is %v", sl.pair)))
		return
	}
	if !ev.Ref.IsZero() {
		e.emit(Reply{Ref: ev.Ref})
	}
	sl.commanded = false
	to := policy.ClaimedBusy
	if sl.act.Irrevocable || sl.waiting != nil || e.drain.on && !sl.act.Admitted {
		to = policy.ClaimedRetiring
	}
	e.moveOn(sl, to, policy.Commanded, policy.ByCommand, "received CONTINUE_CLAIM command")
}
