// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"testing"

	"github.com/execpoint/execpoint/lib/machine"
)

// TestDiskIsMeasuredAgain lets the slots follow the disk, or not.
//
// row: S4-073
func TestDiskIsMeasuredAgain(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"STARTD_RECOMPUTE_DISK = true\n":  "5242880",
		"STARTD_RECOMPUTE_DISK = false\n": "10485760",
		"":                                "10485760",
		"STARTD_RECOMPUTE_DISK = true\nDISK = 10485760\n":           "10485760",
		"STARTD_RECOMPUTE_DISK_FREE = true\nRESERVED_DISK = 1024\n": "4194304",
	} {
		s := newStage(t, 1, static1+text)
		s.step(Sampled{Sample: machine.Sample{At: s.now, FreeDiskKiB: 5 << 20, TotalDiskKiB: 10 << 20, Fresh: machine.AllReadings}})
		if got := s.shown(theSlot, "Disk"); got != want {
			t.Errorf("%q: Disk is %s, want %s", text, got, want)
		}
		if got := s.shown(theSlot, "TotalDisk"); got != want {
			t.Errorf("%q: TotalDisk is %s, want %s", text, got, want)
		}
		s.step(Sampled{Sample: machine.Sample{At: s.now, Fresh: machine.ReadLoad}})
		if got := s.shown(theSlot, "Disk"); got != want {
			t.Errorf("%q: Disk is %s after a reading without the disk, want %s", text, got, want)
		}
	}
}
