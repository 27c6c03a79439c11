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

// shows are the texts of attributes of an ad.
func shows(ad *classad.Ad, names ...string) map[string]string {
	m := make(map[string]string)
	for _, n := range names {
		if e, ok := ad.Lookup(n); ok {
			m[n] = e.String()
		}
	}
	return m
}

func (s *stage) reconfigure(text string) {
	s.t.Helper()
	s.step(Reconfigured{Snapshot: parse(s.t, s.inv, text)})
}

// TestOfflineByReconfig takes instances out of use while the EP runs, as
// recorded in slot-custom-24, also from a running d-slot: its count drops, its
// instance stays assigned, and no new d-slot gets one that is out of use.
//
// row: S4-105
func TestOfflineByReconfig(t *testing.T) {
	t.Parallel()
	const base = "NUM_CPUS = 8\nMEMORY = 16384\nMACHINE_RESOURCE_Bolts = b1 b2 b3 b4\n"
	names := []string{"AssignedBolts", "AvailableBolts", "Bolts", "DetectedBolts", "OfflineBolts", "TotalBolts", "TotalSlotBolts"}
	idle := newStage(t, 8, base)
	idle.reconfigure(base + "OFFLINE_MACHINE_RESOURCE_Bolts = b2,b3\n")
	if d := cmp.Diff(map[string]string{
		"AssignedBolts": `"b1,b2,b3,b4"`, "AvailableBolts": "{ Bolts_b1,Bolts_b4 }", "Bolts": "2", "DetectedBolts": "2",
		"OfflineBolts": `"b2,b3"`, "TotalBolts": "2", "TotalSlotBolts": "4",
	}, shows(idle.eng.SlotAd(slot1), names...)); d != "" {
		t.Errorf("slot-custom-24: %s", d)
	}

	s := newStage(t, 8, base)
	ad := job(t, steady(10*time.Minute), "RequestBolts = 1")
	g := s.claim(slot1, ad)
	s.activate(g.Claim, ad)
	s.run(10 * time.Second)
	s.reconfigure(base + "OFFLINE_MACHINE_RESOURCE_Bolts = b1, b3\n")
	if d := cmp.Diff(map[string]string{
		"AssignedBolts": `"b1"`, "AvailableBolts": "{  }", "Bolts": "0", "DetectedBolts": "2", "OfflineBolts": `"b1,b3"`, "TotalBolts": "2", "TotalSlotBolts": "1",
	}, shows(s.eng.SlotAd(g.Slot), names...)); d != "" {
		t.Errorf("the running d-slot: %s", d)
	}
	if got := s.pair(g.Slot); got != policy.ClaimedBusy {
		t.Errorf("the job that has what is out of use is %v", got)
	}
	if got := shows(s.eng.SlotAd(slot1), "Bolts", "AvailableBolts"); got["Bolts"] != "2" || got["AvailableBolts"] != "{ Bolts_b2,Bolts_b4 }" {
		t.Errorf("the parent has %v", got)
	}
	var got []string
	for range 2 {
		b := s.claim(slot1, ad)
		got = append(got, shows(s.eng.SlotAd(b.Slot), "AssignedBolts")["AssignedBolts"])
	}
	if want := []string{`"b2"`, `"b4"`}; !slices.Equal(got, want) {
		t.Errorf("new d-slots got %v, want %v", got, want)
	}
	if r := s.request(ClaimRequested{Slot: slot1}, ad); r.Err == nil {
		t.Errorf("%s was given what is out of use", r.Granted.Name)
	}
	s.reconfigure(base)
	if got := shows(s.eng.SlotAd(g.Slot), "Bolts", "OfflineBolts")["Bolts"]; got != "1" {
		t.Errorf("back in use, and the d-slot has %s", got)
	}
	if b := s.claim(slot1, ad); shows(s.eng.SlotAd(b.Slot), "AssignedBolts")["AssignedBolts"] != `"b3"` {
		t.Error("b3 is not given though it is back in use")
	}
	// A configuration that cannot be used takes nothing out of use.
	s.reconfigure(base + "OFFLINE_MACHINE_RESOURCE_Bolts = b2\nPOLLING_INTERVAL = often\n")
	if got := shows(s.eng.SlotAd(slot1), "DetectedBolts")["DetectedBolts"]; got != "4" {
		t.Errorf("DetectedBolts = %s", got)
	}
}

// TestShapeIsKept changes by a reconfiguration what shapes the slots: nothing
// comes of it.
//
// row: S0-010, S0-040
func TestShapeIsKept(t *testing.T) {
	t.Parallel()
	const base = "NUM_SLOTS = 2\nSLOT_TYPE_0_PARTITIONABLE = false\nMACHINE_RESOURCE_Cogs = 4\n"
	s := newStage(t, 4, base)
	look := func() (out []map[string]string) {
		for v := range s.eng.Views() {
			out = append(out, shows(s.eng.SlotAd(v.ID), "Name", "Cpus", "Memory", "Cogs", "TotalSlotCogs", "DetectedCogs", "TotalCogs", "SlotType", "Rank"))
		}
		return out
	}
	before := look()
	s.reconfigure("NUM_SLOTS = 4\nSLOT_TYPE_0_PARTITIONABLE = true\nMACHINE_RESOURCE_Cogs = 9\nMACHINE_RESOURCE_Nuts = 2\nRANK = 7\n")
	after := look()
	if len(before) != 2 {
		t.Fatalf("%d slots", len(before))
	}
	for i := range after {
		if after[i]["Rank"] != "7" {
			t.Errorf("the new configuration did not arrive: Rank is %s", after[i]["Rank"])
		}
		after[i]["Rank"] = before[i]["Rank"]
	}
	if d := cmp.Diff(before, after); d != "" {
		t.Error(d)
	}
	again := newStage(t, 4, "NUM_SLOTS = 4\nSLOT_TYPE_0_PARTITIONABLE = false\nMACHINE_RESOURCE_Cogs = 8\n")
	n := 0
	for v := range again.eng.Views() {
		if n++; shows(again.eng.SlotAd(v.ID), "Cogs")["Cogs"] != "2" {
			t.Error("a restart does not apply MACHINE_RESOURCE_Cogs")
		}
	}
	if n != 4 {
		t.Errorf("after a restart there are %d slots", n)
	}
}

// TestBackfillGivesWay fills a primary slot while a backfill slot works: the
// backfill slot has less to give, and its job goes on.
func TestBackfillGivesWay(t *testing.T) {
	t.Parallel()
	s := newStage(t, 8, `MACHINE_RESOURCE_Bolts = b1 b2 b3 b4
SLOT_TYPE_1 = 50%
NUM_SLOTS_TYPE_1 = 1
SLOT_TYPE_2 = 50%
SLOT_TYPE_2_PARTITIONABLE = true
NUM_SLOTS_TYPE_2 = 1
SLOT_TYPE_3 = 100%
SLOT_TYPE_3_PARTITIONABLE = true
SLOT_TYPE_3_BACKFILL = true
NUM_SLOTS_TYPE_3 = 1
`)
	back := slot.ID{N: 3}
	ad := job(t, steady(time.Hour), "RequestCpus = 3\nRequestBolts = 3")
	g := s.claim(back, ad)
	s.activate(g.Claim, ad)
	if got := shows(s.eng.SlotAd(g.Slot), "AssignedBolts")["AssignedBolts"]; got != `"b4,b3,b2"` {
		t.Errorf("backfill took %s", got)
	}
	cpus := func(id slot.ID) string { return shows(s.eng.SlotAd(id), "Cpus")["Cpus"] }
	small := job(t, steady(time.Minute), "")
	whole := s.claim(slot1, small)
	if got := cpus(back); got != "1" {
		t.Errorf("with a static slot claimed the backfill slot shows %s processors", got)
	}
	part := s.claim(slot.ID{N: 2}, job(t, steady(time.Hour), "RequestCpus = 1\nRequestBolts = 2"))
	got := shows(s.eng.SlotAd(g.Slot), "AssignedBolts", "Bolts", "Cpus", "ResourceConflict")
	if d := cmp.Diff(map[string]string{"AssignedBolts": `"b4,b3,b2"`, "Bolts": "0", "Cpus": "3", "ResourceConflict": `"b4,b3,b2"`}, got); d != "" {
		t.Errorf("the backfill d-slot: %s", d)
	}
	if got := cpus(back); got != "0" {
		t.Errorf("the backfill slot shows %s processors", got)
	}
	s.run(10 * time.Second)
	if got := s.pair(g.Slot); got != policy.ClaimedBusy {
		t.Errorf("the backfill job is %v", got)
	}
	for _, c := range []Grant{whole, part} {
		s.ask(func(ref Ref) Event { return ReleaseRequested{Ref: ref, Claim: c.Claim} })
	}
	got = shows(s.eng.SlotAd(g.Slot), "Bolts", "ResourceConflict")
	if d := cmp.Diff(map[string]string{"Bolts": "3"}, got); d != "" {
		t.Errorf("alone again: %s", d)
	}
	if got := cpus(back); got != "5" {
		t.Errorf("alone again the backfill slot shows %s processors", got)
	}
}
