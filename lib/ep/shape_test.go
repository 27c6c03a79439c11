// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// divided is a stage over a machine whose division may fail.
func divided(t *testing.T, cpus int, text string, change func(*machine.Inventory)) (*stage, []slot.Problem) {
	t.Helper()
	inv, snap := inventory(t, cpus, text)
	if change != nil {
		change(inv)
	}
	layout, err := slot.LayoutFrom(snap, inv)
	if err != nil {
		t.Fatal(err)
	}
	ledger, problems := slot.Build(layout, inv)
	return stageWith(t, inv, snap, ledger), problems
}

// ads are attributes of all slots, one line each: "slot1 2 4096".
func (s *stage) ads(names ...string) string {
	var lines []string
	for v := range s.eng.Views() {
		line := v.Name
		for _, n := range names {
			line += " " + strings.Trim(shows(s.eng.SlotAd(v.ID), n)[n], `"`)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// TestShapes divides a machine of 4 processors, 8192 MiB and 40 GiB by lines
// of configuration and looks at the ads.
func TestShapes(t *testing.T) {
	t.Parallel()
	const whole = "slot1 4 8192 Partitionable 0"
	for _, c := range []struct{ name, config, want string }{
		// row: S4-094
		{"type 11", "SLOT_TYPE_11 = cpus=1\nNUM_SLOTS_TYPE_11 = 2\n", whole},
		{"type 11 of 11", "MAX_SLOT_TYPES = 11\nSLOT_TYPE_11 = cpus=1, 25%\nNUM_SLOTS_TYPE_11 = 2\n", "slot1 1 2048 Static 11\nslot2 1 2048 Static 11"},
		// row: S4-114
		{"a type without a number", "SLOT_TYPE_1 = 25%\n", whole},
		{"a number without a type", "NUM_SLOTS_TYPE_1 = 2\n", "slot1 2 4096 Static 1\nslot2 2 4096 Static 1"},
		// row: S4-115, S2-022
		{"even split", "NUM_SLOTS = 2\nSLOT_TYPE_0_PARTITIONABLE = false\n", "slot1 2 4096 Static 0\nslot2 2 4096 Static 0"},
		{"too many", "NUM_SLOTS = 5\nSLOT_TYPE_0_PARTITIONABLE = false\nSLOT_CONFIG_FAILURE_MODE = CLEAR\n", ""},
		{"more processors than there are", "NUM_CPUS = 8\nNUM_SLOTS = 8\nSLOT_TYPE_0_PARTITIONABLE = false\n", strings.TrimSpace(strings.Join([]string{
			"slot1 1 1024 Static 0", "slot2 1 1024 Static 0", "slot3 1 1024 Static 0", "slot4 1 1024 Static 0",
			"slot5 1 1024 Static 0", "slot6 1 1024 Static 0", "slot7 1 1024 Static 0", "slot8 1 1024 Static 0"}, "\n"))},
	} {
		s, _ := divided(t, 4, c.config, nil)
		if d := cmp.Diff(c.want, s.ads("Cpus", "Memory", "SlotType", "SlotTypeID")); d != "" {
			t.Errorf("%s: %s", c.name, d)
		}
	}
}

// TestVulture divides a machine of three processors evenly.
//
// row: S2-020
func TestVulture(t *testing.T) {
	t.Parallel()
	s, _ := divided(t, 3, "SLOT_TYPE_0_PARTITIONABLE = false\n", func(inv *machine.Inventory) { inv.Hostname, inv.FullHostname = "vulture", "vulture" })
	if d := cmp.Diff("slot1 slot1@vulture 1\nslot2 slot2@vulture 1\nslot3 slot3@vulture 1", s.ads("Name", "Cpus")); d != "" {
		t.Error(d)
	}
}

// TestNoEnforcement lets jobs use more memory than their slots have: nothing
// comes of it unless a policy says so.
//
// row: S2-021
func TestNoEnforcement(t *testing.T) {
	t.Parallel()
	const halves = "SLOT_TYPE_1 = cpus=1, mem=50%\nNUM_SLOTS_TYPE_1 = 2\nPREEMPT = false\nUPDATE_INTERVAL = 5\n"
	for _, c := range []struct {
		policy string
		stays  bool
	}{{"", true}, {"PREEMPT = ImageSize > Memory * 1024\nMAXJOBRETIREMENTTIME = 0\n", false}} {
		s := newStage(t, 2, halves+c.policy)
		ad := job(t, steady(time.Hour), "")
		for n := 1; n <= 2; n++ {
			g := s.claim(slot.ID{N: n}, ad)
			act := s.activate(g.Claim, ad)
			s.run(time.Second)
			s.step(JobUsage{Activation: act, Usage: host.Usage{ImageSizeKiB: 3 << 20, RSSKiB: 3 << 20}})
		}
		s.run(5 * time.Minute)
		for n := 1; n <= 2; n++ {
			if got := s.pair(slot.ID{N: n}); (got == policy.ClaimedBusy) != c.stays {
				t.Errorf("%q: slot%d, whose job has three quarters of the machine's memory, is %v", c.policy, n, got)
			}
		}
	}
}

// TestSlotKindInPolicy names the kind of a slot in START.
//
// row: S2-041
func TestSlotKindInPolicy(t *testing.T) {
	t.Parallel()
	const both = "SLOT_TYPE_1 = 50%\nSLOT_TYPE_1_PARTITIONABLE = true\nNUM_SLOTS_TYPE_1 = 1\nSLOT_TYPE_2 = 50%\nNUM_SLOTS_TYPE_2 = 1\n"
	for _, c := range []struct {
		start       string
		part, whole bool
	}{
		{"true", true, true},
		{`SlotType != "Static"`, true, false},
		{`SlotType == "Static"`, false, true},
		{"PartitionableSlot =?= true || DynamicSlot =?= true", true, false},
		{"PartitionableSlot =!= true && DynamicSlot =!= true", false, true},
		{"DynamicSlot =!= true", false, true}, // the partitionable slot matches, its part refuses
	} {
		s := newStage(t, 4, both+"START = "+c.start+"\n")
		ad := job(t, steady(time.Minute), "")
		for n, want := range map[int]bool{1: c.part, 2: c.whole} {
			if r := s.request(ClaimRequested{Slot: slot.ID{N: n}}, ad); (r.Err == nil) != want {
				t.Errorf("START = %s: slot%d granted %v, %v", c.start, n, r.Err == nil, r.Err)
			}
		}
	}
}

// TestProvisioning goes through the life of a partitionable slot: the worked
// example, numbering, rounding, exhaustion, and the default layout.
//
// row: S2-040
func TestProvisioning(t *testing.T) {
	t.Parallel()
	const machine = "NUM_CPUS = 10\nMEMORY = 10240\nDISK = 1000000\n"
	s, plain := newStage(t, 10, machine+"SLOT_TYPE_1 = 100%\nSLOT_TYPE_1_PARTITIONABLE = TRUE\nNUM_SLOTS_TYPE_1 = 1\n"), newStage(t, 10, machine)
	amounts := []string{"Cpus", "Memory", "Disk", "TotalSlotCpus", "TotalSlotMemory", "PartitionableSlot", "SlotType"}
	if d := cmp.Diff(plain.ads(amounts...), s.ads(amounts...)); d != "" {
		t.Errorf("100%% is not the default: %s", d)
	}
	worked := job(t, steady(time.Hour), "RequestCpus = 3\nRequestMemory = 1024\nRequestDisk = 10240")
	odd := job(t, steady(time.Hour), "RequestCpus = 3\nRequestMemory = 1000\nRequestDisk = 10000")
	a := s.claim(slot1, worked)
	if d := cmp.Diff(map[string]int64{"Cpus": 7, "Memory": 9216, "Disk": 989760}, resourcesOf(s.eng.SlotAd(slot1))); d != "" {
		t.Errorf("the worked example: %s", d)
	}
	b, c := s.claim(slot1, odd), s.claim(slot1, worked)
	if a.Slot.Sub != 1 || b.Slot.Sub != 2 || c.Slot.Sub != 3 {
		t.Errorf("numbers %v %v %v", a.Slot, b.Slot, c.Slot)
	}
	if d := cmp.Diff(map[string]int64{"Cpus": 3, "Memory": 1024, "Disk": 10240}, resourcesOf(s.eng.SlotAd(b.Slot))); d != "" {
		t.Errorf("rounding: %s", d)
	}
	one := s.claim(slot1, job(t, steady(time.Hour), ""))
	if got := resourcesOf(s.eng.SlotAd(slot1))["Cpus"]; got != 0 {
		t.Errorf("the exhausted parent shows %d processors", got)
	}
	s.refused(s.request(ClaimRequested{Slot: slot1}, job(t, steady(time.Hour), "")), errs.Exhausted, "Cpus 1 > 0")
	s.ask(func(ref Ref) Event { return ReleaseRequested{Ref: ref, Claim: one.Claim} })
	if d := s.claim(slot1, job(t, steady(time.Hour), "")); d.Slot.Sub != 4 {
		t.Errorf("the number of a d-slot that is gone is not used again: %v", d.Slot)
	}
}

// TestRequestsAreRounded lets a job take a slot with the default expressions,
// and with others.
//
// row: S2-043
func TestRequestsAreRounded(t *testing.T) {
	t.Parallel()
	ad := job(t, steady(time.Hour), "RequestCpus = 1\nRequestMemory = 200\nRequestDisk = 1500")
	for config, want := range map[string]map[string]int64{
		"": {"Cpus": 1, "Memory": 256, "Disk": 2048},
		"MODIFY_REQUEST_EXPR_REQUESTCPUS = quantize(RequestCpus,{2})\nMODIFY_REQUEST_EXPR_REQUESTMEMORY = RequestMemory + 1\nMODIFY_REQUEST_EXPR_REQUESTDISK = 9999\n": {
			"Cpus": 2, "Memory": 201, "Disk": 9999},
	} {
		s := newStage(t, 4, config)
		if d := cmp.Diff(want, resourcesOf(s.claim(slot1, ad).Ad)); d != "" {
			t.Errorf("%q: %s", config, d)
		}
	}
}

// TestVolumes gives two slots the whole of a file system each.
//
// row: S0-023
func TestVolumes(t *testing.T) {
	t.Parallel()
	const text = "DISK =\nSLOT_TYPE_1 = cpus=1, mem=10%, disk=100%\nNUM_SLOTS_TYPE_1 = 2\nSLOT1_EXECUTE = /one\nSLOT2_EXECUTE = /two\n"
	s, problems := divided(t, 4, text, func(inv *machine.Inventory) {
		inv.Volumes = []machine.Volume{{ID: "1", Paths: []string{"/one"}, FreeKiB: 70000, TotalKiB: 90000, Slots: []int{1}}, {ID: "2", Paths: []string{"/two"}, FreeKiB: 50000, TotalKiB: 50000, Slots: []int{2}}}
	})
	if len(problems) > 0 {
		t.Error(problems)
	}
	if d := cmp.Diff("slot1 70000 70000\nslot2 50000 50000", s.ads("Disk", "TotalDisk")); d != "" {
		t.Error(d)
	}
	if _, problems = divided(t, 4, text, nil); len(problems) != 1 || !strings.Contains(problems[0].Error(), "Disk") {
		t.Errorf("on one volume: %v", problems)
	}
}

// TestFailureModes asks for more than there is in each mode.
func TestFailureModes(t *testing.T) {
	t.Parallel()
	const text = "SLOT_TYPE_1 = cpus=1, mem=1024\nNUM_SLOTS_TYPE_1 = 2\nSLOT_TYPE_2 = cpus=9, mem=1024\nNUM_SLOTS_TYPE_2 = 1\n"
	for _, c := range []struct {
		mode, slots, daemon string
		fatal               bool
	}{
		// row: S4-047
		{"CONTINUE", "slot1 1 1024 true\nslot2 1 1024 true\nslot3 0 0 false", "{ slot3BrokenReason }", false},
		// row: S4-048
		{"CLEAR", "", "{ slot_type2BrokenReason }", false},
		{"ABORT", "", "{ slot_type2BrokenReason }", true},
	} {
		s, problems := divided(t, 4, text+"SLOT_CONFIG_FAILURE_MODE = "+c.mode+"\n", nil)
		lines := ""
		for v := range s.eng.Views() {
			cpus := shows(s.eng.SlotAd(v.ID), "Cpus", "Memory")
			lines += v.Name + " " + cpus["Cpus"] + " " + cpus["Memory"] + " " + map[bool]string{true: "true", false: "false"}[v.Claimable()] + "\n"
		}
		if d := cmp.Diff(c.slots, strings.TrimSpace(lines)); d != "" {
			t.Errorf("%s: %s", c.mode, d)
		}
		if got := shows(s.eng.DaemonAd(problems), "BrokenReasons")["BrokenReasons"]; got != c.daemon {
			t.Errorf("%s: BrokenReasons = %s, want %s", c.mode, got, c.daemon)
		}
		if len(problems) != 1 || problems[0].Fatal != c.fatal || !strings.Contains(problems[0].Error(), "wants 9 Cpus, 2 of 4 left") {
			t.Errorf("%s: %v", c.mode, problems)
		}
	}
}

// TestResourceNames names the resources that count, by commas or spaces.
//
// row: S4-100
func TestResourceNames(t *testing.T) {
	t.Parallel()
	const three = "MACHINE_RESOURCE_Cogs = 3\nMACHINE_RESOURCE_Nuts = 4\nMACHINE_RESOURCE_Bolts = 5\n"
	for names, want := range map[string]string{
		"": "Cpus Memory Disk Swap Bolts Cogs Nuts", "MACHINE_RESOURCE_NAMES = Cogs, Nuts\n": "Cpus Memory Disk Swap Cogs Nuts",
		"MACHINE_RESOURCE_NAMES = Nuts Cogs\n": "Cpus Memory Disk Swap Cogs Nuts", "MACHINE_RESOURCE_NAMES = bolts Screws\n": "Cpus Memory Disk Swap Bolts",
	} {
		s := newStage(t, 4, three+names)
		if d := cmp.Diff("slot1 "+want, s.ads("MachineResources")); d != "" {
			t.Errorf("%q: %s", names, d)
		}
	}
}

// TestNumClaims is how many claims a slot with a consumption policy can have.
//
// row: S4-119
func TestNumClaims(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]string{
		"CONSUMPTION_POLICY = true\n": "slot1 4", "CONSUMPTION_POLICY = true\nNUM_CLAIMS = 7\n": "slot1 7",
		"SLOT_TYPE_1 = 100%\nSLOT_TYPE_1_PARTITIONABLE = true\nNUM_SLOTS_TYPE_1 = 1\nSLOT_TYPE_1_CONSUMPTION_POLICY = true\nSLOT_TYPE_1_NUM_CLAIMS = 2\nNUM_CLAIMS = 7\n": "slot1 2",
		"": "slot1 ",
	} {
		s := newStage(t, 4, config)
		if d := cmp.Diff(want, s.ads("NumClaims")); d != "" {
			t.Errorf("%q: %s", config, d)
		}
	}
}
