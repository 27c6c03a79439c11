// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cgroup makes one control group for each job, puts the job into it at
// birth, reads what it used and ends everything in it. It knows version 1 with
// controllers mounted apart or together, and version 2. It owns the names of
// the kernel's files; what limits a job gets is computed elsewhere, and the
// writer here writes what it is told.
//
// It must never touch a group outside its base, change a setting of the
// hierarchy's root, or read a missing number as zero.
//
//	tree, err := cgroup.Open(cgroup.Options{Root: "/sys/fs/cgroup", Base: "htcondor", Self: self})
//	group, err := tree.Create("_var_lib_condor_execute_slot1_1@host") // EXECUTE and the slot
//	// …/memory/htcondor/_var_lib_condor_execute_slot1_1@host and its likes
package cgroup
