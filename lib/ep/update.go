// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"time"

	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// UpdateDue says that a pool should be told of the ad of a slot: its State,
// Activity or START has changed. With the zero Slot it is every ad's turn,
// which it is UPDATE_OFFSET after the start and then every UPDATE_INTERVAL.
// Several at one instant, or within a second, make one update. AdChanged says
// more, and more often: that the ad is not what it was.
type UpdateDue struct{ Slot slot.ID }

// ShutdownBegun says that the EP has begun to end, or to end faster, and why.
type ShutdownBegun struct {
	Manner Manner
	Why    string
}

func (UpdateDue) effect()     {}
func (ShutdownBegun) effect() {}

// beginUpdates plans the first update.
func (e *Engine) beginUpdates() {
	e.schedule.update = e.now.Boot + e.times.Offset
	if e.times.Offset <= 0 {
		e.updateAll()
	}
}

// updateAll is the periodic update.
func (e *Engine) updateAll() {
	e.schedule.updated = true
	e.schedule.update = e.now.Boot + e.times.Update
	e.emit(UpdateDue{})
}

// startSeen is what START was without regard to a job.
type startSeen uint8

const (
	startUnseen startSeen = iota
	startFalse
	startTrue
	startUndefined
)

// seeStart notices that START has changed. Without a job it gives no warning:
// it is meant to ask for one. A negotiator never matches a dynamic slot.
func (e *Engine) seeStart(sl *slotState) {
	if sl.s.Kind == slot.Dynamic {
		return
	}
	v := e.policyView(sl)
	is := startUndefined
	switch value, defined := policy.StartHolds(v); {
	case defined && value:
		is = startTrue
	case defined:
		is = startFalse
	}
	if sl.start != startUnseen && sl.start != is {
		e.emit(AdChanged{Slot: sl.s.ID})
		e.emit(UpdateDue{Slot: sl.s.ID})
	}
	sl.start = is
}

// vacancy is how long the EP has been without a claim.
type vacancy struct {
	on   bool
	from time.Duration // boot time
}

// endIfVacant ends an EP that has had no claim for STARTD_NOCLAIM_SHUTDOWN. It
// counts from the start, or from the end of the last claim.
func (e *Engine) endIfVacant() {
	switch {
	case len(e.slots.byClaim) > 0:
		e.shutdown.vacant.on = false
		return
	case !e.shutdown.vacant.on:
		e.shutdown.vacant = vacancy{true, e.now.Boot}
	}
	if e.times.NoClaim <= 0 || e.shutdown.begun {
		return
	}
	at := e.shutdown.vacant.from + e.times.NoClaim
	if e.now.Boot < at {
		e.schedule.setTimer(at)
		return
	}
	e.beginShutdown(Graceful, "no slot was claimed for "+e.times.NoClaim.String())
}
