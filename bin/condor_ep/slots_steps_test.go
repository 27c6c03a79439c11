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
	"github.com/execpoint/execpoint/lib/tool/record"
	"github.com/execpoint/execpoint/lib/tool/slots"
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
		m := &slots.Machine{
			Host: "${HOST}", Cpus: r.Detected.Cpus, MemoryMiB: r.Detected.MemoryMiB, SwapKiB: r.Detected.MemoryMiB << 10, Source: "record",
		}
		text, dir := "RunBenchmarks = False\nSTARTD_DETECT_GPUS = false\n"+r.Config+"\n", t.TempDir()
		var inv *machine.Inventory
		load := func(i *machine.Inventory) (*config.Snapshot, error) {
			inv = i
			facts := machine.ConfigFacts(i)
			facts["LOCAL_DIR"] = dir
			return config.Parse("config", text, config.Options{Subsystem: "STARTD", Facts: facts})
		}
		d, err := slots.Divide(t.Context(), slots.Origin{Load: load, Scanners: []machine.Scanner{m}, Volume: volumeOf(p), Now: time.Now(), Location: time.Local})
		if err != nil {
			t.Fatal(err)
		}
		for n, step := range steps {
			text += step.After.Config + "\n"
			next, err := load(inv)
			if err != nil {
				t.Fatal(err)
			}
			d.Now = d.Now.Add(time.Second)
			d.Ledger.SetOffline(slot.OutagesFrom(next, d.Ledger.Resources()))
			if err := d.Ads.Reconfigure(ad.Source{Config: next, Inventory: inv, Ledger: d.Ledger, Policy: d.Policy, Location: time.Local}, d.Now); err != nil {
				t.Fatal(err)
			}
			d.Ads.Refresh(machine.Sample{At: d.Now}, d.Now)
			i := 0
			for _, shown := range d.Each {
				compareTexts(t, fmt.Sprintf("%s step %d slot %d", r.ID, n+1, i+1), record.Texts(shown, dir), step.Slots[i].over(slotBase), nil, nil)
				i++
			}
			if i != len(step.Slots) {
				t.Errorf("%s: %d slots, want %d", r.ID, i, len(step.Slots))
			}
			compareTexts(t, fmt.Sprintf("%s step %d daemon", r.ID, n+1), record.Texts(d.Ads.Daemon(d.Problems, d.Now), dir), step.Daemon.over(daemonBase), nil, nil)
		}
	}
	if ran != 2 {
		t.Errorf("%d cases with steps", ran)
	}
}
