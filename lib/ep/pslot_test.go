// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// resourcesOf are the free amounts an ad shows.
func resourcesOf(ad *classad.Ad) map[string]int64 {
	m := make(map[string]int64)
	for _, name := range []string{"Cpus", "Memory", "Disk"} {
		m[name], _ = ad.EvalInt(name, nil)
	}
	return m
}

// TestParentNeverWorks claims, runs and releases two dynamic slots: the parent
// runs nothing itself, and gets back what it gave.
//
// row: S0-005, S0-008
func TestParentNeverWorks(t *testing.T) {
	t.Parallel()
	s := newStage(t, 4, "")
	before := resourcesOf(s.eng.SlotAd(slot1))
	ad := job(t, steady(time.Minute), "")
	a, b := s.claim(slot1, ad), s.claim(slot1, ad)
	s.activate(a.Claim, ad)
	s.activate(b.Claim, ad)
	s.run(10 * time.Second)
	if got := s.pair(slot1); got != policy.UnclaimedIdle {
		t.Errorf("while its dynamic slots run jobs the parent is %v", got)
	}
	parent := s.eng.SlotAd(slot1)
	for _, name := range []string{"JobId", "JobStart", "RemoteOwner", "ClientMachine"} {
		if v := parent.Eval(name, nil); !v.IsUndefined() {
			t.Errorf("the parent has %s = %v", name, v)
		}
	}
	if v, _ := s.eng.SlotAd(a.Slot).EvalString("RemoteOwner", nil); v == "" {
		t.Error("a dynamic slot with a job has no RemoteOwner, so the parent's lack of one says nothing")
	}
	if got := resourcesOf(parent); got["Cpus"] != before["Cpus"]-2 || got["Memory"] >= before["Memory"] || got["Disk"] >= before["Disk"] {
		t.Errorf("the parent shows %v, had %v", got, before)
	}
	s.run(2 * time.Minute)
	for _, g := range []*Grant{&a, &b} {
		s.ask(func(ref Ref) Event { return ReleaseRequested{Ref: ref, Claim: g.Claim} })
		if s.eng.SlotAd(g.Slot) != nil {
			t.Errorf("%s still has an ad", g.Name)
		}
	}
	if d := cmp.Diff(before, resourcesOf(s.eng.SlotAd(slot1))); d != "" {
		t.Errorf("what the parent got back: %s", d)
	}
	ids := slices.Collect(func(yield func(slot.ID) bool) {
		for v := range s.eng.Views() {
			if !yield(v.ID) {
				return
			}
		}
	})
	if len(ids) != 1 || ids[0] != slot1 {
		t.Errorf("slots left: %v", ids)
	}
}
