// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ad

import (
	"testing"

	"github.com/execpoint/execpoint/lib/machine"
)

// TestVolume shows the file system of each slot's execute directory.
func TestVolume(t *testing.T) {
	t.Parallel()
	m, _ := machineWith(t, "NUM_CPUS = 2\nNUM_SLOTS = 2\nSLOT_TYPE_0_PARTITIONABLE = false\n")
	src := m.src
	inv := *src.Inventory
	inv.Volumes = []machine.Volume{{ID: "2049", TotalKiB: 7000, Slots: []int{2}}}
	src.Inventory = &inv
	if err := m.Reconfigure(src, goldenStart); err != nil {
		t.Fatal(err)
	}
	expect(t, "slot1", show(m.slots[0], "ExecuteVolume"), "ExecuteVolume=undefined")
	expect(t, "slot2", show(m.slots[1], "ExecuteVolume", "DetectedDisk"), `ExecuteVolume="2049" DetectedDisk=7000`)
	if _, ok := m.Daemon(nil, goldenStart).Lookup("ExecuteVolume"); ok {
		t.Error("the daemon ad names a volume")
	}
}

// TestLogical shows where the volumes of jobs are taken from; what others have of it
// stands in the ad of the daemon alone.
//
// row: S4-074
func TestLogical(t *testing.T) {
	t.Parallel()
	m, _ := machineWith(t, "NUM_CPUS = 2\n")
	src := m.src
	inv := *src.Inventory
	inv.Execute.Logical = &machine.Logical{Backing: "vg/pool", Thin: true, QuantumKiB: 4096, Bytes: 5 << 30, OthersBytes: 1 << 30}
	src.Inventory = &inv
	if err := m.Reconfigure(src, goldenStart); err != nil {
		t.Fatal(err)
	}
	daemon := m.Daemon(nil, goldenStart)
	for name, want := range map[string]int64{"LvmDetectedDisk": 5 << 30, "LvmNonCondorDiskUsage": 1 << 30} {
		if got, ok := daemon.EvalInt(name, nil); !ok || got != want {
			t.Errorf("%s = %d in the daemon's ad, want %d", name, got, want)
		}
		expect(t, "slot1", show(m.slots[0], name), name+"=undefined")
	}
}
