// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"slices"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/slot"
)

// slotTable has the slots of the machine and finds them by what names them. all
// and byID have the same slots; whoever makes or ends a claim, an id to claim by
// or an activation enters it here and takes it out again.
type slotTable struct {
	all          []*slotState // ascending by ID
	byID         map[slot.ID]*slotState
	byClaim      map[string]*slotState // by the public part of the claim's id
	byOffer      map[string]*slotState // by that of the id that the slot offers
	byActivation map[claim.ActivationID]*slotState
	ending       []*slotState                    // dynamic slots to be given back at the end of the step
	broken       map[claim.ActivationID]breakage // what volumes broke
	shown        shownAds                        // by all, for starters
}

func newSlotTable() slotTable {
	return slotTable{
		byID:         make(map[slot.ID]*slotState),
		byClaim:      make(map[string]*slotState),
		byOffer:      make(map[string]*slotState),
		byActivation: make(map[claim.ActivationID]*slotState),
		broken:       make(map[claim.ActivationID]breakage),
	}
}

// at returns where a slot is in all, or would be.
func (t *slotTable) at(id slot.ID) (i int, found bool) {
	return slices.BinarySearchFunc(t.all, id, func(x *slotState, id slot.ID) int { return x.s.ID.Compare(id) })
}

func (t *slotTable) insert(sl *slotState) {
	i, _ := t.at(sl.s.ID)
	t.all = slices.Insert(t.all, i, sl)
	t.byID[sl.s.ID] = sl
}

// delete takes a slot out that has no claim, with the ids it could be claimed by.
func (t *slotTable) delete(sl *slotState) {
	if i, found := t.at(sl.s.ID); found {
		t.all = slices.Delete(t.all, i, i+1)
	}
	delete(t.byID, sl.s.ID)
	delete(t.byOffer, sl.ids.first.Public)
	delete(t.byOffer, sl.ids.split.Public)
	for _, id := range sl.ids.further {
		delete(t.byOffer, id.Public)
	}
}
