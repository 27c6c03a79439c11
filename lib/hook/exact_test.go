// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"fmt"
	"testing"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/slot"
)

// A partitionable slot and its dynamic slots each get what is for them: of a
// constraint or a name those that it is true of, of a slot number all.
func TestDynamicSlotsExactly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		printed string
		want    string
	}{
		{"SlotMergeConstraint = PartitionableSlot =?= true\nHot = 1\n", "slot1:1 slot1_1:- slot1_2:-"},
		{"SlotMergeConstraint = DSlotId =?= 2\nHot = 1\n", "slot1:- slot1_1:- slot1_2:1"},
		{"SlotName = \"slot1@\"\nHot = 1\n", "slot1:1 slot1_1:- slot1_2:-"},
		{"SlotName = \"slot1_1\"\nHot = 1\n", "slot1:- slot1_1:1 slot1_2:-"},
		{"SlotName = \"slot1\"\nHot = 1\n", "slot1:1 slot1_1:1 slot1_2:1"},
		{"SlotId = 1\nHot = 1\n", "slot1:1 slot1_1:1 slot1_2:1"},
		{"SlotId = 2\nHot = 1\n", "slot1:- slot1_1:- slot1_2:-"},
		{"Hot = 1\n", "slot1:1 slot1_1:1 slot1_2:1"},
	} {
		s := newStage(t, 1, Cron{Family: "STARTD_CRON", Jobs: []Job{{Name: "j"}}})
		s.slots[0].Ad.SetBool("PartitionableSlot", true)
		for sub := 1; sub <= 2; sub++ {
			a := classad.NewAd()
			a.SetInt("SlotID", 1)
			a.SetInt("DSlotId", int64(sub))
			s.slots = append(s.slots, Slot{ID: slot.ID{N: 1, Sub: sub}, Name: fmt.Sprintf("slot1_%d@host", sub), TypeID: 1, Ad: a})
		}
		s.put("j", c.printed+"-\n", 0)
		// What a slot shows: what was said of it, or of its parent as long as
		// nothing was said of it, and under that what was said of all.
		told := map[slot.ID]*classad.Ad{}
		for _, p := range s.board.Publish(s.slots) {
			told[p.Slot] = p.Attrs
		}
		got := ""
		for _, sl := range s.slots {
			own, said := told[sl.ID]
			if !said {
				own = told[sl.ID.Parent()]
			}
			value := "-"
			for _, ad := range []*classad.Ad{own, told[slot.ID{}]} {
				if ad != nil && value == "-" {
					if e, ok := ad.Lookup("Hot"); ok {
						value = e.String()
					}
				}
			}
			if got != "" {
				got += " "
			}
			got += sl.ID.String() + ":" + value
		}
		if got != c.want {
			t.Errorf("%q: got %s, want %s", c.printed, got, c.want)
		}
		if again := s.board.Publish(s.slots); len(again) != 0 {
			t.Errorf("%q: told twice: %v", c.printed, again)
		}
	}
}
