// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/host"
)

// Limits is what a job's group is told. Zero fields are not written.
type Limits struct {
	host.GroupLimits
	// OOMTogether ends the whole job when the kernel kills one of its
	// processes for memory. Version 1 cannot do that.
	OOMTogether bool
}

// Write is one file of a group and what goes into it.
type Write struct {
	Controller string // whose hierarchy, on version 1; "" on version 2
	File       string
	Value      string
	// Promise is what the job is not kept from where the group has no such file:
	// "" if that is nobody's loss.
	Promise string
}

// Plan turns limits into the writes of the given version, in order. Closed devices
// of version 2 are no files: see deviceProgram.
func (l Limits) Plan(version int) []Write {
	if version == 1 {
		return l.plan1()
	}
	return l.plan2()
}

// plan1 is the plan of version 1. A group below the job's own has the same limits
// only if use_hierarchy is set, which kernels since 5.11 always do. The limit of
// memory and swap is never below that of memory: Apply finds the order.
func (l Limits) plan1() []Write {
	var w []Write
	if l.CPUWeight > 0 {
		// the kernel takes 2 … 262144 and would refuse nothing, but round
		w = append(w, Write{"cpu", "cpu.shares", strconv.Itoa(max(2, min(l.CPUWeight, 262144))), "its share of the processors is not set"})
	}
	m := l.Memory
	if m.Hard != nil {
		w = append(w, Write{"memory", "memory.use_hierarchy", "1", ""},
			Write{"memory", "memory.limit_in_bytes", number(*m.Hard), "its memory is not limited"})
		if m.Swap != nil {
			w = append(w, Write{"memory", "memory.memsw.limit_in_bytes", number(sum(*m.Hard, *m.Swap)), "its swap is not limited: the kernel does not count it (swapaccount=1 at its start changes that)"})
		}
	}
	if first := m.First; first != nil || m.Soft != nil {
		if m.Soft != nil {
			first = m.Soft
		}
		w = append(w, Write{"memory", "memory.soft_limit_in_bytes", number(*first), ""})
	}
	if len(l.CPUs) > 0 {
		w = append(w, Write{"cpuset", "cpuset.cpus", cpuList(l.CPUs), "the cpuset does not keep it on its cores"})
	}
	if l.Processes > 0 {
		w = append(w, Write{"pids", "pids.max", number(l.Processes), "the number of its processes is not limited"})
	}
	for _, d := range l.Closed {
		w = append(w, Write{"devices", "devices.deny", fmt.Sprintf("%s %d:%d rwm", kindOf(d), d.Major, d.Minor), "devices that are not its own are open to it"})
	}
	return w
}

// plan2 is the plan of version 2, where swap is counted apart from memory.
func (l Limits) plan2() []Write {
	var w []Write
	if l.CPUWeight > 0 {
		w = append(w, Write{"", "cpu.weight", strconv.Itoa(max(1, min(l.CPUWeight, 10000))), "its share of the processors is not set"})
	}
	m := l.Memory
	if m.Low != nil {
		w = append(w, Write{"", "memory.low", number(*m.Low), ""})
	}
	if m.Soft != nil {
		w = append(w, Write{"", "memory.high", number(*m.Soft), "its memory is not limited"})
	}
	if m.Hard != nil {
		w = append(w, Write{"", "memory.max", number(*m.Hard), "its memory is not limited"})
	}
	if m.Swap != nil {
		w = append(w, Write{"", "memory.swap.max", number(*m.Swap), "its swap is not limited"})
	}
	if l.OOMTogether {
		w = append(w, Write{"", "memory.oom.group", "1", ""})
	}
	if len(l.CPUs) > 0 {
		w = append(w, Write{"", "cpuset.cpus", cpuList(l.CPUs), "the cpuset does not keep it on its cores"})
	}
	if l.Processes > 0 {
		w = append(w, Write{"", "pids.max", number(l.Processes), "the number of its processes is not limited"})
	}
	return w
}

// needs are the controllers that not every group is put under.
func (l Limits) needs() []string {
	var all []string
	if len(l.CPUs) > 0 {
		all = append(all, "cpuset")
	}
	if l.Processes > 0 {
		all = append(all, "pids")
	}
	if len(l.Closed) > 0 {
		all = append(all, "devices")
	}
	return all
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// sum adds amounts that are not negative, and stays one.
func sum(a, b int64) int64 {
	if c := a + b; c >= a {
		return c
	}
	return a
}

// cpuList is a list as cpuset.cpus takes it.
func cpuList(cpus []int) string {
	words := make([]string, len(cpus))
	for i, n := range cpus {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, ",")
}

func kindOf(d host.Device) string {
	if d.Block {
		return "b"
	}
	return "c"
}
