// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/slot"
)

// examples is where the configurations are that the five documents print, word
// by word: the name of a file tells document, section and line.
const examples = "../../lib/check/testdata/documents/"

// The machines that the documents speak of, and others where they name none.
const (
	mb128  = `{"name": "h", "cpus": 2, "memory_mb": 128, "disk_kb": 1000000, "swap_kb": 400000}`
	mb256  = `{"name": "h", "cpus": 4, "memory_mb": 256, "disk_kb": 1000000, "swap_kb": 400000}`
	eight  = `{"name": "h", "cpus": 8, "memory_mb": 16000, "disk_kb": 8000000, "swap_kb": 0}`
	forty  = `{"name": "h", "cpus": 40, "memory_mb": 40000, "disk_kb": 10000000, "swap_kb": 0, "resources": {"GPUs": ` + fiveGPUs + `}}`
	unlike = `{"name": "h", "cpus": 4, "memory_mb": 4000, "disk_kb": 4000000, "swap_kb": 0, "resources": {"GPUs": ` + fiveGPUs + `}}`

	fiveGPUs = `{"DetectedGPUs": "GPU-0a, GPU-1b, GPU-6a96bd13, GPU-3d, GPU-4e",
  "GPU_0a": {"id": "GPU-0a", "Capability": 7.5}, "GPU_1b": {"id": "GPU-1b", "Capability": 8.0},
  "GPU_6a96bd13": {"id": "GPU-6a96bd13", "Capability": 7.5}, "GPU_3d": {"id": "GPU-3d", "Capability": 8.0},
  "GPU_4e": {"id": "GPU-4e", "Capability": 7.0}}`
)

// Types 1 to 3 of an example of the documents, and its types 4 to 6.
const (
	half    = `SlotType "Static"; Cpus 2; Memory 128; TotalSlotDisk 500000.0; VirtualMemory 100000`
	quarter = `SlotType "Static"; Cpus 1; Memory 64; TotalSlotDisk 250000.0; VirtualMemory 100000`
	sixty4  = `SlotType "Static"; Memory 64; Cpus 1; TotalSlotDisk 500000.0; VirtualMemory 200000`
)

// documented are the examples of slots. What an example leaves to the reader
// is added: how many slots of a type there are, and where the documents say
// "evenly" or "static", that slots are so.
var documented = []struct {
	file    string // of examples, without its ending; two joined by a blank
	machine string
	add     string   // to the configuration
	slots   []string // what the ad of each slot has: "Attribute value; …", !Attribute for none
}{
	// row: S0-016, S0-021, S2-023
	{"s0-dividing-system-resources-in-multi-core-machines-207a", mb128, "NUM_SLOTS_TYPE_1 = 2", []string{sixty4, sixty4}},
	{"s0-dividing-system-resources-in-multi-core-machines-207b", mb128, "NUM_SLOTS_TYPE_1 = 2", []string{sixty4, sixty4}},
	{"s0-dividing-system-resources-in-multi-core-machines-207c", mb128, "NUM_SLOTS_TYPE_1 = 2", []string{sixty4, sixty4}},
	{"s0-dividing-system-resources-in-multi-core-machines-207d", mb128, "NUM_SLOTS_TYPE_1 = 2", []string{sixty4, sixty4}},
	{"s2-dividing-system-resources-in-multi-core-machines-818a", mb128, "NUM_SLOTS_TYPE_1 = 2", []string{sixty4, sixty4}},
	{"s2-dividing-system-resources-in-multi-core-machines-818d", mb128, "NUM_SLOTS_TYPE_1 = 2", []string{sixty4, sixty4}},
	// The example has no counts: no slot of its types exists.
	{"s0-dividing-system-resources-in-multi-core-machines-249", mb256, "", []string{`SlotType "Partitionable"; SlotTypeID 0; Cpus 4; Memory 256`}},
	// row: S0-019, S0-029
	{"s0-dividing-system-resources-in-multi-core-machines-249", mb256, "NUM_SLOTS_TYPE_1 = 1", []string{half + "; SlotTypeID 1"}},
	{"s0-dividing-system-resources-in-multi-core-machines-249", mb256, "NUM_SLOTS_TYPE_2 = 1", []string{half + "; SlotTypeID 2"}},
	{"s0-dividing-system-resources-in-multi-core-machines-249", mb256, "NUM_SLOTS_TYPE_3 = 1", []string{half + "; SlotTypeID 3"}},
	{"s2-dividing-system-resources-in-multi-core-machines-842", mb256, "NUM_SLOTS_TYPE_3 = 2", []string{half, half + "; SlotTypeID 3"}},
	// row: S0-017, S0-018, S0-030
	{"s0-dividing-system-resources-in-multi-core-machines-249", mb256, "NUM_SLOTS_TYPE_4 = 1", []string{quarter + "; SlotTypeID 4"}},
	{"s0-dividing-system-resources-in-multi-core-machines-249", mb256, "NUM_SLOTS_TYPE_5 = 1", []string{quarter + "; SlotTypeID 5"}},
	{"s0-dividing-system-resources-in-multi-core-machines-249", mb256, "NUM_SLOTS_TYPE_6 = 4", []string{quarter, quarter, quarter, quarter + "; SlotTypeID 6"}},
	// row: S0-020, S0-032
	{"s0-dividing-system-resources-in-multi-core-machines-275a", mb128, "NUM_SLOTS_TYPE_1 = 2", []string{sixty4, sixty4}},
	{"s0-dividing-system-resources-in-multi-core-machines-275b", mb128, "NUM_SLOTS_TYPE_1 = 2", []string{sixty4, sixty4}},
	{"s2-dividing-system-resources-in-multi-core-machines-858b", mb128, "NUM_SLOTS_TYPE_1 = 1", []string{`Cpus 1; Memory 64; TotalSlotDisk 1000000.0; VirtualMemory 200000`}},
	// row: S0-034, S0-036, S0-037, S0-039, S2-024
	{"s0-custom-resources-298+308+320", mb256, "", []string{
		`SlotType "Partitionable"; Cogs 8; actuator 6; Cpus 2; Memory 128; TotalCogs 16; DetectedCogs 16; TotalSlotCogs 8; TotalActuator 8; TotalSlotActuator 6`,
		`SlotType "Static"; Cogs 4; actuator 1; Cpus 1; Memory 64; TotalCogs 16; DetectedCogs 16; TotalSlotCogs 4`,
		`SlotType "Static"; Cogs 4; actuator 1; Cpus 1; Memory 64; DetectedActuator 8`,
	}},
	{"s0-dividing-system-resources-in-multi-core-machines-298 s0-dividing-system-resources-in-multi-core-machines-308", mb256,
		"MACHINE_RESOURCE_NAMES = actuator", []string{`actuator 8; !Cogs; !TotalCogs`}},
	// row: S0-046
	{"s0-dynamic-provisioning-partitionable-and-dynamic-s-487", eight, "", []string{
		`Name "slot1@h"; SlotType "Partitionable"; PartitionableSlot true; Cpus 8; Memory 16000; TotalSlotDisk 8000000.0`}},
	// row: S3-021, S3-022
	{"s3-configuration-examples-for-dedicated-resources-372", eight, "NUM_SLOTS_TYPE_1 = 2", []string{
		`DedicatedScheduler "DedicatedScheduler@full.host.name"`, `DedicatedScheduler "DedicatedScheduler@full.host.name"`}},
	{"s3-configuration-examples-for-dedicated-resources-383", eight, "", []string{`DedicatedScheduler "DedicatedScheduler@username@full.host.name"`}},
	{"s3-concurrency-limits-1365", eight, "", []string{`NETWORK "NETWORK_A"`}},
	{"s3-concurrency-limits-1372", eight, "", []string{`NETWORK "NETWORK_B"`}},
	{"s1-desktop-policy-1006 s1-desktop-policy-1057", eight, "IsPVM = TARGET.JobUniverse == 4", []string{`IsDesktop true`}},
	// row: S0-221, S0-222
	{"s0-adding-custom-static-attributes-with-startd-attr-3222", eight, "", []string{`GenomeDBPath "/path/to/db"`}},
	{"s0-adding-custom-static-attributes-with-startd-attr-3195", eight, "STARTD_ATTRS = $(STARTD_ATTRS) WRONGGenomeDBName", []string{
		`GenomeDBName "FruitFlies"; GenomeDBSizeGB 1729; HasLargeGenomeDB true; WRONGGenomeDBName undefined`}},
	// row: S0-223, S2-039, S4-041
	{"s0-configuring-startd-attrs-on-a-per-slot-basis-3251", eight, `NUM_SLOTS_TYPE_1 = 3
favorite_color = "red"
favorite_season = "fall"
favorite_movie = "M"
favorite_song = "S"`, []string{
		`favorite_color "red"; favorite_season "fall"; favorite_movie "M"; !favorite_song`,
		`favorite_color "red"; favorite_season "fall"; favorite_song "S"; !favorite_movie`,
		`favorite_color "red"; favorite_season "fall"; !favorite_song; !favorite_movie`}},
	// row: S0-224, S2-039
	{"s0-configuring-startd-attrs-on-a-per-slot-basis-3265", eight, "NUM_SLOTS_TYPE_1 = 3", []string{
		`favorite_color "blue"; favorite_season "spring"`,
		`favorite_color "green"; favorite_season "spring"`,
		`favorite_color "blue"; favorite_season "summer"`}},
	{"s0-configuring-gpus-4109", unlike, "", []string{
		`GPUs 5; TotalGPUs 5; DetectedGPUs "GPU-0a, GPU-1b, GPU-6a96bd13, GPU-3d, GPU-4e"; AssignedGPUs "GPU-0a,GPU-1b,GPU-6a96bd13,GPU-3d,GPU-4e"`}},
	// The two powerful ones, then the one with that id, then one each of the
	// two that remain. 90 % of 40 processors and 1 leave 3 for two slots; the
	// disk that is left goes to the three that do not say how much.
	//
	// row: S0-288, S0-289, S0-290, S0-291, S2-037
	{"s0-configuring-gpus-4156", forty, "", []string{
		`SlotType "Partitionable"; Cpus 36; Memory 36000; GPUs 2; AssignedGPUs "GPU-1b,GPU-3d"; TotalSlotDisk 9000000.0`,
		`SlotType "Static"; Cpus 1; Memory 10; GPUs 1; AssignedGPUs "GPU-6a96bd13"; TotalSlotDisk 333333.0`,
		`SlotType "Static"; Cpus 1; Memory 1995; GPUs 1; AssignedGPUs "GPU-0a"; TotalSlotDisk 333333.0`,
		`SlotType "Static"; Cpus 1; Memory 1995; GPUs 1; AssignedGPUs "GPU-4e"; TotalGPUs 5`}},
	// row: S0-292, S0-293, S2-047, S4-116
	{"s4-consumption-resource-591 s0-condor-negotiator-side-resource-consumption-poli-4237", eight, "CONSUMPTION_POLICY = True", []string{
		`Cpus 8; PartitionableSlot true; ConsumptionCpus quantize(target.RequestCpus,{1}); ConsumptionMemory quantize(target.RequestMemory,{128}); ` +
			`ConsumptionDisk quantize(target.RequestDisk,{1024}); SlotWeight 8; NumClaims 8`}},
	{"s0-condor-negotiator-side-resource-consumption-poli-4237 s0-condor-negotiator-side-resource-consumption-poli-4251", eight, "", []string{
		`Cpus 8; ConsumptionCpus TARGET.RequestCpus; ConsumptionMemory quantize(target.RequestMemory,{128}); SlotWeight 8`}},
	{"s0-condor-negotiator-side-resource-consumption-poli-4237", eight, "", []string{`Cpus 8; !ConsumptionCpus`}},
	// row: S0-296
	{"s0-consumption-4262+4272", eight, "", []string{
		`Cpus 8; gpus 4; ConsumptionGpus TARGET.RequestGpu; ConsumptionCpus quantize(target.RequestCpus,{1}); SlotWeight 8`}},
	// row: S4-093
	{"s4-startd-slot-attrs-451", eight, "NUM_SLOTS_TYPE_1 = 2", []string{
		`slot1_State "Unclaimed"; slot2_State "Unclaimed"; slot1_Activity "Idle"; slot2_EnteredCurrentActivity EnteredCurrentActivity`,
		`slot1_State "Unclaimed"; slot2_State "Unclaimed"; slot1_Activity "Idle"; slot1_EnteredCurrentActivity EnteredCurrentActivity`}},
	// The second document repeats these, with lines lost: its GPU split and its
	// suspendable pairs cannot be read.
	{"s0-dividing-system-resources-in-multi-core-machines-298 s2-dividing-system-resources-in-multi-core-machines-874", mb256,
		"NUM_SLOTS_TYPE_1 = 1\nNUM_SLOTS_TYPE_2 = 2", []string{`Cogs 8; actuator 6; Cpus 2`, `Cogs 4; actuator 1; Cpus 1`, `Cogs 4; actuator 1; Cpus 1`}},
	{"s2-dynamic-provisioning-partitionable-and-dynamic-s-1074", eight, "NUM_SLOTS_TYPE_1 = 1\nSLOT_TYPE_1_PARTITIONABLE = True", []string{
		`SlotType "Partitionable"; PartitionableSlot true; Cpus 8; Memory 16000`}},
	{"s2-configuring-startd-attrs-on-a-per-slot-basis-1018", eight, "NUM_SLOTS_TYPE_1 = 2\nfavorite_movie = 1\nfavorite_song = 2", []string{
		`favorite_movie 1; !favorite_song; !favorite_color`, `favorite_song 2; !favorite_movie`}},
	{"s2-configuring-startd-attrs-on-a-per-slot-basis-1026", eight, "NUM_SLOTS_TYPE_1 = 3", []string{
		`favorite_color "blue"; favorite_season "spring"`, `favorite_color "green"; favorite_season "spring"`, `favorite_color "blue"; favorite_season "summer"`}},
	{"s2-defaults-for-partitionable-slot-sizes-1166 s2-defaults-for-partitionable-slot-sizes-1172", eight,
		"CONSUMPTION_POLICY = True\nNUM_SLOTS_TYPE_1 = 1\nSLOT_TYPE_1_PARTITIONABLE = True", []string{`Cpus 8; ConsumptionCpus quantize(target.RequestCpus,{1})`}},
	{"s2-defaults-for-partitionable-slot-sizes-1179", eight, "MACHINE_RESOURCE_gpus = 4\nNUM_SLOTS_TYPE_2 = 1\nSLOT_TYPE_2_PARTITIONABLE = True", []string{`Cpus 8; gpus 4`}},
	{"s4-startd-latch-exprs-178", eight, "", []string{`HalfFull false; HalfFullValue 0; NumDynamicSlots 0; !NumDynamicSlotsValue`}},
	// row: S4-089
	{"s0-dividing-system-resources-in-multi-core-machines-207a", mb128, "NUM_SLOTS_TYPE_1 = 2\nSTARTD_RESOURCE_PREFIX = vm", []string{`Name "vm1@h"; SlotID 1`, `Name "vm2@h"; SlotID 2`}},
}

// TestSlotsOfDocuments divides machines by every example of the documents that
// says something about slots, as condor_ep slots does.
func TestSlotsOfDocuments(t *testing.T) {
	t.Parallel()
	for _, tt := range documented {
		t.Run(tt.file, func(t *testing.T) {
			t.Parallel()
			var text strings.Builder
			for _, name := range strings.Fields(tt.file) {
				text.WriteString(example(t, name))
			}
			ads := slotAds(t, tt.machine, text.String()+tt.add+"\n")
			if len(ads) != len(tt.slots) {
				t.Fatalf("%d slots, want %d", len(ads), len(tt.slots))
			}
			for i, want := range tt.slots {
				for item := range strings.SplitSeq(want, "; ") {
					hasAttr(t, ads[i], item)
				}
			}
		})
	}
}

// TestCarvedByDocuments carves what the documents carve out of their
// partitionable slots.
func TestCarvedByDocuments(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		file, machine string
		jobs          []string
		carved        string // out of slot1, in order
		left          string // in slot1 behind the last
	}{
		// row: S0-043, S0-044, S2-040
		{"s0-dynamic-provisioning-partitionable-and-dynamic-s-487", `{"cpus": 10, "memory_mb": 10240, "disk_kb": 1000000}`,
			[]string{"RequestCpus = 3\nRequestMemory = 1024\nRequestDisk = 10240"},
			"slot1_1: 3 cpus, 1024 MiB, 10240 KiB disk", "7 cpus, 9216 MiB, 989760 KiB disk"},
		{"s0-dynamic-provisioning-partitionable-and-dynamic-s-487", `{"cpus": 10, "memory_mb": 10240, "disk_kb": 1000000}`,
			[]string{"RequestCpus = 1\nRequestMemory = 1024\nRequestDisk = 10240", "RequestCpus = 1\nRequestMemory = 1024\nRequestDisk = 10240", "RequestCpus = 1\nRequestMemory = 1024\nRequestDisk = 10240"},
			"slot1_1: 1 cpus, 1024 MiB, 10240 KiB disk; slot1_2: 1 cpus, 1024 MiB, 10240 KiB disk; slot1_3: 1 cpus, 1024 MiB, 10240 KiB disk",
			"7 cpus, 7168 MiB, 969280 KiB disk"},
		// row: S0-055, S0-056, S0-057, S2-043
		{"s2-defaults-for-partitionable-slot-sizes-1137", eight, []string{"RequestCpus = 1\nRequestMemory = 200\nRequestDisk = 1500"},
			"slot1_1: 1 cpus, 256 MiB, 2048 KiB disk", "7 cpus, 15744 MiB, 7997952 KiB disk"},
		// row: S0-038
		{"s0-custom-resources-298+308+320", eight, []string{"RequestCpus = 1\nRequestMemory = 128\nRequestDisk = 1024\nRequestCogs = 2\nRequestActuator = 1"},
			"slot1_1: 1 cpus, 128 MiB, 1024 KiB disk, 1 actuator, 2 Cogs", "3 cpus, 7872 MiB, 3998976 KiB disk, 5 actuator, 6 Cogs"},
		{"s0-condor-negotiator-side-resource-consumption-poli-4237 s0-condor-negotiator-side-resource-consumption-poli-4251", eight,
			[]string{"RequestCpus = 3\nRequestMemory = 100\nRequestDisk = 1000"}, "slot1_1: 3 cpus, 128 MiB, 1024 KiB disk", "5 cpus, 15872 MiB, 7998976 KiB disk"},
		// row: S0-296
		{"s0-consumption-4262+4272", eight, []string{"RequestCpus = 1\nRequestMemory = 100\nRequestDisk = 1000\nRequestGpu = 3"},
			"slot1_1: 1 cpus, 128 MiB, 1024 KiB disk, 3 gpus", "7 cpus, 15872 MiB, 7998976 KiB disk, 1 gpus"},
	} {
		p := newPlace(t)
		var text strings.Builder
		for _, name := range strings.Fields(tt.file) {
			text.WriteString(example(t, name))
		}
		f := slotsFlags{config: p.write(t, "slots.conf", text.String()), machine: p.write(t, "machine.json", tt.machine)}
		d, err := f.divide()
		if err != nil || len(d.Problems) > 0 {
			t.Fatalf("%s: %v, %v", tt.file, err, d.Problems)
		}
		modifiers, err := slot.ModifiersFrom(d.Config)
		if err != nil {
			t.Fatal(err)
		}
		parent := slot.ID{N: 1}
		var carved []string
		for _, text := range tt.jobs {
			job, err := classad.ParseAd(text, classad.Old)
			if err != nil {
				t.Fatal(err)
			}
			a, _ := d.Ads.Slot(parent)
			request, err := modifiers.Request(job, a.Ad(), &classad.Env{Now: d.Now.Wall})
			if err != nil {
				t.Fatalf("%s: %v", tt.file, err)
			}
			s, err := d.Ledger.Carve(parent, request)
			if err != nil {
				t.Fatalf("%s: %v", tt.file, err)
			}
			carved = append(carved, s.Name()+": "+withoutSwap(s.Total))
			d.Ads.Refresh(machine.Sample{At: d.Now}, d.Now)
		}
		if got := strings.Join(carved, "; "); got != tt.carved {
			t.Errorf("%s: carved %s, want %s", tt.file, got, tt.carved)
		}
		p1, _ := d.Ledger.Slot(parent)
		if got := withoutSwap(p1.Free); got != tt.left {
			t.Errorf("%s: %s are left, want %s", tt.file, got, tt.left)
		}
	}
}

// withoutSwap prints amounts; the documents' machines have no swap to share.
func withoutSwap(q slot.Quantities) string {
	q.SwapKiB = 0
	q.Custom = slices.Clone(q.Custom)
	return q.String()
}

// example returns one as the documents print it.
func example(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(examples + name + ".conf")
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

// slotAds returns what condor_ep slots -json prints.
func slotAds(t *testing.T, described, config string) []*classad.Ad {
	t.Helper()
	p := newPlace(t)
	args := []string{"slots", "-json", "-config", p.write(t, "slots.conf", config), "-machine", p.write(t, "machine.json", described)}
	var stdout, stderr bytes.Buffer
	if got := tool(args, &stdout, &stderr); got != exitOK || stderr.Len() > 0 {
		t.Fatalf("exit status %d: %s", got, &stderr)
	}
	var texts []json.RawMessage
	if err := json.Unmarshal(stdout.Bytes(), &texts); err != nil {
		t.Fatal(err)
	}
	var ads []*classad.Ad
	for _, text := range texts {
		ad, err := classad.ParseJSON(string(text))
		if err != nil {
			t.Fatal(err)
		}
		ads = append(ads, ad)
	}
	return ads
}

// hasAttr holds an attribute of an ad against "Name value" or "!Name". An
// expression that comes to nothing without a job is compared as it is written.
func hasAttr(t *testing.T, ad *classad.Ad, item string) {
	t.Helper()
	if name, absent := strings.CutPrefix(item, "!"); absent {
		if e, ok := ad.Lookup(name); ok {
			t.Errorf("%s is %v, want none", name, e)
		}
		return
	}
	name, text, _ := strings.Cut(item, " ")
	want := classad.MustParseExpr(text)
	e, ok := ad.Lookup(name)
	if !ok {
		t.Errorf("no %s", name)
		return
	}
	env := &classad.Env{My: ad, Now: time.Now()}
	a, b := e.Eval(env), want.Eval(env)
	if a.Text(classad.Old) != b.Text(classad.Old) || a.IsUndefined() && text != "undefined" && !strings.EqualFold(e.String(), want.String()) {
		t.Errorf("%s is %v (%v), want %s", name, a, e, text)
	}
}

// asked evaluates an attribute of a slot for a job, as if some of the slot's
// attributes were others.
func asked(t *testing.T, my *classad.Ad, name, job, others string) string {
	t.Helper()
	as, err := classad.ParseAd(others, classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	as.SetParent(my)
	target, err := classad.ParseAd(job, classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	return as.Eval(name, &classad.Env{Target: target, Now: time.Now()}).Text(classad.Old)
}

// Two slots for each processor: slots 1 to 4 run what may not be suspended,
// slots 5 to 8 what may, each as long as the slot four before it is free. The
// documents' expression lacks a parenthesis, which is said.
func TestSuspendablePairs(t *testing.T) {
	t.Parallel()
	text := example(t, "s0-examples-of-policy-configuration-3050") + "SLOT_TYPE_0_PARTITIONABLE = false\n"
	p := newPlace(t)
	var stdout, stderr bytes.Buffer
	machine := p.write(t, "machine.json", mb256)
	if got := tool([]string{"slots", "-config", p.write(t, "printed.conf", text), "-machine", machine}, &stdout, &stderr); got != exitOK ||
		!strings.Contains(stderr.String(), "knob NonSuspendableSlotState: is not an expression") || !strings.Contains(stderr.String(), "printed.conf:14:") {
		t.Errorf("as printed: exit status %d, %s", got, &stderr)
	}
	ads := slotAds(t, mb256, strings.Replace(text, `"_State")`, `"_State"))`, 1))
	if len(ads) != 8 {
		t.Fatalf("%d slots on four processors, want 8", len(ads))
	}
	for i, ad := range ads {
		hasAttr(t, ad, "Cpus 1")
		hasAttr(t, ad, "Memory 64")
		hasAttr(t, ad, `slot8_State "Unclaimed"`)
		want := "IsSuspendableSlot false"
		if i >= 4 {
			want = "IsSuspendableSlot true"
			hasAttr(t, ad, `NonSuspendableSlotState "Unclaimed"`)
		}
		hasAttr(t, ad, want)
	}
	const suspendable, plain = "IsSuspendableJob = true", "Cmd = \"x\""
	for _, c := range []struct {
		slot              int
		name, job, others string
		want              string
	}{
		{1, "Start", plain, "", "true"},
		{1, "Start", suspendable, "", "false"},
		{5, "Start", suspendable, "", "true"},
		{5, "Start", plain, "", "undefined"}, // the document's == on an attribute that the job lacks
		{5, "Start", suspendable, `slot1_State = "Claimed"`, "false"},
		{5, "Start", suspendable, `slot1_State = "Preempting"`, "false"},
		{5, "Start", suspendable, `slot2_State = "Claimed"`, "true"},
		{8, "Start", suspendable, `slot4_State = "Claimed"`, "false"},
	} {
		if got := asked(t, ads[c.slot-1], c.name, c.job, c.others); got != c.want {
			t.Errorf("%s of slot%d with %q for a job with %q: %s, want %s", c.name, c.slot, c.others, c.job, got, c.want)
		}
	}
}

// The two virtual machines of the 6.8 manual, written with today's names: one
// takes jobs of high priority only, the other any job while the first is idle
// and nobody types. Each sees the other's activity.
//
// row: S1-069, S1-070
func TestVirtualMachines(t *testing.T) {
	t.Parallel()
	text := example(t, "s1-job-suspension-1105")
	printed := slotAds(t, mb256, text)
	if len(printed) != 1 {
		t.Errorf("as printed there are %d slots; the default is one that is divided by need", len(printed))
	}
	hasAttr(t, printed[0], "Cpus 2")
	text = strings.NewReplacer("VirtualMachineID", "SlotID", "vm1_", "slot1_").Replace(text)
	ads := slotAds(t, mb256, text+"SLOT_TYPE_0_PARTITIONABLE = false\nSTARTD_SLOT_ATTRS = Activity\n")
	if len(ads) != 2 {
		t.Fatalf("%d slots, want 2", len(ads))
	}
	hasAttr(t, ads[1], `slot1_Activity "Idle"`)
	const high, other = "IsHighPrioJob = true", `Cmd = "x"`
	for _, c := range []struct {
		slot        int
		job, others string
		want        string
	}{
		{1, high, "", "true"},
		{1, other, "", "false"},
		{2, other, "KeyboardIdle = 3600\nLoadAvg = 0.0\nCondorLoadAvg = 0.0", "true"},
		{2, other, "KeyboardIdle = 5\nLoadAvg = 0.0\nCondorLoadAvg = 0.0", "false"},
		{2, other, "KeyboardIdle = 3600\nLoadAvg = 3.0\nCondorLoadAvg = 0.0", "false"},
		{2, other, "KeyboardIdle = 3600\nLoadAvg = 0.0\nCondorLoadAvg = 0.0\nslot1_Activity = \"Busy\"", "false"},
	} {
		if got := asked(t, ads[c.slot-1], "Start", c.job, c.others); got != c.want {
			t.Errorf("slot%d with %q for a job with %q: START is %s, want %s", c.slot, c.others, c.job, got, c.want)
		}
	}
}

// Slot 1 prefers interactive jobs, or is kept for them.
func TestInteractiveSlot(t *testing.T) {
	t.Parallel()
	for file, want := range map[string][3]string{
		"s0-examples-of-policy-configuration-3119": {"Rank", "true", "false"},
		"s0-examples-of-policy-configuration-3125": {"Start", "true", "false"},
	} {
		ads := slotAds(t, mb256, example(t, file)+"NUM_SLOTS_TYPE_1 = 2\n")
		if len(ads) != 2 {
			t.Fatalf("%d slots, want 2", len(ads))
		}
		for _, c := range []struct {
			slot int
			job  string
			want string
		}{
			{1, "InteractiveJob = true", want[1]}, {1, "InteractiveJob = false", want[2]}, {1, "", want[2]}, {2, "InteractiveJob = true", want[2]},
		} {
			if got := asked(t, ads[c.slot-1], want[0], c.job, ""); got != c.want {
				t.Errorf("%s: %s of slot%d for a job with %q is %s, want %s", file, want[0], c.slot, c.job, got, c.want)
			}
		}
	}
}
