// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
)

// Scenario is what a simulation begins with and what happens in it. Times in
// it count from its beginning.
type Scenario struct {
	Name    string // of its file, for messages and origins
	Start   time.Time
	End     time.Duration
	Seed    uint64
	Cycle   time.Duration // between two negotiations
	Machine Machine
	// MachineFile and ConfigFile are files to be read by the caller, "" for
	// none.
	MachineFile, ConfigFile string
	Config                  []Block // lines of configuration, in force from the beginning
	Jobs                    []JobKind
	Events                  []Event
}

// Block is some lines of the scenario's file in another language.
type Block struct {
	Line int // of the first, from 1
	Text string
}

// JobKind describes jobs that are alike.
type JobKind struct {
	Name   string
	Line   int
	Submit Block
	Behaviour
	RunsMost time.Duration // Runs is drawn between Runs and this, 0: it is fixed
	Saves    Saving
}

// Event is one line of the timeline.
type Event struct {
	Line, Column int
	At           time.Duration
	Every, Until time.Duration // Every 0: once
	Verb         Verb
	Name         string // of a kind of job, a job, a slot or an attribute; "" or "all" for everything
	Text         string // an expression, or what is said of a drain
	Count        int
	Load         float64
	For          time.Duration // 0: for good
	Manner       ep.Manner
	Block        Block
}

// Verb is what happens.
type Verb uint8

// The verbs of a timeline.
const (
	Submit Verb = iota
	Type
	Leave
	Load
	Set
	Unset
	Vacate
	Hold
	Remove
	Release
	SuspendJob
	ContinueJob
	Silence
	Drain
	Shutdown
	Reconfigure
)

var verbs = [...]string{
	"submit", "type", "leave", "load", "set", "unset", "vacate", "hold", "remove", "release", "suspend", "continue", "silence", "drain",
	"shutdown", "reconfig",
}

// Limits of a scenario: more is a mistake.
const (
	maxText      = 4 << 20
	maxLines     = 200_000
	maxEnd       = 400 * 24 * time.Hour
	maxKinds     = 10_000
	maxEvents    = 100_000
	maxAtOnce    = 100_000 // jobs of one submission
	maxHappening = 5_000_000
	maxCpus      = 1 << 16
	maxAmount    = 1 << 50
	maxProblems  = 30
)

// Problem is one mistake in a scenario.
type Problem struct {
	File         string
	Line, Column int
	Value        string
	Message      string
	Want         string
}

// Error prints "file:line:column: message (value "…", expected …)".
func (p Problem) Error() string {
	s := fmt.Sprintf("%s:%d:%d: %s", p.File, p.Line, p.Column, p.Message)
	var notes []string
	if p.Value != "" {
		v := p.Value
		if len(v) > 80 {
			v = v[:80] + "…"
		}
		notes = append(notes, "value "+strconv.Quote(v))
	}
	if p.Want != "" {
		notes = append(notes, "expected "+p.Want)
	}
	if len(notes) > 0 {
		s += " (" + strings.Join(notes, ", ") + ")"
	}
	return s
}

// Problems are the mistakes of a scenario in the order of its lines.
type Problems []Problem

// Error prints one mistake to a line.
func (ps Problems) Error() string {
	out := make([]string, len(ps))
	for i, p := range ps {
		out[i] = p.Error()
	}
	return strings.Join(out, "\n")
}

// Unwrap gives each mistake to errors.Is and errors.As, with its kind.
func (ps Problems) Unwrap() []error {
	out := make([]error, len(ps))
	for i, p := range ps {
		out[i] = errs.E("simulate.Parse", errs.Invalid, p.File, p)
	}
	return out
}
