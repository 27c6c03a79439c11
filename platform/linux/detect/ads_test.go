// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/ad"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// scanned is a Friday in November, 13:14:15 in UTC.
var scanned = clock.Instant{Wall: time.Date(2026, 11, 20, 13, 14, 15, 0, time.UTC), Boot: time.Hour}

// advertise goes the way of the daemon from a machine to the ads of its slots,
// each in Unclaimed/Idle.
func advertise(t testing.TB, sys System, text string, sample machine.Sample) (ads []*classad.Ad, problems []error) {
	t.Helper()
	ads, _, problems = advertiseAt(t, sys, text, sample, scanned)
	return ads, problems
}

func advertiseAt(t testing.TB, sys System, text string, sample machine.Sample, now clock.Instant) (ads []*classad.Ad, inv *machine.Inventory, problems []error) {
	t.Helper()
	ctx := t.Context()
	inv, _ = machine.Scan(ctx, now.Wall, Scanners(sys)...)
	load := func() *config.Snapshot {
		facts := machine.ConfigFacts(inv)
		facts["LOCAL_DIR"] = filepath.Dir(execute)
		snap, err := config.Parse("ep.conf", text, config.Options{Subsystem: "STARTD", Facts: facts})
		if err != nil {
			t.Fatal(err)
		}
		return snap
	}
	snap := load()
	changed, err := inv.Prefer(snap)
	if err != nil {
		return nil, inv, []error{err}
	}
	if changed {
		snap = load()
	}
	slots, _ := machine.SlotExecutes(snap)
	_ = inv.Apply(ctx, now.Wall, Volume(sys, snap.String("EXECUTE"), slots...))
	if problems = inv.Apply(ctx, now.Wall, machine.ConfigScanner(snap)); len(problems) > 0 {
		return nil, inv, problems
	}
	layout, err := slot.LayoutFrom(snap, inv)
	if err != nil {
		return nil, inv, []error{err}
	}
	ledger, broken := slot.Build(layout, inv)
	for _, p := range broken {
		problems = append(problems, p)
	}
	exprs := make(map[int]*policy.Expressions)
	for s := range ledger.Slots() {
		if exprs[s.TypeID], err = policy.ExpressionsFrom(snap, s.TypeID); err != nil {
			t.Fatal(err)
		}
	}
	m, err := ad.New(ad.Source{Config: snap, Inventory: inv, Ledger: ledger, Policy: exprs}, now)
	if err != nil {
		t.Fatal(err)
	}
	for s := range ledger.Slots() {
		a, _ := m.Slot(s.ID)
		a.SetPair(policy.UnclaimedIdle, now)
	}
	m.Refresh(sample, now)
	for s := range ledger.Slots() {
		a, _ := m.Slot(s.ID)
		ads = append(ads, a.Snapshot(now))
	}
	return ads, inv, problems
}

// attributes returns an ad as texts by name; what a slot type says of several
// slots is compared with each.
func attributes(a *classad.Ad) map[string]string {
	out := make(map[string]string, a.Len())
	for name, e := range a.All() {
		out[name] = e.Text(classad.Old)
	}
	return out
}

const slotHead = "-- "

// readAds reads the ads of a golden file: a line "-- 1 --" before each.
func readAds(t *testing.T, path string) (ads []map[string]string, problems []string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		name, value, ok := strings.Cut(line, " = ")
		switch {
		case strings.HasPrefix(line, slotHead):
			ads = append(ads, make(map[string]string))
		case len(ads) == 0:
			problems = append(problems, line)
		case ok:
			ads[len(ads)-1][name] = value
		case line != "":
			t.Fatalf("%s: %q", path, line)
		}
	}
	return ads, problems
}

func writeAds(t *testing.T, path string, ads []*classad.Ad, problems []string) {
	t.Helper()
	var b strings.Builder
	for _, p := range problems {
		b.WriteString(p + "\n")
	}
	for i, a := range ads {
		b.WriteString(slotHead + strconv.Itoa(i+1) + " --\n")
		attrs := attributes(a)
		for _, name := range slices.Sorted(maps.Keys(attrs)) {
			b.WriteString(name + " = " + attrs[name] + "\n")
		}
	}
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// goldenSample is how busy every machine is.
var goldenSample = machine.Sample{
	At: scanned, Fresh: machine.AllReadings, LoadAvg: 0.25, KeyboardIdle: 90 * time.Minute,
}

// Each machine, with nothing configured, gives the whole ad that is committed:
// every attribute of it, and no other that a scanner found.
func TestMachineAds(t *testing.T) {
	t.Parallel()
	for _, path := range fixtures(t) {
		f := readFixture(t, path)
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			sys, _ := f.system(t, dir)
			ads, inv, errs := advertiseAt(t, sys, "", goldenSample, scanned)
			var problems []string
			for _, err := range errs {
				if _, ok := err.(slot.Problem); ok {
					continue // stands in the ad as SlotBrokenReason
				}
				for line := range strings.SplitSeq(err.Error(), "\n") {
					problems = append(problems, "problem: "+strings.ReplaceAll(line, dir, ""))
				}
			}
			golden := filepath.Join("testdata", "ads", f.name+".golden")
			if *update {
				writeAds(t, golden, ads, problems)
				return
			}
			wantAds, wantProblems := readAds(t, golden)
			if !slices.Equal(problems, wantProblems) {
				t.Errorf("problems\n%q, want\n%q", problems, wantProblems)
			}
			if len(ads) != len(wantAds) {
				t.Fatalf("%d ads, want %d", len(ads), len(wantAds))
			}
			for i, a := range ads {
				got, want := attributes(a), wantAds[i]
				for _, name := range slices.Sorted(maps.Keys(want)) {
					if text, ok := got[name]; !ok {
						t.Errorf("slot %d: no %s, want %s", i+1, name, want[name])
					} else if text != want[name] {
						t.Errorf("slot %d: %s = %s, want %s", i+1, name, text, want[name])
					}
				}
				for name, text := range got {
					if _, ok := want[name]; ok {
						continue
					}
					// What lib/ad comes to say of every slot is its own matter.
					if _, ok := inv.Attrs.Lookup(name); ok {
						t.Errorf("slot %d: %s = %s is not wanted", i+1, name, text)
					}
				}
			}
		})
	}
}
