// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package slot

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/rapidtest"
)

// onePslot is a machine with one partitionable slot over all of it.
func onePslot(t testing.TB, has Capacity, custom ...Resource) *Ledger {
	t.Helper()
	led, problems := Divide(Layout{Types: []Type{{Count: 1, Partitionable: true}}, Resources: custom}, has)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	return led
}

func carve(t testing.TB, led *Ledger, r Request) *Slot {
	t.Helper()
	s, err := led.Carve(ID{N: 1}, r)
	if err != nil {
		t.Fatal(err)
	}
	if err := led.Check(); err != nil {
		t.Fatal(err)
	}
	return s
}

func giveBack(t testing.TB, led *Ledger, id ID) {
	t.Helper()
	if err := led.Return(id); err != nil {
		t.Fatal(err)
	}
	if err := led.Check(); err != nil {
		t.Fatal(err)
	}
}

const gib = 1 << 20 // KiB

// row: S0-006
func TestCarveWorkedExample(t *testing.T) {
	t.Parallel()
	led := onePslot(t, Capacity{Cpus: 3, MemoryMiB: 10 << 10, DiskKiB: 100 * gib, SwapKiB: gib})
	p, _ := led.Slot(ID{N: 1})
	if p.Kind != Partitionable || p.Name() != "slot1" || led.Len() != 1 {
		t.Fatalf("%d slots, first %s, %v", led.Len(), p.Name(), p.Kind)
	}
	before := p.Free
	d := carve(t, led, Request{Cpus: 1, MemoryMiB: 2 << 10, DiskKiB: 20 * gib})
	if d.Name() != "slot1_1" || d.FullName("h.example") != "slot1_1@h.example" || d.Kind != Dynamic || d.ID.Parent() != p.ID {
		t.Fatalf("carved %s %v", d.FullName("h.example"), d.Kind)
	}
	if diff := cmp.Diff(Quantities{Cpus: 1, MemoryMiB: 2 << 10, DiskKiB: 20 * gib}, d.Total); diff != "" {
		t.Fatal(diff)
	}
	if diff := cmp.Diff(Quantities{Cpus: 2, MemoryMiB: 8 << 10, DiskKiB: 80 * gib, SwapKiB: gib}, p.Free); diff != "" {
		t.Fatal(diff)
	}
	giveBack(t, led, d.ID)
	if _, ok := led.Slot(d.ID); ok {
		t.Fatal("the returned slot is still there")
	}
	if diff := cmp.Diff(before, p.Free); diff != "" {
		t.Fatal(diff)
	}
}

// row: S0-043, S0-044
func TestNumbering(t *testing.T) {
	t.Parallel()
	led := onePslot(t, Capacity{Cpus: 10, MemoryMiB: 10240, DiskKiB: 1 << 20})
	r := Request{Cpus: 3, MemoryMiB: 1024, DiskKiB: 10240}
	for i := range 3 {
		if d := carve(t, led, r); d.ID != (ID{1, i + 1}) {
			t.Fatalf("carved %s as number %d", d.ID, i+1)
		}
		if i == 0 {
			p, _ := led.Slot(ID{N: 1})
			if diff := cmp.Diff(Quantities{Cpus: 7, MemoryMiB: 9216, DiskKiB: 1<<20 - 10240}, p.Free); diff != "" {
				t.Fatal(diff)
			}
		}
	}
	// The lowest free number is used again at once: slot-carve-49 to 51.
	giveBack(t, led, ID{1, 2})
	if d := carve(t, led, r); d.ID != (ID{1, 2}) {
		t.Fatalf("carved %s after slot1_2 was returned", d.ID)
	}
	giveBack(t, led, ID{1, 2})
	giveBack(t, led, ID{1, 1})
	for _, want := range []ID{{1, 1}, {1, 2}} {
		if d := carve(t, led, r); d.ID != want {
			t.Fatalf("carved %s, want %s", d.ID, want)
		}
	}
	var names []string
	for s := range led.Slots() {
		names = append(names, s.Name())
	}
	if got := strings.Join(names, " "); got != "slot1 slot1_1 slot1_2 slot1_3" {
		t.Fatal(got)
	}
}

// row: S0-048
func TestExhausted(t *testing.T) {
	t.Parallel()
	led := onePslot(t, Capacity{Cpus: 2, MemoryMiB: 1000, DiskKiB: 5000})
	carve(t, led, Request{Cpus: 2, MemoryMiB: 100, DiskKiB: 100})
	p, _ := led.Slot(ID{N: 1})
	if p.Free.Cpus != 0 {
		t.Fatalf("Cpus %v left", p.Free.Cpus)
	}
	_, err := led.Carve(ID{N: 1}, Request{Cpus: 1, MemoryMiB: 901})
	if !errs.Is(err, errs.Exhausted) || !strings.Contains(err.Error(), "Cpus 1 > 0, Memory 901 > 900") {
		t.Fatal(err)
	}
	if led.Len() != 2 {
		t.Fatal("a refused request made a slot")
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	led, _ := Divide(Layout{Types: []Type{{Number: 1, Count: 1}, {Number: 2, Count: 1, Partitionable: true}}},
		Capacity{Cpus: 2, MemoryMiB: 1000, DiskKiB: 5000})
	one := Request{Cpus: 1, MemoryMiB: 1, DiskKiB: 1}
	d, err := led.Carve(ID{N: 2}, one)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what string
		err  func() error
		kind errs.Kind
	}{
		{"carve a static slot", func() error { _, err := led.Carve(ID{N: 1}, one); return err }, errs.Conflict},
		{"carve a dynamic slot", func() error { _, err := led.Carve(d.ID, one); return err }, errs.NotFound},
		{"carve nothing there", func() error { _, err := led.Carve(ID{N: 3}, one); return err }, errs.NotFound},
		{"carve the zero ID", func() error { _, err := led.Carve(ID{}, one); return err }, errs.NotFound},
		{"carve a negative amount", func() error { _, err := led.Carve(ID{N: 2}, Request{MemoryMiB: -1}); return err }, errs.Invalid},
		{"carve not a number", func() error { _, err := led.Carve(ID{N: 2}, Request{Cpus: nan()}); return err }, errs.Invalid},
		{"carve negative bolts", func() error {
			_, err := led.Carve(ID{N: 2}, Request{Custom: []Custom{{Name: "b", Count: -1}}})
			return err
		}, errs.Invalid},
		{"carve a resource twice", func() error {
			_, err := led.Carve(ID{N: 2}, Request{Custom: []Custom{{Name: "b"}, {Name: "B"}}})
			return err
		}, errs.Invalid},
		{"return a static slot", func() error { return led.Return(ID{N: 1}) }, errs.Conflict},
		{"return a partitionable slot", func() error { return led.Return(ID{N: 2}) }, errs.Conflict},
		{"return what is not there", func() error { return led.Return(ID{2, 2}) }, errs.NotFound},
		{"break what is not there", func() error { return led.Break(ID{2, 2}, BrokenReason{}) }, errs.NotFound},
		{"mend what is not there", func() error { return led.Mend(ID{9, 0}) }, errs.NotFound},
		{"recover what is not there", func() error { return led.Recover(ID{9, 0}, Quantities{}) }, errs.NotFound},
	} {
		if err := c.err(); !errs.Is(err, c.kind) {
			t.Errorf("%s: %v, want kind %v", c.what, err, c.kind)
		}
		if err := led.Check(); err != nil {
			t.Errorf("%s: %v", c.what, err)
		}
	}
}

func nan() float64 { z := 0.0; return z / z }

// Instances are taken in inventory order and come back to their places; the
// parent keeps the whole list in Total (slot-carve-27, slot-carve-28).
// A device that the inventory lists twice is for two jobs at once, each of which
// has it under the same name; condor_gpu_discovery -repeat shares GPUs so.
func TestSharedAssets(t *testing.T) {
	t.Parallel()
	led := onePslot(t, Capacity{Cpus: 8, MemoryMiB: 1000, DiskKiB: 5000}, Resource{Name: "Bolts", Assets: []string{"b1", "b2", "b2"}})
	bolts := func(n int64) Request { return Request{Cpus: 1, Custom: []Custom{{Name: "bolts", Count: n}}} }
	show := func(s *Slot) string {
		b, _ := s.Free.Find("BOLTS")
		return fmt.Sprint(b.Count, b.Assets)
	}
	p, _ := led.Slot(ID{N: 1})
	both, last := carve(t, led, bolts(2)), carve(t, led, bolts(1))
	if got := show(both) + show(last) + show(p); got != "2 [b1 b2]1 [b2]0 []" {
		t.Fatal(got)
	}
	giveBack(t, led, both.ID)
	if got := show(last) + show(p); got != "1 [b2]2 [b1 b2]" {
		t.Fatal(got)
	}
	led.SetOffline([]Outage{{Resource: "Bolts", IDs: []string{"b2"}}})
	if got := show(p); got != "1 [b1]" {
		t.Fatal(got)
	}
	giveBack(t, led, last.ID)
	led.SetOffline(nil)
	if got := show(p); got != "3 [b1 b2 b2]" {
		t.Fatal(got)
	}
}

func TestAssets(t *testing.T) {
	t.Parallel()
	led := onePslot(t, Capacity{Cpus: 8, MemoryMiB: 1000, DiskKiB: 5000},
		Resource{Name: "Bolts", Assets: []string{"b1", "b2", "b3", "b4"}, Offline: []string{"b0"}}, Resource{Name: "Cogs", Count: 3})
	bolts := func(n int64) Request { return Request{Cpus: 1, Custom: []Custom{{Name: "bolts", Count: n}}} }
	show := func(s *Slot) string {
		b, _ := s.Free.Find("BOLTS")
		return fmt.Sprint(b.Count, b.Assets)
	}
	p, _ := led.Slot(ID{N: 1})
	one, two, none := carve(t, led, bolts(1)), carve(t, led, bolts(2)), carve(t, led, bolts(0))
	for _, c := range []struct{ got, want string }{
		{show(one), "1 [b1]"}, {show(two), "2 [b2 b3]"}, {show(none), "0 []"}, {show(p), "1 [b4]"},
	} {
		if c.got != c.want {
			t.Errorf("got %s, want %s", c.got, c.want)
		}
	}
	if _, err := led.Carve(ID{N: 1}, bolts(2)); !errs.Is(err, errs.Exhausted) {
		t.Fatal(err)
	}
	giveBack(t, led, one.ID)
	if got := show(p); got != "2 [b1 b4]" {
		t.Fatal(got)
	}
	giveBack(t, led, two.ID)
	if got := show(p); got != "4 [b1 b2 b3 b4]" {
		t.Fatal(got)
	}
	a := led.Account()
	if off, _ := a.Offline.Find("Bolts"); off.Count != 1 || !slices.Equal(off.Assets, []string{"b0"}) {
		t.Fatal(off)
	}
	if all, _ := a.Total.Find("Bolts"); all.Count != 5 {
		t.Fatal(all)
	}
}

func TestBreakAndMend(t *testing.T) {
	t.Parallel()
	led := onePslot(t, Capacity{Cpus: 4, MemoryMiB: 1000, DiskKiB: 5000}, Resource{Name: "Bolts", Assets: []string{"x", "y"}})
	r := Request{Cpus: 1, MemoryMiB: 100, Custom: []Custom{{Name: "Bolts", Count: 1}}}
	d := carve(t, led, r)
	p, _ := led.Slot(ID{N: 1})
	step := func(err error) {
		t.Helper()
		if err == nil {
			err = led.Check()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	step(led.Break(d.ID, BrokenReason{BrokenUnclean, "left a file"}))
	if a := led.Account(); a.Broken.Cpus != 1 || a.Carved.Cpus != 0 {
		t.Fatalf("%+v", a)
	}
	step(led.Return(d.ID))
	if b, _ := p.Lost.Find("Bolts"); p.Free.Cpus != 3 || p.Lost.MemoryMiB != 100 || !slices.Equal(b.Assets, []string{"x"}) {
		t.Fatalf("free %v, lost %v", p.Free, p.Lost)
	}
	e := carve(t, led, r)
	if b, _ := e.Total.Find("Bolts"); !slices.Equal(b.Assets, []string{"y"}) || e.ID != d.ID {
		t.Fatalf("%s got %v", e.ID, b.Assets)
	}
	// The one is whole again, the other is not.
	step(led.Break(e.ID, BrokenReason{BrokenUnclean, "left a file"}))
	step(led.Return(e.ID))
	if err := led.Recover(p.ID, Quantities{Cpus: 3}); !errs.Is(err, errs.Conflict) {
		t.Fatal(err)
	}
	step(led.Recover(p.ID, d.Total))
	if b, _ := p.Lost.Find("Bolts"); p.Free.Cpus != 3 || p.Lost.Cpus != 1 || !slices.Equal(b.Assets, []string{"y"}) {
		t.Fatalf("free %v, lost %v", p.Free, p.Lost)
	}
	e = carve(t, led, r)
	step(led.Break(p.ID, BrokenReason{BrokenUnclean, "no more"}))
	if _, err := led.Carve(p.ID, Request{}); !errs.Is(err, errs.Broken) {
		t.Fatal(err)
	}
	step(led.Return(e.ID))
	if a := led.Account(); a.Broken.Cpus != 4 || a.Free.Cpus != 0 {
		t.Fatalf("%+v", a)
	}
	step(led.Mend(p.ID))
	if !p.Lost.IsZero() || p.Free.Cpus != 4 {
		t.Fatalf("free %v, lost %v", p.Free, p.Lost)
	}
}

func TestCouldEverFit(t *testing.T) {
	t.Parallel()
	led := onePslot(t, Capacity{Cpus: 8, MemoryMiB: 16384, DiskKiB: 1000}, Resource{Name: "GPUs", Count: 1})
	carve(t, led, Request{Cpus: 8, MemoryMiB: 16384})
	two, _ := Divide(Layout{Types: []Type{
		{Number: 1, Count: 1, Shares: mustShares(t, "cpus=6,mem=100")}, {Number: 2, Count: 1, Shares: mustShares(t, "cpus=2,mem=900")},
	}}, Capacity{Cpus: 8, MemoryMiB: 1000, DiskKiB: 1000, SwapKiB: 10})
	none, _ := Divide(Layout{}, Capacity{Cpus: 1})
	for _, c := range []struct {
		led *Ledger
		r   Request
		say string
	}{
		{led, Request{Cpus: 8, MemoryMiB: 16384, DiskKiB: 1000}, ""}, // though everything is in use
		{led, Request{Cpus: 1, MemoryMiB: 9000000}, "RequestMemory 9000000 > 16384 of the largest slot"},
		{led, Request{Cpus: 9, DiskKiB: 1001}, "RequestCpus 9 > 8, RequestDisk 1001 > 1000 of the largest slot"},
		{led, Request{Cpus: 1, Custom: []Custom{{Name: "GPUs", Count: 2}}}, "RequestGPUs 2 > 1 of the largest slot"},
		{led, Request{Cpus: 1, Custom: []Custom{{Name: "Bolts", Count: 2}}}, "RequestBolts 2 > 0 of the largest slot"},
		{led, Request{Cpus: 1, MemoryMiB: -9}, "a negative amount"},
		{two, Request{Cpus: 6, MemoryMiB: 100}, ""},
		{two, Request{Cpus: 3, MemoryMiB: 300}, "no slot has all of 3 cpus, 300 MiB, 0 KiB disk"},
		{none, Request{}, "there is no usable slot"},
	} {
		err := c.led.CouldEverFit(c.r)
		if c.say == "" {
			if err != nil {
				t.Errorf("%v: %v", c.r, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%v: got %v, want %s", c.r, err, c.say)
		}
	}
}

func mustShares(t testing.TB, text string) Shares {
	t.Helper()
	s, err := ParseShares(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestLedgerConserves drives random layouts and operations: after each the
// ledger must prove itself, and processors and named assets must add up by an
// independent count.
func TestLedgerConserves(t *testing.T) {
	t.Parallel()
	carved, returned, outages, reclaimed, split := 0, 0, 0, 0, 0
	rapidtest.Check(t, func(t *rapid.T) {
		led, cpus := randomLedger(t)
		for range rapid.SampledFrom([]int{20, 60, 100}).Draw(t, "steps") {
			switch rapid.SampledFrom([]string{"carve", "carve", "carve", "carve", "return", "return", "break", "mend", "recover", "offline", "reclaim", "split", "occupy", "resize"}).Draw(t, "step") {
			case "carve":
				if carveAtRandom(t, led) {
					carved++
				}
			case "return":
				if led.Return(anySlot(t, led)) == nil {
					returned++
				}
			case "break":
				if id := anySlot(t, led); id.IsDynamic() || rapid.IntRange(0, 9).Draw(t, "whole") == 9 {
					_ = led.Break(id, BrokenReason{BrokenUnclean, "x"})
				}
			case "mend":
				_ = led.Mend(anySlot(t, led))
			case "recover":
				_ = led.Recover(anySlot(t, led), Quantities{Cpus: float64(rapid.IntRange(0, 2).Draw(t, "cpus")), MemoryMiB: int64(rapid.IntRange(0, 10).Draw(t, "memory"))})
			case "offline":
				led.SetOffline(randomOutages(t))
				outages++
			case "reclaim":
				if led.Reclaim(anySlot(t, led)) == nil {
					reclaimed++
				}
			case "split":
				if splitAtRandom(t, led) {
					split++
				}
			case "resize":
				led.Resize(rapid.SampledFrom([]int64{0, 1, 1000, 5e5, 2e6, 1e7, 9e9, -3}).Draw(t, "disk"))
			case "occupy":
				_ = led.Occupy(anySlot(t, led), rapid.Bool().Draw(t, "occupied"))
			}
			if err := led.Check(); err != nil {
				t.Fatal(err)
			}
			count(t, led, cpus)
		}
	})
	t.Logf("%d carved, %d returned, %d times offline, %d reclaimed, %d split", carved, returned, outages, reclaimed, split)
	if carved < 150 || returned < 30 || outages < 100 || reclaimed < 10 || split < 10 {
		t.Errorf("only %d dynamic slots were carved, %d returned, %d reclaimed, %d split, %d outages: the histories say little", carved, returned, reclaimed, split, outages)
	}
}

// randomOutages takes some instances and units out of use, and others back in.
func randomOutages(t *rapid.T) []Outage {
	return []Outage{
		{Resource: "bolts", IDs: rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d", "z", "nowhere"}), 0, 3).Draw(t, "off")},
		{Resource: "Cogs", Units: rapid.Int64Range(-1, 10).Draw(t, "units")},
	}
}

// randomLedger divides a random machine. Small ones show what does not fit,
// larger ones allow long histories.
func randomLedger(t *rapid.T) (*Ledger, int) {
	share := rapid.SampledFrom([]string{
		"", "auto", "1/3", "33%", "25%", "minimal", "0%", "cpus=1.5,mem=10%", "cpus=2", "bolts=1,25%", "cogs=50%,1/4",
		"cpus=1/0,mem=99", "minimal,cpus=1.7", "cpus=29%,cogs=1.25", "mem=1g,disk=1/2", "swap=10%,auto",
	})
	least := rapid.SampledFrom([]int64{0, 60, 60, 60}).Draw(t, "least")
	has := Capacity{
		Cpus: int(rapid.Int64Range(least, 130).Draw(t, "cpus")), MemoryMiB: rapid.Int64Range(50*least, 5000).Draw(t, "memory"),
		DiskKiB: rapid.Int64Range(1e5*least, 1e7).Draw(t, "disk"), SwapKiB: rapid.Int64Range(1000*least, 1e6).Draw(t, "swap"),
	}
	layout := Layout{
		Resources: []Resource{
			{Name: "Bolts", Assets: rapid.SampledFrom(boltLists).Draw(t, "names")[:rapid.IntRange(0, 4).Draw(t, "bolts")], Offline: []string{"z"}},
			{Name: "Cogs", Count: rapid.Float64Range(0, 9).Draw(t, "cogs")},
		},
		Types: []Type{{Number: 1, Count: 1, Shares: mustParse(t, "mem=40%,1/2"), Partitionable: true}},
	}
	for n := range rapid.IntRange(0, 3).Draw(t, "types") {
		layout.Types = append(layout.Types, Type{
			Number: n + 2, Count: rapid.IntRange(1, 9).Draw(t, "count"), Shares: mustParse(t, share.Draw(t, "share")),
			Partitionable: rapid.Bool().Draw(t, "partitionable"), Backfill: rapid.IntRange(0, 4).Draw(t, "backfill") == 4,
		})
	}
	led, _ := Divide(layout, has)
	if err := led.Check(); err != nil {
		t.Fatal(err)
	}
	count(t, led, has.Cpus)
	return led, has.Cpus
}

// boltLists are instances as an inventory names them; of two with one name each
// counts.
var boltLists = [][]string{{"a", "b", "c", "d"}, {"a", "b", "b", "a"}}

// anySlot draws a slot, or now and then one that is not there.
func anySlot(t *rapid.T, led *Ledger) ID {
	ids := []ID{{N: 99}, {N: 1, Sub: 77}}
	for s := range led.Slots() {
		ids = append(ids, s.ID)
	}
	return rapid.SampledFrom(ids).Draw(t, "slot")
}

// carveAtRandom asks for parts of what a slot has free, sometimes too much. A
// refusal must change nothing, a slot must be no smaller than asked.
func carveAtRandom(t *rapid.T, led *Ledger) bool {
	id := ID{N: 1}
	if rapid.Bool().Draw(t, "elsewhere") {
		id = anySlot(t, led)
	}
	var free Quantities
	if s, ok := led.Slot(id); ok {
		free = s.Free
	}
	part := rapid.SampledFrom([]float64{0.1, 0.1, 0.2, 0.3, 0, 1, 1.1, -0.1})
	r := Request{
		Cpus: free.Cpus * part.Draw(t, "cpus"), MemoryMiB: int64(float64(free.MemoryMiB) * part.Draw(t, "memory")),
		DiskKiB: int64(float64(free.DiskKiB) * part.Draw(t, "disk")),
	}
	few := rapid.SampledFrom([]int64{0, 0, 0, 1, 2})
	for _, name := range []string{"bolts", "cogs"} {
		if n := few.Draw(t, name); n > 0 {
			r.Custom = append(r.Custom, Custom{Name: name, Count: n})
		}
	}
	before := led.Account()
	d, err := led.Carve(id, r)
	if err != nil {
		if diff := cmp.Diff(before, led.Account()); diff != "" {
			t.Fatalf("a refused request changed the ledger: %s", diff)
		}
		return false
	}
	if bolts, _ := d.Total.Find("Bolts"); len(bolts.Assets) != int(bolts.Count) {
		t.Fatalf("%s has %d bolts, namely %v", d.ID, bolts.Count, bolts.Assets)
	}
	if misfit := r.Misfit(d.Total); misfit != "" {
		t.Fatalf("%s is smaller than asked: %s", d.ID, misfit)
	}
	return true
}

// splitAtRandom asks for a part of what a slot has, sometimes too much.
func splitAtRandom(t *rapid.T, led *Ledger) bool {
	id := anySlot(t, led)
	var r Request
	if s, ok := led.Slot(id); ok {
		part := rapid.SampledFrom([]float64{0, 0.3, 1, 1, 1.1})
		r.Cpus, r.DiskKiB = s.Free.Cpus*part.Draw(t, "cpus"), int64(float64(s.Free.DiskKiB)*part.Draw(t, "disk"))
		if n := rapid.Int64Range(0, 2).Draw(t, "bolts"); n > 0 {
			r.Custom = []Custom{{Name: "bolts", Count: n}}
		}
	}
	before := led.Account()
	_, err := led.Split(id, r)
	if diff := cmp.Diff(before, led.Account()); diff != "" && err != nil {
		t.Fatalf("a refused split changed the ledger: %s", diff)
	}
	return err == nil
}

// count adds processors up and looks for assets with two holders.
func count(t *rapid.T, led *Ledger, cpus int) {
	sum, holders := micros(led.spare.Cpus), map[string][]ID{}
	listed := map[string]int{}
	for _, r := range led.built {
		for _, id := range r.Assets {
			listed[id]++
		}
	}
	out := map[string]bool{}
	for _, o := range led.Outages() {
		for _, id := range o.IDs {
			out[id] = true
		}
	}
	for s := range led.Slots() {
		for _, q := range []Quantities{s.Free, led.Open(s)} {
			if bolts, _ := q.Find("Bolts"); slices.ContainsFunc(bolts.Assets, func(id string) bool { return out[id] }) {
				t.Fatalf("%s has free %v, of which some are out of use: %v", s.ID, bolts.Assets, out)
			}
		}
		if open := led.Open(s); !open.Fits(s.Free) || (Quantities{}).Misfit(open) != "" {
			t.Fatalf("%s could give %v of %v", s.ID, open, s.Free)
		}
		if s.Backfill || s.Sliver {
			continue
		}
		if !s.ID.IsDynamic() {
			sum += micros(s.Total.Cpus)
		}
		bolts, _ := s.Free.Find("Bolts")
		for _, a := range bolts.Assets {
			if holders[a] = append(holders[a], s.ID); len(holders[a]) > listed[a] {
				t.Fatalf("%s, of which there are %d, is with %v", a, listed[a], holders[a])
			}
		}
		if s.Kind != Partitionable || s.Broken != nil {
			continue
		}
		left := s.Total.Cpus - s.Lost.Cpus - s.Free.Cpus
		for c := range led.Children(s.ID) {
			left -= c.Total.Cpus
		}
		if micros(left) != 0 {
			t.Fatalf("%s: %v processors are nowhere", s.ID, left)
		}
	}
	if sum != micros(float64(max(cpus, 0))) {
		t.Fatalf("%d millionths of processors of %d", sum, cpus)
	}
}

func mustParse(t *rapid.T, text string) Shares {
	s, err := ParseShares(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestParseID(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		id   ID
	}{{"slot1", ID{1, 0}}, {"slot12_3", ID{12, 3}}, {"SLOT2@host.example", ID{2, 0}}, {"slot1_2@foo@host", ID{1, 2}}} {
		id, err := ParseID(c.text)
		if err != nil || id != c.id {
			t.Errorf("%q: %v %v, want %v", c.text, id, err, c.id)
		}
	}
	for _, bad := range []string{"", "slot", "slot0", "slot1_", "slot1_0", "slot01", "slot-1", "slot1_2_3", "slots1", "slot9999999999", "node1", "slot1 "} {
		if id, err := ParseID(bad); err == nil {
			t.Errorf("%q: %v", bad, id)
		}
	}
}

func FuzzParseID(f *testing.F) {
	for _, s := range []string{"slot1", "slot12_3", "SLOT2@host", "slot0", "slot1_0", "slot9999999999_1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		id, err := ParseID(text)
		if err != nil {
			return
		}
		again, err := ParseID(id.String())
		if err != nil || again != id || id.N < 1 || id.Sub < 0 {
			t.Fatalf("%q: %v, then %v %v", text, id, again, err)
		}
	})
}

func BenchmarkCarveReturn(b *testing.B) {
	led := onePslot(b, Capacity{Cpus: 20000, MemoryMiB: 1 << 30, DiskKiB: 1 << 40})
	r := Request{Cpus: 1, MemoryMiB: 128, DiskKiB: 1024}
	for range 10000 {
		carveOnly(b, led, r)
	}
	if err := led.Return(ID{1, 5000}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		d := carveOnly(b, led, r)
		if err := led.Return(d.ID); err != nil {
			b.Fatal(err)
		}
	}
}

func carveOnly(b *testing.B, led *Ledger, r Request) *Slot {
	d, err := led.Carve(ID{N: 1}, r)
	if err != nil {
		b.Fatal(err)
	}
	return d
}

func BenchmarkDivide(b *testing.B) {
	layout := Layout{Types: []Type{{Number: 1, Count: 10000, Shares: mustShares(b, "cpus=1,mem=128,auto")}}}
	has := Capacity{Cpus: 10000, MemoryMiB: 10000 * 128, DiskKiB: 1 << 40, SwapKiB: 1 << 40}
	b.ReportAllocs()
	for b.Loop() {
		if led, problems := Divide(layout, has); led.Len() != 10000 || len(problems) > 0 {
			b.Fatal(led.Len(), problems)
		}
	}
}
