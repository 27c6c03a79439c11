// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"time"
)

// Share says who else may hold a lock at the same time.
type Share uint8

// The ways to hold a lock.
const (
	Alone    Share = iota // nobody else
	Together              // others who hold it Together
)

// Holder is what a program that holds a lock says of itself.
type Holder struct {
	Program string    `json:"program"`        // "condor_startd"
	Name    string    `json:"name,omitempty"` // as the pool knows it
	Machine string    `json:"machine"`        // where Proc is; the file may be on a shared file system
	Proc    ProcID    `json:"proc"`
	Since   time.Time `json:"since"`
}

// String says who holds a lock, for people.
func (h Holder) String() string {
	if h.Program == "" {
		return "a process that did not say who it is"
	}
	name := h.Program
	if h.Name != "" {
		name += fmt.Sprintf(" %q", h.Name)
	}
	return fmt.Sprintf("%s (pid@start %s on %s, since %s)", name, h.Proc, h.Machine, h.Since.Format("01/02/06 15:04:05"))
}

// HeldError is why a lock was not got: somebody else has it.
type HeldError struct{ By Holder }

func (e *HeldError) Error() string { return "it is in use by " + e.By.String() }

// Lock is a lock that is held: by the process and none that it starts, until
// it is closed or the process ends, however it ends.
type Lock interface {
	// Touch gives the lock's file the present time, so that those who remove
	// old files leave it alone.
	Touch() error
	// Close gives the lock up, and removes its file if nobody else holds it.
	Close() error
}

// Locker takes the lock of the file at path, which is made if it is not there
// and which nobody but its owner may open, and leaves word in it of who holds
// it. It does not wait. A lock that somebody else holds is a Conflict with a
// HeldError. A file that cannot be locked (its file system has no locks, it is
// another user's) is Unsupported or Denied: then nobody can tell whether the
// place is in use.
type Locker func(path string, share Share, me Holder) (Lock, error)
