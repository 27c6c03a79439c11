// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"time"
)

// Undying is the error of a kill that some processes outlived: they hang in the
// kernel, which ends them when their system call returns and not before.
type Undying struct{ Procs []ProcID }

// Error implements error.
func (u *Undying) Error() string { return fmt.Sprintf("%d processes do not die", len(u.Procs)) }

// The kinds of a Leftover.
const (
	LeftFile      = "file"          // in a directory that everybody may write in
	LeftMemory    = "shared memory" // of System V
	LeftPosix     = "POSIX shared memory"
	LeftSemaphore = "semaphores"    // of System V
	LeftQueue     = "message queue" // of System V
	LeftMount     = "mount"
)

// Leftover is one thing that a job left on the machine outside of its scratch
// directory.
type Leftover struct {
	Kind    string `json:"kind"`
	Name    string `json:"name"` // a path, or the number of what has none
	Bytes   int64  `json:"bytes,omitempty"`
	Removed bool   `json:"removed,omitempty"`
	Problem string `json:"problem,omitempty"` // why it could not be removed
}

// AuditSpec says whose leftovers are looked for.
type AuditSpec struct {
	User  *Identity // who the job ran as
	Since time.Time // when the job began: what is older is not its own
	// Scratch is the job's scratch directory, below which nothing may be mounted.
	Scratch string
	// Remove is for an account that is for jobs alone. Else all is left as it is.
	Remove bool
	// Shared says that others use the account, as its owner does: see Audit.Shared.
	Shared bool
	// Files says that files of the user are looked for, too: all that the job's owner
	// wants of them is in the scratch directory.
	Files bool
}

// Audit is what was found.
type Audit struct {
	Found []Leftover `json:"found,omitempty"`
	More  int        `json:"more,omitempty"` // that were found and are not listed
	// Cut says that there was more to look at than an audit may take.
	Cut bool `json:"cut,omitempty"`
	// Shared says that others use the account. What has come there in the time of the job
	// may be theirs, so nothing of it was removed, and only what is in memory was looked for.
	Shared bool `json:"shared,omitempty"`
}
