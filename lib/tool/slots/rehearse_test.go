// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package slots

import (
	"fmt"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/machine"
)

// TestRehearseTellsTheTime: IS_OWNER is asked at the time that a rehearsal has reached,
// and what is wrong with it is told once.
func TestRehearseTellsTheTime(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1_780_000_000, 0)
	for _, tt := range []struct {
		owner, state string
		warnings     int
	}{
		{fmt.Sprintf("time() >= %d", begin.Unix()+20), "Owner", 0},
		{fmt.Sprintf("time() < %d", begin.Unix()+20), "Unclaimed", 0},
		{"NoSuchAttribute", "Owner", 1},
	} {
		d, err := Divide(t.Context(), Origin{
			Now: begin, Location: time.UTC,
			Scanners: []machine.Scanner{&Machine{Host: "m", Cpus: 1, MemoryMiB: 1000, DiskKiB: 100000, Source: "test"}},
			Load: func(inv *machine.Inventory) (*config.Snapshot, error) {
				return config.Parse("c", "UPDATE_INTERVAL = 10\nRunBenchmarks = False\nSTARTD_DETECT_GPUS = false\nIS_OWNER = "+tt.owner+"\n", config.Options{Subsystem: "STARTD", Facts: machine.ConfigFacts(inv)})
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		d.Rehearse(nil, time.Minute) // no program is configured
		for _, ad := range d.Each {
			if state, _ := ad.EvalString("State", nil); state != tt.state {
				t.Errorf("IS_OWNER = %s: the slot is %s, want %s", tt.owner, state, tt.state)
			}
		}
		if len(d.Warnings) != tt.warnings {
			t.Errorf("IS_OWNER = %s: %v", tt.owner, d.Warnings)
		}
	}
}
