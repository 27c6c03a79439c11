// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package lvm

import (
	"cmp"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/config"
)

// Settings are what the configuration says of volumes. They hold until the startd is
// started again.
type Settings struct {
	Group string // the volume group
	Pool  string // the thin pool in it, "" for linear volumes
	// File is the file on which the group lies, "" for a group of the owner's:
	// in that nothing is made but volumes of jobs.
	File        string
	FileMiB     int64
	ExtraMiB    int64   // what a thin volume is larger than the job's share
	Margin      float64 // the part of a linear volume at which it counts as full
	Hide        bool    // nobody but a job sees its volume
	BreakSlots  bool    // a volume that cannot be removed breaks its slot
	UniqueNames bool    // no name of a volume is used again
	FirstName   int64
	Limit       time.Duration // of each command
}

// Thin reports whether volumes take of the pool only what is written to them.
func (s *Settings) Thin() bool { return s.Pool != "" }

// Backing is where volumes are taken from, as HTCondor shows it: GROUP or GROUP/POOL.
func (s *Settings) Backing() string {
	if s.Thin() {
		return s.Group + "/" + s.Pool
	}
	return s.Group
}

// Enforced reports whether STARTD_ENFORCE_DISK_LIMITS wants volumes at all.
func Enforced(s *config.Snapshot) (bool, error) { return s.Bool("STARTD_ENFORCE_DISK_LIMITS") }

// SettingsFrom reads the knobs of volumes. warnings tell old names that are still
// honoured.
func SettingsFrom(snap *config.Snapshot) (s Settings, warnings []string, err error) {
	r := config.Reader{Snapshot: snap}
	renamed := func(name, old string) string {
		value := r.Text(name)
		if value != "" {
			return value
		}
		if value = r.Text(old); value != "" {
			warnings = append(warnings, old+" is an old name, and is heeded; write "+name)
		}
		return value
	}
	s = Settings{
		Group: renamed("LVM_VOLUME_GROUP_NAME", "THINPOOL_VOLUME_GROUP_NAME"), Margin: 1,
		ExtraMiB: r.Int("LVM_THIN_LV_EXTRA_SIZE_MB"), BreakSlots: r.Bool("LVM_CLEANUP_FAILURE_MAKES_BROKEN_SLOT"),
		UniqueNames: r.Bool("LVM_USE_UNIQUE_LV_NAMES"), FirstName: r.Int("LVM_FIRST_LV_ID"), Limit: r.Duration("VOLUME_MANAGER_TIMEOUT"),
	}
	pool, thin := renamed("LVM_THINPOOL_NAME", "THINPOOL_NAME"), r.Bool("LVM_USE_THIN_PROVISIONING")
	if s.Group == "" || thin && pool == "" {
		// As HTCondor: a thin pool that is not named is made on the file, in a group of its own.
		s.Group = cmp.Or(r.Text("LVM_AUTO_VG_NAME"), autoGroup(snap.String("LOCALNAME"), snap.String("SUBSYSTEM")))
		s.File, s.FileMiB = r.Text("LVM_BACKING_FILE"), r.Int("LVM_BACKING_FILE_SIZE_MB")
		pool = s.Group + "_THINPOOL"
	}
	if thin {
		s.Pool = pool
	} else {
		s.Margin = float(&r, "LVM_THICK_LV_MARGIN")
	}
	s.Hide = hides(r.Text("LVM_HIDE_MOUNT"))
	s.check(&r)
	return s, warnings, r.Err()
}

// autoGroup is how HTCondor calls a group that it makes. A daemon without a local
// name has that of its kind.
func autoGroup(local, kind string) string {
	if local == "" || strings.EqualFold(local, kind) {
		return "condor_STARTD"
	}
	return "condor_" + local + "_STARTD"
}

// hides reads LVM_HIDE_MOUNT: auto, true or false, and what HTCondor does not know
// counts as auto there. Auto shows the volumes of jobs in a container of Docker's or a
// virtual machine, whose mounts others make, and true refuses these jobs. As no runner
// takes them, both are the same here.
func hides(word string) bool {
	switch strings.ToLower(strings.TrimSpace(word)) {
	case "false", "f", "no", "n", "0":
		return false
	}
	return true
}

func float(r *config.Reader, name string) float64 {
	value, err := strconv.ParseFloat(r.Text(name), 64)
	if err != nil || math.IsNaN(value) || value <= 0 || value > 1 {
		r.Wrong(name, "is no part of a volume", "a number above 0 and up to 1")
		return 1
	}
	return value
}

func (s *Settings) check(r *config.Reader) {
	named := func(knob, name string) {
		if why := badName(name); why != "" {
			r.Wrong(knob, why, "letters, digits and + _ . -, not beginning with -")
		}
	}
	named("LVM_VOLUME_GROUP_NAME", s.Group)
	if s.Thin() {
		named("LVM_THINPOOL_NAME", s.Pool)
	}
	if s.ExtraMiB < 0 || s.ExtraMiB > maxMiB {
		r.Wrong("LVM_THIN_LV_EXTRA_SIZE_MB", "is no size of a volume", "MiB, from 0 up")
	}
	if s.Limit <= 0 {
		r.Wrong("VOLUME_MANAGER_TIMEOUT", "leaves no time", "seconds, from 1 up")
	}
	if s.File != "" && (s.FileMiB < 1 || s.FileMiB > maxMiB) {
		r.Wrong("LVM_BACKING_FILE_SIZE_MB", "is no size of a file", "MiB, from 1 up")
	}
	if s.File != "" && !strings.HasPrefix(s.File, "/") {
		r.Wrong("LVM_BACKING_FILE", "is not an absolute path", "the full path of a file")
	}
}

// maxMiB bounds every size, so that no sum of them is too large for a number.
const maxMiB = 1 << 40
