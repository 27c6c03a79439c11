// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"fmt"

	"github.com/execpoint/execpoint/lib/host"
)

// Version is that of the protocol. It grows with every change by which an older
// program would misunderstand a newer one.
const Version = 1

// Program is what this program says it is: the project and its version.
const Program = "execpoint-0.1.0"

// State is how far an activation is.
type State string

// The states, in their order; a job may be suspended and go on.
const (
	Waiting     State = "waiting"   // for a plan
	Preparing   State = "preparing" // sandbox and input
	JobRuns     State = "running"
	IsSuspended State = "suspended"
	Finishing   State = "finishing" // the job has ended, its output is sent
	Over        State = "over"      // the last word is said
)

// StarterHello is the first line of a starter on every connection.
type StarterHello struct {
	Program    string      `json:"program"`
	Proc       host.ProcID `json:"proc"`
	Activation string      `json:"activation,omitempty"` // "" before it has a plan
	State      State       `json:"state"`
	Taken      uint64      `json:"taken,omitempty"` // the last order that it took
	// Lost is how many reports it had to drop because nobody heard them: of those
	// that a job may make as many of as it likes.
	Lost int `json:"lost,omitempty"`
}

// StartdHello is the first line of a startd on every connection. A starter is
// given no plan before both have said hello.
type StartdHello struct {
	Program string `json:"program"`
	Heard   uint64 `json:"heard,omitempty"` // the last report that it has heard
}

// Taken answers orders: all up to Order were read. Whether they can be obeyed is
// another matter.
type Taken struct {
	Order uint64 `json:"order"`
}

// Heard says that all reports up to Report are heard, and need not be kept.
type Heard struct {
	Report uint64 `json:"report"`
}

// Busy is what a startd is told in place of a StarterHello while the starter has
// another one.
type Busy struct {
	PID int `json:"pid,omitempty"` // of the other; 0 if it is the one that started the starter
}

// Kind implements Message.
func (StarterHello) Kind() string { return "hello" }
func (StartdHello) Kind() string  { return "hello" }
func (Taken) Kind() string        { return "taken" }
func (Heard) Kind() string        { return "heard" }
func (Busy) Kind() string         { return "busy" }

// OtherVersion is that the two programs do not speak the same version.
type OtherVersion struct {
	Theirs  int    // 0 is none at all
	Program string // theirs, "" if it did not say
}

// Error names both.
func (o *OtherVersion) Error() string {
	theirs := fmt.Sprintf("version %d", o.Theirs)
	if o.Theirs == 0 {
		theirs = "no version"
	}
	if o.Program != "" {
		theirs += fmt.Sprintf(" (%.100q)", o.Program)
	}
	return fmt.Sprintf("the other side speaks %s of the protocol between startd and starter, this one version %d (%s)", theirs, Version, Program)
}
