// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// StartBackfill asks for the backfill client. There is one for the whole
// machine, however many slots are in Backfill. BackfillRunning or
// BackfillExited answers.
type StartBackfill struct{ Slot slot.ID }

// StopBackfill asks the backfill client to end, with all that it started;
// by force if it is still there at the Deadline. BackfillExited follows.
type StopBackfill struct{ Deadline clock.Instant }

func (StartBackfill) effect() {}
func (StopBackfill) effect()  {}

// BackfillRunning says that the backfill client runs.
type BackfillRunning struct{}

// BackfillExited says that nothing of the backfill client is left, or that it
// could not be started.
type BackfillExited struct{}

// BackfillPossible says whether StartBackfill can be carried out from now on;
// until the first one Config.Backfill does. What the client needs can be right
// or wrong beyond what the engine reads of a configuration.
type BackfillPossible struct{ Possible bool }

// BackfillUsage is what the client and all that it started have used so far.
type BackfillUsage struct{ Usage host.Usage }

func (BackfillRunning) event()  {}
func (BackfillExited) event()   {}
func (BackfillPossible) event() {}
func (BackfillUsage) event()    {}

// client is how far the backfill client is.
type client uint8

const (
	noClient client = iota
	clientStarting
	clientRunning
	clientEnding
)

// A client that ends soon after its start is started again later and later.
const (
	backfillSteady = time.Minute // after so long the next one starts at once
	backfillPause  = time.Second // before the second start
	backfillMost   = 5 * time.Minute
)

// backfill is where the backfill client stands.
type backfill struct {
	enabled    bool // by the configuration
	configured bool // and it is possible
	client     client
	measured   bool          // cpus is
	cpus       float64       // processors that the client keeps busy
	spent      time.Duration // of processor time, when it was measured last
	spentAt    time.Duration // boot time of that
	since      time.Duration // boot time of the last start
	pause      time.Duration // before the next start
	again      time.Duration // boot time of the next start, 0: none is planned
}

// next says where a slot goes once its backfill client is gone.
type next uint8

const (
	nextBackfill next = iota // to another client
	nextOwner
	nextMatch
	nextClaim
)

// backfilled reports whether a configuration has backfill to do. What else the
// client needs, and what is wrong with its settings, is for who runs it.
func backfilled(s *config.Snapshot) bool {
	on, err := s.Bool("ENABLE_BACKFILL")
	if err != nil || !on || !strings.EqualFold(strings.TrimSpace(s.String("BACKFILL_SYSTEM")), "BOINC") {
		return false
	}
	// Each may be set by the name of its job attribute as well, which wins.
	for _, knob := range [...][2]string{
		{"BOINC_Executable", "BOINC_Cmd"}, {"BOINC_InitialDir", "BOINC_Iwd"}, {"BOINC_Universe", "BOINC_JobUniverse"},
	} {
		if s.String(knob[0]) == "" && s.String(knob[1]) == "" {
			return false
		}
	}
	return true
}

// backfillPossible ends backfill, or lets it begin.
func (e *Engine) backfillPossible(possible bool) {
	e.cfg.Backfill = possible
	e.back.configured = possible && e.back.enabled
	e.endBackfill()
}

// endBackfill clears the slots whose backfill has been switched off.
func (e *Engine) endBackfill() {
	for _, sl := range e.slots.all {
		if sl.pair.State == policy.Backfill && !e.back.configured {
			e.leaveBackfill(sl, policy.ByBackfill, "backfill is switched off")
		}
	}
}

// mayBackfill reports whether START_BACKFILL is asked of a slot.
func (e *Engine) mayBackfill(sl *slotState) bool {
	return e.back.configured && !e.shutdown.begun && sl.s.Kind != slot.Dynamic && sl.s.Broken == nil && sl.s.Free.Cpus > 0
}

// spawnBackfill sees that a slot which came to Backfill/Idle has a client.
func (e *Engine) spawnBackfill(sl *slotState) {
	b := &e.back
	switch b.client {
	case clientRunning:
		e.moveOn(sl, policy.BackfillBusy, policy.BackfillUp, policy.ByBackfill, "backfill client runs already")
	case noClient:
		if b.again == 0 {
			e.startBackfill(sl)
		}
	}
}

func (e *Engine) startBackfill(sl *slotState) {
	b := &e.back
	b.client, b.since, b.again = clientStarting, e.now.Boot, 0
	b.measured, b.cpus, b.spent, b.spentAt = false, 0, 0, e.now.Boot
	e.emit(StartBackfill{Slot: sl.s.ID})
}

func (e *Engine) backfillRunning() {
	b := &e.back
	if b.client != clientStarting {
		return
	}
	b.client = clientRunning
	for _, sl := range e.slots.all {
		if sl.pair == policy.BackfillIdle {
			e.moveOn(sl, policy.BackfillBusy, policy.BackfillUp, policy.ByBackfill, "")
		}
	}
}

// backfillUsage finds how many processors the client keeps busy.
func (e *Engine) backfillUsage(u host.Usage) {
	b := &e.back
	over := e.now.Boot - b.spentAt
	if b.client != clientRunning && b.client != clientEnding || over < time.Second {
		return
	}
	spent := u.UserCPU + u.SysCPU
	b.measured, b.cpus = true, max(0, (spent-b.spent).Seconds()/over.Seconds())
	b.spent, b.spentAt = spent, e.now.Boot
}

// backfillShare is how busy the client keeps the processors of slots in
// Backfill. That load is the client's, not the owner's. Until the first measurement
// the client counts as using all of them.
func (e *Engine) backfillShare() float64 {
	if !e.back.measured {
		return 1
	}
	all := 0.0
	for _, sl := range e.slots.all {
		all += sl.backfillCpus()
	}
	if all == 0 {
		return 0
	}
	return e.back.cpus / all
}

// backfillCpus are the processors of a slot that the client works on.
func (sl *slotState) backfillCpus() float64 {
	if sl.pair != policy.BackfillBusy && sl.pair != policy.BackfillKilling {
		return 0
	}
	return sl.s.Free.Cpus
}

// stopBackfill ends the client, also for slots that would have kept it: they
// get another one.
func (e *Engine) stopBackfill() {
	b := &e.back
	if b.client == noClient || b.client == clientEnding {
		return
	}
	b.client = clientEnding
	e.emit(StopBackfill{Deadline: e.at(e.now.Boot + e.times.Killing)})
}

// backfillLeft ends a client that no slot wants any more, started or not.
func (e *Engine) backfillLeft() {
	for _, sl := range e.slots.all {
		if sl.pair.State == policy.Backfill {
			return
		}
	}
	e.back.again = 0
	e.stopBackfill()
}

func (e *Engine) backfillExited() {
	b := &e.back
	if b.client == noClient {
		return
	}
	wanted := b.client == clientEnding
	b.client = noClient
	switch {
	case wanted || e.now.Boot-b.since >= backfillSteady:
		b.pause = 0
	default:
		b.pause = min(max(backfillPause, 2*b.pause), backfillMost)
		b.again = e.now.Boot + b.pause
		e.schedule.setTimer(b.again)
	}
	// Who waited for a partitionable slot gets a new one, and there is a slot
	// more.
	for _, sl := range slices.Clone(e.slots.all) {
		switch sl.pair {
		case policy.BackfillKilling:
			e.moveOn(sl, policy.BackfillIdle, policy.BackfillGone, policy.ByBackfill, "")
			e.afterBackfill(sl)
		case policy.BackfillBusy:
			e.moveOn(sl, policy.BackfillIdle, policy.BackfillGone, policy.ByBackfill, "")
		}
	}
	e.dueBackfill()
}

// afterBackfill goes where the slot was wanted when its client was killed.
func (e *Engine) afterBackfill(sl *slotState) {
	to := sl.after.next
	sl.after.next = nextBackfill
	switch to {
	case nextMatch:
		e.moveOn(sl, policy.MatchedIdle, policy.MatchTold, policy.ByMatch, "")
	case nextClaim:
		pending := sl.after.requests
		sl.after.requests = nil
		for i, ev := range pending {
			// The id of what is left goes to the next request, which may claim the whole
			// slot with it. So no other client may know that id.
			ev.Leftovers = ev.Leftovers && i == len(pending)-1
			if sl.s.Kind == slot.Partitionable || sl.pair == policy.BackfillIdle {
				e.claimRequested(ev)
			} else {
				e.refuse(ev.Ref, command.RefusedPreempted, errSlotTaken(sl))
			}
		}
		if sl.pair == policy.BackfillIdle {
			e.moveOn(sl, policy.OwnerIdle, policy.Commanded, policy.ByClaim, "the claim that waited for the end of backfill")
		}
	case nextOwner:
		e.moveOn(sl, policy.OwnerIdle, policy.Commanded, policy.ByCommand, "backfill is over")
	}
}

// claimBackfill lets a request wait for the end of the client.
func (e *Engine) claimBackfill(sl *slotState, ev ClaimRequested) {
	sl.after.requests = append(sl.after.requests, ev)
	sl.after.next = nextClaim
	if sl.pair == policy.BackfillBusy {
		e.moveOn(sl, policy.BackfillKilling, policy.ClaimPending, policy.ByClaim, "")
	}
}

// dropPending refuses who waits for the end of the client.
func (e *Engine) dropPending(sl *slotState) {
	pending := sl.after.requests
	sl.after.requests = nil
	for _, ev := range pending {
		e.refuse(ev.Ref, command.RefusedPreempted, errSlotTaken(sl))
		e.spoil(sl, ev.Capability)
	}
}

// leaveBackfill ends backfill in a slot by command.
func (e *Engine) leaveBackfill(sl *slotState, cause policy.Cause, why string) {
	e.dropPending(sl)
	switch sl.pair {
	case policy.BackfillIdle:
		e.moveOn(sl, policy.OwnerIdle, policy.Commanded, cause, why)
	case policy.BackfillBusy:
		sl.after.next = nextOwner
		e.moveOn(sl, policy.BackfillKilling, policy.Commanded, cause, why)
	case policy.BackfillKilling:
		sl.after.next = nextOwner
	}
}

// dueBackfill starts the client again when its pause is over.
func (e *Engine) dueBackfill() {
	b := &e.back
	if b.again == 0 && b.client != noClient {
		return
	}
	if b.again != 0 && e.now.Boot < b.again {
		e.schedule.setTimer(b.again)
		return
	}
	b.again = 0
	for _, sl := range e.slots.all {
		if sl.pair == policy.BackfillIdle && b.client == noClient {
			e.startBackfill(sl)
			return
		}
	}
}
