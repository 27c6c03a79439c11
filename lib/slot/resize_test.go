// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package slot

import "testing"

// TestResize follows a disk that shrinks below what jobs were promised, and
// grows again.
func TestResize(t *testing.T) {
	t.Parallel()
	shares := func(text string) Shares {
		sh, err := ParseShares(text)
		if err != nil {
			t.Fatal(err)
		}
		return sh
	}
	led, problems := Divide(Layout{Types: []Type{
		{Number: 1, Count: 1, Shares: shares("cpus=1,disk=25%")},
		{Number: 2, Count: 1, Shares: shares("cpus=3,disk=75%"), Partitionable: true},
	}}, Capacity{Cpus: 4, MemoryMiB: 4000, DiskKiB: 4_000_000, SwapKiB: 1000})
	if problems != nil {
		t.Fatal(problems)
	}
	d, err := led.Carve(ID{N: 2}, Request{Cpus: 1, MemoryMiB: 100, DiskKiB: 1_000_000})
	if err != nil {
		t.Fatal(err)
	}
	disks := func() [3]int64 {
		one, _ := led.Slot(ID{N: 1})
		two, _ := led.Slot(ID{N: 2})
		return [3]int64{one.Free.DiskKiB, two.Free.DiskKiB, d.Total.DiskKiB}
	}
	for _, tt := range []struct {
		to   int64
		want [3]int64
	}{
		{4_000_000, [3]int64{1_000_000, 2_000_000, 1_000_000}},
		{2_000_000, [3]int64{500_000, 500_000, 1_000_000}},
		{1_000_000, [3]int64{250_000, 0, 1_000_000}},
		{-1, [3]int64{0, 0, 1_000_000}},
		{8_000_000, [3]int64{2_000_000, 5_000_000, 1_000_000}},
		{4_000_000, [3]int64{1_000_000, 2_000_000, 1_000_000}},
	} {
		was := disks()
		if changed := led.Resize(tt.to); changed != (disks() != was) {
			t.Errorf("%d KiB: changed %v", tt.to, changed)
		}
		if got := disks(); got != tt.want {
			t.Errorf("%d KiB: %v, want %v", tt.to, got, tt.want)
		}
		if err := led.Check(); err != nil {
			t.Error(err)
		}
	}
}
