// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"

	"github.com/execpoint/execpoint/lib/errs"
)

// Class is the kind of event that moves a slot.
type Class uint8

// The classes of events.
const (
	Evaluated      Class = iota // the slot's policy was looked at: a poll, or on entering Idle, Retiring or Owner
	MatchTold                   // the negotiator told of a match
	ClaimTaken                  // a client claimed the slot and was told so
	ClaimPending                // a client waits for the slot, which has to be emptied first
	Activated                   // a starter was asked for
	JobGone                     // the starter reported that its job is gone
	StarterGone                 // the starter is gone, or none was there
	Commanded                   // a command, the lease or a shutdown ended or stopped the claim: release, vacate, deactivation
	TimedOut                    // a timer of the slot ran out
	BenchmarksOver              // the benchmarks are through
	BackfillUp                  // the backfill client runs
	BackfillGone                // the backfill client and all it started are gone
	numClasses
)

var classNames = [numClasses]string{"policy evaluated", "match told", "claim taken", "claim pending", "activated", "job gone",
	"starter gone", "told", "timed out", "benchmarks over", "backfill up", "backfill gone"}

// String names the class.
func (c Class) String() string {
	if c < numClasses {
		return classNames[c]
	}
	return fmt.Sprintf("event class %d", uint8(c))
}

// Duties are what has to be done with a transition, one bit each. Those of
// leaving come first, in the order of their constants.
type Duties uint16

// The duties.
const (
	ContinueJob  Duties = 1 << iota // let a suspended job go on, whatever comes next
	EndClaim                        // the claim is over: tell its client
	DropWaiting                     // refuse the preempting claim that still waits
	BeginClaim                      // the slot is the new claim's: lease, reply
	SuspendJob                      // stop the job
	SoftKillJob                     // ask the job to leave within its vacate time
	HardKillJob                     // end the job at once
	StartRunning                    // ask for a starter
	Withhold                        // Requirements become false: no further matches
	Offer                           // Requirements are the configured ones again
	Reevaluate                      // look at the policy again at once
	RunBenchmark                    // start the benchmarks
	SpawnClient                     // start the backfill client
	KillClient                      // end the backfill client with all it started
	StartTimer                      // MATCH_TIMEOUT begins
)

var dutyNames = [...]string{"continue the job", "end the claim", "refuse the waiting claim", "begin the claim", "suspend the job",
	"soft-kill the job", "hard-kill the job", "start a starter", "withhold from matching", "offer for matching", "evaluate again",
	"run benchmarks", "spawn the backfill client", "kill the backfill client", "start MATCH_TIMEOUT"}

// Has reports whether all duties of o are among d.
func (d Duties) Has(o Duties) bool { return d&o == o }

// String lists the duties.
func (d Duties) String() string {
	var names []string
	for i, n := range dutyNames {
		if d&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	return strings.Join(names, ", ")
}

// Transition is one row of the table.
type Transition struct {
	Number int  // in the documents; 0 for one that they do not number
	Letter byte // of the change of state in the documents, 'A' to 'P', 0 for none
	From   Pair
	On     Class
	Guard  string // when it happens, for people
	To     Pair
	Reason string // said when the event brings no reason of its own
	Duties Duties
}

// String prints "Claimed/Busy -> Claimed/Retiring (13)".
func (t *Transition) String() string {
	s := fmt.Sprintf("%v -> %v", t.From, t.To)
	if t.Number != 0 {
		s += fmt.Sprintf(" (%d)", t.Number)
	}
	return s
}

// IllegalMove is the error of a move that the table does not have. It never
// happens by bad input: who asked for the move is wrong.
type IllegalMove struct {
	From, To Pair
	On       Class
}

// Error names the move.
func (e *IllegalMove) Error() string {
	return fmt.Sprintf("a slot cannot go from %v to %v when %v", e.From, e.To, e.On)
}

// Move returns the row for a move, or an error that wraps *IllegalMove.
func Move(from, to Pair, on Class) (*Transition, error) {
	for i := range table {
		if t := &table[i]; t.From == from && t.To == to && t.On == on {
			return t, nil
		}
	}
	return nil, errs.E("policy.Move", errs.Internal, "", &IllegalMove{From: from, To: to, On: on})
}

// Table returns the rows of the table in their order. The caller must not
// change them.
func Table() []Transition { return table }
