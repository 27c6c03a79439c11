// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"time"

	"github.com/execpoint/execpoint/lib/ad"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

func (e *Engine) suspendJob(sl *slotState) {
	e.enterPhase(sl, claim.Suspended)
	e.emit(OrderStarter{Activation: sl.act.ID, Op: Suspend, Reason: sl.last.Reason})
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
	limit := policy.MaxVacate(e.look(sl))
	e.enterPhase(sl, claim.Vacating)
	a.hold = hold
	a.softUntil = e.now.Boot + limit
	e.timer(a.softUntil)
	e.order(sl, SoftKill, a.softUntil)
}

// hardKill ends the job at once, and the starter too if it does not obey.
func (e *Engine) hardKill(sl *slotState, hold *policy.Hold) {
	a := sl.act
	if a == nil || a.Phase == claim.Killing {
		return
	}
	if hold != nil {
		a.hold = hold
	}
	a.softUntil = 0
	if a.hardUntil == 0 {
		a.hardUntil = e.now.Boot + e.times.Killing
		a.flowUntil = e.now.Boot + e.outputLimit()
		e.timer(a.hardUntil)
	}
	if a.Phase == claim.Ended {
		return // nothing is left to kill but the starter, which is on its way
	}
	e.enterPhase(sl, claim.Killing)
	e.order(sl, HardKill, a.hardUntil)
}

// order tells the starter to end its job, and why.
func (e *Engine) order(sl *slotState, op Order, deadline time.Duration) {
	o := OrderStarter{
		Activation: sl.act.ID, Op: op, Reason: sl.vacate.reason, Code: sl.vacate.code, Subcode: sl.vacate.subcode,
		Deadline: e.at(deadline),
	}
	if h := sl.act.hold; h != nil {
		o.Reason, o.Code, o.Subcode, o.Hold = h.Reason, h.Code, h.Subcode, true
	}
	o.Final = op == SoftKill && sl.act.final
	if op == HardKill {
		o.OutputLimit = max(0, sl.act.flowUntil-e.now.Boot)
		o.Late = sl.act.late
	}
	sl.act.told = sl.vacate
	e.emit(o)
}

// at returns the instant of a boot time.
func (e *Engine) at(boot time.Duration) clock.Instant { return e.now.Add(boot - e.now.Boot) }

// due does what timers that have run out ask for: a job that used up its
// vacate time is killed, a starter that does not obey is ended by force, a
// claim whose client is silent ends.
func (e *Engine) due() {
	if e.deadline == 0 || e.now.Boot < e.deadline {
		return
	}
	e.deadline = 0
	e.shutdown.due(e)
	e.dueBackfill()
	e.dueFaults()
	for _, sl := range e.slots {
		e.dueOf(sl)
	}
}

func (e *Engine) dueOf(sl *slotState) {
	e.dueMatch(sl)
	if a := sl.act; a != nil {
		if until := a.flowed + e.times.Killing; a.softUntil != 0 && a.flowed != 0 && until > e.now.Boot {
			a.softUntil = max(a.softUntil, until)
		}
		if a.softUntil != 0 && e.now.Boot >= a.softUntil {
			a.late = a.Phase == claim.Vacating
			e.hardKill(sl, nil)
		}
		if a.hardUntil != 0 && e.now.Boot >= a.hardUntil {
			e.emit(KillStarter{Activation: a.ID, Reason: "starter does not end its job within KILLING_TIMEOUT"})
			a.hardUntil = e.now.Boot + max(time.Second, e.times.Killing)
		}
		for _, t := range [...]time.Duration{a.softUntil, a.hardUntil} {
			if t != 0 {
				e.timer(t)
			}
		}
	}
	if c := sl.cur; c != nil && sl.pair.State == policy.Claimed {
		if sl.act != nil && c.KeptByStarter && c.Lease.Expired(e.now) {
			e.keepAlive(sl, SignStarter)
		}
		if c.Lease.Expired(e.now) {
			c.Lease = claim.Lease{}
			e.kill(sl, 0, policy.ByLease, "claim lease expired (condor_schedd gone?), evicting claim")
			return
		}
		if c.Lease.Duration > 0 {
			e.timer(c.Lease.Until)
		}
	}
}

// breakSlot takes the slot out of use because of what its job left behind.
func (e *Engine) breakSlot(sl *slotState, why slot.BrokenReason, job *classad.Ad) {
	if sl.s.Broken != nil {
		return
	}
	if err := e.ledger.Break(sl.s.ID, why); err != nil {
		panic(err) // a slot with a starter is in the ledger
	}
	sl.cur.Released = true
	e.emit(SlotBroke{Slot: sl.s.ID, Name: sl.name, Why: why, Held: sl.s.Total})
	sl.ad.Resources()
	e.ads.Broke(ad.Breakage{Tag: sl.name, Why: why, At: e.now, Client: sl.cur.Client, Job: job, Held: sl.s.Total})
}
