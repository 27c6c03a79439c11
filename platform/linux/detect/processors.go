// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/machine/proctext"
)

// processors counts cores three times over: those the machine has, those this
// process may run on (affinity, cpuset), and those it may use in the long run
// (control-group quota).
type processors struct{ System }

func (processors) Name() string { return "processors" }

func (p processors) Scan(_ context.Context, inv *machine.Inventory) error {
	online, cores, err := p.describe(inv)
	if online.Len() == 0 {
		return err
	}
	// An empty intersection cannot be: the process runs somewhere. Such a
	// text is about another machine (a container that shows a foreign /proc).
	usable, source := online, inv.Facts["DetectedCores"].Source
	narrow := func(to proctext.CPUSet, why string) {
		if both := usable.And(to); both.Len() > 0 && both.Len() < usable.Len() {
			usable, source = both, why
		}
	}
	if set, path, errStatus := p.allowed(); errStatus == nil {
		narrow(set, path)
	} else {
		err = errors.Join(err, errStatus)
	}
	groups, errGroups := groupsOf(p.Root)
	set, path, errSet := groups.cpuset()
	narrow(set, path)
	inv.UsableCores, inv.UsablePhysicalCores = usable.Len(), cores(usable)
	inv.Learn(source, "UsableCores", "UsablePhysicalCores")

	quota, errQuota := groups.cpuQuota()
	err = errors.Join(err, errGroups, errSet, errQuota)
	if quota.path != "" {
		inv.QuotaCores = quota.cores
		inv.Learn(quota.path, "QuotaCores")
		// A part of a core cannot be promised to anybody, but a machine
		// without cores could not run anything.
		whole := max(1, int(quota.cores))
		if whole < inv.UsableCores {
			inv.UsableCores = whole
			inv.Learn(quota.path, "UsableCores")
		}
		if whole < inv.UsablePhysicalCores {
			inv.UsablePhysicalCores = whole
			inv.Learn(quota.path, "UsablePhysicalCores")
		}
	}
	return err
}

// describe fills in what the processors are and returns those that are online
// together with a function that counts the physical cores among some of them.
func (p processors) describe(inv *machine.Inventory) (proctext.CPUSet, func(proctext.CPUSet) int, error) {
	path := filepath.Join(p.Root.Proc, "cpuinfo")
	text, err := readText(maxCPUInfo, path)
	var info proctext.CPUInfo
	if err == nil {
		if info, err = proctext.ParseCPUInfo(text); err != nil {
			err = broken(path, err)
		}
	}
	var online proctext.CPUSet
	if err != nil {
		// Without the list of processors sysfs still knows how many there are.
		path = filepath.Join(p.Root.Sys, "devices/system/cpu/online")
		text, errSys := readText(maxText, path)
		if errSys == nil {
			online, errSys = proctext.ParseCPUSet(text)
		}
		if errSys != nil || online.Len() == 0 {
			return proctext.CPUSet{}, nil, errors.Join(err, errSys)
		}
	} else {
		for _, t := range info.Processors {
			online.Add(t.Processor)
		}
		p.features(inv, info, path)
	}
	cores := func(among proctext.CPUSet) int { return info.CoresOf(&among) }
	if !info.IDs {
		// Only x86 lists ids; elsewhere sysfs says who shares a core.
		cores = p.siblings
	}
	inv.DetectedCores = online.Len()
	inv.PhysicalCores = cores(online)
	inv.Learn(path, "DetectedCores", "PhysicalCores")
	return online, cores, err
}

func (p processors) features(inv *machine.Inventory, info proctext.CPUInfo, path string) {
	inv.CPU = machine.CPU{Family: info.Family, Model: info.Model, CacheKiB: info.CacheKiB, Features: info.PublishedFlags(),
		Guest: info.HasFlag("hypervisor"), Virtualizes: info.HasFlag("vmx") || info.HasFlag("svm")}
	// The processor names its level; whether programs of that level run here
	// is the kernel's matter.
	if inv.Arch == "X86_64" {
		inv.CPU.Microarch = info.Microarch()
	}
	source := path
	if info.Different {
		source += " (processors differ; these are the first one's flags)"
	}
	inv.Learn(source, "CPU")
}

// siblings counts the physical cores among the processors by the lists of
// threads that share one. A processor without a list is a core of its own.
func (p processors) siblings(among proctext.CPUSet) int {
	first := make(map[int]struct{})
	n := 0
	for cpu := range among.All() {
		text, err := readText(maxText, p.Root.Sys, "devices/system/cpu", "cpu"+strconv.Itoa(cpu), "topology/thread_siblings_list")
		if err != nil {
			n++
			continue
		}
		set, err := proctext.ParseCPUSet(text)
		if err != nil || set.Len() == 0 {
			n++
			continue
		}
		core := set.Min()
		if _, dup := first[core]; !dup {
			first[core] = struct{}{}
			n++
		}
	}
	return n
}

// allowed returns the processors this process may be put on: its affinity
// mask within the cpuset of its control group, as the kernel shows it.
func (p processors) allowed() (proctext.CPUSet, string, error) {
	path := filepath.Join(p.Root.Proc, "self", "status")
	text, err := readText(maxText, path)
	if err != nil {
		return proctext.CPUSet{}, "", err
	}
	const field = "Cpus_allowed_list"
	value, ok := proctext.Field(text, field)
	if !ok {
		return proctext.CPUSet{}, "", broken(path, fmt.Errorf("no line %s", field))
	}
	set, err := proctext.ParseCPUSet(value)
	if err != nil {
		return proctext.CPUSet{}, "", broken(path, err)
	}
	return set, path + " " + field, nil
}
