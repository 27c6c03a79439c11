// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/errs"
)

// found is a scanner that sets what a test wants to have been found.
type found struct {
	name string
	set  func(*Inventory)
	err  error
}

func (f found) Name() string { return f.name }

func (f found) Scan(_ context.Context, inv *Inventory) error {
	if f.set != nil {
		f.set(inv)
	}
	return f.err
}

func TestScanGoesOn(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	broken := errs.E("detect.read", errs.Broken, "/proc/x", errors.New("malformed"))
	inv, problems := Scan(t.Context(), now,
		found{name: "one", set: func(inv *Inventory) { inv.DetectedCores = 4; inv.Learn("a", "DetectedCores") }},
		found{name: "two", err: broken},
		found{name: "three", set: func(inv *Inventory) { inv.DetectedCores = 6; inv.Learn("b", "DetectedCores") }})
	if inv.DetectedCores != 6 || inv.Facts["DetectedCores"] != (Fact{Source: "b", At: now}) {
		t.Errorf("a later scanner must win: %d, %v", inv.DetectedCores, inv.Facts)
	}
	if len(problems) != 1 || !errs.Is(problems[0], errs.Broken) || !strings.Contains(problems[0].Error(), "two") {
		t.Errorf("problems = %v", problems)
	}
	if inv.Known("Hostname") || !inv.Known("DetectedCores") {
		t.Error("Known")
	}
}

func TestScanStopsWhenTold(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	ran := false
	_, problems := Scan(ctx, time.Unix(0, 0),
		found{name: "one", set: func(*Inventory) { cancel() }},
		found{name: "two", set: func(*Inventory) { ran = true }})
	if ran || len(problems) != 1 || !errors.Is(problems[0], context.Canceled) {
		t.Errorf("ran %v, problems %v", ran, problems)
	}
}

func TestEnvScanner(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		env      []string
		cores    int
		physical int
		source   string
	}{
		{env: nil, cores: 8, physical: 4, source: "found"},
		{env: []string{"PATH=/bin", "OMP_THREAD_LIMIT=3"}, cores: 3, physical: 3, source: "environment OMP_THREAD_LIMIT=3"},
		{env: []string{"OMP_THREAD_LIMIT=6"}, cores: 6, physical: 4, source: "environment OMP_THREAD_LIMIT=6"},
		{env: []string{"SLURM_CPUS_ON_NODE=2", "OMP_NUM_THREADS=4"}, cores: 2, physical: 2, source: "environment SLURM_CPUS_ON_NODE=2"},
		{env: []string{"OMP_NUM_THREADS= 1 "}, cores: 1, physical: 1, source: "environment OMP_NUM_THREADS= 1 "},
		{env: []string{"OMP_THREAD_LIMIT=64", "SLURM_CPUS_ON_NODE=0", "OMP_NUM_THREADS=-1"}, cores: 8, physical: 4, source: "found"},
		{env: []string{"OMP_NUM_THREADS=4,2", "OMP_THREAD_LIMIT", "=3"}, cores: 8, physical: 4, source: "found"},
	} {
		inv, problems := Scan(t.Context(), time.Unix(0, 0), found{set: func(inv *Inventory) {
			inv.DetectedCores, inv.UsableCores, inv.UsablePhysicalCores = 8, 8, 4
			inv.Learn("found", "UsableCores", "UsablePhysicalCores")
		}}, EnvScanner(tt.env))
		if problems != nil || inv.UsableCores != tt.cores || inv.UsablePhysicalCores != tt.physical || inv.Facts["UsableCores"].Source != tt.source {
			t.Errorf("%q: %d, %d from %q, %v, want %d, %d from %q", tt.env, inv.UsableCores, inv.UsablePhysicalCores,
				inv.Facts["UsableCores"].Source, problems, tt.cores, tt.physical, tt.source)
		}
		if inv.DetectedCores != 8 {
			t.Errorf("%q changed what the machine has", tt.env)
		}
	}
}

// Where jobs have volumes the slots show it, as HTCondor's do; what is false is absent.
func TestAttrsOfVolumes(t *testing.T) {
	t.Parallel()
	for want, l := range map[string]*Logical{
		"": nil,
		"DiskQuantum = 4096\nIsEnforcingDiskUsage = true\nLvmBackingStore = \"vg\"\nLvmUsingLoopback = true\n":           {Backing: "vg", Loopback: true, QuantumKiB: 4096},
		"DiskQuantum = 1024\nIsEnforcingDiskUsage = true\nLvmBackingStore = \"vg/pool\"\nLvmIsThinProvisioning = true\n": {Backing: "vg/pool", Thin: true, QuantumKiB: 1024},
	} {
		inv, _ := Scan(t.Context(), time.Unix(0, 0), found{set: func(inv *Inventory) { inv.Execute.Logical = l }})
		var got strings.Builder
		for line := range strings.Lines(inv.Attrs.Text(classad.Old)) {
			if strings.Contains(line, "Lvm") || strings.Contains(line, "DiskQuantum") || strings.Contains(line, "Enforcing") {
				got.WriteString(line)
			}
		}
		if got.String() != want {
			t.Errorf("%+v:\n%swant\n%s", l, got.String(), want)
		}
	}
}

// The published attributes are HTCondor's, and unknown is absent.
func TestAttrs(t *testing.T) {
	t.Parallel()
	inv, _ := Scan(t.Context(), time.Unix(0, 0), found{set: func(inv *Inventory) {
		inv.FullHostname = "ep.example.org"
		inv.Arch, inv.OpSys, inv.OpSysLegacy = "X86_64", "LINUX", "LINUX"
		inv.OpSysName, inv.OpSysShort, inv.OpSysLongName, inv.OpSysAndVer = "Debian", "Debian", "Debian GNU/Linux 12", "Debian12"
		inv.OpSysMajorVer, inv.OpSysVer = 12, 1200
		inv.Uname = Uname{"Linux", "ep", "6.1.0-18-amd64", "#1 SMP Debian", "x86_64"}
		inv.CPU = CPU{Family: 6, Model: 85, CacheKiB: 36608, Features: []string{"avx", "avx2", "sse4_1"}, Microarch: "x86_64-v3"}
		inv.DetectedCores, inv.DetectedMemoryMiB = 8, 24105
		inv.Execute = Disk{TotalKiB: 1000, Rotational: No}
		inv.Learn("found", "DetectedMemoryMiB", "Execute")
	}})
	want := strings.TrimLeft(`
Arch = "X86_64"
CpuCacheSize = 36608
CpuFamily = 6
CpuModelNumber = 85
DetectedCpus = 8
DetectedDisk = 1000
DetectedMemory = 24105
HasRotationalScratch = false
Machine = "ep.example.org"
Microarch = "x86_64-v3"
OpSys = "LINUX"
OpSysAndVer = "Debian12"
OpSysLegacy = "LINUX"
OpSysLongName = "Debian GNU/Linux 12"
OpSysMajorVer = 12
OpSysName = "Debian"
OpSysShortName = "Debian"
OpSysVer = 1200
UtsnameMachine = "x86_64"
UtsnameNodename = "ep"
UtsnameRelease = "6.1.0-18-amd64"
UtsnameSysname = "Linux"
UtsnameVersion = "#1 SMP Debian"
has_avx = true
has_avx2 = true
has_sse4_1 = true
`, "\n")
	if diff := cmp.Diff(want, inv.Attrs.Text(classad.Old)); diff != "" {
		t.Error(diff)
	}
	empty, _ := Scan(t.Context(), time.Unix(0, 0))
	if got := empty.Attrs.Text(classad.Old); got != "" {
		t.Errorf("attributes of an unknown machine: %s", got)
	}
}

func TestDiskUsable(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		disk      Disk
		available int64
		want      int64
	}{
		{Disk{}, 500, 500},
		{Disk{ReservedKiB: 100}, 500, 400},
		{Disk{ReservedKiB: 600}, 500, 0},
		{Disk{ReservedKiB: 100, Fixed: true, FreeKiB: 42}, 500, 42},
	} {
		if got := tt.disk.Usable(tt.available); got != tt.want {
			t.Errorf("%+v.Usable(%d) = %d, want %d", tt.disk, tt.available, got, tt.want)
		}
	}
}

func TestSampleHas(t *testing.T) {
	t.Parallel()
	s := Sample{Fresh: ReadLoad | ReadIdle}
	if !s.Has(ReadLoad) || !s.Has(ReadLoad|ReadIdle) || s.Has(ReadDisk) || s.Has(AllReadings) {
		t.Errorf("Has of %b", s.Fresh)
	}
	if got := NeverUsed(clock.Instant{Wall: time.Unix(1_800_000_000, 5)}); got != 1_800_000_000*time.Second {
		t.Errorf("NeverUsed = %v", got)
	}
	if got := NeverUsed(clock.Instant{Wall: time.Unix(-5, 0)}); got != 0 {
		t.Errorf("NeverUsed before 1970 = %v", got)
	}
}

func BenchmarkConfigFacts(b *testing.B) {
	inv, _ := Scan(b.Context(), time.Unix(0, 0), found{set: small(16, 24105)})
	b.ReportAllocs()
	for b.Loop() {
		if facts := ConfigFacts(inv); !slices.Contains([]string{"16"}, facts["DETECTED_CORES"]) {
			b.Fatal(facts)
		}
	}
}
