// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
)

// ErrNoMemory is the cause when nothing is left after RESERVED_MEMORY.
var ErrNoMemory = errors.New("no memory is left for slots")

// ErrUndetected is the cause when a capacity was neither found nor configured.
var ErrUndetected = errors.New("could not be detected")

// Prefer applies what the owner says about the facts themselves: how cores are
// counted (COUNT_HYPERTHREAD_CPUS), what the machine is called
// (NETWORK_HOSTNAME, DEFAULT_DOMAIN_NAME) and where it is reached
// (NETWORK_INTERFACE). These facts are themselves macros,
// so when changed is true the configuration should be loaded once more with
// new ConfigFacts. It must run before ConfigScanner.
func (inv *Inventory) Prefer(snap *config.Snapshot) (changed bool, err error) {
	threads, err := snap.Bool("COUNT_HYPERTHREAD_CPUS")
	if err != nil {
		return false, err
	}
	changed, err = inv.preferInterface(snap)
	if err != nil {
		return false, err
	}
	if !threads && inv.Count != CountPhysical {
		inv.Count, changed = CountPhysical, true
	}
	host, full := inv.Hostname, inv.FullHostname
	if s, ok := given(snap, "NETWORK_HOSTNAME"); ok {
		full = strings.TrimSuffix(s.Value, ".")
		host, _, _ = strings.Cut(full, ".")
	}
	if s, ok := given(snap, "DEFAULT_DOMAIN_NAME"); ok && full != "" && !strings.Contains(full, ".") {
		full += "." + strings.Trim(s.Value, ".")
	}
	if host != inv.Hostname || full != inv.FullHostname {
		inv.Hostname, inv.FullHostname, changed = host, full, true
		inv.Learn("configuration", "Hostname", "FullHostname")
	}
	return changed, nil
}

// ConfigScanner returns the last scanner: what the owner configured beats what
// was found. NUM_CPUS and MEMORY replace the detected amounts and may exceed
// them, RESERVED_MEMORY comes off either, DISK replaces the free disk and then
// RESERVED_DISK does not count. MAX_NUM_CPUS has no effect, as in HTCondor
// 25.14. ARCH, OPSYS and their kin rename what was detected. Its errors are of
// kind Invalid: the daemon should not start with such a configuration.
func ConfigScanner(snap *config.Snapshot) Scanner { return configScanner{snap} }

type configScanner struct{ snap *config.Snapshot }

func (configScanner) Name() string { return "configuration" }

func (c configScanner) Scan(_ context.Context, inv *Inventory) error {
	_, err := inv.Prefer(c.snap)
	_, errSlots := SlotExecutes(c.snap)
	err = errors.Join(err, c.rename(inv), c.cores(inv), c.memory(inv), c.disk(inv), errSlots)
	for attr, knob := range map[string]string{"UidDomain": "UID_DOMAIN", "FileSystemDomain": "FILESYSTEM_DOMAIN"} {
		if value := strings.TrimSpace(c.snap.String(knob)); value != "" {
			inv.Attrs.SetString(attr, value)
		}
	}
	for _, label := range c.snap.List("DOCKER_VOLUMES") {
		if isWord(label) {
			inv.Attrs.SetBool("HasDockerVolume"+label, true)
		}
	}
	if networks := strings.TrimSpace(c.snap.String("DOCKER_NETWORKS")); networks != "" {
		inv.Attrs.SetString("DockerNetworks", networks)
	}
	if err != nil {
		return errs.E("machine.Config", errs.Invalid, "", err)
	}
	return nil
}

// isWord reports whether s can end the name of an attribute.
func isWord(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool {
		return r != '_' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) < 0
}

// given returns the setting of a knob that the owner set to something.
func given(snap *config.Snapshot, name string) (config.Setting, bool) {
	s, ok := snap.Lookup(name)
	s.Value = strings.TrimSpace(s.Value)
	return s, ok && !s.IsDefault && s.Value != "" && s.Origin.Kind != config.Detected
}

// number returns the value of an integer knob within [low, high] and where it
// was set; false when the owner did not set it.
func (c configScanner) number(name string, low, high int64) (n int64, source string, ok bool, err error) {
	s, ok := given(c.snap, name)
	if !ok {
		return 0, "", false, nil
	}
	if n, err = c.snap.Int(name); err != nil {
		return 0, "", false, err
	}
	if n < low || n > high {
		return 0, "", false, &config.Problem{File: s.Origin.File, Line: s.Origin.Line, Column: s.Origin.Column, EndLine: s.Origin.EndLine,
			Knob: name, Value: s.Value, Message: "is out of range", Want: fmt.Sprintf("%d to %d", low, high), Class: config.BadValue}
	}
	return n, name + " " + s.Origin.String(), true, nil
}

func (c configScanner) cores(inv *Inventory) error {
	detected, usable := inv.cores()
	n, source, ok, err := c.number("NUM_CPUS", math.MinInt32, math.MaxInt32)
	switch {
	case err != nil:
		return err
	case ok:
		inv.UsableCores = int(n)
		inv.Learn(source, "UsableCores")
	case detected <= 0:
		return fmt.Errorf("the number of processors %w; set NUM_CPUS", ErrUndetected)
	case inv.Count == CountPhysical:
		inv.UsableCores = usable
		inv.Facts["UsableCores"] = inv.Facts["UsablePhysicalCores"]
	}
	return nil
}

func (c configScanner) memory(inv *Inventory) error {
	total := inv.DetectedMemoryMiB
	n, source, ok, err := c.number("MEMORY", 0, math.MaxInt32)
	if err != nil {
		return err
	}
	reserved, reservedAt, isReserved, err := c.number("RESERVED_MEMORY", math.MinInt32, math.MaxInt32)
	if err != nil {
		return err
	}
	// MEMORY = 0 is the same as none (reconfig.cpp).
	switch {
	case ok && n > 0:
		total = n
	case !inv.Known("DetectedMemoryMiB"):
		return fmt.Errorf("the memory %w; set MEMORY", ErrUndetected)
	default:
		source = inv.Facts["DetectedMemoryMiB"].Source
	}
	if isReserved {
		source += ", " + reservedAt
	}
	inv.UsableMemoryMiB = total - reserved
	inv.Learn(source, "UsableMemoryMiB")
	if inv.UsableMemoryMiB <= 0 {
		return fmt.Errorf("%w: %d MiB less RESERVED_MEMORY %d MiB (%s)", ErrNoMemory, total, reserved, source)
	}
	return nil
}

func (c configScanner) disk(inv *Inventory) error {
	n, source, ok, err := c.number("DISK", 0, 1<<60)
	if err != nil {
		return err
	}
	if ok {
		// One amount for all: every slot takes its part of it, wherever its
		// directory lies.
		inv.Execute.FreeKiB, inv.Execute.Fixed, inv.Execute.ID = n, true, fromConfig
		inv.Volumes = nil
		inv.Learn(source, "Execute.FreeKiB")
		return nil
	}
	reserved, source, ok, err := c.number("RESERVED_DISK", math.MinInt32, math.MaxInt32)
	if err != nil || !ok {
		return err
	}
	inv.Execute.ReservedKiB = reserved * 1024
	inv.Execute.FreeKiB = inv.Execute.Usable(inv.Execute.AvailableKiB)
	inv.Learn(source, "Execute.ReservedKiB", "Execute.FreeKiB")
	for i := range inv.Volumes {
		v := &inv.Volumes[i]
		v.FreeKiB = inv.Execute.Usable(v.AvailableKiB)
	}
	return nil
}

// fromConfig is what HTCondor calls the volume that DISK describes.
const fromConfig = "<from-config>"

// rename takes over the words of the owner for what the system is called.
func (c configScanner) rename(inv *Inventory) error {
	for _, r := range []struct {
		knob, field string
		word        *string
	}{
		{"ARCH", "Arch", &inv.Arch},
		{"OPSYS", "OpSys", &inv.OpSys},
		{"OPSYSANDVER", "OpSysAndVer", &inv.OpSysAndVer},
		{"OPSYSLEGACY", "OpSysLegacy", &inv.OpSysLegacy},
		{"OPSYSNAME", "OpSysName", &inv.OpSysName},
		{"OPSYSLONGNAME", "OpSysLongName", &inv.OpSysLongName},
		{"OPSYSSHORTNAME", "OpSysShort", &inv.OpSysShort},
		{"UTSNAME_SYSNAME", "Uname", &inv.Uname.Sysname},
		{"UTSNAME_NODENAME", "Uname", &inv.Uname.Nodename},
		{"UTSNAME_RELEASE", "Uname", &inv.Uname.Release},
		{"UTSNAME_VERSION", "Uname", &inv.Uname.Version},
		{"UTSNAME_MACHINE", "Uname", &inv.Uname.Machine},
	} {
		if s, ok := given(c.snap, r.knob); ok {
			*r.word = s.Value
			inv.Learn(r.knob+" "+s.Origin.String(), r.field)
		}
	}
	for _, r := range []struct {
		knob, field string
		number      *int
	}{
		{"OPSYSVER", "OpSysVer", &inv.OpSysVer},
		{"OPSYSMAJORVER", "OpSysMajorVer", &inv.OpSysMajorVer},
	} {
		n, source, ok, err := c.number(r.knob, 0, math.MaxInt32)
		if err != nil {
			return err
		}
		if ok {
			*r.number = int(n)
			inv.Learn(source, r.field)
		}
	}
	return nil
}
