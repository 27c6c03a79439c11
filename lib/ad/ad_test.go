// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ad

import (
	"fmt"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

const twoStatic = "NUM_SLOTS = 2\nSLOT_TYPE_0_PARTITIONABLE = false\n"

// show evaluates attributes of the live ad: "Cpus=8 Name=…".
func show(a *Slot, names ...string) string {
	out := ""
	for _, n := range names {
		if out != "" {
			out += " "
		}
		out += n + "=" + a.Ad().Eval(n, &classad.Env{Now: goldenStart.Wall}).Text(classad.Old)
	}
	return out
}

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %s, want %s", what, got, want)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ config, want string }{
		{"", `"slot1@${HOST}"`},
		{"STARTD_NAME = foo\n", `"slot1@foo@${HOST}"`},
		{"STARTD_NAME = foo@bar\n", `"slot1@foo@bar"`},
		{"STARTD_NAME = foo@\n", `"slot1@foo@"`},
		{"STARTD_RESOURCE_PREFIX = node\n", `"node1@${HOST}"`},
		{"NUM_SLOTS_TYPE_1 = 1\nSLOT_TYPE_1_NAME_PREFIX = big\n", `"big1@${HOST}"`},
	} {
		m, _ := machineWith(t, c.config)
		expect(t, c.config, m.slots[0].Ad().Eval("Name", nil).Text(classad.Old), c.want)
	}
}

// START that needs a job is undefined without one, and can be evaluated with
// the slot's own attributes where it does not.
//
// row: S0-094
func TestStartWithoutJob(t *testing.T) {
	t.Parallel()
	m, _ := machineWith(t, "START = Owner == \"bob\"\n")
	expect(t, "without a job", show(m.slots[0], "Start", "Requirements"), "Start=undefined Requirements=undefined")
	job := classad.NewAd()
	job.SetString("Owner", "bob")
	for name, n := range map[string]int64{"RequestCpus": 1, "RequestMemory": 1, "RequestDisk": 1} {
		job.SetInt(name, n)
	}
	v := m.slots[0].Ad().Eval("Requirements", &classad.Env{Target: job})
	expect(t, "with bob's job", v.String(), "true")
	job.SetInt("RequestMemory", 20000)
	v = m.slots[0].Ad().Eval("Requirements", &classad.Env{Target: job})
	expect(t, "with too large a job", v.String(), "false")
	m, _ = machineWith(t, "START = SlotID == 1 && Cpus > 4 && State == \"Unclaimed\"\n")
	expect(t, "of the slot alone", show(m.slots[0], "Start"), "Start=true")
}

// row: S0-095
func TestRequirements(t *testing.T) {
	t.Parallel()
	text := func(a *Slot) string {
		out := ""
		for _, n := range []string{"Requirements", "Start", "WithinResourceLimits"} {
			e, ok := a.Snapshot(goldenStart).Lookup(n)
			switch {
			case !ok:
				out += "-;"
			case n == "WithinResourceLimits":
				out += "limits;"
			default:
				out += e.String() + ";"
			}
		}
		return out
	}
	m, led := machineWith(t, "START = KeyboardIdle > 5\n")
	a := m.slots[0]
	expect(t, "offered", text(a), "Start && WithinResourceLimits;KeyboardIdle > 5;limits;")
	a.Offer(false)
	expect(t, "withheld", text(a), "false;-;-;")
	a.Offer(true)
	expect(t, "offered again", text(a), "Start && WithinResourceLimits;KeyboardIdle > 5;limits;")
	if err := led.Break(slot.ID{N: 1}, slot.BrokenReason{Code: slot.BrokenUnclean, Reason: "a file is left"}); err != nil {
		t.Fatal(err)
	}
	a.Resources()
	expect(t, "broken", text(a), `"a file is left";-;-;`)
	expect(t, "broken", show(a, "SlotBrokenCode", "Cpus", "Memory"), "SlotBrokenCode=4 Cpus=0 Memory=0")
	if err := led.Mend(slot.ID{N: 1}); err != nil {
		t.Fatal(err)
	}
	a.Resources()
	expect(t, "mended", text(a), "Start && WithinResourceLimits;KeyboardIdle > 5;limits;")
	expect(t, "mended", show(a, "SlotBrokenCode", "Cpus"), "SlotBrokenCode=undefined Cpus=8")

	m, led = machineWith(t, "SLOT_REQUIREMENTS_CLAUSES = Awake, Nothing, START\nAwake = true\n"+
		"PSLOT_REQUIREMENTS_CLAUSES = Large\nLarge = Cpus > 2\nDSLOT_REQUIREMENTS_CLAUSES = Small\nSmall = Cpus <= 2\n")
	expect(t, "with clauses", text(m.slots[0]), "Awake && START && WithinResourceLimits && Large;true;limits;")
	d, err := led.Carve(slot.ID{N: 1}, slot.Request{Cpus: 1})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "of a dynamic slot", text(m.Add(d, goldenStart)), "Awake && START && WithinResourceLimits && Small;true;limits;")
}

func TestBrokenDynamicSlotIsMissed(t *testing.T) {
	t.Parallel()
	m, led := machineWith(t, "MACHINE_RESOURCE_Bolts = a b\n")
	d, err := led.Carve(slot.ID{N: 1}, slot.Request{Cpus: 1, MemoryMiB: 100, DiskKiB: 7, Custom: []slot.Custom{{Name: "Bolts", Count: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	a := m.Add(d, goldenStart)
	expect(t, "d-slot", show(a, "Bolts", "AssignedBolts", "TotalSlotBolts"), `Bolts=1 AssignedBolts="a" TotalSlotBolts=1`)
	expect(t, "parent", show(m.slots[0], "Bolts", "AssignedBolts", "AvailableBolts", "NumDynamicSlots"),
		`Bolts=1 AssignedBolts="a,b" AvailableBolts={ Bolts_b } NumDynamicSlots=1`)
	if err := led.Break(d.ID, slot.BrokenReason{Code: slot.BrokenHungProcess, Reason: "it will not die"}); err != nil {
		t.Fatal(err)
	}
	a.Resources()
	if err := led.Return(d.ID); err != nil {
		t.Fatal(err)
	}
	m.Remove(d.ID)
	expect(t, "parent", show(m.slots[0], "Cpus", "TotalSlotCpus", "BrokenSlotCpus", "BrokenSlotMemory", "BrokenSlotDisk", "BrokenSlotBolts", "Bolts"),
		"Cpus=7 TotalSlotCpus=7 BrokenSlotCpus=1 BrokenSlotMemory=100 BrokenSlotDisk=7 BrokenSlotBolts=1 Bolts=1")
}

// The owner's load goes to slots in Owner first, then to unclaimed ones, as
// much as each has processors; jobs' own load stays where it is.
func TestLoad(t *testing.T) {
	t.Parallel()
	m, _ := machineWith(t, twoStatic)
	one, two := m.slots[0], m.slots[1]
	loads := func() string {
		return show(one, "LoadAvg", "CondorLoadAvg") + " " + show(two, "LoadAvg", "CondorLoadAvg")
	}
	m.Refresh(machine.Sample{LoadAvg: 5.5}, goldenStart)
	expect(t, "both unclaimed", loads(), "LoadAvg=4.0 CondorLoadAvg=0.0 LoadAvg=1.5 CondorLoadAvg=0.0")
	two.SetPair(policy.OwnerIdle, goldenStart)
	m.Refresh(machine.Sample{LoadAvg: 5.5}, goldenStart)
	expect(t, "the second in Owner", loads(), "LoadAvg=1.5 CondorLoadAvg=0.0 LoadAvg=4.0 CondorLoadAvg=0.0")
	one.SetPair(policy.ClaimedBusy, goldenStart)
	one.SetCondorLoad(1.25)
	m.Refresh(machine.Sample{LoadAvg: 2.259}, goldenStart)
	expect(t, "the first runs a job", loads(), "LoadAvg=1.25 CondorLoadAvg=1.25 LoadAvg=1.01 CondorLoadAvg=0.0")
	expect(t, "machine", show(one, "TotalLoadAvg", "TotalCondorLoadAvg"), "TotalLoadAvg=2.26 TotalCondorLoadAvg=1.25")

	m, led := machineWith(t, "")
	p := m.slots[0]
	for range 3 {
		d, err := led.Carve(slot.ID{N: 1}, slot.Request{Cpus: 2})
		if err != nil {
			t.Fatal(err)
		}
		m.Add(d, goldenStart).SetPair(policy.ClaimedBusy, goldenStart)
	}
	m.Refresh(machine.Sample{LoadAvg: 5}, goldenStart)
	got := show(p, "LoadAvg")
	for _, a := range m.slots[1:] {
		got += " " + show(a, "LoadAvg")
	}
	expect(t, "partitionable", got, "LoadAvg=2.0 LoadAvg=2.0 LoadAvg=1.0 LoadAvg=0.0")
}

func TestIdle(t *testing.T) {
	t.Parallel()
	s := machine.Sample{KeyboardIdle: 7 * time.Second, ConsoleIdle: 9 * time.Second, HasConsole: true}
	now := goldenStart.Add(30 * time.Second)
	for _, c := range []struct{ name, config, want string }{
		{"none connected", "", "1230 1230 1230 1230"},
		{"the first connected", "SLOTS_CONNECTED_TO_KEYBOARD = 1\n", "7 1230 1230 1230"},
		{"all connected", "SLOTS_CONNECTED_TO_KEYBOARD = 2\nSLOTS_CONNECTED_TO_CONSOLE = 1000000\n", "7 9 7 9"},
		{"no boost", "DISCONNECTED_KEYBOARD_IDLE_BOOST = 0\nSLOTS_CONNECTED_TO_CONSOLE = 1\n", "30 9 30 30"},
	} {
		m, _ := machineWith(t, twoStatic+c.config)
		m.Refresh(s, now)
		got := ""
		for _, a := range m.slots {
			k, _ := a.Ad().EvalInt("KeyboardIdle", nil)
			o, _ := a.Ad().EvalInt("ConsoleIdle", nil)
			got += fmt.Sprintf(" %d %d", k, o)
		}
		expect(t, c.name, got[1:], c.want)
		m.Refresh(machine.Sample{KeyboardIdle: time.Second}, now)
		expect(t, c.name+", console gone", show(m.slots[0], "ConsoleIdle"), "ConsoleIdle=undefined")
	}
}

func TestClock(t *testing.T) {
	t.Parallel()
	m, _ := machineWith(t, "")
	m.src.Location = time.FixedZone("east", 20*3600)
	m.Refresh(machine.Sample{}, goldenStart) // a Wednesday, 05:06 in UTC
	expect(t, "clock", show(m.slots[0], "ClockMin", "ClockDay", "MyCurrentTime"),
		fmt.Sprintf("ClockMin=%d ClockDay=4 MyCurrentTime=%d", 66, goldenStart.Wall.Unix()))
}

func TestLatches(t *testing.T) {
	t.Parallel()
	m, _ := machineWith(t, "STARTD_LATCH_EXPRS = Busy Half Word Lit\nBusy = LoadAvg > 1\nHalf = LoadAvg / 2\nWord = strcat(\"a\", \"b\")\nLit = 5\n")
	a := m.slots[0]
	state := func() string {
		return show(a, "BusyValue", "BusyTime", "HalfValue", "HalfTime", "WordValue", "WordTime", "LitValue", "LitTime")
	}
	t0 := goldenStart.Wall.Unix()
	expect(t, "at first", state(), fmt.Sprintf(
		"BusyValue=0 BusyTime=%[1]d HalfValue=0 HalfTime=%[1]d WordValue=undefined WordTime=undefined LitValue=undefined LitTime=%[1]d", t0))
	m.Refresh(machine.Sample{LoadAvg: 1.5}, goldenStart.Add(10*time.Second))
	m.Refresh(machine.Sample{LoadAvg: 1.6}, goldenStart.Add(20*time.Second))
	expect(t, "busy", state(), fmt.Sprintf(
		"BusyValue=1 BusyTime=%d HalfValue=0 HalfTime=%d WordValue=undefined WordTime=undefined LitValue=undefined LitTime=%d", t0+10, t0, t0))
}

// What a source publishes stands over everything but names, amounts and what
// samples bring; what is said of one slot counts before what is said of all.
func TestPublish(t *testing.T) {
	t.Parallel()
	m, led := machineWith(t, "START = true\n")
	d, err := led.Carve(slot.ID{N: 1}, slot.Request{Cpus: 1})
	if err != nil {
		t.Fatal(err)
	}
	p, a := m.slots[0], m.Add(d, goldenStart)
	attrs := func(text string) *classad.Ad {
		ad, err := classad.ParseAd(text, classad.Old)
		if err != nil {
			t.Fatal(err)
		}
		return ad
	}
	names := []string{"Hot", "Start", "State", "Cpus"}
	m.Publish("one", slot.ID{N: 1}, attrs("Hot = 2"))
	m.Publish("all", slot.ID{}, attrs("Hot = 1\nStart = false\nState = \"Odd\"\nCpus = 99\nLoadAvg = 77"))
	expect(t, "parent", show(p, names...), `Hot=2 Start=false State="Odd" Cpus=7`)
	expect(t, "d-slot", show(a, names...), `Hot=2 Start=false State="Odd" Cpus=1`)
	expect(t, "load", show(a, "LoadAvg"), "LoadAvg=77")
	if e, _ := a.Snapshot(goldenStart).Lookup("Hot"); e.String() != "2" {
		t.Errorf("published Hot = %s", e)
	}
	m.Publish("one", slot.ID{N: 1}, nil)
	expect(t, "withdrawn", show(a, names...), `Hot=1 Start=false State="Odd" Cpus=1`)
	m.Publish("all", slot.ID{}, attrs("Hot = 3"))
	expect(t, "replaced", show(a, names...), `Hot=3 Start=true State="Owner" Cpus=1`)
	e, err := led.Carve(slot.ID{N: 1}, slot.Request{Cpus: 1})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "a later d-slot", show(m.Add(e, goldenStart), names...), `Hot=3 Start=true State="Owner" Cpus=1`)
	m.Publish("all", slot.ID{}, classad.NewAd())
	expect(t, "all withdrawn", show(a, names...), `Hot=undefined Start=true State="Owner" Cpus=1`)
	if a.over != nil || len(m.published) != 0 {
		t.Error("an empty layer is left")
	}
}

// What is said of a partitionable slot is for it alone, as soon as the source
// has said what there is for its dynamic slots, be it nothing.
func TestPublishExactly(t *testing.T) {
	t.Parallel()
	m, led := machineWith(t, "NUM_SLOTS = 2\n")
	carve := func() *Slot {
		d, err := led.Carve(slot.ID{N: 1}, slot.Request{Cpus: 1})
		if err != nil {
			t.Fatal(err)
		}
		return m.Add(d, goldenStart)
	}
	hot := func(n int64) *classad.Ad {
		ad := classad.NewAd()
		ad.SetInt("Hot", n)
		return ad
	}
	seen := func() string {
		out := ""
		for _, a := range m.slots {
			out += a.s.Name() + ":" + a.Ad().Eval("Hot", nil).String() + " "
		}
		return out
	}
	one := carve()
	m.Publish("cron", slot.ID{N: 1}, hot(1))
	expect(t, "nothing was said of the dynamic slot", seen(), "slot1:1 slot1_1:1 slot2:undefined ")
	m.Publish("cron", one.s.ID, nil)
	expect(t, "there is nothing for the dynamic slot", seen(), "slot1:1 slot1_1:undefined slot2:undefined ")
	m.Publish("other", slot.ID{N: 1}, hot(7))
	expect(t, "another source", seen(), "slot1:7 slot1_1:7 slot2:undefined ")
	m.Publish("other", slot.ID{N: 1}, nil)
	m.Publish("cron", one.s.ID, hot(3))
	two := carve()
	expect(t, "a new one", seen(), "slot1:1 slot1_1:3 slot1_2:1 slot2:undefined ")
	m.Publish("cron", two.s.ID, hot(4))
	m.Publish("cron", slot.ID{N: 1}, nil)
	expect(t, "nothing for the parent", seen(), "slot1:undefined slot1_1:3 slot1_2:4 slot2:undefined ")
	if err := led.Return(one.s.ID); err != nil {
		t.Fatal(err)
	}
	m.Remove(one.s.ID)
	expect(t, "removed", seen(), "slot1:undefined slot1_2:4 slot2:undefined ")
	carve()
	expect(t, "the next of that number", seen(), "slot1:undefined slot1_1:3 slot1_2:4 slot2:undefined ")
}

// Attributes of STARTD_SLOT_ATTRS follow the slot they come from.
func TestSlotAttrs(t *testing.T) {
	t.Parallel()
	m, _ := machineWith(t, twoStatic+"STARTD_SLOT_ATTRS = State, RemoteUser, Missing\n")
	one, two := m.slots[0], m.slots[1]
	expect(t, "at first", show(two, "slot1_State", "slot2_State", "slot1_RemoteUser"), `slot1_State="Unclaimed" slot2_State="Unclaimed" slot1_RemoteUser=undefined`)
	one.SetPair(policy.ClaimedBusy, goldenStart)
	one.SetClaim(claimFor(map[string]string{"RemoteUser": `"u@d"`}), goldenStart)
	expect(t, "claimed", show(two, "slot1_State", "slot1_RemoteUser"), `slot1_State="Claimed" slot1_RemoteUser="u@d"`)
	one.ClearClaim()
	m.Remove(slot.ID{N: 1})
	expect(t, "removed", show(two, "slot1_State", "slot1_RemoteUser", "slot2_State"), `slot1_State=undefined slot1_RemoteUser=undefined slot2_State="Unclaimed"`)
}

func TestReconfigure(t *testing.T) {
	t.Parallel()
	m, led := machineWith(t, "START = true\nSTARTD_ATTRS = Foo\nFoo = 1\n")
	a := m.slots[0]
	a.SetPair(policy.ClaimedBusy, goldenStart.Add(time.Second))
	src := m.src
	parse := func(text string) {
		t.Helper()
		var err error
		if src.Config, err = config.Parse("new.conf", text, config.Options{Subsystem: "STARTD"}); err != nil {
			t.Fatal(err)
		}
		exprs, err := policy.ExpressionsFrom(src.Config, 0)
		if err != nil {
			t.Fatal(err)
		}
		src.Policy = map[int]*policy.Expressions{0: exprs}
	}
	parse("START = Cpus > 99\nSTARTD_ATTRS = Bar\nBar = 2\nFoo = 1\n")
	if err := m.Reconfigure(src, goldenStart.Add(2*time.Second)); err != nil {
		t.Fatal(err)
	}
	expect(t, "new", show(a, "Start", "Foo", "Bar", "State", "TotalSlots"), `Start=false Foo=undefined Bar=2 State="Claimed" TotalSlots=1`)
	if led.Len() != 1 || m.slots[0].m != m {
		t.Error("the slots belong to another machine")
	}
	parse("SLOTS_CONNECTED_TO_KEYBOARD = many\n")
	if err := m.Reconfigure(src, goldenStart); err == nil {
		t.Error("a setting that is no number was taken")
	}
	expect(t, "unchanged", show(a, "Start", "Bar"), "Start=false Bar=2")
}

// Times in states add up, also over several visits.
func TestTimes(t *testing.T) {
	t.Parallel()
	m, _ := machineWith(t, "")
	a, now := m.slots[0], goldenStart
	for _, p := range []policy.Pair{policy.OwnerIdle, policy.UnclaimedIdle, policy.OwnerIdle, policy.UnclaimedIdle} {
		a.SetPair(p, now)
		now = now.Add(10 * time.Second)
	}
	a.SetPair(policy.UnclaimedIdle, now) // no move: nothing begins anew
	got := ""
	snap := a.Snapshot(now)
	for _, n := range []string{"TotalTimeOwnerIdle", "TotalTimeUnclaimedIdle", "TotalTimeClaimedBusy", "EnteredCurrentState"} {
		got += " " + snap.Eval(n, nil).String()
	}
	expect(t, "times", got, fmt.Sprintf(" 20 20 undefined %d", goldenStart.Wall.Unix()+30))
}

// manySlots is a machine with n dynamic slots, each running a job.
func manySlots(b testing.TB, n int, extra string) *Machine {
	b.Helper()
	m, _ := machineWith(b, extra)
	cfg := m.src.Config
	inv := *m.src.Inventory
	inv.UsableCores, inv.UsableMemoryMiB = n+8, int64(n+8)*128
	layout, err := slot.LayoutFrom(cfg, &inv)
	if err != nil {
		b.Fatal(err)
	}
	led, _ := slot.Build(layout, &inv)
	m, err = New(Source{Config: cfg, Inventory: &inv, Ledger: led, Policy: m.src.Policy}, goldenStart)
	if err != nil {
		b.Fatal(err)
	}
	for range n {
		d, err := led.Carve(slot.ID{N: 1}, slot.Request{Cpus: 1, MemoryMiB: 128, DiskKiB: 1024})
		if err != nil {
			b.Fatal(err)
		}
		a := m.Add(d, goldenStart)
		a.SetClaim(claimFor(map[string]string{"RemoteUser": `"u@d"`}), goldenStart)
		a.SetPair(policy.ClaimedBusy, goldenStart)
		a.SetCondorLoad(0.5)
	}
	return m
}

func BenchmarkRefresh10000(b *testing.B) {
	m := manySlots(b, 10000, "SLOTS_CONNECTED_TO_KEYBOARD = 1000000\n")
	now := goldenStart
	b.ReportAllocs()
	for b.Loop() {
		now = now.Add(time.Second)
		m.Refresh(machine.Sample{LoadAvg: 5000, KeyboardIdle: now.Boot}, now)
	}
}

// A sample that brings nothing new for most slots costs them no memory, with
// latches and without.
func TestRefreshAllocates(t *testing.T) {
	for _, text := range []string{"", "STARTD_LATCH_EXPRS = Odd, NumDynamicSlots\nOdd = LoadAvg > 3\n"} {
		m := manySlots(t, 200, text)
		now := goldenStart
		n := testing.AllocsPerRun(10, func() {
			now = now.Add(time.Second)
			m.Refresh(machine.Sample{LoadAvg: 50, KeyboardIdle: now.Boot}, now)
		})
		if n > 100 {
			t.Errorf("%q: a refresh of 200 slots allocates %v times", text, n)
		}
	}
}

// A type's own consumption policy covers its custom resources, and only that
// type has one.
//
// row: S0-296
func TestConsumptionOfType(t *testing.T) {
	t.Parallel()
	m, _ := machineWith(t, `MACHINE_RESOURCE_GPUs = 4
SLOT_TYPE_1 = 50%
SLOT_TYPE_1_PARTITIONABLE = true
NUM_SLOTS_TYPE_1 = 1
SLOT_TYPE_2 = 50%
SLOT_TYPE_2_PARTITIONABLE = true
NUM_SLOTS_TYPE_2 = 1
SLOT_TYPE_2_CONSUMPTION_POLICY = true
SLOT_TYPE_2_CONSUMPTION_gpus = quantize(target.RequestGPUs,{2})
`)
	if _, ok := m.slots[0].Ad().Lookup("ConsumptionGPUs"); ok {
		t.Error("type 1 has a policy")
	}
	e, ok := m.slots[1].Ad().Lookup("ConsumptionGPUs")
	if !ok || e.String() != classad.MustParseExpr("quantize(target.RequestGPUs,{2})").String() {
		t.Errorf("ConsumptionGPUs is %v", e)
	}
	job, err := classad.ParseAd("RequestCpus = 1\nRequestMemory = 1\nRequestDisk = 1\nRequestGPUs = 3\n", classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	// Three are charged as four, of which the slot has two.
	within := func() bool {
		return m.slots[1].Ad().Eval("WithinResourceLimits", &classad.Env{Target: job}).IsTrue()
	}
	if within() {
		t.Error("a job that would be charged four of two GPUs is within limits")
	}
	job.SetInt("RequestGPUs", 1)
	if !within() {
		t.Error("a job that would be charged two of two GPUs is not within limits")
	}
}

// A source outside may replace what the machine measures, and policies see it;
// the clock and the name it may not.
func TestPublishedReadings(t *testing.T) {
	t.Parallel()
	m, _ := machineWith(t, "NUM_SLOTS = 1\nSLOT_TYPE_0_PARTITIONABLE = false\nuse POLICY : DESKTOP\n")
	now := goldenStart.Add(time.Minute)
	a := m.slots[0]
	said, err := classad.ParseAd("KeyboardIdle = 10000\nLoadAvg = 0.0\nMyCurrentTime = 5\nName = \"x\"\n", classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	start := func() bool { return a.Ad().Eval("Start", &classad.Env{Now: now.Wall}).IsTrue() }
	m.Refresh(machine.Sample{KeyboardIdle: time.Second, LoadAvg: 3}, now)
	if start() {
		t.Error("Start is true with somebody at the keyboard")
	}
	m.Publish("knobs", slot.ID{}, said)
	if !start() {
		t.Error("Start does not see what was published")
	}
	m.Refresh(machine.Sample{KeyboardIdle: 2 * time.Second, LoadAvg: 3}, now)
	shown := a.Snapshot(now)
	for name, want := range map[string]string{"KeyboardIdle": "10000", "LoadAvg": "0.0", "Name": a.Ad().Eval("Name", nil).Text(classad.Old)} {
		expect(t, name, shown.Eval(name, nil).Text(classad.Old), want)
	}
	if n, _ := shown.EvalInt("MyCurrentTime", nil); n != now.Wall.Unix() {
		t.Errorf("MyCurrentTime %d", n)
	}
	m.Publish("knobs", slot.ID{}, nil)
	if start() {
		t.Error("Start still sees what was taken away")
	}
}

func BenchmarkSetPair(b *testing.B) {
	m := manySlots(b, 10000, "")
	a := m.slots[5000]
	b.ReportAllocs()
	for b.Loop() {
		a.SetPair(policy.ClaimedSuspended, goldenStart)
		a.SetPair(policy.ClaimedBusy, goldenStart)
	}
}

func BenchmarkAddRemove(b *testing.B) {
	m := manySlots(b, 1000, "")
	s := m.slots[500].s
	b.ReportAllocs()
	for b.Loop() {
		m.Remove(s.ID)
		m.Add(s, goldenStart)
	}
}

func BenchmarkSnapshot(b *testing.B) {
	m := manySlots(b, 100, "")
	b.ReportAllocs()
	for b.Loop() {
		m.slots[50].Snapshot(goldenStart)
	}
}

func BenchmarkStart(b *testing.B) {
	m := manySlots(b, 10000, "START = KeyboardIdle > 15 * 60 && LoadAvg - CondorLoadAvg <= 0.3\n")
	a := m.slots[5000]
	env := &classad.Env{Now: goldenStart.Wall}
	b.ReportAllocs()
	for b.Loop() {
		a.Ad().Eval("Start", env)
	}
}
