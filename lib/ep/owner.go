// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"errors"
	"fmt"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/slot"
)

func (e *Engine) vacateRequested(ev VacateRequested) {
	const op = "ep.Vacate"
	if ev.Slot.IsZero() {
		for _, sl := range e.slots.all {
			e.vacateSlot(sl, ev.Manner)
		}
		if !ev.Ref.IsZero() {
			e.emit(Reply{Ref: ev.Ref})
		}
		return
	}
	sl, ok := e.slots.byID[ev.Slot]
	if !ok {
		e.refuse(ev.Ref, 0, errs.E(op, errs.NotFound, ev.Slot.String(), errors.New("no such slot")))
		return
	}
	if sl.s.Kind == slot.Partitionable && sl.cur == nil {
		e.refuse(ev.Ref, 0, errs.E(op, errs.Conflict, sl.name, errors.New("there is no claim to vacate: a partitionable slot has none, its dynamic slots have")))
		return
	}
	if !e.vacateSlot(sl, ev.Manner) {
		e.refuse(ev.Ref, 0, errs.E(op, errs.Conflict, sl.name, fmt.Errorf("there is no claim to vacate, the slot is %v", sl.pair)))
		return
	}
	if !ev.Ref.IsZero() {
		e.emit(Reply{Ref: ev.Ref})
	}
}

// vacateSlot ends the claim of a slot in the owner's name; false if there is
// none that this could end.
func (e *Engine) vacateSlot(sl *slotState, m Manner) bool {
	code := int(reason.StartdVacateCommand)
	switch {
	case sl.pair == policy.MatchedIdle:
		e.moveOn(sl, policy.OwnerIdle, policy.Commanded, policy.ByCommand, "received VACATE_CLAIM command")
	case sl.pair.State == policy.Backfill:
		e.leaveBackfill(sl, policy.ByCommand, "received VACATE_CLAIM command")
	case m == Fast && (sl.pair.State == policy.Claimed || sl.pair == policy.PreemptingVacating):
		e.kill(sl, code, policy.ByCommand, "received VACATE_CLAIM_FAST command")
	case m != Fast && sl.pair.State == policy.Claimed:
		e.retire(sl, code, Graceful, policy.ByCommand, "received VACATE_CLAIM command")
	default:
		return false
	}
	return true
}

// shutdown is how the EP ends, if it does.
type shutdown struct {
	begun    bool
	manner   Manner
	until    time.Duration // boot time at which a graceful shutdown becomes a fast one, 0: never
	fastAt   time.Duration // boot time at which a fast shutdown began
	complete bool          // ShutdownComplete was sent
	vacant   vacancy
}

func (e *Engine) shutdownRequested(m Manner) { e.beginShutdown(m, m.String()+" shutdown") }

func (e *Engine) beginShutdown(m Manner, why string) {
	s := &e.shutdown
	if s.begun && m <= s.manner {
		return
	}
	s.begun, s.manner, s.until = true, m, 0
	if m == Fast {
		s.fastAt = e.now.Boot
	}
	e.emit(ShutdownBegun{Manner: m, Why: why})
	e.stopBenchmarks()
	if m == Graceful && e.times.ShutdownGraceful > 0 {
		s.until = e.now.Boot + e.times.ShutdownGraceful
		e.schedule.setTimer(s.until)
	}
	code := int(reason.StartdShutdown)
	for _, sl := range e.slots.all {
		switch {
		case sl.pair == policy.MatchedIdle:
			e.moveOn(sl, policy.OwnerIdle, policy.Commanded, policy.ByShutdown, why)
		case sl.pair.State == policy.Backfill:
			e.leaveBackfill(sl, policy.ByShutdown, why)
		case m == Fast:
			e.kill(sl, code, policy.ByShutdown, why)
		case m == Graceful && sl.act != nil && sl.act.Peaceful:
			// What was to wait for ever has its ordinary retirement again.
			sl.act.Peaceful = false
			e.evaluate(sl)
		default:
			e.retire(sl, code, m, policy.ByShutdown, why)
		}
	}
}

// due turns a graceful shutdown that took too long into a fast one.
func (s *shutdown) due(e *Engine) {
	switch {
	case s.until == 0:
	case e.now.Boot >= s.until:
		e.beginShutdown(Fast, "fast shutdown, after SHUTDOWN_GRACEFUL_TIMEOUT")
	default:
		e.schedule.setTimer(s.until)
	}
}

// check notices that no starter and no benchmark is left.
func (s *shutdown) check(e *Engine) {
	if s.begun && !s.complete && len(e.slots.byActivation) == 0 && !e.bench.running && e.back.client == noClient {
		s.complete = true
		e.emit(ShutdownComplete{})
	}
}
