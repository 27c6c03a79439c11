// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package slot

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func overlapping(t testing.TB, types ...Type) *Ledger {
	t.Helper()
	led, problems := Divide(Layout{Types: types, Resources: []Resource{fourBolts(), {Name: "Cogs", Count: 6}}},
		Capacity{Cpus: 8, MemoryMiB: 16384, DiskKiB: 50_000_000})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return led
}

// TestBackfillShrinks fills the primary slot while a backfill slot runs, with
// the amounts of slot-carve-59 and what was seen of its instances: they are
// taken from the end, and one that the primary slot takes is no longer counted.
func TestBackfillShrinks(t *testing.T) {
	t.Parallel()
	led := overlapping(t, Type{Number: 1, Count: 1, Partitionable: true}, Type{Number: 2, Count: 1, Partitionable: true, Backfill: true})
	primary, backfill := ID{N: 1}, ID{N: 2}
	p, _ := led.Slot(backfill)
	open := func(s *Slot) Quantities { return led.Open(s) }
	if got := bolts(open(p)); got != "b4 b3 b2 b1" {
		t.Errorf("the backfill slot would give %s", got)
	}
	b, err := led.Carve(backfill, Request{Cpus: 6, MemoryMiB: 128, DiskKiB: 5120, Custom: []Custom{{Name: "Bolts", Count: 2}, {Name: "Cogs", Count: 4}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := bolts(b.Total); got != "b4 b3" {
		t.Errorf("the backfill d-slot has %s", got)
	}
	if c := led.Conflicts(); len(c) != 0 {
		t.Errorf("conflicts with nobody: %v", c)
	}
	a, err := led.Carve(primary, Request{Cpus: 4, MemoryMiB: 128, DiskKiB: 5120, Custom: []Custom{{Name: "Bolts", Count: 3}, {Name: "Cogs", Count: 3}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := bolts(a.Total); got != "b1 b2 b3" {
		t.Errorf("the primary d-slot has %s", got)
	}
	got := open(p)
	if got.Cpus != 0 || got.MemoryMiB != 16128 || got.DiskKiB != 49994880 || bolts(got) != "" || got.Custom[1].Count != 0 {
		t.Errorf("the backfill slot could give %v, %s", got, bolts(got))
	}
	if got := open(b); got.Cpus != 6 || bolts(got) != "b4" || got.Custom[0].Count != 1 || got.Custom[1].Count != 4 || bolts(b.Total) != "b4 b3" {
		t.Errorf("the backfill d-slot has %v, %s of %s", got, bolts(got), bolts(b.Total))
	}
	if d := cmp.Diff(map[ID][]string{b.ID: {"Cpus", "Cogs", "b3"}}, led.Conflicts()); d != "" {
		t.Errorf("conflicts: %s", d)
	}
	if _, err := led.Carve(backfill, Request{Cpus: 1, MemoryMiB: 128, DiskKiB: 1024}); err == nil {
		t.Error("a processor was given twice")
	}
	giveBack(t, led, a.ID)
	if got := open(p); got.Cpus != 2 || bolts(got) != "b2 b1" || got.Custom[1].Count != 2 {
		t.Errorf("after the primary d-slot the backfill slot could give %v, %s", got, bolts(got))
	}
	if got := open(b); bolts(got) != "b4 b3" {
		t.Errorf("after the primary d-slot the backfill d-slot has %s", bolts(got))
	}
}

// TestOccupied claims a static primary slot as a whole.
func TestOccupied(t *testing.T) {
	t.Parallel()
	half := mustShares(t, "50%")
	led := overlapping(t, Type{Number: 1, Count: 2, Shares: half}, Type{Number: 2, Count: 1, Partitionable: true, Backfill: true})
	p, _ := led.Slot(ID{N: 3})
	for _, c := range []struct {
		slot     ID
		occupied bool
		cpus     float64
		bolts    string
	}{
		{ID{N: 2}, true, 4, "b2 b1"}, {ID{N: 2}, true, 4, "b2 b1"}, {ID{N: 1}, true, 0, ""}, {ID{N: 2}, false, 4, "b4 b3"}, {ID{N: 1}, false, 8, "b4 b3 b2 b1"},
	} {
		if err := led.Occupy(c.slot, c.occupied); err != nil {
			t.Fatal(err)
		}
		if got := led.Open(p); got.Cpus != c.cpus || bolts(got) != c.bolts {
			t.Errorf("%v %v: the backfill slot could give %v, %s", c.slot, c.occupied, got.Cpus, bolts(got))
		}
	}
	if err := led.Occupy(p.ID, true); err == nil {
		t.Error("a partitionable slot was occupied as a whole")
	}
}

// TestReclaim empties a d-slot that is still there; its number stays taken.
func TestReclaim(t *testing.T) {
	t.Parallel()
	led := onePslot(t, Capacity{Cpus: 2, MemoryMiB: 2048, DiskKiB: 1 << 20}, fourBolts())
	both := Request{Cpus: 2, MemoryMiB: 128, DiskKiB: 1024, Custom: []Custom{{Name: "Bolts", Count: 4}}}
	old := carve(t, led, both)
	led.SetOffline([]Outage{{Resource: "Bolts", IDs: []string{"b2"}}})
	if err := led.Reclaim(old.ID); err != nil {
		t.Fatal(err)
	}
	if !old.Total.IsZero() || bolts(old.Total) != "" {
		t.Errorf("what was reclaimed still has %v", old.Total)
	}
	three := both
	three.Custom = []Custom{{Name: "Bolts", Count: 3}}
	if d := carve(t, led, three); d.ID.Sub != 2 || bolts(d.Total) != "b1 b3 b4" {
		t.Errorf("the new one is %v with %s", d.ID, bolts(d.Total))
	}
	giveBack(t, led, old.ID)
	for _, id := range []ID{{N: 1}, {N: 7}} {
		if err := led.Reclaim(id); err == nil {
			t.Errorf("%v was reclaimed", id)
		}
	}
	if err := led.Check(); err != nil {
		t.Error(err)
	}
}
