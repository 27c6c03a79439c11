// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/platform/linux"
)

const execute = "/var/lib/condor/execute"

// describe prints an inventory with the provenance of its facts, the slot
// attributes and the problems of the scan; the directory of the fixture is
// left out of paths.
func describe(inv *machine.Inventory, problems []error, dir string) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("host %q full %q ipv4 %q ipv6 %q up %v", inv.Hostname, inv.FullHostname, inv.IPv4, inv.IPv6, inv.Uptime)
	line("cores detected %d physical %d usable %d usable physical %d quota %v", inv.DetectedCores, inv.PhysicalCores,
		inv.UsableCores, inv.UsablePhysicalCores, inv.QuotaCores)
	line("memory physical %d detected %d usable %d MiB, swap %d of total %d KiB", inv.PhysicalMemoryMiB, inv.DetectedMemoryMiB,
		inv.UsableMemoryMiB, inv.SwapKiB, inv.SwapTotalKiB)
	line("disk %+v", inv.Execute)
	line("hypervisor %q container %q virtual machines %v", inv.Virtual.Hypervisor, inv.Virtual.Container, inv.Virtual.Hardware)
	b.WriteString("\n" + inv.Attrs.Text(classad.Old) + "\n")
	for _, name := range slices.Sorted(maps.Keys(inv.Facts)) {
		line("%s from %s", name, inv.Facts[name].Source)
	}
	for _, p := range problems {
		for text := range strings.SplitSeq(p.Error(), "\n") {
			line("problem: %s", text)
		}
	}
	return strings.ReplaceAll(b.String(), dir, "")
}

// Whole machines, real and hostile, must give exactly the expected inventory.
func TestMachines(t *testing.T) {
	t.Parallel()
	for _, path := range fixtures(t) {
		f := readFixture(t, path)
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			sys, want := f.system(t, dir)
			inv, problems := machine.Scan(t.Context(), time.Unix(1_800_000_000, 0), append(Scanners(sys), Volume(sys, execute))...)
			got := describe(inv, problems, dir)
			if *update {
				f.writeBack(t, path, got)
			} else if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The real machine: what is found must agree with what the Go runtime and the
// kernel's own calls say.
func TestThisMachine(t *testing.T) {
	t.Parallel()
	sys := Host(linux.DefaultRoot())
	inv, problems := machine.Scan(t.Context(), time.Now(), append(Scanners(sys), Volume(sys, t.TempDir()))...)
	for _, p := range problems {
		t.Error(p)
	}
	var mask unix.CPUSet
	if err := unix.SchedGetaffinity(0, &mask); err != nil {
		t.Fatal(err)
	}
	if inv.UsableCores < 1 || inv.UsableCores > mask.Count() || inv.UsableCores > inv.DetectedCores {
		t.Errorf("usable %d, affinity %d, detected %d", inv.UsableCores, mask.Count(), inv.DetectedCores)
	}
	// The runtime rounds a quota up, we round it down; without one all agree.
	if inv.QuotaCores == 0 && inv.UsableCores != runtime.NumCPU() {
		t.Errorf("usable %d, runtime.NumCPU %d", inv.UsableCores, runtime.NumCPU())
	}
	if inv.PhysicalCores < 1 || inv.PhysicalCores > inv.DetectedCores {
		t.Errorf("physical %d of %d", inv.PhysicalCores, inv.DetectedCores)
	}
	var info unix.Sysinfo_t
	if err := unix.Sysinfo(&info); err != nil {
		t.Fatal(err)
	}
	if got, want := inv.PhysicalMemoryMiB, int64(info.Totalram)*int64(info.Unit)>>20; got != want {
		t.Errorf("memory %d MiB, sysinfo %d MiB", got, want)
	}
	if host, err := os.Hostname(); err != nil || inv.Uname.Nodename != host {
		t.Errorf("node name %q, os.Hostname %q, %v", inv.Uname.Nodename, host, err)
	}
	if inv.Execute.TotalKiB <= 0 || inv.Execute.AvailableKiB > inv.Execute.TotalKiB || inv.Execute.Device == "" {
		t.Errorf("disk %+v", inv.Execute)
	}
	for _, name := range []string{"Arch", "OpSys", "OpSysAndVer", "OpSysLongName", "UtsnameSysname", "DetectedCpus", "DetectedMemory", "DetectedDisk", "Machine"} {
		if _, ok := inv.Attrs.Lookup(name); !ok {
			t.Errorf("no attribute %s", name)
		}
	}
}

// The scan is on the way of every start.
func BenchmarkScan(b *testing.B) {
	sys := Host(linux.DefaultRoot())
	dir := b.TempDir()
	b.ReportAllocs()
	for b.Loop() {
		inv, problems := machine.Scan(b.Context(), time.Now(), append(Scanners(sys), Volume(sys, dir))...)
		if problems != nil || inv.DetectedCores == 0 {
			b.Fatal(problems)
		}
	}
}

// A machine with many processors takes longer: each is described at length.
func BenchmarkScan128(b *testing.B) {
	sys, _ := named(b, "epyc-numa-128")
	b.ReportAllocs()
	for b.Loop() {
		inv, problems := machine.Scan(b.Context(), scanned.Wall, append(Scanners(sys), Volume(sys, execute))...)
		if problems != nil || inv.DetectedCores != 128 {
			b.Fatal(problems)
		}
	}
}

// printCores makes the test binary print what it may use, for a child process
// of TestAffinityIsRespected.
const printCores = "EXECPOINT_TEST_PRINT_CORES"

func TestPrintCores(t *testing.T) {
	if os.Getenv(printCores) == "" {
		t.Skip("only for the child process of TestAffinityIsRespected")
	}
	inv, problems := machine.Scan(t.Context(), time.Now(), Scanners(Host(linux.DefaultRoot()))...)
	fmt.Println("cores", inv.UsableCores, inv.UsablePhysicalCores, problems == nil)
}

// A process bound to one processor may use one core, on the real kernel. It is
// not parallel: if it runs on the main thread, what it sets is for a moment
// what the whole process seems to have.
func TestAffinityIsRespected(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The mask belongs to the thread. It is not given back to the scheduler
	// before the old mask is in place again; the child inherits the new one.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	for cpu := 0; one.Count() == 0; cpu++ {
		if before.IsSet(cpu) {
			one.Set(cpu)
		}
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestPrintCores$")
	cmd.Env = append(os.Environ(), printCores+"=1")
	out, errRun := cmd.CombinedOutput()
	if err := unix.SchedSetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	if errRun != nil || !strings.Contains(string(out), "cores 1 1 true\n") {
		t.Errorf("%s%v", out, errRun)
	}
}
