// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"os"
)

// Volumes makes file systems of the size of a job's disk. Implementations are safe for
// concurrent use.
type Volumes interface {
	// Make makes one for the share of a slot, and returns the name by which it is
	// removed. What fails leaves nothing.
	Make(ctx context.Context, slot string, shareKiB int64) (name string, err error)
	// Remove takes it away with all mounts of it that are seen here. One that is
	// gone is no error.
	Remove(ctx context.Context, name string) error
	// Volume says of the one of that name what its starter has to know.
	Volume(name string, shareKiB int64) Volume
	// Hidden reports whether starters need mounts of their own.
	Hidden() bool
	// BreakSlots reports whether a volume that cannot be removed breaks its slot.
	BreakSlots() bool
	// Unique reports whether no name is used again: only then is a name still that of
	// the same volume later.
	Unique() bool
	// Exhausted reports whether what all volumes take from is used up, so that their
	// writes stand still.
	Exhausted(ctx context.Context) (bool, error)
}

// Volume is a file system for one job, as its starter mounts it.
type Volume struct {
	Name     string `json:"name"`
	Device   string `json:"device"`
	LimitKiB int64  `json:"limit_kib"` // the use at which the job has outgrown it
	// Hidden says that only the starter and its job see the mount.
	Hidden bool `json:"hidden,omitempty"`
}

// Mounter mounts volumes for the calling process and those that it starts.
// Implementations are safe for concurrent use.
type Mounter interface {
	// Mount puts the file system on a device in the place of a directory, which is
	// name in the open directory parent. Hidden, nobody but this process and those
	// that it starts later see it.
	Mount(device string, parent *os.File, name string, hidden bool) error
	// Unmount takes away what is mounted there; nothing is no error.
	Unmount(parent *os.File, name string) error
	// Fill looks how much of the file system that is mounted there is used.
	Fill(parent *os.File, name string) (Fill, error)
}

// Fill is how much of a file system is used.
type Fill struct {
	UsedBytes int64
	Files     int
	Full      bool // nothing more can be written, or no more files can be made
}
