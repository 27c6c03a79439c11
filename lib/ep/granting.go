// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/slot"
)

// owners are the owner's settings of claims. Those of granting may change with
// the configuration, the others hold until a restart.
type owners struct {
	granting
	wholeClaims bool // ENABLE_CLAIMABLE_PARTITIONABLE_SLOTS
	keepBroken  bool // CONTINUE_TO_ADVERTISE_BROKEN_DYNAMIC_SLOTS
	fetch       fetching
}

type granting struct {
	giveLeftovers  bool          // CLAIM_PARTITIONABLE_LEFTOVERS
	wholeMost      time.Duration // MAX_PARTITIONABLE_SLOT_CLAIM_TIME
	leftoversBreak bool          // STARTD_LEFTOVER_PROCS_BREAK_SLOTS
	askedBreak     bool          // TEST_JOB_CAN_BREAK_SLOT
}

func (e *Engine) begin(s *config.Snapshot) error {
	var whole, keep error
	e.wholeClaims, whole = s.Bool("ENABLE_CLAIMABLE_PARTITIONABLE_SLOTS")
	e.keepBroken, keep = s.Bool("CONTINUE_TO_ADVERTISE_BROKEN_DYNAMIC_SLOTS")
	return errors.Join(whole, keep)
}

func grantingFrom(s *config.Snapshot) (granting, error) {
	var g granting
	var bad [4]error
	g.giveLeftovers, bad[0] = s.Bool("CLAIM_PARTITIONABLE_LEFTOVERS")
	g.wholeMost, bad[1] = s.Duration("MAX_PARTITIONABLE_SLOT_CLAIM_TIME")
	g.leftoversBreak, bad[2] = s.Bool("STARTD_LEFTOVER_PROCS_BREAK_SLOTS")
	g.askedBreak, bad[3] = s.Bool("TEST_JOB_CAN_BREAK_SLOT")
	return g, errors.Join(bad[:]...)
}

// newID returns an id for a claim, with a new number and a new secret.
func (e *Engine) newID() claim.ID {
	return claim.NewID(e.cfg.Address, e.cfg.Start, e.issued.claim(), e.cfg.NewSecret())
}

// mint gives the slot a fresh id to be claimed by; the last one is worth
// nothing from now on.
func (e *Engine) mint(sl *slotState) {
	old := sl.ids.first
	sl.ids.first = e.offer(sl, old)
	e.emit(ClaimIDChanged{Slot: sl.s.ID, Name: sl.name, ID: sl.ids.first, Old: old})
}

// offer makes an id by which the slot can be claimed in place of an old one,
// which may be zero.
func (e *Engine) offer(sl *slotState, old claim.ID) claim.ID {
	delete(e.slots.byOffer, old.Public)
	id := e.newID()
	e.slots.byOffer[id.Public] = sl
	return id
}

// stock sees to it that a slot with a consumption policy has as many further
// ids as it has claims to give (NUM_CLAIMS): a negotiator spends one of these for
// each match and, with all that the policy says of what a match takes, goes on
// with the slot in the same cycle until they or the resources are used up. It does
// not use the slot's first id then, which is for others: a schedd that is given
// the leftovers, or a program on this machine.
func (e *Engine) stock(sl *slotState) {
	want := 0
	if sl.s.Kind == slot.Partitionable {
		want = sl.ad.Claims()
	}
	for len(sl.ids.further) < want {
		sl.ids.further = append(sl.ids.further, claim.ID{})
		e.restock(sl, len(sl.ids.further)-1)
	}
	for i := want; i < len(sl.ids.further); i++ {
		old := sl.ids.further[i]
		delete(e.slots.byOffer, old.Public)
		e.emit(ClaimIDChanged{Slot: sl.s.ID, Name: sl.name, Old: old, Further: true})
	}
	sl.ids.further = sl.ids.further[:min(want, len(sl.ids.further))]
}

// restock replaces the i-th of the further ids.
func (e *Engine) restock(sl *slotState, i int) {
	old := sl.ids.further[i]
	sl.ids.further[i] = e.offer(sl, old)
	e.emit(ClaimIDChanged{Slot: sl.s.ID, Name: sl.name, ID: sl.ids.further[i], Old: old, Further: true})
}

// spend returns the id by which the slot is claimed now, and has the next one
// ready. It is the one that was shown for it, if that is one of several.
func (e *Engine) spend(sl *slotState, shown claim.ID) claim.ID {
	if i := slices.Index(sl.ids.further, shown); i >= 0 {
		e.restock(sl, i)
		return shown
	}
	id := sl.ids.first
	e.mint(sl)
	return id
}

// idFor returns the id by which a request claims the slot. The one that the slot offers
// may be on its way to a schedd already, which must not get orders obeyed for the claim
// of fetched work: that has an id of its own.
func (e *Engine) idFor(sl *slotState, ev ClaimRequested) claim.ID {
	id := e.spend(sl, ev.Capability)
	if ev.work != nil {
		return e.newID()
	}
	return id
}

// spoil makes an id worthless that was shown and not taken.
func (e *Engine) spoil(sl *slotState, shown claim.ID) {
	switch i := slices.Index(sl.ids.further, shown); {
	case shown.IsZero():
	case sl.ids.first == shown:
		e.mint(sl)
	case i >= 0:
		e.restock(sl, i)
	}
}

// offered returns the slot that a request means, by its id or by its name.
func (e *Engine) offered(ev ClaimRequested) (*slotState, error) {
	const op = "ep.Claim"
	id := ev.Capability
	if id.IsZero() {
		sl, ok := e.slots.byID[ev.Slot]
		if !ok {
			return nil, errs.E(op, errs.NotFound, ev.Slot.String(), nil)
		}
		return sl, nil
	}
	sl, ok := e.slots.byOffer[id.Public]
	ok = ok && sl.ids.has(id)
	if !ok {
		// The holder of a whole partitionable slot goes on with the id it has.
		sl, ok = e.held(id)
		ok = ok && sl.s.Kind == slot.Partitionable
	}
	if !ok || !ev.Slot.IsZero() && ev.Slot != sl.s.ID {
		return nil, errs.E(op, errs.NotFound, id.String(), errors.New("no slot is to be claimed by this id"))
	}
	return sl, nil
}

// SlotOf returns the slot that offers the id, or whose claim has it; false for
// an id that is not wholly right.
func (e *Engine) SlotOf(id claim.ID) (slot.ID, bool) {
	if sl, err := e.offered(ClaimRequested{Capability: id}); err == nil && !id.IsZero() {
		return sl.s.ID, true
	}
	if sl, ok := e.held(id); ok {
		return sl.s.ID, true
	}
	return slot.ID{}, false
}

// claimPart claims dynamic slots carved from a partitionable one for the
// request, or that slot as a whole, or both.
func (e *Engine) claimPart(parent *slotState, ev ClaimRequested) {
	const op = "ep.Claim"
	no := func(kind errs.Kind, code int, why error) { e.refuse(ev.Ref, code, errs.E(op, kind, parent.name, why)) }
	wanted := ev.DynamicSlots
	if wanted == 0 && !ev.Whole {
		wanted = 1
	}
	_, consumes := parent.ad.Ad().Lookup("ConsumptionCpus")
	claimed := parent.pair.State == policy.Claimed
	if consumes {
		wanted = min(wanted, 1) // each is to be matched by itself
	}
	switch {
	case wanted < 0 || wanted > slot.MaxDynamicSlots:
		no(errs.Invalid, command.RefusedBadRequest, fmt.Errorf("%d dynamic slots", wanted))
	case parent.pair.State == policy.Preempting:
		no(errs.Conflict, command.RefusedUnclaimed, fmt.Errorf("the slot is %v", parent.pair))
	case ev.Whole && !e.wholeClaims:
		no(errs.Unsupported, command.RefusedBadRequest, errors.New("the owner lets nobody claim a whole partitionable slot"))
	case ev.Whole && consumes:
		no(errs.Unsupported, command.RefusedBadRequest, errors.New("a slot with a consumption policy cannot be claimed as a whole"))
	case ev.Whole && claimed:
		no(errs.Conflict, command.RefusedNotIdle, errors.New("the slot is claimed as a whole already"))
	case claimed && parent.cur.Client.Schedd != ev.Client.Schedd:
		no(errs.Denied, command.RefusedNoMatch, fmt.Errorf("the slot is claimed as a whole by %q", parent.cur.Client.Schedd))
	default:
		if err := e.makeRoom(parent, ev.Evict); err != nil {
			e.refuse(ev.Ref, command.RefusedPreempted, err)
			return
		}
		if ev.Whole {
			if err := e.unwilling(parent, ev.Job); err != nil {
				no(errs.Denied, command.RefusedNoMatch, err)
				return
			}
		}
		parts, code, err := e.carve(parent, ev, wanted)
		if err != nil {
			e.refuse(ev.Ref, code, err)
			return
		}
		e.takeParts(parent, parts, ev, consumes)
	}
}

// makeRoom ends the claims of dynamic slots of the parent, whose resources are
// free at once: the jobs are on their way out, with no time to leave. Unless
// all of them can go, none does.
func (e *Engine) makeRoom(parent *slotState, evict []claim.ID) error {
	const op = "ep.Claim"
	parts := make([]*slotState, 0, len(evict))
	for _, id := range evict {
		sl, ok := e.held(id)
		switch {
		case !ok:
			return errs.E(op, errs.NotFound, id.String(), errors.New("no such claim to preempt"))
		case sl.s.Kind != slot.Dynamic || sl.s.ID.Parent() != parent.s.ID:
			return errs.E(op, errs.Invalid, sl.name, fmt.Errorf("it gives nothing to %s", parent.name))
		}
		if left := policy.RetirementLeft(e.policyView(sl)); left > 0 {
			return errs.E(op, errs.Denied, sl.name, fmt.Errorf("its job has %v of retirement left", left))
		}
		parts = append(parts, sl)
	}
	for _, sl := range parts {
		e.kill(sl, int(reason.StartdPreemptingClaimUserPrio), policy.ByPreemptingClaim, "preempted to make room in "+parent.name)
	}
	e.sweep()
	for _, sl := range parts {
		if e.slots.byID[sl.s.ID] != sl || sl.s.Broken != nil {
			continue
		}
		if err := e.ledger.Reclaim(sl.s.ID); err != nil {
			panic(err) // a sound dynamic slot of the ledger
		}
		sl.ad.Resources()
		e.emit(AdChanged{Slot: sl.s.ID})
	}
	if len(parts) > 0 {
		parent.ad.Resources()
		e.emit(AdChanged{Slot: parent.s.ID})
		e.changed()
	}
	return nil
}

// carve makes up to so many dynamic slots for the request, at least one if any
// is wanted. One that does not want the job never was.
func (e *Engine) carve(parent *slotState, ev ClaimRequested, wanted int) (parts []*slotState, code int, err error) {
	const op = "ep.Claim"
	for len(parts) < wanted {
		var req slot.Request
		req, err = e.exprs.request.Request(ev.Job, parent.ad.WithoutJob(), e.env())
		if err != nil {
			code, err = refusalOf(err), errs.E(op, errs.Other, parent.name, e.whyDenied(parent, ev.Job, err))
			break
		}
		var child *slot.Slot
		child, err = e.ledger.Carve(parent.s.ID, req)
		if err != nil {
			code, err = command.RefusedNoMatch, errs.E(op, errs.Other, parent.name, err)
			break
		}
		sl := e.add(child, e.ads.Add(child, e.now))
		if err = e.unwilling(sl, ev.Job); err != nil {
			e.forget(sl)
			code, err = command.RefusedNoMatch, errs.E(op, errs.Denied, parent.name, fmt.Errorf("request to create dslot resource refused: %w", err))
			break
		}
		parts = append(parts, sl)
	}
	if len(parts) > 0 {
		return parts, 0, nil
	}
	return nil, code, err
}

// takeParts claims what was carved, and the slot itself if that is wanted. The
// id by which the claim was asked for goes to the slot itself, or else to the
// first part; a slot that is claimed as a whole keeps its own.
func (e *Engine) takeParts(parent *slotState, parts []*slotState, ev ClaimRequested, consumes bool) {
	e.emit(AdChanged{Slot: parent.s.ID})
	claimed := parent.pair.State == policy.Claimed
	all := parts
	if ev.Whole {
		all = append(parts[:len(parts):len(parts)], parent)
	}
	for i, sl := range all {
		w := e.newWaiting(sl, ev)
		switch {
		case sl == parent:
			term := e.wholeMost
			if ev.WholeTime > 0 {
				term = min(term, ev.WholeTime)
			}
			w.claim.Granted, w.claim.Fixed, w.claim.KeptByStarter = term, true, false
			w.claim.ID = e.spend(parent, ev.Capability)
		case i == 0 && !ev.Whole && !claimed:
			w.claim.ID = e.idFor(parent, ev)
		default:
			w.claim.ID = e.newID()
		}
		w.silent = i < len(all)-1
		w.others = all[:i]
		if ev.Leftovers && (e.giveLeftovers || consumes) {
			w.rest = parent
		}
		sl.waiting = w
		e.moveOn(sl, policy.ClaimedIdle, policy.ClaimTaken, policy.ByClaim, "")
	}
}

// leftovers is what can be claimed next of a partitionable slot from which the
// slot of the last name was made.
func (e *Engine) leftovers(parent *slotState, last string) *Leftovers {
	ad := parent.ad.Snapshot(e.now)
	ad.SetString("LastSlotName", last)
	id := parent.ids.first
	if parent.cur != nil {
		id = parent.cur.ID
	}
	return &Leftovers{Claim: id, Slot: parent.s.ID, Name: parent.full, Ad: ad}
}
