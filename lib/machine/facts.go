// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"strconv"
	"strings"
)

// ConfigFacts returns what the configuration language offers as detected
// macros: DETECTED_CORES, DETECTED_MEMORY, HOSTNAME, ARCH, OPSYS and their
// kin, for config.Options.Facts. Unknown facts are left out, so that the
// table of defaults shows through.
//
// DETECTED_CORES is what the machine has. DETECTED_CPUS_LIMIT, the default of
// NUM_CPUS, is what this process may use of it: HTCondor lowers it by two
// variables of the environment (EnvScanner), we also by processor affinity and
// control-group quota. DETECTED_CPUS follows inv.Count, which is known only
// after the configuration was read once: where ConfigScanner set it to
// CountPhysical, load the configuration again with new facts.
func ConfigFacts(inv *Inventory) map[string]string {
	facts := make(map[string]string, 32)
	text := func(name, value string) {
		if value != "" {
			facts[name] = value
		}
	}
	number := func(name string, value int64) {
		if value > 0 {
			facts[name] = strconv.FormatInt(value, 10)
		}
	}
	text("HOSTNAME", inv.Hostname)
	text("FULL_HOSTNAME", inv.FullHostname)
	text("IPV4_ADDRESS", inv.IPv4)
	text("IPV6_ADDRESS", inv.IPv6)
	switch {
	case inv.IPv4 != "":
		facts["IP_ADDRESS"], facts["IP_ADDRESS_IS_IPV6"] = inv.IPv4, "false"
	case inv.IPv6 != "":
		facts["IP_ADDRESS"], facts["IP_ADDRESS_IS_IPV6"] = inv.IPv6, "true"
	}

	text("ARCH", inv.Arch)
	text("UNAME_ARCH", inv.UnameArch)
	text("UNAME_OPSYS", inv.Uname.Sysname)
	text("OPSYS", inv.OpSys)
	text("OPSYSANDVER", inv.OpSysAndVer)
	text("OPSYSLEGACY", inv.OpSysLegacy)
	text("OPSYSNAME", inv.OpSysName)
	text("OPSYSLONGNAME", inv.OpSysLongName)
	text("OPSYSSHORTNAME", inv.OpSysShort)
	number("OPSYSVER", int64(inv.OpSysVer))
	number("OPSYSMAJORVER", int64(inv.OpSysMajorVer))
	text("UTSNAME_SYSNAME", inv.Uname.Sysname)
	text("UTSNAME_NODENAME", inv.Uname.Nodename)
	text("UTSNAME_RELEASE", inv.Uname.Release)
	text("UTSNAME_VERSION", inv.Uname.Version)
	text("UTSNAME_MACHINE", inv.Uname.Machine)

	number("DETECTED_CORES", int64(inv.DetectedCores))
	number("DETECTED_PHYSICAL_CPUS", int64(inv.PhysicalCores))
	detected, usable := inv.cores()
	number("DETECTED_CPUS", int64(detected))
	number("DETECTED_CPUS_LIMIT", int64(usable))
	number("DETECTED_MEMORY", inv.DetectedMemoryMiB)
	return facts
}

// cores returns the cores found and those this process may use, counted as
// inv.Count says. It must be asked before NUM_CPUS replaced UsableCores.
func (inv *Inventory) cores() (detected, usable int) {
	if inv.Count == CountPhysical {
		return inv.PhysicalCores, inv.UsablePhysicalCores
	}
	return inv.DetectedCores, inv.UsableCores
}

// EnvScanner lowers the usable cores to what the environment this process was
// started in allows: OMP_NUM_THREADS, OMP_THREAD_LIMIT and SLURM_CPUS_ON_NODE,
// which a batch system sets around an EP that runs as one of its jobs. Words
// that are no positive number are ignored, as HTCondor does.
func EnvScanner(env []string) Scanner { return envScanner(env) }

type envScanner []string

func (envScanner) Name() string { return "environment" }

func (e envScanner) Scan(_ context.Context, inv *Inventory) error {
	for _, kv := range e {
		name, value, _ := strings.Cut(kv, "=")
		switch name {
		case "OMP_NUM_THREADS", "OMP_THREAD_LIMIT", "SLURM_CPUS_ON_NODE":
		default:
			continue
		}
		n, err := strconv.Atoi(strings.TrimSpace(value))
		if err != nil || n <= 0 {
			continue
		}
		if n < inv.UsableCores {
			inv.UsableCores = n
			inv.Learn("environment "+kv, "UsableCores")
		}
		if n < inv.UsablePhysicalCores {
			inv.UsablePhysicalCores = n
			inv.Learn("environment "+kv, "UsablePhysicalCores")
		}
	}
	return nil
}
