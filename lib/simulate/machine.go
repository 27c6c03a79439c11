// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"cmp"
	"context"
	"strings"

	"github.com/execpoint/execpoint/lib/machine"
)

// Machine is the machine of a simulation. It is a machine.Scanner.
type Machine struct {
	Host      string // full host name; "" is machine.example
	Cpus      int
	MemoryMiB int64
	DiskKiB   int64 // free for EXECUTE
	SwapKiB   int64
	Source    string // where it is described, for the provenance of facts
}

// Name is where the facts come from.
func (m *Machine) Name() string { return cmp.Or(m.Source, "scenario") }

// Scan puts the description into an inventory.
func (m *Machine) Scan(_ context.Context, inv *machine.Inventory) error {
	inv.FullHostname = cmp.Or(m.Host, "machine.example")
	inv.Hostname, _, _ = strings.Cut(inv.FullHostname, ".")
	inv.Arch, inv.OpSys = "X86_64", "LINUX"
	inv.DetectedCores, inv.PhysicalCores, inv.UsableCores, inv.UsablePhysicalCores = m.Cpus, m.Cpus, m.Cpus, m.Cpus
	inv.PhysicalMemoryMiB, inv.DetectedMemoryMiB, inv.UsableMemoryMiB = m.MemoryMiB, m.MemoryMiB, m.MemoryMiB
	inv.SwapKiB = m.SwapKiB
	inv.Execute = machine.Disk{Path: "/execute", TotalKiB: m.DiskKiB, AvailableKiB: m.DiskKiB}
	inv.Execute.FreeKiB = inv.Execute.Usable(m.DiskKiB)
	inv.Learn(m.Name(), "FullHostname", "Hostname", "Arch", "OpSys", "DetectedCores", "PhysicalCores", "UsableCores", "UsablePhysicalCores",
		"PhysicalMemoryMiB", "DetectedMemoryMiB", "UsableMemoryMiB", "SwapKiB", "Execute")
	return nil
}
