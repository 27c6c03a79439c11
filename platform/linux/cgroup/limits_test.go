// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cgroup

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/execpoint/execpoint/lib/host"
)

func amount(n int64) *int64 { return &n }

// What is written for each limit, to each version.
//
// row: S0-074, S0-075, S0-076, S0-080, S0-081
func TestLimitsPlan(t *testing.T) {
	t.Parallel()
	const mem, cpu = "memory", "cpu"
	hard := func(m host.MemoryLimits) Limits { return Limits{GroupLimits: host.GroupLimits{Memory: m}} }
	for _, c := range []struct {
		limits Limits
		v1, v2 []Write
	}{
		{Limits{}, nil, nil},
		{of(300, false), []Write{{cpu, "cpu.shares", "300", ""}}, []Write{{"", "cpu.weight", "300", ""}}},
		{of(1, true), []Write{{cpu, "cpu.shares", "2", ""}}, []Write{{"", "cpu.weight", "1", ""}, {"", "memory.oom.group", "1", ""}}},
		{of(1<<20, false), []Write{{cpu, "cpu.shares", "262144", ""}}, []Write{{"", "cpu.weight", "10000", ""}}},
		{
			hard(host.MemoryLimits{Hard: amount(1000), First: amount(900), Swap: amount(0)}),
			[]Write{
				{mem, "memory.use_hierarchy", "1", ""}, {mem, "memory.limit_in_bytes", "1000", ""},
				{mem, "memory.memsw.limit_in_bytes", "1000", ""}, {mem, "memory.soft_limit_in_bytes", "900", ""},
			},
			[]Write{{"", "memory.max", "1000", ""}, {"", "memory.swap.max", "0", ""}},
		},
		{
			hard(host.MemoryLimits{Hard: amount(1000), Soft: amount(600), Swap: amount(50)}),
			[]Write{
				{mem, "memory.use_hierarchy", "1", ""}, {mem, "memory.limit_in_bytes", "1000", ""},
				{mem, "memory.memsw.limit_in_bytes", "1050", ""}, {mem, "memory.soft_limit_in_bytes", "600", ""},
			},
			[]Write{{"", "memory.high", "600", ""}, {"", "memory.max", "1000", ""}, {"", "memory.swap.max", "50", ""}},
		},
		// Swap alone is beyond version 1, which counts it with memory.
		{hard(host.MemoryLimits{Swap: amount(50)}), nil, []Write{{"", "memory.swap.max", "50", ""}}},
		{hard(host.MemoryLimits{Low: amount(70)}), nil, []Write{{"", "memory.low", "70", ""}}},
		{
			hard(host.MemoryLimits{Hard: amount(math.MaxInt64), Swap: amount(5)}),
			[]Write{{mem, "memory.use_hierarchy", "1", ""}, {mem, "memory.limit_in_bytes", "9223372036854775807", ""}, {mem, "memory.memsw.limit_in_bytes", "9223372036854775807", ""}},
			[]Write{{"", "memory.max", "9223372036854775807", ""}, {"", "memory.swap.max", "5", ""}},
		},
		{
			Limits{GroupLimits: host.GroupLimits{CPUs: []int{0, 3}, Processes: 7, Closed: []host.Device{{Major: 195, Minor: 1}, {Block: true, Major: 8, Minor: 16}}}},
			[]Write{{"cpuset", "cpuset.cpus", "0,3", ""}, {"pids", "pids.max", "7", ""}, {"devices", "devices.deny", "c 195:1 rwm", ""}, {"devices", "devices.deny", "b 8:16 rwm", ""}},
			[]Write{{"", "cpuset.cpus", "0,3", ""}, {"", "pids.max", "7", ""}},
		},
	} {
		words := cmpopts.IgnoreFields(Write{}, "Promise")
		if diff := cmp.Diff(c.v1, c.limits.Plan(1), words); diff != "" {
			t.Errorf("version 1, %+v:\n%s", c.limits, diff)
		}
		if diff := cmp.Diff(c.v2, c.limits.Plan(2), words); diff != "" {
			t.Errorf("version 2, %+v:\n%s", c.limits, diff)
		}
	}
}

// As HTCondor 25.14 names it.
func TestScopeNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"_execute_slot1_1@node1.example.org": "_execute_slot1_1@node1.example.scope",
		"_execute_slot1@node1":               "_execute_slot1@node1.scope",
		".x":                                 ".x.scope",
	} {
		if got := scope(name); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
