// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package slot

import (
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
)

// FailureMode says what becomes of a layout that does not fit the machine.
type FailureMode uint8

// The values of SLOT_CONFIG_FAILURE_MODE.
const (
	FailContinue FailureMode = iota // CONTINUE: build what fits, break the first slot of a type that does not
	FailClear                       // CLEAR: no slot at all
	FailAbort                       // ABORT: no slot, and the daemon must end
)

// String returns the word of the configuration.
func (m FailureMode) String() string {
	switch m {
	case FailClear:
		return "CLEAR"
	case FailAbort:
		return "ABORT"
	}
	return "CONTINUE"
}

// Limits of a layout: more is a mistake in the configuration.
const (
	MaxSlots     = 1 << 16 // slots of all types
	MaxSlotTypes = 1 << 12 // highest number of a slot type
)

// Layout is how the configuration wants the machine divided.
type Layout struct {
	Types     []Type     // ascending by Number; only types that make slots
	Resources []Resource // custom resources, ascending by name
	Failure   FailureMode

	// Unlisted are resources that were described and that
	// MACHINE_RESOURCE_NAMES leaves out. Nothing of them is dealt.
	Unlisted []Resource

	// Unusable is, by the number of the slot, why its execute directory
	// (SLOT<N>_EXECUTE) cannot be used. Such a slot is made, and broken
	// (BrokenExecuteDir).
	Unusable map[int]string
}

// Type is one slot type.
type Type struct {
	Number        int
	Count         int // slots of this type, 1 or more
	Shares        Shares
	Partitionable bool
	Backfill      bool
	Prefix        string // of the names of its slots, DefaultPrefix if empty
	Err           error  // why the description makes no slots, nil as a rule
	Where         string // origin of the description, for messages
}

// Resource is one custom resource of the machine.
type Resource struct {
	Name    string
	Count   float64  // usable ones: without those that are offline
	Assets  []string // names of the usable instances; nil when they are only counted
	Offline []string // names of the instances configured out of use
	Without float64  // of a resource that is only counted, what is configured out of use

	// Attrs is what an inventory says besides the instances, for every ad; nil
	// without one. Properties are those of the named instances, offline ones
	// included. Neither may be changed.
	Attrs      *classad.Ad
	Properties map[string]*classad.Ad
}

// Inventory is what an inventory program said of one custom resource:
// DetectedX, a number or a text of names, OfflineX, and ads with the properties
// of all instances (Common) or of one. Ad is nil if its output
// could not be read: the machine then has none of the resource.
type Inventory struct {
	Resource string
	Ad       *classad.Ad
}

// Capacity is what there is to divide.
type Capacity struct {
	Cpus      int
	MemoryMiB int64
	DiskKiB   int64 // of the volume that holds EXECUTE
	SwapKiB   int64
	Volumes   []Volume // of slots whose SLOTn_EXECUTE lies elsewhere
}

// Volume is a further file system with execute directories.
type Volume struct {
	ID      string
	DiskKiB int64
	Slots   []int // numbers of the slots with their execute directory here
}

// Problem is something of a layout that could not be done.
type Problem struct {
	Slot   ID     // the slot that is broken; zero when a type lacks slots
	TypeID int    // the slot type
	Reason string // as published: SlotBrokenReason, or slot_typeN BrokenReason
	Detail string // the numbers or the error, and the origin of the setting
	Fatal  bool   // the daemon must end with exit status 4 (ABORT)

	// Warning marks a description that was built but hardly says what was
	// meant; it has no place in an ad.
	Warning bool
}

// Error prints the problem for people.
func (p Problem) Error() string {
	var b strings.Builder
	if !p.Slot.IsZero() {
		b.WriteString(p.Slot.String() + ": ")
	}
	b.WriteString(p.Reason)
	if p.Detail != "" {
		b.WriteString(": " + p.Detail)
	}
	return b.String()
}
