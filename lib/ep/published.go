// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"iter"
	"slices"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/slot"
)

// PublicAd returns the ad of a slot as a pool is told of it: flat, as of the
// last Step; nil if there is no such slot. The ad belongs to the caller.
func (e *Engine) PublicAd(id slot.ID) *classad.Ad {
	if sl, ok := e.slots.byID[id]; ok {
		return sl.ad.Snapshot(e.now)
	}
	return nil
}

// Extras are the ads of what others published: programs of the owner's and
// administrators. They belong to the caller.
func (e *Engine) Extras() []*classad.Ad { return e.ads.Extras() }

// After yields the slots behind one of an ID, which may be gone, ascending;
// with the zero ID all of them. The engine must not step meanwhile.
func (e *Engine) After(id slot.ID) iter.Seq[SlotView] {
	i, found := slices.BinarySearchFunc(e.slots.all, id, func(sl *slotState, id slot.ID) int { return sl.s.ID.Compare(id) })
	if found {
		i++
	}
	return func(yield func(SlotView) bool) {
		for _, sl := range e.slots.all[i:] {
			if !yield(e.viewOf(sl)) {
				return
			}
		}
	}
}
