// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package slot

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/errs"
)

// A dynamic slot gives a part of what it has to another one, and each goes back to
// their partitionable slot by itself.
func TestSplit(t *testing.T) {
	t.Parallel()
	bolts := Resource{Name: "Bolts", Count: 3, Assets: []string{"b1", "b2", "b3"}}
	led := onePslot(t, Capacity{Cpus: 4, MemoryMiB: 4096, DiskKiB: 100 * gib}, bolts)
	p, _ := led.Slot(ID{N: 1})
	before := p.Free
	donor := carve(t, led, Request{Cpus: 3, MemoryMiB: 3000, DiskKiB: 30 * gib, Custom: []Custom{{Name: "Bolts", Count: 2}}})
	left := p.Free

	data, err := led.SplitData(donor.ID, Request{Cpus: 1, MemoryMiB: 1000, DiskKiB: 10 * gib, Custom: []Custom{{Name: "Bolts", Count: 1}}}, "data")
	if err != nil {
		t.Fatal(err)
	}
	if err := led.Check(); err != nil {
		t.Fatal(err)
	}
	if data.FullName("h") != "data1_2@h" || data.Kind != Dynamic || !data.Data || data.Part || p.Children != 2 || led.Len() != 3 {
		t.Errorf("split %s, %d children", data.FullName("h"), p.Children)
	}
	half := Quantities{Cpus: 1, MemoryMiB: 1000, DiskKiB: 10 * gib, Custom: []Custom{{Name: "Bolts", Count: 1, Assets: []string{"b1"}}}}
	rest := Quantities{Cpus: 2, MemoryMiB: 2000, DiskKiB: 20 * gib, Custom: []Custom{{Name: "Bolts", Count: 1, Assets: []string{"b2"}}}}
	for _, c := range []struct {
		name      string
		got, want Quantities
	}{{"new", data.Total, half}, {"new, free", data.Free, half}, {"donor", donor.Total, rest}, {"donor, free", donor.Free, rest}, {"parent", p.Free, left}} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}

	all, err := led.Split(data.ID, Request{Cpus: 1, MemoryMiB: 1000, DiskKiB: 10 * gib})
	if err != nil || all.Name() != "slot1_3" || all.Data || !all.Part {
		t.Fatalf("%v, %v", all, err)
	}
	if err := led.Check(); err != nil {
		t.Fatal(err)
	}
	for _, id := range []ID{donor.ID, all.ID, data.ID} {
		giveBack(t, led, id)
	}
	if diff := cmp.Diff(before, p.Free); diff != "" {
		t.Error(diff)
	}
}

func TestSplitRefusals(t *testing.T) {
	t.Parallel()
	led := onePslot(t, Capacity{Cpus: 4, MemoryMiB: 4096, DiskKiB: gib})
	donor := carve(t, led, Request{Cpus: 2, MemoryMiB: 100}).ID
	broken := carve(t, led, Request{Cpus: 1}).ID
	if err := led.Break(broken, BrokenReason{Code: BrokenUnclean, Reason: "a file is left"}); err != nil {
		t.Fatal(err)
	}
	one := Request{Cpus: 1}
	for _, tt := range []struct {
		what   string
		donor  ID
		r      Request
		prefix string
		kind   errs.Kind
	}{
		{"no such slot", ID{N: 1, Sub: 9}, one, "", errs.NotFound},
		{"a partitionable slot", ID{N: 1}, one, "", errs.Conflict},
		{"a broken one", broken, one, "", errs.Broken},
		{"more than it has", donor, Request{Cpus: 3}, "", errs.Exhausted},
		{"less than nothing", donor, Request{Cpus: -1}, "", errs.Invalid},
		{"a path", donor, one, "../data", errs.Invalid},
		{"a number behind", donor, one, "slot1", errs.Invalid},
		{"a host", donor, one, "a@b", errs.Invalid},
		{"a sign in front", donor, one, "_a", errs.Invalid},
		{"a long name", donor, one, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", errs.Invalid},
	} {
		before := led.Account()
		if _, err := led.SplitData(tt.donor, tt.r, tt.prefix); !errs.Is(err, tt.kind) {
			t.Errorf("%s: %v, want %v", tt.what, err, tt.kind)
		}
		if diff := cmp.Diff(before, led.Account()); diff != "" || led.Len() != 3 {
			t.Errorf("%s: something changed: %s", tt.what, diff)
		}
	}
	if s, err := led.SplitData(donor, one, "my-data_2x"); err != nil || s.Name() != "my-data_2x1_3" {
		t.Errorf("%v, %v", s, err)
	}
}
