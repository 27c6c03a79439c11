// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"crypto/subtle"
	"slices"
	"time"

	"github.com/execpoint/execpoint/lib/ad"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// slotState is one slot with all that goes on in it.
type slotState struct {
	s          *slot.Slot
	name, full string // "slot1_1", "slot1_1@host"
	exprs      *policy.Expressions
	ad         *ad.Slot
	load       float64 // that the job makes, as the load average has it

	standing
	start     startSeen    // START as it was last seen
	removing  bool         // a dynamic slot at its end
	commanded bool         // suspended by command
	cur       *claim.Claim // nil without a claim
	waiting   *waiting     // nil without a preempting claim
	act       *activation  // nil without a starter

	ids        claimIDs
	matchUntil time.Duration // boot time at which a match is over
	ending     claimEnd
	colors     claimColors // what the slots show for cur
	after      afterBackfill
	last       lastMove
	fetch      fetchState
}

// standing is where a slot is in the table of the policy, and since when.
type standing struct {
	pair    policy.Pair
	entered clock.Instant // the state
	began   clock.Instant // the activity
}

// enter puts the slot into another pair.
func (s *standing) enter(to policy.Pair, now clock.Instant) {
	if s.pair.State != to.State {
		s.entered, s.began = now, now
	}
	if s.pair.Activity != to.Activity {
		s.began = now
	}
	s.pair = to
}

// lastMove is the last decision that moved a slot.
type lastMove struct {
	decision   policy.Decision
	at         clock.Instant
	activation claim.ActivationID // the one that was last concerned, "" if none
}

// claimIDs are the ids by which a slot can be claimed; see Engine.stock.
type claimIDs struct {
	first   claim.ID
	further []claim.ID
	split   claim.ID // by which a part of a claimed dynamic slot can be claimed; see Engine.splittable
}

// has reports whether the slot can be claimed by the id, secret and all. Only
// that of the same public part is compared.
func (c *claimIDs) has(id claim.ID) bool {
	have := c.first
	if i := slices.IndexFunc(c.further, func(o claim.ID) bool { return o.Public == id.Public }); i >= 0 {
		have = c.further[i]
	} else if c.split.Public == id.Public {
		have = c.split
	}
	return have.Public == id.Public && subtle.ConstantTimeCompare([]byte(have.Secret.Reveal()), []byte(id.Secret.Reveal())) == 1
}

// claimEnd is what is known of the end of a slot's claim before it has ended.
type claimEnd struct {
	why      vacate
	byClient bool // the client ends the claim itself
}

// afterBackfill is what becomes of a slot when its backfill client is gone.
type afterBackfill struct {
	next     next
	requests []ClaimRequested // that wait for it
}

// withdraw drops the requests that have the reference.
func (a *afterBackfill) withdraw(ref Ref) {
	a.requests = slices.DeleteFunc(a.requests, func(p ClaimRequested) bool { return p.Ref == ref })
}

// waitsFor reports whether a request with the reference waits.
func (a *afterBackfill) waitsFor(ref Ref) bool {
	return slices.ContainsFunc(a.requests, func(p ClaimRequested) bool { return p.Ref == ref })
}

// waiting is a request that waits for the slot of a claim to be preempted.
type waiting struct {
	ref    Ref
	claim  *claim.Claim
	reason policy.Waiting
	req    ClaimRequested
	others []*slotState // which the same request got before
	rest   *slotState   // the partitionable slot whose leftovers are wanted
	silent bool         // another slot of the same request replies
}

// vacate says why a claim is to end.
type vacate struct {
	reason        string
	code, subcode int
	rule          Rule
}

// job returns the ad that expressions see as TARGET.
func (sl *slotState) job() *classad.Ad {
	switch {
	case sl.act != nil:
		return sl.act.Job
	case sl.cur != nil && sl.cur.Activations == 0:
		return sl.cur.Request
	}
	return nil
}

// add takes a slot of the ledger into the engine, in Owner/Idle.
func (e *Engine) add(s *slot.Slot, show *ad.Slot) *slotState {
	sl := &slotState{
		s: s, name: s.Name(), full: s.FullName(e.ads.Name()), ad: show,
		exprs: e.exprs.byType[s.TypeID], standing: standing{entered: e.now, began: e.now},
	}
	e.slots.insert(sl)
	if e.refusing(sl) != nil {
		e.showFault(sl)
	}
	e.changed()
	return sl
}

// forget takes a slot out of the engine and gives it back to the ledger.
func (e *Engine) forget(sl *slotState) {
	e.slots.delete(sl)
	if err := e.ledger.Return(sl.s.ID); err != nil {
		panic(err) // only a slot that is in the ledger is ever forgotten
	}
	e.ads.Remove(sl.s.ID)
	e.changed()
	if parent := e.slots.byID[sl.s.ID.Parent()]; parent != nil {
		// The load average remembers the job for a while.
		parent.load += sl.load
		e.emit(AdChanged{Slot: parent.s.ID})
	}
}

// remove forgets a dynamic slot that others have seen.
func (e *Engine) remove(sl *slotState) {
	e.emit(AdWithdrawn{Slot: sl.s.ID, Name: sl.name})
	e.forget(sl)
}

// polls reports whether a slot in p makes the engine look often.
func polls(p policy.Pair) bool {
	switch p.State {
	case policy.Claimed, policy.Preempting, policy.Backfill:
		return true
	}
	return false
}

// enter puts the slot into a pair and keeps the times and counts that hang on
// it.
func (e *Engine) enter(sl *slotState, to policy.Pair) {
	if was, is := polls(sl.pair), polls(to); is && !was {
		e.schedule.beginPolling(e.now.Boot + e.times.Polling)
	} else if was && !is {
		e.schedule.endPolling()
	}
	sl.standing.enter(to, e.now)
	if sl.s.Kind == slot.Static {
		if err := e.ledger.Occupy(sl.s.ID, to.State == policy.Claimed || to.State == policy.Preempting); err != nil {
			panic(err) // a static slot of the ledger
		}
		e.changed()
	}
	kept := sl.s.Broken != nil && (e.keepBroken || sl.s.Broken.Code == slot.BrokenHungGroup)
	if sl.s.Kind == slot.Dynamic && (to == policy.OwnerIdle || to == policy.UnclaimedIdle) && !sl.removing && !kept {
		sl.removing = true
		e.slots.ending = append(e.slots.ending, sl)
	}
}
