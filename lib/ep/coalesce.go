// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"errors"
	"fmt"
	"slices"

	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/slot"
)

// CoalesceRequested asks for one dynamic slot in place of several whose claims
// the client has: what they held is given back to their partitionable slot, and
// the new slot is carved from that for Job. The claims must be Claimed/Idle and
// of one partitionable slot. Nothing changes unless all of it can be done. The
// Reply has the Granted claim, with a new id. A refusal of kind Transient may be
// tried again.
type CoalesceRequested struct {
	Ref    Ref
	Claims []claim.ID
	Job    *classad.Ad
}

func (CoalesceRequested) event() {}

func (e *Engine) coalesceRequested(ev CoalesceRequested) {
	parts, err := e.coalescable(ev)
	if err != nil {
		e.refuse(ev.Ref, command.RefusedBadRequest, err)
		return
	}
	parent, first := e.slots.byID[parts[0].s.ID.Parent()], parts[0].cur
	ask := ClaimRequested{Ref: ev.Ref, Job: ev.Job, Client: first.Client, Lease: first.Granted}
	if code, err := e.wouldCarve(parent, parts, ev.Job); err != nil {
		e.refuse(ev.Ref, code, err)
		return
	}
	for _, sl := range parts {
		e.kill(sl, int(reason.StartdCoalesce), policy.ByCommand, "claim was coalesced")
	}
	e.sweep()
	made, code, err := e.carve(parent, ask, 1)
	if err != nil {
		e.refuse(ev.Ref, code, err)
		return
	}
	parent.ad.Resources()
	sl := made[0]
	sl.waiting = e.newWaiting(sl, ask)
	sl.waiting.claim.ID = e.newID()
	e.moveOn(sl, policy.ClaimedIdle, policy.ClaimTaken, policy.ByClaim, "coalesced")
	e.emit(AdChanged{Slot: parent.s.ID})
}

// coalescable returns the slots of the claims, each once.
func (e *Engine) coalescable(ev CoalesceRequested) ([]*slotState, error) {
	const op = "ep.Coalesce"
	var parts []*slotState
	for _, id := range ev.Claims {
		sl, ok := e.held(id)
		if !ok {
			return nil, errs.E(op, errs.NotFound, id.String(), errors.New("can't find slot with given claim ID"))
		}
		if slices.Contains(parts, sl) {
			continue
		}
		wrong := func(kind errs.Kind, why string) ([]*slotState, error) {
			return nil, errs.E(op, kind, sl.name, errors.New(why))
		}
		switch {
		case sl.pair.State != policy.Claimed:
			return wrong(errs.Invalid, "given slot is not claimed")
		case sl.s.Broken != nil:
			return wrong(errs.Invalid, "given slot is broken")
		case sl.pair.Activity != policy.Idle:
			return wrong(errs.Transient, "given slot is not idle")
		case sl.s.Kind != slot.Dynamic:
			return wrong(errs.Invalid, "given slot is not dynamic")
		case len(parts) > 0 && parts[0].s.ID.Parent() != sl.s.ID.Parent():
			return wrong(errs.Invalid, "all slots must have the same parent")
		case sl.waiting != nil:
			return wrong(errs.Transient, "given slot is being claimed by somebody else")
		}
		parts = append(parts, sl)
	}
	switch {
	case len(parts) == 0:
		return nil, errs.E(op, errs.Invalid, "", errors.New("no claims are named"))
	case ev.Job == nil:
		return nil, errs.E(op, errs.Invalid, parts[0].name, errors.New("the request has no job"))
	case e.shutdown.begun || e.refusesClaims() != nil:
		return nil, errs.E(op, errs.Conflict, parts[0].name, errors.New("the execution point takes no claims"))
	case e.slots.byID[parts[0].s.ID.Parent()].s.Broken != nil:
		return nil, errs.E(op, errs.Invalid, parts[0].name, errors.New("the partitionable slot is broken"))
	}
	// A claim that is new is not granted while the machine has a fault, and the claims
	// in hand would be lost for it.
	if parent := e.slots.byID[parts[0].s.ID.Parent()]; e.refusing(parent) != nil {
		return nil, e.refusedFor(op, parent, e.refusing(parent))
	}
	return parts, nil
}

// wouldCarve finds out, before a claim is lost, whether the new slot could be
// made: what it asks for is there, and the policy takes the job.
func (e *Engine) wouldCarve(parent *slotState, parts []*slotState, job *classad.Ad) (int, error) {
	const op = "ep.Coalesce"
	if standardUniverse(job) {
		return command.RefusedNoMatch, errs.E(op, errs.Unsupported, parent.name, errStandard())
	}
	open, err := e.ledger.Regained(parent.s.ID, ids(parts))
	if err != nil {
		return command.RefusedNoMatch, errs.E(op, errs.Other, parent.name, err)
	}
	then := offering(parent.ad.WithoutJob(), open)
	req, err := e.exprs.request.Request(job, then, e.env())
	if err == nil {
		err = e.ledger.Fits(open, req)
	}
	if err != nil {
		return refusalOf(err), errs.E(op, errs.Other, parent.name, e.whyDenied(parent, job, err))
	}
	v := e.policyViewWith(parent, job)
	v.Slot = then
	if verdict := policy.Starts(v); !verdict.OK {
		return command.RefusedNoMatch, errs.E(op, errs.Denied, parent.name, fmt.Errorf("START does not accept the job: %v", traces(verdict.Trace)))
	}
	if policy.Owned(v) {
		return command.RefusedNoMatch, errs.E(op, errs.Denied, parent.name, fmt.Errorf("IS_OWNER keeps the slot for its owner: %v", traces(policy.ExplainOwner(v))))
	}
	return 0, nil
}

// offering is a slot's ad as it would be with other amounts to give.
func offering(ad *classad.Ad, q slot.Quantities) *classad.Ad {
	then := classad.NewAd()
	then.SetParent(ad)
	if whole := int64(q.Cpus); float64(whole) == q.Cpus {
		then.SetInt("Cpus", whole)
	} else {
		then.SetReal("Cpus", q.Cpus)
	}
	then.SetInt("Memory", q.MemoryMiB)
	then.SetInt("Disk", q.DiskKiB)
	for _, c := range q.Custom {
		then.SetInt(c.Name, c.Count)
	}
	return then
}

func ids(parts []*slotState) []slot.ID {
	var all []slot.ID
	for _, sl := range parts {
		all = append(all, sl.s.ID)
	}
	return all
}
