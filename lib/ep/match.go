// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"errors"
	"fmt"

	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// MatchTold says that a negotiator has matched a slot with a job, whose access
// point is expected to claim it within MATCH_TIMEOUT. It is not needed for a
// claim. A partitionable slot stays open to further matches.
type MatchTold struct {
	Ref  Ref // zero: no reply wanted
	Slot slot.ID
}

func (MatchTold) event() {}

func (e *Engine) matchTold(ev MatchTold) {
	const op = "ep.Match"
	sl, ok := e.slots.byID[ev.Slot]
	switch {
	case !ok:
		e.refuse(ev.Ref, command.RefusedClaimNotFound, errs.E(op, errs.NotFound, ev.Slot.String(), errors.New("no such slot")))
		return
	case e.shutdown.begun || sl.s.Broken != nil || sl.s.Kind == slot.Dynamic || e.refusing(sl) != nil:
		e.refuse(ev.Ref, command.RefusedNoMatch, errs.E(op, errs.Conflict, sl.name, errors.New("the slot takes no jobs")))
		return
	case sl.s.Kind == slot.Partitionable:
	case sl.pair.State == policy.Unclaimed, sl.pair == policy.BackfillIdle:
		e.moveOn(sl, policy.MatchedIdle, policy.MatchTold, policy.ByMatch, "")
	case sl.pair == policy.BackfillBusy:
		sl.after.next = nextMatch
		e.moveOn(sl, policy.BackfillKilling, policy.MatchTold, policy.ByMatch, "")
	default:
		e.refuse(ev.Ref, command.RefusedUnclaimed, errs.E(op, errs.Conflict, sl.name, fmt.Errorf("the slot is %v", sl.pair)))
		return
	}
	if !ev.Ref.IsZero() {
		e.emit(Reply{Ref: ev.Ref})
	}
}

// matched starts MATCH_TIMEOUT.
func (e *Engine) matched(sl *slotState) {
	sl.matchUntil = e.now.Boot + e.times.Match
	e.schedule.setTimer(sl.matchUntil)
}

// dueMatch ends a match that no claim followed.
func (e *Engine) dueMatch(sl *slotState) {
	switch {
	case sl.pair != policy.MatchedIdle:
	case e.now.Boot >= sl.matchUntil:
		e.moveOn(sl, policy.OwnerIdle, policy.TimedOut, policy.ByMatchTimeout, "")
	default:
		e.schedule.setTimer(sl.matchUntil)
	}
}

// unmatch ends a match whose claim was refused.
func (e *Engine) unmatch(sl *slotState) {
	if sl.pair == policy.MatchedIdle {
		e.moveOn(sl, policy.OwnerIdle, policy.Commanded, policy.ByClaim, "the claim of the matched slot was refused")
	}
}
