// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"errors"
	"fmt"

	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// DataSlotRequested asks for a data slot in place of an idle dynamic slot that the
// client has claimed. It gets what Job asks for of what that slot has, and its claim; the
// rest goes back to the partitionable slot. A starter brings files there which jobs
// share, and those run in slots that are split off the data slot. The Reply has the
// Granted claim, with its old id. Nothing changes unless all of it can be done.
type DataSlotRequested struct {
	Ref    Ref
	Claim  claim.ID
	Job    *classad.Ad
	Prefix string // begins the slot's name; "" for that of other slots
}

// ClaimMoved says that a claim is of another slot from now on.
type ClaimMoved struct {
	Claim    claim.ID
	From, To slot.ID
}

func (DataSlotRequested) event() {}
func (ClaimMoved) effect()       {}

func (e *Engine) dataSlotRequested(ev DataSlotRequested) {
	sl, err := e.replaceable(ev)
	if err != nil {
		e.refuse(ev.Ref, command.RefusedBadRequest, err)
		return
	}
	child, err := e.splitOff(sl, ev.Job, func(r slot.Request) (*slot.Slot, error) {
		return e.ledger.SplitData(sl.s.ID, r, ev.Prefix)
	})
	if err != nil {
		e.refuse(ev.Ref, refusalOf(err), err)
		return
	}
	data := e.add(child, e.ads.Add(child, e.now))
	sl.cur.Request = ev.Job
	e.moveClaim(sl, data, ev.Ref)
	e.emit(AdChanged{Slot: sl.s.ID.Parent()})
}

// replaceable returns the slot of the claim. The refusals are in HTCondor's words.
func (e *Engine) replaceable(ev DataSlotRequested) (*slotState, error) {
	const op = "ep.DataSlot"
	sl, ok := e.held(ev.Claim)
	if !ok {
		return nil, errs.E(op, errs.Invalid, ev.Claim.String(), errors.New("can't find slot with given claim ID"))
	}
	no := func(kind errs.Kind, why string) (*slotState, error) {
		return nil, errs.E(op, kind, sl.name, errors.New(why))
	}
	switch {
	case ev.Job == nil:
		return no(errs.Invalid, "the request has no job")
	case sl.pair.State != policy.Claimed:
		return no(errs.Invalid, "given slot is not claimed")
	case sl.s.Broken != nil:
		return no(errs.Invalid, "given slot is broken")
	case sl.s.Kind != slot.Dynamic:
		return no(errs.Invalid, "given slot is not dynamic")
	case sl.pair.Activity == policy.Cleaning:
		return no(errs.Transient, "given slot is deactivating, try again later")
	case sl.pair.Activity != policy.Idle:
		return no(errs.Invalid, "given slot is not idle")
	case sl.cur.Closing:
		return no(errs.Expired, "the claim takes no more jobs")
	case e.shutdown.begun:
		return no(errs.Conflict, "the execution point is shutting down")
	}
	return sl, nil
}

// splitOff takes what a job asks for out of a dynamic slot, whose policy has to take the
// job as that of a slot from which one is carved.
func (e *Engine) splitOff(sl *slotState, job *classad.Ad, split func(slot.Request) (*slot.Slot, error)) (*slot.Slot, error) {
	const op = "ep.Split"
	req, err := e.exprs.request.Request(job, sl.ad.WithoutJob(), e.env())
	if err != nil {
		return nil, errs.E(op, errs.Other, sl.name, e.whyDenied(sl, job, err))
	}
	if err := e.unwilling(sl, job); err != nil {
		return nil, errs.E(op, errs.Denied, sl.name, err)
	}
	child, err := split(req)
	if err != nil {
		return nil, errs.E(op, errs.Other, sl.name, err)
	}
	sl.ad.Resources()
	e.emit(AdChanged{Slot: sl.s.ID})
	return child, nil
}

// moveClaim gives the claim of an idle dynamic slot to a new one and ends the old one,
// as though that had never been claimed: its client is not told that the claim ended.
// The lease goes on.
func (e *Engine) moveClaim(from, to *slotState, ref Ref) {
	c := from.cur
	since, lease := c.Since, c.Lease
	delete(e.slots.byClaim, c.ID.Public)
	from.cur, from.commanded, from.ending = nil, false, claimEnd{}
	from.ad.ClearClaim()
	e.emit(ClaimMoved{Claim: c.ID, From: from.s.ID, To: to.s.ID})
	e.moveOn(from, policy.OwnerIdle, policy.ClaimTaken, policy.ByClaim, "its claim went to "+to.name)

	c.Slot = to.s.ID
	to.waiting = &waiting{claim: c, silent: true}
	e.moveOn(to, policy.ClaimedIdle, policy.ClaimTaken, policy.ByClaim, "data slot made of "+from.name)
	if to.cur != c {
		e.refuse(ref, command.RefusedPreempted, errSlotTaken(to))
		return
	}
	c.Since, c.Lease = since, lease
	e.emit(Reply{Ref: ref, Granted: &Grant{
		Claim: c.ID, Slot: to.s.ID, Name: to.full, Ad: to.ad.Snapshot(e.now), Job: c.Request, Lease: c.Lease.Duration,
	}})
}

// splittable sees to it that a dynamic slot has an id by which a part of it can be
// claimed while it is claimed itself, and returns that. Whoever started its starter may
// know it; no collector is told.
func (e *Engine) splittable(sl *slotState) claim.ID {
	if sl.s.Kind != slot.Dynamic || sl.s.Part {
		return claim.ID{}
	}
	if sl.ids.split.IsZero() {
		e.newSplit(sl)
	}
	return sl.ids.split
}

// newSplit makes the next such id.
func (e *Engine) newSplit(sl *slotState) {
	old := sl.ids.split
	sl.ids.split = e.offer(sl, old)
	e.emit(ClaimIDChanged{Slot: sl.s.ID, Name: sl.name, ID: sl.ids.split, Old: old, Further: true})
}

// claimSplit claims a slot that is split off a claimed dynamic one. A refusal leaves the
// id as it is: it was told to one client alone. Leftovers are those of the partitionable
// slot, as of a slot that was carved from that.
func (e *Engine) claimSplit(sl *slotState, ev ClaimRequested) {
	const op = "ep.Claim"
	no := func(kind errs.Kind, code int, why error) { e.refuse(ev.Ref, code, errs.E(op, kind, sl.name, why)) }
	switch {
	case sl.pair.State != policy.Claimed:
		no(errs.Conflict, command.RefusedUnclaimed, fmt.Errorf("the slot is %v", sl.pair))
		return
	case ev.Whole, len(ev.Evict) > 0, ev.DynamicSlots > 1:
		no(errs.Invalid, command.RefusedBadRequest, errors.New("one slot at a time is split off a dynamic slot"))
		return
	}
	child, err := e.splitOff(sl, ev.Job, func(r slot.Request) (*slot.Slot, error) { return e.ledger.Split(sl.s.ID, r) })
	if err != nil {
		e.refuse(ev.Ref, refusalOf(err), err)
		return
	}
	part := e.add(child, e.ads.Add(child, e.now))
	w := e.newWaiting(part, ev)
	w.claim.ID = sl.ids.split
	e.newSplit(sl)
	parent := e.slots.byID[sl.s.ID.Parent()]
	if ev.Leftovers && e.giveLeftovers && (parent.cur == nil || parent.cur.Client.Schedd == ev.Client.Schedd) {
		w.rest = parent
	}
	part.waiting = w
	e.moveOn(part, policy.ClaimedIdle, policy.ClaimTaken, policy.ByClaim, "")
}
