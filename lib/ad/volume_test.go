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
