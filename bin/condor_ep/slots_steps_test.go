// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/execpoint/execpoint/bin/internal/thishost"
	"github.com/execpoint/execpoint/lib/ad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/slot"
)

// TestSlotsSteps follows the recorded cases in which the configuration is
// changed while the daemon runs.
//
// row: S0-220
func TestSlotsSteps(t *testing.T) {
	t.Parallel()
	p, err := thishost.Visit()
	if err != nil {
		t.Fatal(err)
	}
	slotBase, daemonBase, cases := recordedCases(t)
	ran := 0
	for _, r := range cases {
		if r.Steps == nil {
			continue
		}
		ran++
		var steps []struct {
			After  struct{ Config string }
			Slots  []adDelta
			Daemon *adDelta
		}
		if err := json.Unmarshal(r.Steps, &steps); err != nil {
			t.Fatal(err)
		}
		m := &describedMachine{
			Host: "${HOST}", Cpus: r.Detected.Cpus, MemoryMiB: r.Detected.MemoryMiB, SwapKiB: r.Detected.MemoryMiB << 10, file: "record",
		}
		text, dir := quiet+r.Config+"\n", t.TempDir()
		var inv *machine.Inventory
		load := func(i *machine.Inventory) (*config.Snapshot, error) {
			inv = i
			facts := machine.ConfigFacts(i)
			facts["LOCAL_DIR"] = dir
			return config.Parse("config", text, config.Options{Subsystem: "STARTD", Facts: facts})
		}
		d, err := divide(origin{load: load, scanners: []machine.Scanner{m}, volume: p.Volume})
		if err != nil {
			t.Fatal(err)
		}
		for n, step := range steps {
			text += step.After.Config + "\n"
			next, err := load(inv)
			if err != nil {
				t.Fatal(err)
			}
			d.now = d.now.Add(time.Second)
			d.ledger.SetOffline(slot.OutagesFrom(next, d.ledger.Resources()))
			if err := d.ads.Reconfigure(ad.Source{Config: next, Inventory: inv, Ledger: d.ledger, Policy: d.exprs, Location: time.Local}, d.now); err != nil {
				t.Fatal(err)
			}
			d.ads.Refresh(machine.Sample{At: d.now}, d.now)
			i := 0
			for _, shown := range d.each {
				compareTexts(t, fmt.Sprintf("%s step %d slot %d", r.ID, n+1, i+1), texts(shown, dir), step.Slots[i].over(slotBase), nil, nil)
				i++
			}
			if i != len(step.Slots) {
				t.Errorf("%s: %d slots, want %d", r.ID, i, len(step.Slots))
			}
			compareTexts(t, fmt.Sprintf("%s step %d daemon", r.ID, n+1), texts(d.ads.Daemon(d.problems, d.now), dir), step.Daemon.over(daemonBase), nil, nil)
		}
	}
	if ran != 2 {
		t.Errorf("%d cases with steps", ran)
	}
}
