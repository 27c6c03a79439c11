// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
)

// capacity holds what HTCondor made of NUM_CPUS, MEMORY, DISK and the
// reserves: the first case of each distinct setting in the recorded slot
// divisions, reduced to these knobs and to the totals that were published.
//
//go:embed testdata/capacity.jsonl
var capacity []byte

// load reads a configuration with the facts of inv, twice where the owner's
// preferences change the facts, as the daemon does.
func load(t *testing.T, inv *Inventory, text string) *config.Snapshot {
	t.Helper()
	read := func() *config.Snapshot {
		snap, err := config.Parse("ep.conf", text, config.Options{Subsystem: "STARTD", Facts: ConfigFacts(inv)})
		if err != nil {
			t.Fatalf("%s\n%v", text, err)
		}
		return snap
	}
	snap := read()
	changed, err := inv.Prefer(snap)
	if err != nil {
		t.Fatal(err)
	}
	if changed {
		snap = read()
	}
	return snap
}

func scanWith(t *testing.T, base func(*Inventory), text string) (*Inventory, []error) {
	t.Helper()
	now := time.Unix(1_800_000_000, 0)
	inv, problems := Scan(t.Context(), now, found{set: base})
	if problems != nil {
		t.Fatal(problems)
	}
	return inv, inv.Apply(t.Context(), now, ConfigScanner(load(t, inv, text)))
}

// small is a machine of two processors as the recorded one was.
func small(cpus int, memoryMiB int64) func(*Inventory) {
	return func(inv *Inventory) {
		inv.Hostname, inv.FullHostname = "ep", "ep"
		inv.DetectedCores, inv.PhysicalCores, inv.UsableCores, inv.UsablePhysicalCores = cpus, cpus, cpus, cpus
		inv.DetectedMemoryMiB, inv.UsableMemoryMiB = memoryMiB, memoryMiB
		inv.Execute = Disk{Path: "/x", TotalKiB: 9_000_000, AvailableKiB: 5_000_000, FreeKiB: 5_000_000}
		inv.Learn("found", "Hostname", "DetectedCores", "PhysicalCores", "UsableCores", "UsablePhysicalCores", "DetectedMemoryMiB", "UsableMemoryMiB", "Execute")
	}
}

func TestRecordedCapacities(t *testing.T) {
	t.Parallel()
	n := 0
	for line := range bytes.Lines(capacity) {
		var c struct {
			ID, Config     string
			DetectedCPUs   int   `json:"detected_cpus"`
			DetectedMemory int64 `json:"detected_memory"`
			CPUs           int
			Memory, Disk   int64
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		n++
		inv, problems := scanWith(t, small(c.DetectedCPUs, c.DetectedMemory), c.Config)
		if problems != nil {
			t.Errorf("%s: %v", c.ID, problems)
		}
		if inv.UsableCores != c.CPUs || inv.UsableMemoryMiB != c.Memory || c.Disk != 0 && inv.Execute.FreeKiB != c.Disk {
			t.Errorf("%s: %d cores, %d MiB, disk %d KiB; recorded %d, %d, %d", c.ID, inv.UsableCores, inv.UsableMemoryMiB,
				inv.Execute.FreeKiB, c.CPUs, c.Memory, c.Disk)
		}
	}
	if n != 27 {
		t.Errorf("%d cases read", n)
	}
}

// row: S0-015
func TestMoreCoresThanThereAre(t *testing.T) {
	t.Parallel()
	inv, problems := scanWith(t, small(4, 16000), "NUM_CPUS = 8")
	if problems != nil || inv.UsableCores != 8 || inv.DetectedCores != 4 {
		t.Errorf("%d cores to divide of %d detected, %v; want 8 of 4", inv.UsableCores, inv.DetectedCores, problems)
	}
	if got := inv.Facts["UsableCores"].Source; got != "NUM_CPUS ep.conf:1" {
		t.Errorf("from %q", got)
	}
}

func TestConfigScanner(t *testing.T) {
	t.Parallel()
	type want struct {
		cores         int
		memory, disk  int64
		source, field string
	}
	for _, tt := range []struct {
		name, config string
		want         want
	}{
		{"nothing set", "", want{8, 16000, 5_000_000, "affinity", "UsableCores"}},
		{"NUM_CPUS above what is there", "NUM_CPUS = 8\nFOO = 1", want{8, 16000, 5_000_000, "NUM_CPUS ep.conf:1", "UsableCores"}},
		{"NUM_CPUS beats affinity and quota", "NUM_CPUS = $(DETECTED_CORES) * 2", want{32, 16000, 5_000_000, "NUM_CPUS ep.conf:1", "UsableCores"}},
		{"the limit is a macro", "NUM_CPUS = $(DETECTED_CPUS_LIMIT) - 1", want{7, 16000, 5_000_000, "NUM_CPUS ep.conf:1", "UsableCores"}},
		{"MAX_NUM_CPUS has no effect", "MAX_NUM_CPUS = 2", want{8, 16000, 5_000_000, "affinity", "UsableCores"}},
		{"set to nothing is not set", "NUM_CPUS =\nMEMORY =\nDISK =", want{8, 16000, 5_000_000, "affinity", "UsableCores"}},
		{"negative is left to the slots", "NUM_CPUS = -1", want{-1, 16000, 5_000_000, "NUM_CPUS ep.conf:1", "UsableCores"}},
		{"physical cores", "COUNT_HYPERTHREAD_CPUS = False", want{4, 16000, 5_000_000, "siblings", "UsableCores"}},
		// row: S4-059
		{"physical cores as a macro", "COUNT_HYPERTHREAD_CPUS = False\nNUM_CPUS = $(DETECTED_CPUS) + 100", want{108, 16000, 5_000_000, "NUM_CPUS ep.conf:2", "UsableCores"}},
		{"MEMORY of twice the machine", "MEMORY = $(DETECTED_MEMORY)*2", want{8, 32000, 5_000_000, "MEMORY ep.conf:1", "UsableMemoryMiB"}},
		{"MEMORY of zero is none", "MEMORY = 0", want{8, 16000, 5_000_000, "meminfo", "UsableMemoryMiB"}},
		{"RESERVED_MEMORY of the detected", "RESERVED_MEMORY = 1024", want{8, 14976, 5_000_000, "meminfo, RESERVED_MEMORY ep.conf:1", "UsableMemoryMiB"}},
		{"a negative reserve gives more", "RESERVED_MEMORY = -1000", want{8, 17000, 5_000_000, "meminfo, RESERVED_MEMORY ep.conf:1", "UsableMemoryMiB"}},
		{"RESERVED_DISK is in MiB", "RESERVED_DISK = 1000", want{8, 16000, 3_976_000, "RESERVED_DISK ep.conf:1", "Execute.FreeKiB"}},
		{"a reserve of more than there is", "RESERVED_DISK = 100000", want{8, 16000, 0, "RESERVED_DISK ep.conf:1", "Execute.FreeKiB"}},
		{"DISK makes the reserve void", "RESERVED_DISK = 100000\nDISK = 777", want{8, 16000, 777, "DISK ep.conf:2", "Execute.FreeKiB"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			inv, problems := scanWith(t, func(inv *Inventory) {
				small(16, 16000)(inv)
				inv.PhysicalCores, inv.UsableCores, inv.UsablePhysicalCores = 8, 8, 4
				inv.Learn("affinity", "UsableCores")
				inv.Learn("siblings", "UsablePhysicalCores")
				inv.Learn("meminfo", "DetectedMemoryMiB")
			}, tt.config)
			if problems != nil {
				t.Fatal(problems)
			}
			got := want{inv.UsableCores, inv.UsableMemoryMiB, inv.Execute.FreeKiB, inv.Facts[tt.want.field].Source, tt.want.field}
			if got != tt.want {
				t.Errorf("got  %+v\nwant %+v", got, tt.want)
			}
			if inv.DetectedCores != 16 || inv.DetectedMemoryMiB != 16000 || inv.Execute.TotalKiB != 9_000_000 {
				t.Errorf("the configuration changed what was detected: %+v", inv)
			}
		})
	}
}

func TestConfigScannerRefuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ config, want string }{
		{"RESERVED_MEMORY = 24105", "no memory is left for slots: 24105 MiB less RESERVED_MEMORY 24105 MiB (found, RESERVED_MEMORY ep.conf:1)"},
		{"MEMORY = 100\nRESERVED_MEMORY = 1000", "no memory is left for slots: 100 MiB less RESERVED_MEMORY 1000 MiB (MEMORY ep.conf:1, RESERVED_MEMORY ep.conf:2)"},
		{"\nNUM_CPUS = many", "ep.conf:2"},
		{"MEMORY = -5", "ep.conf:1"},
		{"DISK = lots", "ep.conf:1"},
		{"DISK = -1", "ep.conf:1"},
		{"RESERVED_DISK = 99999999999999", "ep.conf:1"},
		{"COUNT_HYPERTHREAD_CPUS = perhaps", "ep.conf:1"},
	} {
		now := time.Unix(1_800_000_000, 0)
		inv, _ := Scan(t.Context(), now, found{set: small(2, 24105)})
		snap, err := config.Parse("ep.conf", tt.config, config.Options{Facts: ConfigFacts(inv)})
		if err != nil {
			t.Fatal(err)
		}
		problems := inv.Apply(t.Context(), now, ConfigScanner(snap))
		if len(problems) != 1 || !errs.Is(problems[0], errs.Invalid) || !strings.Contains(problems[0].Error(), tt.want) {
			t.Errorf("%q: %v, want one of kind invalid with %q", tt.config, problems, tt.want)
		}
	}
}

// A machine that could not be read is saved by an owner who says what it has.
func TestUndetected(t *testing.T) {
	t.Parallel()
	inv, problems := scanWith(t, func(*Inventory) {}, "NUM_CPUS = 4\nMEMORY = 4096\nDISK = 1000")
	if problems != nil || inv.UsableCores != 4 || inv.UsableMemoryMiB != 4096 || inv.Execute.FreeKiB != 1000 {
		t.Errorf("%v, %+v", problems, inv)
	}
	_, problems = scanWith(t, func(*Inventory) {}, "")
	if len(problems) != 1 || !errors.Is(problems[0], ErrUndetected) {
		t.Fatalf("%v, want ErrUndetected", problems)
	}
	for _, word := range []string{"NUM_CPUS", "MEMORY"} {
		if !strings.Contains(problems[0].Error(), word) {
			t.Errorf("%q does not name %s", problems[0], word)
		}
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ host, full, config, wantHost, wantFull string }{
		{"ep", "ep", "", "ep", "ep"},
		{"ep", "ep", "DEFAULT_DOMAIN_NAME = example.org", "ep", "ep.example.org"},
		{"ep", "ep", "DEFAULT_DOMAIN_NAME = .example.org", "ep", "ep.example.org"},
		{"ep", "ep.cs.edu", "DEFAULT_DOMAIN_NAME = example.org", "ep", "ep.cs.edu"},
		{"ep", "ep.cs.edu", "NETWORK_HOSTNAME = node7.pool.net", "node7", "node7.pool.net"},
		{"ep", "ep.cs.edu", "NETWORK_HOSTNAME = node7\nDEFAULT_DOMAIN_NAME = pool.net", "node7", "node7.pool.net"},
	} {
		inv, problems := scanWith(t, func(inv *Inventory) {
			small(2, 1000)(inv)
			inv.Hostname, inv.FullHostname = tt.host, tt.full
		}, tt.config)
		if problems != nil || inv.Hostname != tt.wantHost || inv.FullHostname != tt.wantFull {
			t.Errorf("%q: %q, %q, %v, want %q, %q", tt.config, inv.Hostname, inv.FullHostname, problems, tt.wantHost, tt.wantFull)
		}
		if got, _ := inv.Attrs.EvalString("Machine", nil); got != tt.wantFull {
			t.Errorf("%q: Machine = %q", tt.config, got)
		}
		// The second reading sees the new name in what depends on it.
		if got, _ := inv.Attrs.EvalString("UidDomain", nil); got != tt.wantFull {
			t.Errorf("%q: UidDomain = %q, want %q", tt.config, got, tt.wantFull)
		}
	}
}

func TestRenaming(t *testing.T) {
	t.Parallel()
	inv, problems := scanWith(t, func(inv *Inventory) {
		small(2, 1000)(inv)
		inv.Arch, inv.OpSys, inv.OpSysAndVer, inv.OpSysVer = "X86_64", "LINUX", "Debian12", 1200
	}, "ARCH = TOASTER\nOPSYSANDVER = Mine$(OPSYSVER)\nOPSYSVER = 4200\n")
	if problems != nil {
		t.Fatal(problems)
	}
	got := []any{inv.Arch, inv.OpSys, inv.OpSysAndVer, inv.OpSysVer, inv.Facts["Arch"].Source}
	if diff := cmp.Diff([]any{"TOASTER", "LINUX", "Mine4200", 4200, "ARCH ep.conf:1"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestConfigFacts(t *testing.T) {
	t.Parallel()
	inv, _ := Scan(t.Context(), time.Unix(1_800_000_000, 0), found{set: func(inv *Inventory) {
		small(16, 24105)(inv)
		inv.PhysicalCores, inv.UsableCores, inv.UsablePhysicalCores = 8, 6, 3
		inv.FullHostname, inv.IPv6 = "ep.example.org", "2001:db8::7"
		inv.Arch, inv.OpSys, inv.OpSysVer = "X86_64", "LINUX", 1200
	}})
	want := map[string]string{
		"HOSTNAME": "ep", "FULL_HOSTNAME": "ep.example.org", "IP_ADDRESS": "2001:db8::7", "IP_ADDRESS_IS_IPV6": "true",
		"IPV6_ADDRESS": "2001:db8::7", "ARCH": "X86_64", "OPSYS": "LINUX", "OPSYSVER": "1200",
		"DETECTED_CORES": "16", "DETECTED_PHYSICAL_CPUS": "8", "DETECTED_CPUS": "16", "DETECTED_CPUS_LIMIT": "6", "DETECTED_MEMORY": "24105",
	}
	if diff := cmp.Diff(want, ConfigFacts(inv)); diff != "" {
		t.Error(diff)
	}
	inv.Count = CountPhysical
	maps.Copy(want, map[string]string{"DETECTED_CPUS": "8", "DETECTED_CPUS_LIMIT": "3"})
	if diff := cmp.Diff(want, ConfigFacts(inv)); diff != "" {
		t.Error(diff)
	}
	if got := ConfigFacts(&Inventory{}); len(got) != 0 {
		t.Errorf("facts of an unknown machine: %v", got)
	}
	// What is offered must be a name the table of knobs knows, or a macro
	// that HTCondor defines without listing it.
	unlisted := []string{"UTSNAME_SYSNAME", "UTSNAME_NODENAME", "UTSNAME_RELEASE", "UTSNAME_VERSION", "UTSNAME_MACHINE", "IP_ADDRESS_IS_IPV6"}
	for name := range ConfigFacts(inv) {
		if _, ok := config.LookupKnob(name); !ok && !slices.Contains(unlisted, name) {
			t.Errorf("%s is no knob", name)
		}
	}
}

// The owner's labels and networks for Docker are advertised with or without a
// Docker, as HTCondor has it.
//
// row: S0-250, S4-143
func TestDockerSettings(t *testing.T) {
	t.Parallel()
	inv, problems := scanWith(t, small(4, 4000), "DOCKER_VOLUMES = CVMFS, home_2 bad-one\nDOCKER_NETWORKS = lan, some_net")
	if problems != nil {
		t.Fatal(problems)
	}
	networks, _ := inv.Attrs.EvalString("DockerNetworks", nil)
	for name, want := range map[string]bool{"HasDockerVolumeCVMFS": true, "HasDockerVolumehome_2": true, "HasDockerVolumebad-one": false} {
		if got, _ := inv.Attrs.EvalBool(name, nil); got != want {
			t.Errorf("%s = %v", name, got)
		}
	}
	if networks != "lan, some_net" {
		t.Errorf("networks %q", networks)
	}
	inv, _ = scanWith(t, small(4, 4000), "")
	if _, ok := inv.Attrs.Lookup("DockerNetworks"); ok {
		t.Error("networks without a setting")
	}
}
