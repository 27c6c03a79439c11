// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package slot

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/machine"
)

// fixedMachine is a scanner that knows it all. Swap is as large as memory, as
// on the machine of the recordings.
type fixedMachine struct {
	cpus               int
	memoryMiB, diskKiB int64
}

func (fixedMachine) Name() string { return "fixed" }

func (f fixedMachine) Scan(_ context.Context, inv *machine.Inventory) error {
	inv.FullHostname = "host"
	inv.DetectedCores, inv.PhysicalCores, inv.UsableCores, inv.UsablePhysicalCores = f.cpus, f.cpus, f.cpus, f.cpus
	inv.DetectedMemoryMiB, inv.UsableMemoryMiB = f.memoryMiB, f.memoryMiB
	inv.SwapKiB = f.memoryMiB << 10
	inv.Execute = machine.Disk{Path: "/execute", FreeKiB: f.diskKiB, AvailableKiB: f.diskKiB, TotalKiB: f.diskKiB}
	inv.Learn("test", "FullHostname", "DetectedCores", "PhysicalCores", "UsableCores", "UsablePhysicalCores",
		"DetectedMemoryMiB", "UsableMemoryMiB", "SwapKiB", "Execute")
	return nil
}

// scan reads a configuration on a machine, and the machine under it.
func scan(t testing.TB, text string, m fixedMachine) (*config.Snapshot, *machine.Inventory, error) {
	t.Helper()
	inv, problems := machine.Scan(context.Background(), time.Unix(1, 0), m)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	cfg, err := config.Parse("slots.conf", text, config.Options{Subsystem: "STARTD", Facts: machine.ConfigFacts(inv)})
	if err != nil {
		return nil, nil, err
	}
	if problems := inv.Apply(context.Background(), time.Unix(1, 0), machine.ConfigScanner(cfg)); len(problems) > 0 {
		return nil, nil, problems[0]
	}
	return cfg, inv, nil
}

// divided builds the slots of a configuration on a machine of 4 processors.
func divided(t *testing.T, text string) (*Ledger, []Problem) {
	t.Helper()
	cfg, inv, err := scan(t, text, fixedMachine{cpus: 4, memoryMiB: 8000, diskKiB: 80000})
	if err != nil {
		t.Fatal(err)
	}
	layout, err := LayoutFrom(cfg, inv)
	if err != nil {
		t.Fatal(err)
	}
	led, problems := Build(layout, inv)
	if err := led.Check(); err != nil {
		t.Fatal(err)
	}
	return led, problems
}

// describe prints slots on one line each.
func describe(led *Ledger) string {
	var b strings.Builder
	for s := range led.Slots() {
		b.WriteString(s.Name() + " " + s.Kind.String() + ": " + s.Free.String() + "\n")
	}
	return b.String()
}

// row: S0-004, S0-012, S0-013, S0-015, S0-018, S0-046
func TestLayouts(t *testing.T) {
	t.Parallel()
	const whole = "slot1 Partitionable: 4 cpus, 8000 MiB, 80000 KiB disk\n"
	quarters := ""
	for _, n := range []string{"1", "2", "3", "4"} {
		quarters += "slot" + n + " Static: 1 cpus, 2000 MiB, 20000 KiB disk\n"
	}
	for _, c := range []struct{ config, want string }{
		{"", whole},
		{"NUM_SLOTS_TYPE_1 = 1\nSLOT_TYPE_1 = 100%\nSLOT_TYPE_1_PARTITIONABLE = TRUE\n", whole},
		{"use FEATURE : StaticSlots\n", quarters},
		{"SLOT_TYPE_0_PARTITIONABLE = false\n", quarters},
		{"SLOT_TYPE_1 = 1/4\nNUM_SLOTS_TYPE_1 = 4\n", quarters},
		{"SLOT_TYPE_1 = 25%\nNUM_SLOTS_TYPE_1 = 4\n", quarters},
		{"NUM_SLOTS = 2\nSLOT_TYPE_0_PARTITIONABLE = false\n",
			"slot1 Static: 2 cpus, 4000 MiB, 40000 KiB disk\nslot2 Static: 2 cpus, 4000 MiB, 40000 KiB disk\n"},
		{"NUM_CPUS = 8\n", "slot1 Partitionable: 8 cpus, 8000 MiB, 80000 KiB disk\n"},
		{"STARTD_RESOURCE_PREFIX = node\n", "node1 Partitionable: 4 cpus, 8000 MiB, 80000 KiB disk\n"},
		{"NUM_SLOTS = 0\n", ""},
	} {
		led, problems := divided(t, c.config)
		if got := describe(led); got != c.want || len(problems) > 0 {
			t.Errorf("%s: got\n%swant\n%s%v", c.config, got, c.want, problems)
		}
	}
}

// The spellings of the documents' examples, each against the amounts it must
// come to on a machine of 4 processors, 256 MB, 400000 KiB of disk and as much
// swap as memory.
//
// row: S0-016, S0-017, S0-018, S0-019, S0-020, S0-021, S0-025, S0-026, S0-027, S0-028, S0-029, S0-030, S0-031, S0-032, S4-095
func TestSlotTypes(t *testing.T) {
	t.Parallel()
	slots := func(n int, shares string) string {
		return "NUM_SLOTS_TYPE_1 = " + strconv.Itoa(n) + "\nSLOT_TYPE_1 = " + shares + "\n"
	}
	type test struct{ config, want string }
	tests := []test{
		{slots(1, "1/4"), "1 64 100000 65536"},
		{slots(1, "25%"), "1 64 100000 65536"},
		{slots(1, "cpus=2, ram=128, swap=25%, disk=1/2"), "2 128 200000 65536"},
		{slots(1, "cpus=1, disk=auto, 50%"), "1 128 400000 131072"},
		{slots(2, "cpus=1, disk=auto, 50%"), "1 128 200000 131072; 1 128 200000 131072"},
		{slots(2, "cpus=1, ram=1/2, swap=50%"), "1 128 200000 131072; 1 128 200000 131072"},
		{slots(1, "mem=10%") + "NUM_SLOTS_TYPE_2 = 3\nSLOT_TYPE_2 = auto\n",
			"1 25 100000 65536; 1 77 100000 65536; 1 77 100000 65536; 1 77 100000 65536"},
		// SLOT_TYPE_3 makes nothing of its own accord.
		{slots(1, "1/4") + "SLOT_TYPE_3 = 1/4\n", "1 64 100000 65536"},
	}
	for _, mem := range []string{"mem=128", "mem=1/2", "mem=50%", "mem=auto"} {
		tests = append(tests, test{slots(2, mem), "2 128 200000 131072; 2 128 200000 131072"})
	}
	for _, example := range []string{"cpus=2, ram=128, swap=25%, disk=1/2", "cpus=1/2, memory=128, virt=25%, disk=50%", "c=1/2, m=50%, v=1/4, disk=1/2"} {
		tests = append(tests, test{slots(1, example), "2 128 200000 65536"})
	}
	for _, example := range []string{"c=25%, m=64, v=1/4, d=25%", "25%", "1/4"} {
		tests = append(tests, test{slots(1, example), "1 64 100000 65536"})
	}
	for _, c := range []struct{ names, value, want string }{
		{"Cpus C c cpu", "3", "3 256 400000 262144"},
		{"ram RAM MEMORY memory Mem R r M m", "32", "4 32 400000 262144"},
		{"disk Disk D d", "1/8", "4 256 50000 262144"},
		{"swap SWAP S s VirtualMemory virt V v", "1/8", "4 256 400000 32768"},
	} {
		for name := range strings.FieldsSeq(c.names) {
			tests = append(tests, test{slots(1, name+"="+c.value), c.want})
		}
	}
	for _, c := range tests {
		cfg, inv, err := scan(t, c.config, fixedMachine{4, 256, 400000})
		if err != nil {
			t.Fatal(err)
		}
		layout, err := LayoutFrom(cfg, inv)
		if err != nil {
			t.Fatal(err)
		}
		led, problems := Build(layout, inv)
		var got []string
		for s := range led.Slots() {
			f := s.Free
			got = append(got, fmt.Sprintf("%v %d %d %d", f.Cpus, f.MemoryMiB, f.DiskKiB, f.SwapKiB))
			if want := 1 + min(s.ID.N-1, 1)*(len(layout.Types)-1); s.TypeID != want || s.Kind != Static {
				t.Errorf("%s: %s is a %v slot of type %d", c.config, s.ID, s.Kind, s.TypeID)
			}
		}
		if g := strings.Join(got, "; "); g != c.want || len(problems) > 0 {
			t.Errorf("%s: got %s, want %s; %v", c.config, g, c.want, problems)
		}
	}
}

// More slots than processors do not fit: every slot says so, or there is none.
//
// row: S0-014, S0-033
func TestTooManySlots(t *testing.T) {
	t.Parallel()
	const five = "NUM_SLOTS = 5\nSLOT_TYPE_0_PARTITIONABLE = false\n"
	led, problems := divided(t, five)
	if led.Len() != 5 || len(problems) != 5 {
		t.Fatal(led.Len(), problems)
	}
	for s := range led.Slots() {
		if s.Broken == nil || !s.Free.IsZero() || s.Broken.Reason != "Not enough Cpus (4 left for 5 slots)" {
			t.Errorf("%s: %+v, %v free", s.ID, s.Broken, s.Free)
		}
	}
	for mode, fatal := range map[string]bool{"CLEAR": false, "ABORT": true} {
		led, problems := divided(t, five+"SLOT_CONFIG_FAILURE_MODE = "+mode+"\n")
		if led.Len() != 0 || len(problems) != 1 || problems[0].Fatal != fatal {
			t.Errorf("%s: %d slots, %v", mode, led.Len(), problems)
		}
	}
}

// A slot's share of disk is a share of what is measured.
func TestDiskShare(t *testing.T) {
	t.Parallel()
	for _, total := range []int64{1 << 20, 3 << 20} {
		cfg, inv, err := scan(t, "SLOT_TYPE_1 = cpus=1, disk=25%\nNUM_SLOTS_TYPE_1 = 2\n", fixedMachine{4, 1000, total})
		if err != nil {
			t.Fatal(err)
		}
		layout, err := LayoutFrom(cfg, inv)
		if err != nil {
			t.Fatal(err)
		}
		led, _ := Build(layout, inv)
		for s := range led.Slots() {
			if s.Free.DiskKiB != total/4 || s.VolumeDiskKiB != total/2 {
				t.Errorf("%s of %d: %d, of all slots %d", s.ID, total, s.Free.DiskKiB, s.VolumeDiskKiB)
			}
		}
	}
}

// Slots with execute directories on different volumes may each have all of
// their own; on one volume they may not.
func TestVolumes(t *testing.T) {
	t.Parallel()
	layout := Layout{Types: []Type{{Number: 1, Count: 2, Shares: mustShares(t, "cpus=1,mem=50,disk=100%")}}}
	apart := Capacity{Cpus: 4, MemoryMiB: 100, SwapKiB: 9, DiskKiB: 5000, Volumes: []Volume{{ID: "b", DiskKiB: 7000, Slots: []int{2}}}}
	led, problems := Divide(layout, apart)
	if got := describe(led); len(problems) > 0 || got != "slot1 Static: 1 cpus, 50 MiB, 5000 KiB disk\nslot2 Static: 1 cpus, 50 MiB, 7000 KiB disk\n" {
		t.Errorf("%s%v", got, problems)
	}
	if err := led.Check(); err != nil {
		t.Error(err)
	}
	apart.Volumes = nil
	if led, problems := Divide(layout, apart); led.Len() != 1 || len(problems) != 1 || !strings.Contains(problems[0].Error(), "Disk (5000 short)") {
		t.Error(led.Len(), problems)
	}
}

// Every setting that cannot be read is told with its place, its value and what
// would be right.
func TestLayoutErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ config, say string }{
		{"NUM_SLOTS = several\n", "slots.conf:1:"},
		{"\nNUM_SLOTS_TYPE_1 = -1\n", "slots.conf:2:"},
		{"SLOT_TYPE_0_PARTITIONABLE = maybe\n", "slots.conf:1:"},
		{"MAX_SLOT_TYPES = 100000\n", "at most 4096"},
		{"NUM_SLOTS_TYPE_1 = 65537\n", "at most 65536"},
		{"NUM_SLOTS_TYPE_1 = 65536\nNUM_SLOTS_TYPE_2 = 1\n", "the layout has 65537 slots"},
		{"MACHINE_RESOURCE_Memory = 5\n", "Memory is a standard resource"},
		{"MACHINE_RESOURCE_Bolts @=end\nDetectedBolts = 2\nx = (\n@end\n", "the description is not an ad"},
	} {
		cfg, inv, err := scan(t, c.config, fixedMachine{4, 1000, 1000})
		if err == nil {
			_, err = LayoutFrom(cfg, inv)
		}
		if err == nil || !strings.Contains(err.Error(), c.say) || !strings.Contains(err.Error(), "slots.conf:") {
			t.Errorf("%q: got %v, want %s", c.config, err, c.say)
		}
	}
}

// What does not make slots is told with its place; a mere slip is a warning.
func TestLayoutProblems(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ config, say string }{
		{"SLOT_TYPE_1 = 3/2\nNUM_SLOTS_TYPE_1 = 1\n", `Could not create required number of type1 slots: "3/2" is not a share: want`},
		{"SLOT_TYPE_1 = gizmo=1\nNUM_SLOTS_TYPE_1 = 1\n", `unknown resource "gizmo" in "gizmo=1": want cpus, memory, disk, swap (slots.conf:1`},
		{"SLOT_TYPE_1 = cpus=9\nNUM_SLOTS_TYPE_1 = 1\n", `slot1: Not enough Cpus (5.00 short): slot 1 of 1 of type 1 "cpus=9" wants 9 Cpus, 4 of 4 left (slots.conf:1`},
		{"SLOT_TYPE_1 = cpus=3\nNUM_SLOTS_TYPE_1 = 2\n", `not enough Cpus (2.00 short): slot 2 of 2 of type 1 "cpus=3" wants 3 Cpus, 1 of 4 left (slots.conf:1`},
		{"SLOT_TYPE_1 = cpus=1/0,mem=5\nNUM_SLOTS_TYPE_1 = 1\n", `slot type 1: "cpus=1/0" counts as nothing: not a fraction`},
		{"SLOT_TYPE_1 = gizmo=10%,1/4\nNUM_SLOTS_TYPE_1 = 1\n", `"gizmo=10%" counts as nothing: there is no such resource`},
		{"MACHINE_RESOURCE_Bolts = a b\nSLOT_TYPE_1 = bolts=1:Hard,1/4\nNUM_SLOTS_TYPE_1 = 1\n", "1 of Bolts with Hard, only 0 left"},
	} {
		_, problems := divided(t, c.config)
		if len(problems) != 1 || !strings.Contains(problems[0].Error(), c.say) {
			t.Errorf("%q: got %v, want %s", c.config, problems, c.say)
		}
	}
}

// TestArithmetic asks for more than there is of each resource, in every mode:
// one message tells what is asked, what is there, and which line asks.
func TestArithmetic(t *testing.T) {
	t.Parallel()
	has := Capacity{Cpus: 4, MemoryMiB: 1000, SwapKiB: 300, DiskKiB: 90000}
	custom := []Resource{{Name: "Bolts", Assets: []string{"a", "b", "c"}}, {Name: "Cogs", Count: 5}}
	for _, c := range []struct{ shares, say string }{
		{"cpus=2.5", `"cpus=2.5" wants 2.5 Cpus, 1 of 4 left`},
		{"cpus=1,mem=600", `"cpus=1,mem=600" wants 600 MiB Memory, 400 of 1000 left`},
		{"cpus=1,mem=1,swap=2/3", `wants 200 KiB Swap, 100 of 300 left`},
		{"cpus=1,mem=1,swap=0,disk=60%", `wants 54000 KiB Disk, 36000 of 90000 left`},
		{"cpus=1,mem=1,swap=0,disk=1%,bolts=2", `wants 2 Bolts, 1 of 3 left`},
		{"cpus=1,mem=1,swap=0,disk=1%,cogs=3", `wants 3 Cogs, 2 of 5 left`},
		{"cpus=3,mem=600,auto", `wants 3 Cpus, 1 of 4 left and wants 600 MiB Memory, 400 of 1000 left`},
		{"bolts=1:Hard,25%", `2 of Bolts`},
	} {
		for _, mode := range []FailureMode{FailContinue, FailClear, FailAbort} {
			typ := Type{Number: 3, Count: 2, Shares: mustShares(t, c.shares), Where: "ep.conf:17"}
			say := c.say
			if typ.Shares.String() == "bolts=1:Hard,25%" {
				say = "1 of Bolts with Hard, only 0 left (ep.conf:17)" // found out after the division
			}
			led, problems := Divide(Layout{Types: []Type{typ}, Resources: custom, Failure: mode}, has)
			told := ""
			for _, p := range problems {
				told += p.Error() + "\n"
			}
			if !strings.Contains(told, say) || !strings.Contains(told, "(ep.conf:17)") {
				t.Errorf("%v %q: told\n%swant %s", mode, c.shares, told, say)
			}
			if strings.Contains(say, " wants ") && !strings.Contains(told, "slot 2 of 2 of type 3") && !strings.Contains(told, "slot 1 of 2 of type 3") {
				t.Errorf("%v %q: which slot? %s", mode, c.shares, told)
			}
			if err := led.Check(); err != nil {
				t.Errorf("%v %q: %v", mode, c.shares, err)
			}
		}
	}
	_, problems := Divide(Layout{Types: []Type{{Number: 1, Count: 1, Shares: mustShares(t, "cpus=3,25%"), Where: "ep.conf:4"},
		{Number: 2, Count: 5, Shares: mustShares(t, "auto"), Where: "ep.conf:9"}}, Failure: FailClear}, has)
	const open = "Not enough Cpus (1 left for 5 slots): 5 slots with an open share divide what fixed shares leave of 4 Cpus, which is 1: each needs at least 1 (ep.conf:9)"
	if len(problems) != 1 || !strings.Contains(problems[0].Error(), open) {
		t.Errorf("open shares: %v", problems)
	}
}

// row: S0-034, S0-035, S0-036, S0-037
func TestCustomResources(t *testing.T) {
	t.Parallel()
	custom := func(led *Ledger) string {
		var parts []string
		for s := range led.Slots() {
			for _, c := range s.Total.Custom {
				parts = append(parts, formatCpus(float64(c.Count))+" "+c.Name)
			}
		}
		return strings.Join(parts, ", ")
	}
	const base = "MACHINE_RESOURCE_Cogs = 16\nMACHINE_RESOURCE_actuator = 8\n"
	const conditional = "if defined MACHINE_RESOURCE_NAMES\n  MACHINE_RESOURCE_NAMES = $(MACHINE_RESOURCE_NAMES) Cogs\nendif\n"
	for _, c := range []struct{ config, want string }{
		{base, "8 actuator, 16 Cogs"},
		{base + "MACHINE_RESOURCE_NAMES = cogs\n", "16 Cogs"},
		{base + conditional, "8 actuator, 16 Cogs"},
		{"MACHINE_RESOURCE_NAMES = Actuator\n" + base + conditional, "8 actuator, 16 Cogs"},
		{"MACHINE_RESOURCE_NAMES = Nothing\n" + base + conditional, "16 Cogs"},
		{base + "SLOT_TYPE_1 = cogs=50%,actuator=6,50%\nNUM_SLOTS_TYPE_1 = 1\nSLOT_TYPE_2 = cogs=25%,actuator=1,25%\nNUM_SLOTS_TYPE_2 = 2\n",
			"6 actuator, 8 Cogs, 1 actuator, 4 Cogs, 1 actuator, 4 Cogs"},
		{"MACHINE_RESOURCE_Bolts = 2 * 3\nOFFLINE_MACHINE_RESOURCE_Bolts = 1\n", "5 Bolts"},
		{"MACHINE_RESOURCE_Bolts = -3\n", "0 Bolts"},
		{"MACHINE_RESOURCE_Bolts = b1, b2 b3\nOFFLINE_MACHINE_RESOURCE_Bolts = b2 b9\n", "2 Bolts"},
	} {
		led, problems := divided(t, c.config)
		if got := custom(led); got != c.want || len(problems) > 0 {
			t.Errorf("%s: got %s, want %s; %v", c.config, got, c.want, problems)
		}
	}
}

func FuzzCountOrNames(f *testing.F) {
	for _, s := range []string{"", "3", "2.5", "-1", "2 * 3", "b1, b2", "1e999", "NaN", "a ? b : c", "\x00,\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, names := countOrNames(text)
		if !(n >= 0 && n <= maxWhole) || names != nil && float64(len(names)) != n {
			t.Fatalf("%q: %v %q", text, n, names)
		}
	})
}

// A slot without an execute directory is broken with the reason and has no disk,
// whatever share of it is written; its neighbours are whole.
func TestUnusableExecute(t *testing.T) {
	t.Parallel()
	const why = "Error accessing execute directory /gone"
	for _, shares := range []string{"50%", "cpus=2, memory=50%", "cpus=2,memory=50%,disk=50%", "cpus=2,memory=50%,disk=1000000000", "auto"} {
		for _, mode := range []FailureMode{FailContinue, FailClear, FailAbort} {
			cfg, inv, err := scan(t, "NUM_SLOTS_TYPE_1 = 1\nSLOT_TYPE_1 = "+shares+"\nSLOT_TYPE_1_PARTITIONABLE = true\nNUM_SLOTS_TYPE_2 = 1\nSLOT_TYPE_2 = 50%\n",
				fixedMachine{cpus: 4, memoryMiB: 8000, diskKiB: 80000})
			if err != nil {
				t.Fatal(err)
			}
			inv.Volumes = []machine.Volume{{ID: "/gone", Paths: []string{"/gone"}, Slots: []int{1}}}
			layout, err := LayoutFrom(cfg, inv)
			if err != nil {
				t.Fatal(err)
			}
			layout.Failure, layout.Unusable = mode, map[int]string{1: why}
			led, problems := Build(layout, inv)
			if err := led.Check(); err != nil {
				t.Error(shares, err)
			}
			if len(problems) != 1 {
				t.Fatalf("%s, %v: %v", shares, mode, problems)
			}
			got := problems[0]
			if mode != FailContinue {
				if describe(led) != "" || got.TypeID != 1 || !got.Slot.IsZero() || got.Fatal != (mode == FailAbort) || !strings.HasPrefix(got.Detail, why) {
					t.Errorf("%s, %v: %s%+v", shares, mode, describe(led), got)
				}
				continue
			}
			if (got.Slot != ID{N: 1}) || got.Reason != why {
				t.Errorf("%s: %+v", shares, got)
			}
			s1, _ := led.Slot(ID{N: 1})
			s2, _ := led.Slot(ID{N: 2})
			if s1.Broken == nil || *s1.Broken != (BrokenReason{Code: BrokenExecuteDir, Reason: why}) || s1.Total.DiskKiB != 0 || s1.Total.Cpus != 2 || s1.Free.Cpus != 0 {
				t.Errorf("%s: %+v", shares, s1)
			}
			if s2.Broken != nil || s2.Free.DiskKiB != 40000 {
				t.Errorf("%s: %+v", shares, s2)
			}
		}
	}
}
