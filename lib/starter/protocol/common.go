// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/execpoint/execpoint/lib/config"
)

// Mapping is how files that several jobs share come from the staging directory into a
// sandbox, as MappingMethod in ads has it; "" is that they do not: jobs then bring them
// as all other input.
type Mapping string

// The ways. HTCondor has BindMount besides, which is for logical volumes.
const (
	MapHardlink Mapping = "Hardlink"
	MapCopy     Mapping = "Copy"
)

// mapping reads how files are mapped. HTCondor says in its order: as links unless
// FORBID_HARDLINK_MAPPING is true or jobs have file systems of their own
// (STARTD_ENFORCE_DISK_LIMITS), else as copies unless FORBID_COPY_MAPPING is true. With
// file systems of their own it offers nothing unless ALLOW_COMMON_FILES_ON_LVS is true,
// and here nothing at all.
func (r *reader) mapping() Mapping {
	forbidLinks, forbidCopies := r.Bool("FORBID_HARDLINK_MAPPING"), r.Bool("FORBID_COPY_MAPPING")
	switch {
	case r.Bool("STARTD_ENFORCE_DISK_LIMITS"):
		return ""
	case !forbidLinks:
		return MapHardlink
	case !forbidCopies:
		return MapCopy
	}
	return ""
}

// userOfSlot is compiled when something asks: most starters do not.
var userOfSlot = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?i)^SLOT[0-9]+(_[0-9]+)?_USER$`) })

// IsUserOfSlot reports whether a knob names the account for one slot.
func IsUserOfSlot(knob string) bool { return userOfSlot().MatchString(knob) }

// UsersBySlot reports whether the owner names accounts for single slots.
func UsersBySlot(s *config.Snapshot) bool {
	set, _ := s.Lookup("NOBODY_SLOT_USER")
	return strings.Contains(strings.ToUpper(set.Raw), "$(STARTER_SLOT_NAME)") || slices.ContainsFunc(s.Names(), IsUserOfSlot)
}
