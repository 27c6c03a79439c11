// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/policy"
)

func (e *Engine) suspendJob(sl *slotState) {
	e.enterPhase(sl, claim.Suspended)
	e.emit(OrderStarter{Activation: sl.act.ID, Op: Suspend, Reason: sl.last.decision.Reason})
}

func (e *Engine) continueJob(sl *slotState) {
	sl.commanded = false
	if sl.act == nil || sl.act.Phase != claim.Suspended {
		return
	}
	e.enterPhase(sl, claim.Running)
	e.emit(OrderStarter{Activation: sl.act.ID, Op: Continue})
}

// softKill asks the job to leave within its vacate time. One that was already
// told to leave keeps the time it has.
func (e *Engine) softKill(sl *slotState, hold *policy.Hold) {
	a := sl.act
	if a == nil || a.Phase >= claim.Vacating {
		return
	}
	if a.Phase == claim.Suspended {
		e.continueJob(sl)
	}
	limit := policy.MaxVacate(e.policyView(sl))
	e.enterPhase(sl, claim.Vacating)
	a.order.hold = hold
	a.limits.soft = e.now.Boot + limit
	e.schedule.setTimer(a.limits.soft)
	e.order(sl, SoftKill, a.limits.soft)
}

// hardKill ends the job at once, and the starter too if it does not obey.
func (e *Engine) hardKill(sl *slotState, hold *policy.Hold) {
	a := sl.act
	if a == nil || a.Phase == claim.Killing {
		return
	}
	if hold != nil {
		a.order.hold = hold
	}
	a.limits.soft = 0
	if a.limits.hard == 0 {
		a.limits.hard = e.now.Boot + e.times.Killing
		a.limits.output = e.now.Boot + e.outputLimit()
		e.schedule.setTimer(a.limits.hard)
	}
	if a.Phase == claim.Ended {
		return // nothing is left to kill but the starter, which is on its way
	}
	e.enterPhase(sl, claim.Killing)
	e.order(sl, HardKill, a.limits.hard)
}

// order tells the starter to end its job, and why.
func (e *Engine) order(sl *slotState, op Order, deadline time.Duration) {
	o := OrderStarter{
		Activation: sl.act.ID, Op: op, Reason: sl.ending.why.reason, Code: sl.ending.why.code, Subcode: sl.ending.why.subcode,
		Deadline: e.at(deadline),
	}
	if h := sl.act.order.hold; h != nil {
		o.Reason, o.Code, o.Subcode, o.Hold = h.Reason, h.Code, h.Subcode, true
	}
	o.Final, o.Purpose = op == SoftKill && sl.act.order.final, sl.act.order.to
	if op == HardKill {
		o.OutputLimit = max(0, sl.act.limits.output-e.now.Boot)
		o.Late = sl.act.limits.late
	}
	sl.act.order.why = sl.ending.why
	e.emit(o)
}

// at returns the instant of a boot time.
func (e *Engine) at(boot time.Duration) clock.Instant { return e.now.Add(boot - e.now.Boot) }

// due does what timers that have run out ask for: a job that used up its
// vacate time is killed, a starter that does not obey is ended by force, a
// claim whose client is silent ends.
func (e *Engine) due() {
	if !e.schedule.timerDue(e.now.Boot) {
		return
	}
	e.shutdown.due(e)
	e.dueBackfill()
	e.dueFaults()
	for _, sl := range e.slots.all {
		e.dueOf(sl)
	}
}

func (e *Engine) dueOf(sl *slotState) {
	e.dueMatch(sl)
	if a := sl.act; a != nil {
		a.limits.extend(e.now.Boot, e.times.Killing)
		if a.limits.softOver(e.now.Boot) {
			a.limits.late = a.Phase == claim.Vacating
			e.hardKill(sl, nil)
		}
		if a.limits.hardOver(e.now.Boot) {
			e.emit(KillStarter{Activation: a.ID, Reason: "starter does not end its job within KILLING_TIMEOUT"})
			a.limits.hard = e.now.Boot + max(time.Second, e.times.Killing)
		}
		for _, t := range [...]time.Duration{a.limits.soft, a.limits.hard} {
			if t != 0 {
				e.schedule.setTimer(t)
			}
		}
	}
	if c := sl.cur; c != nil && sl.pair.State == policy.Claimed {
		if sl.act != nil && c.KeptByStarter && c.Lease.Expired(e.now) {
			e.renewLease(sl, SignStarter)
		}
		if c.Work != nil && c.Lease.Expired(e.now) {
			c.Lease = c.Lease.Renew(e.now) // nobody but this engine holds it
		}
		if c.Lease.Expired(e.now) {
			c.Lease = claim.Lease{}
			e.kill(sl, 0, policy.ByLease, "claim lease expired (condor_schedd gone?), evicting claim")
			return
		}
		if c.Lease.Duration > 0 {
			e.schedule.setTimer(c.Lease.Until)
		}
	}
}
