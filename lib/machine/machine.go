// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package machine says what a machine has and how busy it is, as values. It
// owns the Inventory (cores, memory, disk, names, with the provenance of each
// fact), the Sample (load, idle times, free space at one moment), the two
// interfaces through which platforms fill them, and the rule that the owner's
// configuration is simply the last scanner. It must never read a file, ask the
// operating system or keep a clock: platforms do that (platform/linux/detect)
// and hand in values.
//
//	inv, problems := machine.Scan(ctx, now, append(detect.Scanners(sys), machine.EnvScanner(env))...)
//	snap, err := config.Load(config.Options{Facts: machine.ConfigFacts(inv), …})
//	changed, err := inv.Prefer(snap) // when changed, load once more
//	slots, _ := machine.SlotExecutes(snap) // ConfigScanner says what is wrong with one
//	problems = inv.Apply(ctx, now, detect.Volume(sys, snap.String("EXECUTE"), slots...), machine.ConfigScanner(snap))
package machine

import (
	"context"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
)

// Fact is where a value of the inventory comes from. Source is a file, a
// system call, a knob with its origin, or a variable of the environment.
type Fact struct {
	Source string
	At     time.Time
}

// CoreCount selects what counts as a core when the owner does not name a
// number (COUNT_HYPERTHREAD_CPUS).
type CoreCount uint8

const (
	CountThreads  CoreCount = iota // every hardware thread, the default
	CountPhysical                  // only physical cores
)

// Inventory is what a machine has. A field is known when Facts has an entry
// under the field's name; an unknown field is zero, but a zero is not unknown.
// Capacities are integers in the unit their name says: MiB for memory, KiB for
// disk and swap, as HTCondor publishes them.
type Inventory struct {
	Hostname     string // first label of the host name
	FullHostname string // qualified where the machine itself knows its domain
	IPv4, IPv6   string // addresses a pool could reach; "" when there is none

	Interfaces []Interface // all that are up
	Network    *Interface  // the one of them with IPv4; nil when there is none

	Arch          string // HTCondor's word: X86_64, aarch64, INTEL, PPC64, …
	UnameArch     string // the kernel's word: x86_64
	OpSys         string // LINUX
	OpSysAndVer   string // Debian12
	OpSysLegacy   string // LINUX
	OpSysName     string // Debian
	OpSysLongName string // Debian GNU/Linux 12
	OpSysShort    string // Debian
	OpSysVer      int    // 1200: major * 100 + minor
	OpSysMajorVer int    // 12
	Uname         Uname
	Uptime        time.Duration // since boot, sleep included, at the time of the scan

	CPU CPU

	DetectedCores       int     // hardware threads that are online
	PhysicalCores       int     // distinct physical cores among them
	UsableCores         int     // cores to divide among slots, after affinity, cpuset, quota and NUM_CPUS
	UsablePhysicalCores int     // physical cores among those this process may use
	QuotaCores          float64 // tightest control-group processor quota; 0 when there is none
	Count               CoreCount

	PhysicalMemoryMiB int64 // RAM the kernel manages
	DetectedMemoryMiB int64 // the same, lowered to the tightest control-group limit
	UsableMemoryMiB   int64 // memory to divide among slots, after MEMORY and RESERVED_MEMORY
	SwapKiB           int64 // what HTCondor divides as swap: free swap space plus RAM
	SwapTotalKiB      int64 // size of all swap spaces

	Virtual        Virtual
	UserNamespaces Tristate // an ordinary user can make one

	Execute Disk     // the volume of EXECUTE
	Volumes []Volume // further ones that SLOT<N>_EXECUTE names, in the order of their first slot

	// Resources are what scanners found beside cores, memory and disk; see
	// AddResource.
	Resources []Resource

	// Attrs are further static attributes for the slot ads: Arch, the OpSys
	// family, Utsname…, has_…, CpuFamily and so on. Scan fills it from the
	// fields above and from what scanners added; it belongs to the inventory.
	Attrs *classad.Ad

	Facts map[string]Fact

	at time.Time
}

// Uname is what the kernel calls itself and its machine.
type Uname struct {
	Sysname, Nodename, Release, Version, Machine string
}

// CPU describes the processors, which are taken to be all alike. Zero and
// empty mean not told.
type CPU struct {
	Family    int      // CpuFamily
	Model     int      // CpuModelNumber
	CacheKiB  int      // CpuCacheSize
	Features  []string // of the kernel's flags those HTCondor publishes as has_<flag>, sorted
	Microarch string   // x86_64-v1 … x86_64-v4; "" elsewhere

	Guest       bool // they say that a hypervisor is below them
	Virtualizes bool // they can run virtual machines
}

// Virtual is what the machine is made of, and what could be made on it. HTCondor
// publishes none of it where no virtual machines are configured.
type Virtual struct {
	Hypervisor string   // kvm, vmware, xen, microsoft, … or unknown; "" on bare metal
	Container  string   // docker, podman, kubernetes, lxc, …; "" outside
	Hardware   Tristate // the processors can run virtual machines, and the kernel lets them
}

// Disk is one volume, measured at a path of it. FreeKiB is what slots may
// have; AvailableKiB is what the file system would give an ordinary user.
type Disk struct {
	Path         string
	Device       string // major:minor of the volume, "" when unknown
	ID           string // the same as one number, as Volume.ID
	TotalKiB     int64
	AvailableKiB int64
	ReservedKiB  int64 // RESERVED_DISK
	Fixed        bool  // DISK is configured: measuring again changes nothing
	FreeKiB      int64
	Rotational   Tristate
	// Logical is where jobs get file systems of their own from, whose sizes are
	// then those of the Disk; nil where they share that of Path.
	Logical *Logical
}

// Logical is a volume group, or a thin pool in one.
type Logical struct {
	Backing     string // GROUP, or GROUP/POOL
	Loopback    bool   // it lies on a file
	Thin        bool
	QuantumKiB  int64 // the smallest volume, and the step of sizes
	Bytes       int64
	OthersBytes int64 // of volumes that are not those of jobs
}

// Usable returns what slots may have of the volume when available KiB are
// free on it: less the reserve and never negative, or the configured amount.
func (d Disk) Usable(availableKiB int64) int64 {
	if d.Fixed {
		return d.FreeKiB
	}
	return max(0, availableKiB-d.ReservedKiB)
}

// Tristate is a fact that may be unknown.
type Tristate uint8

// The three states.
const (
	Unknown Tristate = iota
	No
	Yes
)

// String returns "unknown", "no" or "yes".
func (t Tristate) String() string {
	switch t {
	case No:
		return "no"
	case Yes:
		return "yes"
	}
	return "unknown"
}

// Learn records that the named fields were set from source at the time of the
// running scan. A later source replaces an earlier one.
func (inv *Inventory) Learn(source string, fields ...string) {
	for _, f := range fields {
		inv.Facts[f] = Fact{Source: source, At: inv.at}
	}
}

// Known reports whether the field was ever learnt.
func (inv *Inventory) Known(field string) bool {
	_, ok := inv.Facts[field]
	return ok
}

// Scanner adds what it knows to an inventory and records it with Learn. A
// scanner overwrites what earlier scanners found when it knows better, keeps
// what it cannot read, and returns an error that names every failed source.
type Scanner interface {
	Name() string
	Scan(ctx context.Context, inv *Inventory) error
}

// Scan runs the scanners in order over an empty inventory. A failed scanner
// does not fail the scan: its error is in the list, named after it, and what
// it could not find stays unknown. Errors of kind Invalid come from the
// owner's configuration and mean that the daemon should not start.
func Scan(ctx context.Context, now time.Time, scanners ...Scanner) (*Inventory, []error) {
	inv := &Inventory{Facts: make(map[string]Fact, 48), Attrs: classad.NewAd()}
	return inv, inv.Apply(ctx, now, scanners...)
}

// Apply runs further scanners over an inventory that is not shared yet, as
// Scan does. A new configuration needs a new Scan: what the former one
// replaced is not kept.
func (inv *Inventory) Apply(ctx context.Context, now time.Time, scanners ...Scanner) []error {
	var problems []error
	inv.at = now
	for _, s := range scanners {
		if err := ctx.Err(); err != nil {
			problems = append(problems, errs.E("machine.Scan", errs.Transient, s.Name(), err))
			break
		}
		if err := s.Scan(ctx, inv); err != nil {
			problems = append(problems, errs.E("machine.Scan", errs.Other, s.Name(), err))
		}
	}
	inv.publish()
	return problems
}
