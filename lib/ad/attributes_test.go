// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ad

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// attributeRow is a line of testdata/attributes.tsv: an attribute that slot
// ads or the daemon's ad may have, its type, the states in which it is there,
// one letter each (see everyState), and where it comes from. With a dash
// instead of letters, or "no" for the daemon's ad, that is what has to be there
// for it and is not in this test, or "never" for what HTCondor 25 does not show.
type attributeRow struct {
	name, ad, kind, states, source string
}

func attributeRows(t *testing.T) []attributeRow {
	t.Helper()
	data, err := os.ReadFile("testdata/attributes.tsv")
	if err != nil {
		t.Fatal(err)
	}
	var rows []attributeRow
	for line := range strings.Lines(string(data)) {
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 5 {
			t.Fatalf("%q", line)
		}
		rows = append(rows, attributeRow{f[0], f[1], f[2], f[3], f[4]})
	}
	return rows
}

const everyStateConfig = `
SLOT_TYPE_1 = cpus=2, mem=25%, disk=25%
SLOT_TYPE_1_PARTITIONABLE = true
SLOT_TYPE_1_CONSUMPTION_POLICY = true
NUM_SLOTS_TYPE_1 = 1
SLOT_TYPE_2 = cpus=1, mem=10%, disk=10%, bolts=0
NUM_SLOTS_TYPE_2 = 6
SLOT_TYPE_2_BACKFILL = false
MACHINE_RESOURCE_Bolts = b1 b2 b3
OFFLINE_MACHINE_RESOURCE_Bolts = b3
UID_DOMAIN = example
FILESYSTEM_DOMAIN = example
STARTD_DIRECT_ATTACH_SCHEDD_NAME = near
STARTD_HEALTH_EXPRS = true, undefined
STARTD_SLOT_ATTRS = State
STARTD_LATCH_EXPRS = Half
Half = Cpus > LoadAvg
DedicatedScheduler = "DedicatedScheduler@near"
COLLECTOR_HOST_STRING = "nowhere"
`

// everyState builds a machine with a slot in each of these states: Owner (O),
// Unclaimed (U), Claimed/Idle (I), Claimed/Busy (B), Claimed/Suspended with
// another claim waiting (S), partitionable (P), dynamic and busy (D), broken
// (X). What scanners find is given as in the table.
func everyState(t *testing.T, rows []attributeRow) (*Machine, map[byte]*Slot, clock.Instant) {
	t.Helper()
	cfg, err := config.Parse("ads.conf", everyStateConfig, config.Options{Subsystem: "STARTD"})
	if err != nil {
		t.Fatal(err)
	}
	found := classad.NewAd()
	for _, r := range rows {
		if r.source == "scanner" {
			found.Set(r.name, sampleOf(t, r.kind))
		}
	}
	inv := &machine.Inventory{
		FullHostname: goldenHost, UsableCores: 8, UsableMemoryMiB: 16384, SwapKiB: 1 << 24,
		Execute: machine.Disk{Path: "/scratch", FreeKiB: 50000000}, Attrs: found,
	}
	layout, err := slot.LayoutFrom(cfg, inv)
	if err != nil {
		t.Fatal(err)
	}
	led, problems := slot.Build(layout, inv)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	exprs := map[int]*policy.Expressions{}
	for _, n := range []int{1, 2} {
		if exprs[n], err = policy.ExpressionsFrom(cfg, n); err != nil {
			t.Fatal(err)
		}
	}
	m, err := New(Source{Config: cfg, Inventory: inv, Ledger: led, Policy: exprs}, goldenStart)
	if err != nil {
		t.Fatal(err)
	}
	now := goldenStart.Add(2 * time.Second)
	at := map[byte]*Slot{}
	for i, letter := range []byte("POUIBSX") {
		at[letter] = m.slots[i]
		at[letter].SetPair(policy.UnclaimedIdle, now)
	}
	d, err := led.Carve(slot.ID{N: 1}, slot.Request{Cpus: 1, MemoryMiB: 128, DiskKiB: 1024, Custom: []slot.Custom{{Name: "Bolts", Count: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	at['D'] = m.Add(d, now)
	if err := led.Break(at['X'].s.ID, slot.BrokenReason{Code: slot.BrokenUnclean, Reason: "a file is left"}); err != nil {
		t.Fatal(err)
	}
	at['X'].Resources()
	now = now.Add(2 * time.Second)
	at['O'].SetPair(policy.OwnerIdle, now)
	job, err := classad.ParseAd(`ClusterId = 3
ProcId = 1
GlobalJobId = "near#3.1#77"
JobUniverse = 5
ImageSize = 10
ExecutableSize = 9
NiceUser = false
ConcurrencyLimits = "licence"
RemoteGroup = "g"
RemoteNegotiatingGroup = "g"
RemoteAutoregroup = true
`, classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	for _, letter := range []byte("IBSD") {
		a := at[letter]
		c := &claim.Claim{ID: claim.NewID("<127.0.0.1:9618>", 1, 2, "secret"), Request: job, Rank: 1, Client: claim.Client{
			User: "ann@example", Owner: "ann", Schedd: "near", Host: "127.0.0.1", AccountingGroup: "g", Project: "p",
		}}
		a.SetClaim(c, now)
		a.SetPair(policy.ClaimedIdle, now)
		if letter == 'I' {
			continue
		}
		act := claim.Start("a", job, 5, 0, now)
		if err := act.Enter(claim.Running, now); err != nil {
			t.Fatal(err)
		}
		a.SetActivation(c, &act, now)
		a.SetStarter(4711)
		a.SetJobPid(4712)
		a.SetUsage(Usage{Cpus: 1, ImageSizeKiB: 100, ResidentKiB: 50, DiskKiB: 7, Files: 3, Processes: 1})
		a.SetPair(policy.ClaimedBusy, now)
		if letter == 'S' {
			then := now.Add(2 * time.Second)
			if err := act.Enter(claim.Suspended, then); err != nil {
				t.Fatal(err)
			}
			a.SetActivation(c, &act, then)
			a.SetPair(policy.ClaimedSuspended, then)
			a.SetWaiting(&claim.Claim{Request: job, Rank: 2, Client: claim.Client{User: "bob@example", Owner: "bob", AccountingGroup: "h"}})
		}
	}
	m.StarterLived(time.Second, now)
	m.JobLasted(time.Second, now)
	now = now.Add(10 * time.Second)
	m.Refresh(machine.Sample{At: now, LoadAvg: 2, HasConsole: true}, now)
	return m, at, now
}

// sampleOf is a value of a type.
func sampleOf(t *testing.T, kind string) *classad.Expr {
	t.Helper()
	text, ok := map[string]string{
		"string": `"x"`, "path": `"/x"`, "int": "3", "float": "1.5", "bool": "true", "list": "{ 1 }", "ad": "[ A = 1 ]", "expr": "A + 1",
	}[kind]
	if !ok {
		t.Fatalf("unknown type %q", kind)
	}
	return classad.MustParseExpr(text)
}

// isOf reports whether an expression of an ad is of a type. An expression may
// be anything.
func isOf(kind string, e *classad.Expr, ad *classad.Ad, now clock.Instant) bool {
	v := e.Eval(&classad.Env{My: ad, Now: now.Wall})
	switch kind {
	case "string", "path":
		_, ok := v.AsString()
		return ok
	case "int":
		_, ok := v.AsInt()
		return ok
	case "float":
		_, ok := v.AsReal()
		return ok
	case "bool":
		_, ok := v.AsBool()
		return ok
	case "list":
		_, ok := v.AsList()
		return ok
	case "ad":
		_, ok := v.AsAd()
		return ok
	}
	return kind == "expr"
}

// Every attribute that a slot ad or the daemon's ad may have is there in just
// the states of the table, with the type of the table.
//
// row: S0-034, S1-022, S1-023
func TestAttributesByState(t *testing.T) {
	t.Parallel()
	rows := attributeRows(t)
	m, at, now := everyState(t, rows)
	ads := map[byte]*classad.Ad{}
	for letter, a := range at {
		ads[letter] = a.Snapshot(now)
	}
	daemon := m.Daemon(nil, now)
	for _, r := range rows {
		if here := r.source == "ad" || r.source == "scanner"; here == (r.states == "-" || r.states == "no") {
			t.Errorf("%s: nobody says why it is there in %q: %q", r.name, r.states, r.source)
		}
		if r.ad == "daemon" {
			e, ok := daemon.Lookup(r.name)
			if ok != (r.states == "yes") {
				t.Errorf("daemon: %s is there: %v, want %s", r.name, ok, r.states)
			} else if ok && !isOf(r.kind, e, daemon, now) {
				t.Errorf("daemon: %s = %s is no %s", r.name, e, r.kind)
			}
			continue
		}
		got := ""
		for _, letter := range []byte("OUIBSPDX") {
			e, ok := ads[letter].Lookup(r.name)
			if !ok {
				continue
			}
			got += string(letter)
			if !isOf(r.kind, e, ads[letter], now) {
				t.Errorf("%c: %s = %s is no %s", letter, r.name, e, r.kind)
			}
		}
		if got == "" {
			got = "-"
		}
		if got != r.states {
			t.Errorf("%s is there in %s, want %s", r.name, got, r.states)
		}
	}
}
