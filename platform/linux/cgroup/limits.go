// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"strconv"

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
}

// Plan turns limits into the writes of the given version, in order.
func (l Limits) Plan(version int) []Write {
	var w []Write
	if l.CPUWeight > 0 {
		if version == 1 {
			// the kernel takes 2 … 262144 and would refuse nothing, but round
			w = append(w, Write{"cpu", "cpu.shares", strconv.Itoa(max(2, min(l.CPUWeight, 262144)))})
		} else {
			w = append(w, Write{"", "cpu.weight", strconv.Itoa(max(1, min(l.CPUWeight, 10000)))})
		}
	}
	if l.OOMTogether && version == 2 {
		w = append(w, Write{"", "memory.oom.group", "1"})
	}
	return w
}
