// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"github.com/execpoint/execpoint/lib/ad"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// The documents say only that the resources of a broken slot are not given to later jobs.
// HTCondor mends a slot whose volume is removed by a later try, and no other: what a
// process that nobody could end may still do to the machine is for its owner to judge, and
// such a slot is broken until the next start. So it is here.

// breakage is a slot that a volume broke.
type breakage struct {
	slot *slotState // which may have been returned since
	held slot.Quantities
}

// breakSlot takes the slot out of use because of what the job of an activation left
// behind.
func (e *Engine) breakSlot(sl *slotState, why slot.BrokenReason, act claim.ActivationID, job *classad.Ad) {
	if sl.s.Broken != nil {
		return
	}
	if why.Code == slot.BrokenVolume {
		e.slots.broken[act] = breakage{slot: sl, held: sl.s.Total}
	}
	if err := e.ledger.Break(sl.s.ID, why); err != nil {
		panic(err) // a slot with a starter is in the ledger
	}
	sl.cur.Released = true
	e.emit(SlotBroke{Slot: sl.s.ID, Name: sl.name, Why: why, Held: sl.s.Total})
	sl.ad.Resources()
	e.ads.Broke(ad.Breakage{Tag: sl.name, Why: why, At: e.now, Client: sl.cur.Client, Job: job, Held: sl.s.Total, Activation: act})
}

// volumeRemoved makes a slot whole again that a volume broke. A dynamic one is
// returned to its parent, or what it held where it has been already.
func (e *Engine) volumeRemoved(ev VolumeRemoved) {
	b, ok := e.slots.broken[ev.Activation]
	if !ok {
		return
	}
	delete(e.slots.broken, ev.Activation)
	e.ads.Mended(ev.Activation)
	sl := b.slot
	id := sl.s.ID
	if e.slots.byID[id] == sl {
		if err := e.ledger.Mend(id); err != nil {
			panic(err) // it is in the table
		}
		sl.ad.Resources()
		if sl.s.Kind == slot.Dynamic && !sl.removing && (sl.pair == policy.OwnerIdle || sl.pair == policy.UnclaimedIdle) {
			sl.removing = true
			e.slots.ending = append(e.slots.ending, sl)
		}
		e.emit(AdChanged{Slot: id})
	} else {
		parent := e.slots.byID[id.Parent()]
		if parent == nil || e.ledger.Recover(id.Parent(), b.held) != nil {
			return // the machine was divided anew
		}
		parent.ad.Resources()
		e.emit(AdChanged{Slot: id.Parent()})
	}
	e.changed()
	e.emit(SlotMended{Slot: id, Name: sl.name, Held: b.held})
}
