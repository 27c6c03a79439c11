// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ad

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// staticSlots is what is needed to build so many static slots: a machine with as
// many processors, about as many static attributes as a real one shows, and a
// policy.
func staticSlots(b *testing.B, n int) (*config.Snapshot, *machine.Inventory) {
	b.Helper()
	cfg, err := config.Parse("ads.conf", fmt.Sprintf("NUM_CPUS = %[1]d\nMEMORY = %[1]d000\nNUM_SLOTS = %[1]d\nSLOT_TYPE_0_PARTITIONABLE = false\n"+
		"START = KeyboardIdle > 900 && LoadAvg - CondorLoadAvg < 0.3\nSTARTD_ATTRS = Site, Rack\nSite = \"here\"\nRack = SlotID %% 7\n", n),
		config.Options{Subsystem: "STARTD"})
	if err != nil {
		b.Fatal(err)
	}
	attrs := classad.NewAd()
	for i := range 80 {
		attrs.SetString(fmt.Sprintf("HasAbility%d", i), "some text about it")
	}
	return cfg, &machine.Inventory{
		FullHostname: "host.example", UsableCores: n, UsableMemoryMiB: int64(n) * 1000, SwapKiB: 1 << 24,
		Execute: machine.Disk{FreeKiB: int64(n) << 20}, Attrs: attrs,
	}
}

// buildAds divides the machine and makes all ads.
func buildAds(b *testing.B, cfg *config.Snapshot, inv *machine.Inventory) *Machine {
	b.Helper()
	layout, err := slot.LayoutFrom(cfg, inv)
	if err != nil {
		b.Fatal(err)
	}
	led, problems := slot.Build(layout, inv)
	if len(problems) > 0 {
		b.Fatal(problems)
	}
	exprs, err := policy.ExpressionsFrom(cfg, 0)
	if err != nil {
		b.Fatal(err)
	}
	m, err := New(Source{Config: cfg, Inventory: inv, Ledger: led, Policy: map[int]*policy.Expressions{0: exprs}}, goldenStart)
	if err != nil {
		b.Fatal(err)
	}
	return m
}

// Building 1,024 static slots and all their ads is to take less than 50 ms.
func BenchmarkBuild1024(b *testing.B) {
	cfg, inv := staticSlots(b, 1024)
	b.ReportAllocs()
	for b.Loop() {
		if m := buildAds(b, cfg, inv); len(m.slots) != 1024 {
			b.Fatal(len(m.slots))
		}
	}
}

// One full refresh and publication of 10,000 slots is to take less than a
// second on one core, and a slot is to keep less than 20 KiB.
func BenchmarkRefreshPublish10000(b *testing.B) {
	cfg, inv := staticSlots(b, 10_000)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	m := buildAds(b, cfg, inv)
	for _, a := range m.slots {
		a.SetPair(policy.UnclaimedIdle, goldenStart)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	kept := float64(after.HeapAlloc-before.HeapAlloc) / 10_000
	now, attributes, round := goldenStart, 0, 0
	b.ReportAllocs()
	for b.Loop() {
		round++
		now = now.Add(5 * time.Second)
		m.Refresh(machine.Sample{At: now, LoadAvg: float64(round % 9), KeyboardIdle: time.Duration(round) * time.Second}, now)
		attributes = 0
		for _, a := range m.slots {
			attributes += a.Snapshot(now).Len()
		}
	}
	b.ReportMetric(kept, "B/slot")
	b.ReportMetric(float64(attributes)/10_000, "attrs/ad")
	runtime.KeepAlive(m)
}

// The same with the text of every ad.
func BenchmarkRefreshText10000(b *testing.B) {
	cfg, inv := staticSlots(b, 10_000)
	m := buildAds(b, cfg, inv)
	now, bytes := goldenStart, 0
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(5 * time.Second)
		m.Refresh(machine.Sample{At: now, LoadAvg: 3}, now)
		bytes = 0
		for _, a := range m.slots {
			bytes += len(a.Snapshot(now).Text(classad.Old))
		}
	}
	b.ReportMetric(float64(bytes)/10_000, "B/ad")
}
