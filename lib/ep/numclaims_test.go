// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/slot"
)

// further are the ids that a slot with a consumption policy has besides its own.
func (s *stage) further(id slot.ID) []claim.ID {
	s.t.Helper()
	v, ok := s.eng.SlotView(id)
	if !ok {
		s.t.Fatalf("there is no %v", id)
	}
	return slices.Clone(v.FurtherClaims)
}

// TestClaimsOfOneCycle claims with all ids that a negotiator was shown, as
// happens after a cycle that spent them all: each makes one dynamic slot and is
// replaced by another.
//
// row: S4-119
func TestClaimsOfOneCycle(t *testing.T) {
	t.Parallel()
	var told []ClaimIDChanged
	s := newStage(t, 8, "CONSUMPTION_POLICY = true\nNUM_CLAIMS = 3\nCLAIM_PARTITIONABLE_LEFTOVERS = false\n")
	s.onOther = func(eff Effect) {
		if e, ok := eff.(ClaimIDChanged); ok && e.Slot == slot1 {
			told = append(told, e)
		}
	}
	ids := s.further(slot1)
	own := s.offer(slot1)
	if len(ids) != 3 || slices.Contains(ids, own) {
		t.Fatalf("%v besides %v", ids, own)
	}
	ad := job(t, steady(time.Hour), "")
	for i, id := range ids {
		told = nil
		r := s.request(ClaimRequested{Capability: id, Leftovers: true}, ad)
		if r.Granted == nil || r.Granted.Claim != id || r.Granted.Slot != (slot.ID{N: 1, Sub: i + 1}) {
			t.Fatalf("claim %d: %+v", i, r)
		}
		// The leftovers are given whatever CLAIM_PARTITIONABLE_LEFTOVERS says, and
		// go by the id that negotiators do not use.
		if r.Granted.Leftovers == nil || r.Granted.Leftovers.Claim != own {
			t.Errorf("claim %d: leftovers %+v", i, r.Granted.Leftovers)
		}
		now := s.further(slot1)
		if len(now) != 3 || slices.Contains(now, id) || s.offer(slot1) != own {
			t.Errorf("claim %d: the slot offers %v", i, now)
		}
		if len(told) != 1 || told[0].Old != id || !told[0].Further || !slices.Contains(now, told[0].ID) {
			t.Errorf("claim %d: told was %+v", i, told)
		}
		s.refused(s.request(ClaimRequested{Capability: id}, ad), errs.NotFound, "no slot is to be claimed by this id")
		s.activate(id, ad)
	}
	// The slot's own id is good as well, and the one that follows it.
	told = nil
	if r := s.request(ClaimRequested{Capability: own}, ad); r.Granted == nil || r.Granted.Claim != own || s.offer(slot1) == own || len(told) != 1 || told[0].Further || told[0].Old != own {
		t.Errorf("%+v, told %+v", r, told)
	}
	// A forged id, whose secret is another's, is none, and spoils none.
	before := s.further(slot1)
	for _, forged := range []claim.ID{{Public: before[0].Public, Secret: before[1].Secret}, {Public: before[0].Public}, {Public: s.offer(slot1).Public, Secret: before[0].Secret}} {
		s.refused(s.request(ClaimRequested{Capability: forged}, ad), errs.NotFound, "no slot is to be claimed by this id")
	}
	if !slices.Equal(before, s.further(slot1)) {
		t.Error("a forged id changed what is offered")
	}
	// One that is refused is worth nothing from then on; the others stay.
	s.refused(s.request(ClaimRequested{Capability: before[1]}, job(t, steady(time.Hour), "RequestCpus = 20\n")), errs.Exhausted, "Cpus 20 > 4")
	after := s.further(slot1)
	if len(after) != 3 || after[0] != before[0] || after[1] == before[1] || after[2] != before[2] {
		t.Errorf("%v became %v", before, after)
	}
	if _, ok := s.eng.SlotOf(before[1]); ok {
		t.Error("the refused id is still known")
	}
	if of, ok := s.eng.SlotOf(after[1]); !ok || of != slot1 {
		t.Errorf("the fresh id is that of %v", of)
	}
}

// TestHowManyClaims is how many ids are offered besides the slot's own.
func TestHowManyClaims(t *testing.T) {
	t.Parallel()
	const cp = "CONSUMPTION_POLICY = true\n"
	for _, tt := range []struct {
		text string
		want int
	}{
		{"", 0}, {"NUM_CLAIMS = 3\n", 0}, {static1 + cp, 0}, {cp, 4}, {cp + "NUM_CLAIMS = 9\n", 9}, {cp + "NUM_CLAIMS = 0\n", 0}, {cp + "NUM_CLAIMS = -5\n", 0},
		{cp + "NUM_CLAIMS = 1000000000\n", 4096},
	} {
		s := newStage(t, 4, tt.text)
		if got := len(s.further(slot1)); got != tt.want {
			t.Errorf("%q: %d, want %d", tt.text, got, tt.want)
		}
		if tt.want > 0 {
			if got := s.ads("NumClaims"); got != fmt.Sprintf("slot1 %d", tt.want) {
				t.Errorf("%q: shown is %q", tt.text, got)
			}
		}
	}
	// A configuration that is read anew changes the number.
	s := newStage(t, 4, cp)
	first := s.further(slot1)
	for _, tt := range []struct {
		text string
		want int
	}{{cp + "NUM_CLAIMS = 2\n", 2}, {"", 0}, {cp + "NUM_CLAIMS = 5\n", 5}} {
		s.step(Reconfigured{Snapshot: parse(t, s.inv, tt.text)})
		now := s.further(slot1)
		if len(now) != tt.want || tt.want == 2 && !slices.Equal(now, first[:2]) {
			t.Errorf("%q: %d, want %d", tt.text, len(now), tt.want)
		}
	}
	if _, ok := s.eng.SlotOf(first[3]); ok {
		t.Error("an id that is offered no more is known")
	}
}
