// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/config"
)

// Volume is a file system beside that of EXECUTE, on which the execute
// directories of some slots lie. Slots whose SLOT<N>_EXECUTE lies on the file
// system of EXECUTE have no volume of their own.
type Volume struct {
	// ID is the number of the device, by which HTCondor tells volumes apart
	// (ExecuteVolume). A volume that did not answer has its path instead.
	ID           string
	Paths        []string // of the execute directories on it, in the order of slots
	TotalKiB     int64
	AvailableKiB int64 // what the file system would give an ordinary user
	FreeKiB      int64 // what slots may have: AvailableKiB less RESERVED_DISK
	Slots        []int // whose execute directories lie on it, ascending
}

// SlotExecute is one SLOT<N>_EXECUTE.
type SlotExecute struct {
	Slot int
	Path string
	// Unusable is why no sandbox can be made there, "" if one can. It is found
	// out once, before the slots are made; a SlotExecute as configured has none.
	Unusable string
}

// RecomputesDisk reports whether the free disk is to be measured over and over
// (STARTD_RECOMPUTE_DISK, or STARTD_RECOMPUTE_DISK_FREE as HTCondor 25.14 spells
// it) instead of once at the start. An amount that DISK names never changes.
func RecomputesDisk(snap *config.Snapshot) (bool, error) {
	if _, fixed := given(snap, "DISK"); fixed {
		return false, nil
	}
	for _, knob := range [...]string{"STARTD_RECOMPUTE_DISK", "STARTD_RECOMPUTE_DISK_FREE"} {
		if again, err := snap.Bool(knob); again || err != nil {
			return again, err
		}
	}
	return false, nil
}

// maxSlotNumber bounds N of SLOT<N>_EXECUTE: no machine has more slots.
const maxSlotNumber = 1 << 20

// SlotExecutes returns every SLOT<N>_EXECUTE that the owner set, ascending by
// slot. A path that is not absolute is a problem, and so is a slot number 0 or
// one that no machine reaches.
func SlotExecutes(snap *config.Snapshot) ([]SlotExecute, error) {
	var out []SlotExecute
	var problems config.Problems
	for _, name := range snap.Names() {
		number, ok := slotNumber(name)
		if !ok {
			continue
		}
		s, ok := given(snap, name)
		if !ok {
			continue
		}
		bad := func(message, want string) {
			problems = append(problems, &config.Problem{File: s.Origin.File, Line: s.Origin.Line, Column: s.Origin.Column,
				EndLine: s.Origin.EndLine, Knob: name, Value: s.Value, Message: message, Want: want, Class: config.BadValue})
		}
		n, err := strconv.Atoi(number)
		switch {
		case err != nil || n < 1 || n > maxSlotNumber:
			bad("names no slot", fmt.Sprintf("SLOT1_EXECUTE to SLOT%d_EXECUTE", maxSlotNumber))
		case !isAbsolute(s.Value):
			bad("is not an absolute path", "the full path of a directory")
		default:
			out = append(out, SlotExecute{Slot: n, Path: s.Value})
		}
	}
	slices.SortFunc(out, func(a, b SlotExecute) int { return cmp.Compare(a.Slot, b.Slot) })
	if len(problems) > 0 {
		return out, problems
	}
	return out, nil
}

// slotNumber returns the digits of SLOT<N>_EXECUTE.
func slotNumber(name string) (string, bool) {
	name = strings.ToUpper(name)
	digits, ok := strings.CutPrefix(name, "SLOT")
	if !ok {
		return "", false
	}
	digits, ok = strings.CutSuffix(digits, "_EXECUTE")
	return digits, ok && digits != "" && strings.Trim(digits, "0123456789") == ""
}

// isAbsolute reports whether a path is one on any system: a description of a
// Windows machine may be read on another one.
func isAbsolute(path string) bool {
	if strings.HasPrefix(path, "/") || strings.HasPrefix(path, `\\`) {
		return true
	}
	return len(path) > 2 && path[1] == ':' && (path[2] == '\\' || path[2] == '/')
}
