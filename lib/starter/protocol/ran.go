// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"time"

	"github.com/execpoint/execpoint/lib/host"
)

// Ran is under what a job ran, and when it got how far.
type Ran struct {
	Limits *LimitsInForce `json:"limits,omitempty"` // nil if it never ran
	Stages Stages         `json:"stages,omitzero"`
}

// LimitsInForce are the limits of the job as a whole at its end.
type LimitsInForce struct {
	// Grouped says that a control group kept them. Else there were none.
	Grouped bool `json:"grouped,omitempty"`
	// MemoryKiB and the like are nil where the job was not limited so.
	MemoryKiB *int64 `json:"memory_kib,omitempty"`
	SoftKiB   *int64 `json:"soft_kib,omitempty"`
	SwapKiB   *int64 `json:"swap_kib,omitempty"`
	CPUWeight int    `json:"cpu_weight,omitempty"`
	CPUs      []int  `json:"cpus,omitempty"` // the only ones that it might use
	Processes int64  `json:"processes,omitempty"`
	// Closed is how many devices were closed to it.
	Closed int `json:"closed,omitempty"`
	// Lacks are limits that it was to have and that this machine does not.
	Lacks []string `json:"lacks,omitempty"`
}

// Stages are the times at which an activation got so far; zero where it did not.
// When the job's program began and the activation ended is in the record itself.
type Stages struct {
	Began   time.Time `json:"began,omitzero"`   // the plan was there
	Brought time.Time `json:"brought,omitzero"` // its input was there
	Exited  time.Time `json:"exited,omitzero"`  // its program had ended
	Sent    time.Time `json:"sent,omitzero"`    // its output was where it belongs
}

// Rule is the line of the owner's policy by which a job was told to leave.
type Rule struct {
	Name   string `json:"name"`   // PREEMPT
	Text   string `json:"text"`   // what it is set to
	Origin string `json:"origin"` // file:line, template, <default> or "the job"
}

// Kept is an exit record as the history of an Execution Point has it, in an attribute of
// its own that is an ad.
type Kept struct {
	ExitRecord
	Rule *Rule `json:"rule,omitempty"` // which only the startd knows; nil if no rule made it leave
}

// AttrExitRecord is that attribute.
const AttrExitRecord = "ExecpointExitRecord"

// The words of Left.Looked.
const (
	LookedReport = "report" // what was found is as it was
	LookedRemove = "remove" // what was found was removed where that could be
)

// Left is what a job left on the machine, its killed processes aside.
type Left struct {
	// Undying are processes of the job that could not be ended.
	Undying []host.ProcID `json:"undying,omitempty"`
	// Looked says whether things were looked for and what was to become of them, ""
	// if they were not looked for.
	Looked string     `json:"looked,omitempty"`
	Audit  host.Audit `json:"audit,omitzero"`
}
