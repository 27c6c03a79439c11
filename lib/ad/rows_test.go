// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ad

import (
	"fmt"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// text is an attribute of a published ad as it stands there, "-" without one.
func text(a *Slot, name string) string {
	if e, ok := a.Snapshot(goldenStart).Lookup(name); ok {
		return e.String()
	}
	return "-"
}

// What STARTD_ATTRS lists appears in every slot ad as an expression, also
// after a reload; a word without quotes is the name of an attribute.
//
// row: S0-220, S0-221, S0-222, S4-040
func TestOwnAttributes(t *testing.T) {
	t.Parallel()
	m, _ := machineWith(t, twoStatic)
	src := m.src
	var err error
	src.Config, err = config.Parse("genome.conf", twoStatic+`STARTD_ATTRS = Before
GenomeDBPath = "/path/to/db"
GenomeDBSizeGB = 1729
HasLargeGenomeDB = GenomeDBSizeGB > 100
WRONGGenomeDBName = FruitFlies
Before = 1
STARTD_ATTRS = GenomeDBPath GenomeDBSizeGB HasLargeGenomeDB WRONGGenomeDBName $(STARTD_ATTRS)
`, config.Options{Subsystem: "STARTD"})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Reconfigure(src, goldenStart); err != nil {
		t.Fatal(err)
	}
	for _, a := range m.slots {
		expect(t, "path", text(a, "GenomeDBPath"), `"/path/to/db"`)
		expect(t, "expression", text(a, "HasLargeGenomeDB"), "GenomeDBSizeGB > 100")
		expect(t, "word", text(a, "WRONGGenomeDBName"), "FruitFlies")
		expect(t, "values", show(a, "HasLargeGenomeDB", "WRONGGenomeDBName", "Before"), "HasLargeGenomeDB=true WRONGGenomeDBName=undefined Before=1")
	}
}

// SLOT<N>_STARTD_ATTRS adds to one slot, SLOT<N>_X gives one slot another value.
//
// row: S0-223, S0-224, S4-041
func TestOwnAttributesOfOneSlot(t *testing.T) {
	t.Parallel()
	m, _ := machineWith(t, twoStatic+`STARTD_ATTRS = favorite_color, favorite_season
favorite_color = "blue"
favorite_season = "spring"
SLOT1_STARTD_ATTRS = favorite_movie
favorite_movie = "Jaws"
SLOT2_favorite_color = "green"
`)
	for i, want := range []string{
		`favorite_color="blue" favorite_season="spring" favorite_movie="Jaws"`,
		`favorite_color="green" favorite_season="spring" favorite_movie=undefined`,
	} {
		expect(t, m.slots[i].s.Name(), show(m.slots[i], "favorite_color", "favorite_season", "favorite_movie"), want)
	}
}

// The names by which a job may ask for a machine, and obsolete ones.
//
// row: S1-003, S1-007, S1-010, S1-011, S1-015, S1-016, S1-017, S1-018, S1-021, S4-118
func TestClassicAttributes(t *testing.T) {
	t.Parallel()
	m, _ := machineWith(t, twoStatic+"UID_DOMAIN = users.example\nFILESYSTEM_DOMAIN = files.example\n"+
		"START = TARGET.Owner == \"ann\"\nMAXJOBRETIREMENTTIME = ifThenElse(TARGET.Short, 60, 3600)\n")
	a := m.slots[0]
	expect(t, "amounts", show(a, "Cpus", "Memory", "VirtualMemory"), fmt.Sprintf("Cpus=4 Memory=8192 VirtualMemory=%d", 1<<23))
	expect(t, "domains", show(a, "UidDomain", "FileSystemDomain"), `UidDomain="users.example" FileSystemDomain="files.example"`)
	expect(t, "types", show(a, "MyType", "TargetType"), `MyType="Machine" TargetType="Job"`)
	expect(t, "obsolete", text(a, "CheckpointPlatform")+" "+classad.MustParseExpr(`CheckpointPlatform == "LINUX"`).Eval(&classad.Env{My: a.Ad()}).String(), "- undefined")
	expect(t, "weight", text(a, "SlotWeight")+" "+show(a, "SlotWeight"), "Cpus SlotWeight=4")
	at := goldenStart.Add(90 * time.Second)
	a.SetPair(policy.ClaimedIdle, at)
	a.SetPair(policy.ClaimedBusy, at.Add(time.Second))
	expect(t, "since", show(a, "EnteredCurrentState", "EnteredCurrentActivity"),
		fmt.Sprintf("EnteredCurrentState=%d EnteredCurrentActivity=%d", at.Wall.Unix(), at.Wall.Unix()+1))
	for _, c := range []struct{ job, accepts, retirement string }{
		{"Owner = \"ann\"\nShort = true\nRequestCpus = 1\nRequestMemory = 1\nRequestDisk = 1\n", "true", "60"},
		{"Owner = \"ann\"\nShort = false\nRequestCpus = 5\nRequestMemory = 1\nRequestDisk = 1\n", "false", "3600"},
		{"Owner = \"bob\"\nShort = false\nRequestCpus = 1\nRequestMemory = 1\nRequestDisk = 1\n", "false", "3600"},
	} {
		job, err := classad.ParseAd(c.job, classad.Old)
		if err != nil {
			t.Fatal(err)
		}
		env := &classad.Env{Target: job}
		expect(t, c.job, a.Ad().Eval("Requirements", env).String(), c.accepts)
		expect(t, c.job, a.Ad().Eval("MaxJobRetirementTime", env).String(), c.retirement)
	}
}

// Only wired slots notice when a key is hit; the others have been idle since
// 1200 seconds before the daemon began. The desktop policy wires them all.
//
// row: S2-025, S2-026, S4-090, S4-091, S4-092
func TestWiredSlots(t *testing.T) {
	t.Parallel()
	now := goldenStart.Add(100 * time.Second)
	for _, c := range []struct{ config, keyboard, console string }{
		{"", "1300 1300 1300", "1300 1300 1300"},
		{"SLOTS_CONNECTED_TO_CONSOLE = 1\nSLOTS_CONNECTED_TO_KEYBOARD = 1\n", "0 1300 1300", "0 1300 1300"},
		{"SLOTS_CONNECTED_TO_KEYBOARD = 2\n", "0 0 1300", "1300 1300 1300"},
		{"SLOTS_CONNECTED_TO_CONSOLE = 2\nDISCONNECTED_KEYBOARD_IDLE_BOOST = 5\n", "105 105 105", "0 0 105"},
		{"use POLICY : Desktop\n", "0 0 0", "0 0 0"},
	} {
		m, _ := machineWith(t, "NUM_SLOTS = 3\nSLOT_TYPE_0_PARTITIONABLE = false\n"+c.config)
		m.Refresh(machine.Sample{HasConsole: true}, now) // a key was hit just now
		for name, want := range map[string]string{"KeyboardIdle": c.keyboard, "ConsoleIdle": c.console} {
			got := ""
			for _, a := range m.slots {
				got += " " + text(a, name)
			}
			expect(t, c.config+name, got[1:], want)
		}
	}
}

// How the machine's load is dealt to slots of one processor each.
//
// row: S1-005, S2-029, S2-031, S2-032, S2-033, S2-034
func TestDealingLoad(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what   string
		load   float64
		states string    // a letter for each slot: Owner, Unclaimed, Claimed
		jobs   []float64 // load of the slot's job
		want   string    // LoadAvg/CondorLoadAvg of each slot
		total  string
	}{
		{"the documents' example", 1.25, "UC", []float64{0, 0.996}, "0.25/0.0 1.0/1.0", "1.25 1.0"},
		{"Owner first, each at most one, then none", 1.6, "UCOU", nil, "0.6/0.0 0.0/0.0 1.0/0.0 0.0/0.0", "1.6 0.0"},
		{"then Unclaimed in order", 3.0, "UCOU", nil, "1.0/0.0 0.0/0.0 1.0/0.0 1.0/0.0", "3.0 0.0"},
		{"what is left goes to slots with jobs", 3.5, "CUCC", []float64{1, 0, 0, 0.5}, "2.0/1.0 1.0/0.0 0.0/0.0 0.5/0.5", "3.5 1.5"},
		{"and makes them look overloaded", 6, "CC", []float64{1, 1}, "2.0/1.0 2.0/1.0", "6.0 2.0"},
		{"jobs that claim more than there is", 0.5, "CC", []float64{1, 1}, "1.0/1.0 1.0/1.0", "0.5 0.5"},
	} {
		n := len(c.states)
		m, _ := machineWith(t, fmt.Sprintf("NUM_CPUS = %[1]d\nNUM_SLOTS = 8\nSLOT_TYPE_0_PARTITIONABLE = false\n", n))
		for len(m.slots) > n {
			m.Remove(m.slots[len(m.slots)-1].s.ID)
		}
		for i, a := range m.slots {
			a.SetPair(map[byte]policy.Pair{'O': policy.OwnerIdle, 'U': policy.UnclaimedIdle, 'C': policy.ClaimedBusy}[c.states[i]], goldenStart)
			if i < len(c.jobs) {
				a.SetCondorLoad(c.jobs[i])
			}
		}
		m.Refresh(machine.Sample{LoadAvg: c.load}, goldenStart)
		got := ""
		for _, a := range m.slots {
			got += " " + text(a, "LoadAvg") + "/" + text(a, "CondorLoadAvg")
			expect(t, c.what+", totals", text(a, "TotalLoadAvg")+" "+text(a, "TotalCondorLoadAvg"), c.total)
		}
		expect(t, c.what, got[1:], c.want)
	}
}

// A claimed slot shows what STARTD_JOB_ATTRS lists of its job and four more.
//
// row: S4-036
func TestJobAttributes(t *testing.T) {
	t.Parallel()
	m, _ := machineWith(t, twoStatic+"STARTD_JOB_ATTRS = Project, Missing\n")
	job, err := classad.ParseAd("JobUniverse = 5\nNiceUser = true\nExecutableSize = 3\nImageSize = 4\nProject = strcat(\"a\", Owner)\nOwner = \"ann\"\n", classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	a := m.slots[0]
	names := []string{"JobUniverse", "NiceUser", "ExecutableSize", "ImageSize", "Project", "Missing", "Owner"}
	all := func() string {
		out := ""
		for _, n := range names {
			out += text(a, n) + ";"
		}
		return out
	}
	expect(t, "unclaimed", all(), "-;-;-;-;-;-;-;")
	a.SetClaim(&claim.Claim{Request: job}, goldenStart)
	expect(t, "claimed", all(), `5;true;3;4;strcat("a",Owner);-;-;`)
	a.ClearClaim()
	expect(t, "released", all(), "-;-;-;-;-;-;-;")
}

// What a job used stays while it runs, through all its phases, and is not
// taken for what the next job under the claim uses.
func TestUsageOfTheNextJob(t *testing.T) {
	t.Parallel()
	m, _ := machineWith(t, twoStatic)
	a, now := m.slots[0], goldenStart
	job := classad.NewAd()
	job.SetInt("DiskUsage", 45)
	job.SetInt("ImageSize", 9)
	c := &claim.Claim{Request: job}
	a.SetClaim(c, now)
	first := claim.Start("one", job, 5, 0, now)
	a.SetActivation(c, &first, now)
	look := func(what, want string) {
		t.Helper()
		expect(t, what, text(a, "ImageSize")+" "+text(a, "DiskUsage")+" "+text(a, "ResidentSetSize")+" "+show(a, "MemoryUsage"), want)
	}
	look("begun", "9 45 - MemoryUsage=undefined")
	a.SetUsage(Usage{ImageSizeKiB: 100, ResidentKiB: 2048, DiskKiB: 7})
	look("measured", "100 7 2048 MemoryUsage=2")
	if err := first.Enter(claim.Running, now); err != nil {
		t.Fatal(err)
	}
	a.SetActivation(c, &first, now)
	look("in another phase", "100 7 2048 MemoryUsage=2")
	a.ClearActivation(c, now)
	second := claim.Start("two", job, 5, 0, now)
	a.SetActivation(c, &second, now)
	look("the next job", "9 45 - MemoryUsage=undefined")
}

// A latch shows the value and when that last changed; of an attribute that is
// not the owner's only the time; of an undefined one nothing but that it was.
//
// row: S4-037, S4-038, S4-039
func TestLatchesOfSlots(t *testing.T) {
	t.Parallel()
	m, led := machineWith(t, "STARTD_LATCH_EXPRS = HalfFull NumDynamicSlots Maybe\n"+
		"HalfFull = Cpus < (TotalSlotCPUs/2) || Memory < (TotalSlotMemory/2)\nMaybe = TotalLoadAvg > 3 ? Nowhere : 7 + 0\n")
	p := m.slots[0]
	t0 := goldenStart.Wall.Unix()
	look := func(after int, load float64) string {
		m.Refresh(machine.Sample{LoadAvg: load}, goldenStart.Add(time.Duration(after)*time.Second))
		out := text(p, "NumDynamicSlotsValue")
		for _, n := range []string{"HalfFullTime", "NumDynamicSlotsTime", "MaybeTime"} {
			if v, ok := p.Ad().EvalInt(n, nil); ok {
				out += fmt.Sprintf(" %s+%d", n, v-t0)
			}
		}
		return out + " " + text(p, "HalfFullValue") + " " + text(p, "MaybeValue")
	}
	carve := func(cpus float64) {
		d, err := led.Carve(slot.ID{N: 1}, slot.Request{Cpus: cpus, MemoryMiB: 1})
		if err != nil {
			t.Fatal(err)
		}
		m.Add(d, goldenStart)
	}
	expect(t, "whole", look(10, 0), "- HalfFullTime+0 MaybeTime+0 0 7")
	carve(3)
	expect(t, "carved, less than half", look(20, 0), "- HalfFullTime+0 NumDynamicSlotsTime+20 MaybeTime+0 0 7")
	carve(2)
	expect(t, "more than half", look(30, 0), "- HalfFullTime+30 NumDynamicSlotsTime+30 MaybeTime+0 1 7")
	carve(1)
	expect(t, "one more", look(40, 0), "- HalfFullTime+30 NumDynamicSlotsTime+40 MaybeTime+0 1 7")
	expect(t, "undefined", look(50, 5), "- HalfFullTime+30 NumDynamicSlotsTime+40 MaybeTime+50 1 -")
	expect(t, "still undefined", look(60, 5), "- HalfFullTime+30 NumDynamicSlotsTime+40 MaybeTime+50 1 -")
	expect(t, "defined again", look(70, 0), "- HalfFullTime+30 NumDynamicSlotsTime+40 MaybeTime+70 1 7")
}

// What STARTD_SLOT_ATTRS lists is in the ads of both slots under the name of
// the slot it is of, and follows it.
//
// row: S4-093
func TestAttributesOfSiblings(t *testing.T) {
	t.Parallel()
	m, _ := machineWith(t, twoStatic+"STARTD_SLOT_ATTRS = State, Activity, EnteredCurrentActivity\n")
	at := goldenStart.Add(5 * time.Second)
	m.slots[1].SetPair(policy.ClaimedBusy, at)
	for _, a := range m.slots {
		expect(t, a.s.Name(), show(a, "slot1_State", "slot1_Activity", "slot2_State", "slot2_Activity", "slot2_EnteredCurrentActivity"),
			fmt.Sprintf(`slot1_State="Unclaimed" slot1_Activity="Idle" slot2_State="Claimed" slot2_Activity="Busy" slot2_EnteredCurrentActivity=%d`, at.Wall.Unix()))
	}
}

// CpuBusyTime counts the seconds since CPUBusy became true and is 0 while it is
// false, in the ads of slots whose owner asks for it.
//
// row: S0-207
func TestCpuBusyTime(t *testing.T) {
	t.Parallel()
	const asks = "NonCondorLoadAvg = (LoadAvg - CondorLoadAvg)\nHighLoad = 0.5\nCPUBusy = $(NonCondorLoadAvg) >= $(HighLoad)\n" +
		"SUSPEND = (CpuBusyTime > 2 * $(MINUTE)) && ($(ActivationTimer) > 90)\n"
	for _, tt := range []struct{ name, text string }{
		{"as the documents write it", twoStatic + asks},
		{"CPUBusy of the defaults", twoStatic + "SUSPEND = CpuBusyTime > 120\n"},
		{"asked for in an attribute", twoStatic + "STARTD_ATTRS = Loaded\nLoaded = CpuBusyTime > 120\n"},
	} {
		m, _ := machineWith(t, tt.text)
		for _, step := range []struct {
			at   int
			load float64
			want string
		}{
			{0, 0, "CpuBusyTime=0 CpuIsBusy=false CpuBusyTime=0 CpuIsBusy=false"},
			{10, 0.49, "CpuBusyTime=0 CpuIsBusy=false CpuBusyTime=0 CpuIsBusy=false"},
			{20, 0.5, "CpuBusyTime=0 CpuIsBusy=true CpuBusyTime=0 CpuIsBusy=false"},
			{25, 3, "CpuBusyTime=5 CpuIsBusy=true CpuBusyTime=0 CpuIsBusy=false"},
			{150, 5, "CpuBusyTime=130 CpuIsBusy=true CpuBusyTime=0 CpuIsBusy=true"},
			{160, 5, "CpuBusyTime=140 CpuIsBusy=true CpuBusyTime=10 CpuIsBusy=true"},
			{170, 0.2, "CpuBusyTime=0 CpuIsBusy=false CpuBusyTime=0 CpuIsBusy=false"},
			{180, 1, "CpuBusyTime=0 CpuIsBusy=true CpuBusyTime=0 CpuIsBusy=false"},
		} {
			m.Refresh(machine.Sample{LoadAvg: step.load}, goldenStart.Add(time.Duration(step.at)*time.Second))
			got := show(m.slots[0], "CpuBusyTime", "CpuIsBusy") + " " + show(m.slots[1], "CpuBusyTime", "CpuIsBusy")
			expect(t, fmt.Sprintf("%s, after %d s", tt.name, step.at), got, step.want)
		}
	}
	// A latch of the same name has its own meaning, and nobody who does not ask
	// is told.
	m, _ := machineWith(t, twoStatic+asks+"STARTD_LATCH_EXPRS = CpuBusy\n")
	m.Refresh(machine.Sample{LoadAvg: 5}, goldenStart.Add(time.Minute))
	expect(t, "latched", show(m.slots[0], "CpuBusyTime", "CpuBusyValue"), fmt.Sprintf("CpuBusyTime=%d CpuBusyValue=1", goldenStart.Wall.Unix()+60))
	m, _ = machineWith(t, twoStatic)
	m.Refresh(machine.Sample{LoadAvg: 5}, goldenStart.Add(time.Minute))
	expect(t, "not asked", show(m.slots[0], "CpuBusyTime", "CpuIsBusy"), "CpuBusyTime=undefined CpuIsBusy=undefined")
}

// The name of the dedicated scheduler is in every slot's ad without being listed
// (SYSTEM_STARTD_ATTRS lists it), in those of dynamic slots too, as the string that
// parallel jobs compare with their own.
//
// row: S4-064
func TestDedicatedSchedulerIsShown(t *testing.T) {
	t.Parallel()
	const name = `"DedicatedScheduler@full.host.name"`
	m, led := machineWith(t, `NUM_SLOTS_TYPE_1 = 1
SLOT_TYPE_1 = 50%
SLOT_TYPE_1_PARTITIONABLE = true
NUM_SLOTS_TYPE_2 = 1
SLOT_TYPE_2 = 50%
SLOT_TYPE_2_PARTITIONABLE = false
DedicatedScheduler = `+name+`
STARTD_ATTRS = Other
Other = 1
`)
	d, err := led.Carve(slot.ID{N: 1}, slot.Request{Cpus: 1, MemoryMiB: 1})
	if err != nil {
		t.Fatal(err)
	}
	m.Add(d, goldenStart)
	if len(m.slots) != 3 {
		t.Fatalf("%d slots", len(m.slots))
	}
	job := classad.NewAd()
	job.SetString("Scheduler", "DedicatedScheduler@full.host.name")
	wants := classad.MustParseExpr("TARGET.DedicatedScheduler =?= MY.Scheduler")
	for _, a := range m.slots {
		expect(t, a.s.Name(), text(a, "DedicatedScheduler"), name)
		if !wants.Eval(&classad.Env{My: job, Target: a.Snapshot(goldenStart)}).IsTrue() {
			t.Errorf("%s is not the dedicated scheduler's", a.s.Name())
		}
	}
	without, _ := machineWith(t, "NUM_SLOTS = 1\n")
	expect(t, "without", text(without.slots[0], "DedicatedScheduler"), "-")
}
