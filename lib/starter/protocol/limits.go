// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/config"
)

// The words of CGROUP_MEMORY_LIMIT_POLICY.
const (
	MemoryNone   = "none"   // memory is measured and not limited
	MemorySoft   = "soft"   // Memory of the slot is where it is slowed down
	MemoryHard   = "hard"   // Memory of the slot is the end
	MemoryCustom = "custom" // LimitSettings.Hard is the end
)

// LimitSettings are what the configuration says about the limits of jobs. Expressions
// are over the slot (MY) and the job (TARGET); nil says nothing.
type LimitSettings struct {
	Memory       string       // CGROUP_MEMORY_LIMIT_POLICY, one of the words
	Hard         *config.Expr // CGROUP_HARD_MEMORY_LIMIT_EXPR, in MiB
	Low          *config.Expr // CGROUP_LOW_MEMORY_LIMIT, in MiB
	NoSwap       bool         // DISABLE_SWAP_FOR_JOB
	AddressSpace *config.Expr // STARTER_RLIMIT_AS, in MiB
	HideGPUs     bool         // STARTER_HIDE_GPU_DEVICES
	NoSetuid     bool         // DISABLE_SETUID
}

// limits reads them. A policy that is no word of ours is the default, which limits:
// HTCondor's starter compares the word with its case and limits nothing for any other.
// Who wrote it is told (Snapshot.Check).
func (r *reader) limits() LimitSettings {
	set := LimitSettings{
		Memory: strings.ToLower(r.Text("CGROUP_MEMORY_LIMIT_POLICY")), Hard: r.Expr("CGROUP_HARD_MEMORY_LIMIT_EXPR"), Low: r.Expr("CGROUP_LOW_MEMORY_LIMIT"),
		NoSwap: r.Bool("DISABLE_SWAP_FOR_JOB"), AddressSpace: r.Expr("STARTER_RLIMIT_AS"), HideGPUs: r.Bool("STARTER_HIDE_GPU_DEVICES"),
		NoSetuid: r.Bool("DISABLE_SETUID"),
	}
	if !slices.Contains([]string{MemoryNone, MemorySoft, MemoryCustom}, set.Memory) {
		set.Memory = MemoryHard
	}
	return set
}

// SlotLimits are what of the machine a slot has. 0 is not known, and not limited.
type SlotLimits struct {
	Cpus      int   `json:"cpus"`
	MemoryMiB int64 `json:"memory_mib,omitempty"`
	// SwapKiB is VirtualMemory of the slot: RAM and swap together.
	SwapKiB int64 `json:"swap_kib,omitempty"`
	// WholeMiB is the memory of all slots of the startd.
	WholeMiB int64 `json:"whole_mib,omitempty"`
	// Cores are the only processors for the job, by their numbers on the machine;
	// empty is all.
	Cores []int `json:"cores,omitempty"`
}
