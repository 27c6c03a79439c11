// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/config"
)

func TestSlotExecutes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		want []SlotExecute
		bad  []string
	}{
		{"EXECUTE = /x", nil, nil},
		{"SLOT2_EXECUTE = /b\nslot10_execute = /c/$(SLOT2_EXECUTE)\nSLOT1_EXECUTE = D:\\x",
			[]SlotExecute{{Slot: 1, Path: `D:\x`}, {Slot: 2, Path: "/b"}, {Slot: 10, Path: "/c//b"}}, nil},
		{"SLOT1_EXECUTE =\nSLOTx_EXECUTE = /y\nSLOT_EXECUTE = /z\nSLOT1_EXECUTES = /z", nil, nil},
		{"SLOT3_EXECUTE = there\nSLOT0_EXECUTE = /x\nSLOT99999999999999999999_EXECUTE = /x\nSLOT4_EXECUTE = /d", []SlotExecute{{Slot: 4, Path: "/d"}},
			[]string{`ep.conf:1`, `SLOT3_EXECUTE`, `"there"`, "full path", "ep.conf:2", "SLOT0_EXECUTE", "ep.conf:3", "SLOT1 to"}},
	} {
		snap, err := config.Parse("ep.conf", tt.text, config.Options{Subsystem: "STARTD"})
		if err != nil {
			t.Fatal(err)
		}
		got, err := SlotExecutes(snap)
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%q: %s", tt.text, diff)
		}
		if (err != nil) != (tt.bad != nil) {
			t.Errorf("%q: %v", tt.text, err)
		}
		for _, word := range tt.bad[:min(len(tt.bad), 7)] {
			if err != nil && !strings.Contains(err.Error(), word) {
				t.Errorf("%q is not in %v", word, err)
			}
		}
	}
}

// RESERVED_DISK comes off every volume; DISK makes one amount of all.
func TestVolumesConfigured(t *testing.T) {
	t.Parallel()
	base := func(inv *Inventory) {
		small(4, 4000)(inv)
		inv.Execute.ID = "1"
		inv.Volumes = []Volume{
			{ID: "2", TotalKiB: 9_000_000, AvailableKiB: 2_048_000, FreeKiB: 2_048_000, Slots: []int{2, 3}},
			{ID: "3", TotalKiB: 9_000_000, AvailableKiB: 500, FreeKiB: 500, Slots: []int{4}},
		}
	}
	inv, problems := scanWith(t, base, "RESERVED_DISK = 1000")
	if problems != nil || inv.Execute.FreeKiB != 3_976_000 || inv.Volumes[0].FreeKiB != 1_024_000 || inv.Volumes[1].FreeKiB != 0 {
		t.Errorf("%+v %+v %v", inv.Execute, inv.Volumes, problems)
	}
	inv, problems = scanWith(t, base, "DISK = 777")
	if problems != nil || inv.Execute.FreeKiB != 777 || inv.Volumes != nil || inv.Execute.ID != "<from-config>" {
		t.Errorf("%+v %+v %v", inv.Execute, inv.Volumes, problems)
	}
	// A scan starts from nothing, so that what DISK took away comes back.
	inv, _ = Scan(t.Context(), time.Unix(0, 0), found{set: base})
	if len(inv.Volumes) != 2 {
		t.Error("volumes of the machine itself")
	}
}

func TestRecomputesDisk(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text      string
		want, bad bool
	}{
		{"", false, false},
		{"STARTD_RECOMPUTE_DISK = true", true, false},
		{"STARTD_RECOMPUTE_DISK_FREE = true", true, false},
		{"STARTD_RECOMPUTE_DISK = true\nDISK = 5", false, false},
		{"STARTD_RECOMPUTE_DISK = often", false, true},
	} {
		snap, err := config.Parse("ep.conf", tt.text, config.Options{Subsystem: "STARTD"})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := RecomputesDisk(snap); got != tt.want || (err != nil) != tt.bad {
			t.Errorf("%q: %v, %v", tt.text, got, err)
		}
	}
}
