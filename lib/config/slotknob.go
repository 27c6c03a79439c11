// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import "strconv"

// ForSlot returns what a knob is for one slot: SLOT<slot>_X, else
// SLOT_TYPE_<slotType>_X, else X. A name that expands to nothing does not
// count, unless none of them stands for anything. slot is the number of a
// static or partitionable slot, a dynamic one asks for its parent's; 0 asks for
// the type alone. A slotType below 0 asks for no type.
func (s *Snapshot) ForSlot(knob string, slot, slotType int) (Setting, bool) {
	var empty Setting
	found := false
	for _, name := range SlotNames(knob, slot, slotType) {
		set, ok := s.Lookup(name)
		if !ok {
			continue
		}
		if trim(set.Value) != "" || set.Err != nil {
			return set, true
		}
		if !found {
			empty, found = set, true
		}
	}
	return empty, found
}

// SlotNames returns the names under which ForSlot looks, in order.
func SlotNames(knob string, slot, slotType int) []string {
	names := make([]string, 0, 3)
	if slot > 0 {
		names = append(names, "SLOT"+strconv.Itoa(slot)+"_"+knob)
	}
	if slotType >= 0 {
		names = append(names, "SLOT_TYPE_"+strconv.Itoa(slotType)+"_"+knob)
	}
	return append(names, knob)
}
