// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ad

import (
	"bufio"
	"encoding/json"
	"os"
	"strconv"
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

// carvedCase is one line of testdata/carved.jsonl: all ads of an EP while jobs
// run in dynamic slots, and after their claims were released.
type carvedCase struct {
	ID, Config string
	Snaps      []struct {
		Label  string
		Slots  []map[string]string
		Daemon map[string]string
	}
}

// machineWith returns the ads of a machine of 8 processors under a
// configuration.
func machineWith(t testing.TB, text string) (*Machine, *slot.Ledger) {
	t.Helper()
	cfg, err := config.Parse("ads.conf", text, config.Options{Subsystem: "STARTD"})
	if err != nil {
		t.Fatal(err)
	}
	inv := &machine.Inventory{
		FullHostname: goldenHost, UsableCores: 8, UsableMemoryMiB: 16384, SwapKiB: 1 << 24,
		Execute: machine.Disk{FreeKiB: 50000000},
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
	for s := range led.Slots() {
		if exprs[s.TypeID], err = policy.ExpressionsFrom(cfg, s.TypeID); err != nil {
			t.Fatal(err)
		}
	}
	m, err := New(Source{Config: cfg, Inventory: inv, Ledger: led, Policy: exprs}, goldenStart)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range m.slots {
		a.SetPair(policy.UnclaimedIdle, goldenStart)
	}
	return m, led
}

// Attributes of the recorded ads that others than the slot's state bring:
// expected losses of a drain, the groups of a negotiator, what the starter
// measured.
var notFromState = []string{
	"ExpectedMachineGracefulDrainingBadput", "ExpectedMachineQuickDrainingBadput", "RemoteNegotiatingGroup", "RemoteAutoregroup",
}

// TestCarvedGolden carves the recorded dynamic slots, claims them and lets a
// job run in each, and compares all ads with the recorded ones; then it ends
// everything and compares again.
//
// row: S0-003, S0-009, S0-039, S0-044
func TestCarvedGolden(t *testing.T) {
	t.Parallel()
	f, err := os.Open("testdata/carved.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	cases := 0
	for lines.Scan() {
		var c carvedCase
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		cases++
		t.Run(c.ID, func(t *testing.T) { c.run(t) })
	}
	if err := lines.Err(); err != nil || cases != 5 {
		t.Fatal(cases, err)
	}
}

func (c carvedCase) run(t *testing.T) {
	m, led := machineWith(t, c.Config)
	now := goldenStart.Add(time.Minute)
	running := c.Snaps[0]
	ids := []slot.ID{}
	for _, want := range running.Slots[1:] {
		d, err := led.Carve(slot.ID{N: 1}, requestOf(t, want))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, d.ID)
		a := m.Add(d, now)
		began := clock.Instant{Wall: now.Wall, Boot: now.Boot}
		if n, err := strconv.Atoi(want["TotalJobRunTime"]); err == nil {
			began = now.Add(-time.Duration(n) * time.Second)
		}
		cl := claimFor(want)
		job, err := classad.ParseAd(jobText(want), classad.Old)
		if err != nil {
			t.Fatal(err)
		}
		cl.Request = job
		a.SetClaim(cl, began)
		a.SetPair(policy.ClaimedIdle, began)
		act := claim.Start(claim.NewActivationID(d.Name(), 1), job, 5, 0, began)
		a.SetActivation(cl, &act, began)
		pid, _ := strconv.Atoi(want["StarterPid"])
		a.SetStarter(pid)
		a.SetPair(policy.ClaimedBusy, began)
	}
	m.Refresh(machine.Sample{}, now)
	c.compare(t, m, 0, now)

	for _, id := range ids {
		a, _ := m.Slot(id)
		a.ClearClaim()
		if err := led.Return(id); err != nil {
			t.Fatal(err)
		}
		m.Remove(id)
		if _, ok := m.Slot(id); ok {
			t.Errorf("the ad of %s is still there", id)
		}
	}
	c.compare(t, m, 1, now)
}

func (c carvedCase) compare(t *testing.T, m *Machine, snap int, now clock.Instant) {
	t.Helper()
	want := c.Snaps[snap]
	if len(m.slots) != len(want.Slots) {
		t.Fatalf("%s: %d ads, want %d", want.Label, len(m.slots), len(want.Slots))
	}
	for i, a := range m.slots {
		attrs := want.Slots[i]
		for _, name := range notFromState {
			delete(attrs, name)
		}
		got := a.Snapshot(now)
		// Times are recorded by their differences.
		delete(attrs, "ChildEnteredCurrentState")
		got.Delete("ChildEnteredCurrentState")
		compareAd(t, got, attrs, 1<<24)
	}
	got := m.Daemon(nil, now)
	for name := range got.All() {
		if _, recorded := want.Daemon[name]; !recorded {
			got.Delete(name) // of this ad only amounts were kept
		}
	}
	compareAd(t, got, want.Daemon, 1<<24)
	if t.Failed() {
		t.Log(want.Label, "\n", c.Config)
	}
}

func requestOf(t *testing.T, want map[string]string) slot.Request {
	t.Helper()
	number := func(name string) int64 {
		n, err := strconv.ParseInt(want[name], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	r := slot.Request{Cpus: float64(number("Cpus")), MemoryMiB: number("Memory"), DiskKiB: number("Disk")}
	if _, ok := want["Bolts"]; ok {
		r.Custom = []slot.Custom{{Name: "Bolts", Count: number("Bolts")}}
	}
	return r
}

func claimFor(want map[string]string) *claim.Claim {
	unquote := func(name string) string { return strings.Trim(want[name], `"`) }
	return &claim.Claim{
		ID: claim.NewID("<127.0.0.1:9618>", 1, 2, "deadbeef"),
		Client: claim.Client{
			User: unquote("RemoteUser"), Owner: unquote("RemoteOwner"), Schedd: unquote("RemoteScheddName"), Host: unquote("ClientMachine"),
		},
	}
}

// jobText is a job's ad with what the recorded slot ad copied from it.
func jobText(want map[string]string) string {
	var b strings.Builder
	cluster, proc, _ := strings.Cut(strings.Trim(want["JobId"], `"`), ".")
	b.WriteString("ClusterId = " + cluster + "\nProcId = " + proc + "\nGlobalJobId = " + want["GlobalJobId"] + "\n")
	for _, name := range []string{"JobUniverse", "ImageSize", "ExecutableSize", "DiskUsage", "CpusUsage", "ResidentSetSize", "MemoryUsage", "ScratchDirFileCount"} {
		if v, ok := want[name]; ok {
			b.WriteString(name + " = " + v + "\n")
		}
	}
	b.WriteString("Owner = \"somebody\"\nSecretThing = 5\n")
	return b.String()
}

// The run times of a claim and its jobs stand still and go on with the phase
// of the activation, in the live ad without any refresh.
func TestRunTimes(t *testing.T) {
	t.Parallel()
	m, led := machineWith(t, "")
	d, err := led.Carve(slot.ID{N: 1}, slot.Request{Cpus: 1, MemoryMiB: 1, DiskKiB: 1})
	if err != nil {
		t.Fatal(err)
	}
	now := goldenStart
	a := m.Add(d, now)
	job := classad.NewAd()
	cl := &claim.Claim{Client: claim.Client{User: "u@dom", AccountingGroup: "g"}, Request: job, Rank: 2.5}
	a.SetClaim(cl, now)
	live := func(name string) classad.Value { return a.Ad().Eval(name, &classad.Env{Now: now.Wall}) }
	check := func(what string, want ...string) {
		t.Helper()
		for i, name := range []string{"TotalJobRunTime", "TotalJobSuspendTime", "TotalClaimRunTime", "TotalClaimSuspendTime"} {
			if got := live(name).String(); got != want[i] {
				t.Errorf("%s: live %s is %s, want %s", what, name, got, want[i])
			}
			e, ok := a.Snapshot(now).Lookup(name)
			if published := want[i] != "undefined" && want[i] != "0"; ok != published || ok && e.String() != want[i] {
				t.Errorf("%s: published %s is %v, want %s", what, name, e, want[i])
			}
		}
	}
	const none = "undefined"
	check("idle", none, none, none, none)
	act := claim.Start("a", job, 5, 0, now)
	a.SetActivation(cl, &act, now)
	now = now.Add(10 * time.Second)
	check("running", "10", none, "10", none)
	move := func(p claim.Phase) {
		t.Helper()
		if err := act.Enter(p, now); err != nil {
			t.Fatal(err)
		}
		a.SetActivation(cl, &act, now)
	}
	move(claim.Suspended)
	now = now.Add(5 * time.Second)
	check("suspended", "10", "5", "10", "5")
	move(claim.Running)
	now = now.Add(3 * time.Second)
	check("continued", "13", "5", "13", "5")
	move(claim.Vacating)
	now = now.Add(3 * time.Second)
	check("vacating", "13", "5", "13", "5")
	move(claim.Ended)
	cl.Add(&act, now)
	a.ClearActivation(cl, now)
	check("between jobs", none, none, "13", "5")
	act = claim.Start("b", job, 5, 0, now)
	a.SetActivation(cl, &act, now)
	now = now.Add(2 * time.Second)
	check("second job", "2", none, "15", "5")
	for name, want := range map[string]string{"AccountingGroup": `"g@dom"`, "CurrentRank": "2.5"} {
		if e, ok := a.Snapshot(now).Lookup(name); !ok || e.String() != want {
			t.Errorf("%s is %v, want %s", name, e, want)
		}
	}
	a.SetWaiting(&claim.Claim{Rank: 9, Client: claim.Client{User: "v@dom", Owner: "v"}})
	if v, _ := a.Ad().EvalReal("PreemptingRank", nil); v != 9 {
		t.Errorf("PreemptingRank %v", v)
	}
	a.SetUsage(Usage{Cpus: 0.756, ImageSizeKiB: 4711})
	a.ClearClaim()
	for name := range a.Snapshot(now).All() {
		for _, gone := range []string{"Remote", "Preempting", "TotalJob", "TotalClaim", "Job", "Client", "Accounting", "Public", "ImageSize", "CpusUsage"} {
			if strings.HasPrefix(name, gone) && !strings.HasSuffix(name, "Starts") && !strings.HasSuffix(name, "Preemptions") {
				t.Errorf("%s is left after the claim", name)
			}
		}
	}
	if e, _ := a.Snapshot(now).Lookup("CurrentRank"); e.String() != "0.0" {
		t.Errorf("CurrentRank is %s after the claim", e)
	}
}

// No secret of a claim is in any ad.
func TestNoSecret(t *testing.T) {
	t.Parallel()
	m, _ := machineWith(t, "NUM_SLOTS = 1\nSLOT_TYPE_0_PARTITIONABLE = false\n")
	a := m.slots[0]
	a.SetClaim(&claim.Claim{ID: claim.NewID("<127.0.0.1:9618>", 1, 2, "deadbeef"), Request: classad.NewAd()}, goldenStart)
	text := a.Snapshot(goldenStart).TextAll(classad.Old)
	if strings.Contains(text, "deadbeef") || !strings.Contains(text, `PublicClaimId = "<127.0.0.1:9618>#1#2#..."`) {
		t.Error(text)
	}
}

// A claim of an owner's capacity unit is told from others as long as it lasts.
func TestCapacityUnit(t *testing.T) {
	t.Parallel()
	m, _ := machineWith(t, "NUM_SLOTS = 1")
	show := m.slots[0]
	for _, tt := range []struct{ request, want string }{
		{`IsOCUHolder = true; OCUName = "alice-1"`, "true alice-1"},
		{`IsOCUHolder = true`, "true "},
		{`OCUWanted = true; OCUName = "alice-1"`, "false "},
		{`IsOCUHolder = false; OCUName = "alice-1"`, "false "},
		{`IsOCUHolder = "yes"; OCUName = 7`, "false "},
		{`IsOCUHolder = true; OCUName = 7`, "true "},
	} {
		request, err := classad.ParseAd(strings.ReplaceAll(tt.request, "; ", "\n"), classad.Old)
		if err != nil {
			t.Fatal(err)
		}
		show.SetClaim(&claim.Claim{Request: request}, goldenStart)
		out := show.Snapshot(goldenStart)
		is, _ := out.EvalBool("OCU", nil)
		name, _ := out.EvalString("OCUName", nil)
		if got := strconv.FormatBool(is) + " " + name; got != tt.want {
			t.Errorf("%s: %q, want %q", tt.request, got, tt.want)
		}
		show.ClearClaim()
		if _, stays := show.Snapshot(goldenStart).Lookup("OCU"); stays {
			t.Errorf("%s: it outlives its claim", tt.request)
		}
	}
}
