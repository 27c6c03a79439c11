// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
)

// Decision is where a slot is to go next and why. A Decision whose To equals
// From leaves the slot where it is.
type Decision struct {
	From, To Pair
	Number   int    // of the transition in the documents, 0 if it has none
	Cause    Cause  // what decided
	Reason   string // one clause without a full stop, worded as the field's logs have it
	// Code and Subcode are the field's vacate code for the claim, 0 if the
	// claim does not end by this.
	Code, Subcode int
	// Hold is set when the job is to be put on hold instead of being run
	// again.
	Hold *Hold
	// Trace shows the expressions that were asked, in order. It is nil when
	// the slot stays and no explanation is wanted.
	Trace []Trace
}

// Moves reports whether the slot is to move at all.
func (d *Decision) Moves() bool { return d.From != d.To }

// String prints "Claimed/Busy -> Claimed/Retiring (13): PREEMPT is TRUE".
func (d Decision) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v -> %v", d.From, d.To)
	if d.Number != 0 {
		fmt.Fprintf(&b, " (%d)", d.Number)
	}
	if d.Reason != "" {
		b.WriteString(": ")
		b.WriteString(d.Reason)
	}
	return b.String()
}

// Cause is what a decision rests on, for those who act on it.
type Cause uint8

// The causes of decisions. Those of events (a release, a vacate command) are
// not decided here, but carried out under the same names.
const (
	NoCause           Cause = iota
	ByOwner                 // IS_OWNER
	ByPreempt               // PREEMPT: irrevocable
	ByRetirement            // retirement is over
	ByPreemptingClaim       // a better claim waits
	ByUnretirement          // the better claim went away
	BySuspend               // SUSPEND
	ByContinue              // CONTINUE
	ByKill                  // KILL
	ByWorklife              // CLAIM_WORKLIFE
	ByDraining              // the slot is to be drained
	ByDrainingOver          // the slot is drained no more
	ByDrainComplete         // every slot is drained
	ByMatchTimeout          // MATCH_TIMEOUT
	ByBenchmarks            // RunBenchmarks
	ByStartBackfill         // START_BACKFILL
	ByEvictBackfill         // EVICT_BACKFILL
	ByCommand               // the owner's or the client's word
	ByShutdown              // the EP ends
	ByLease                 // the client was silent for too long
	ByStarter               // a starter came or went
	ByClaim                 // a claim came
	ByMatch                 // the negotiator told of a match
	ByStart                 // START
	ByBackfill              // the backfill client came or went
)

var causeNames = [...]string{"", "IS_OWNER", "PREEMPT", "retirement", "preempting claim", "unretirement", "SUSPEND",
	"CONTINUE", "KILL", "CLAIM_WORKLIFE", "draining", "end of draining", "drain complete", "MATCH_TIMEOUT", "RunBenchmarks",
	"START_BACKFILL", "EVICT_BACKFILL", "command", "shutdown", "lease", "starter", "claim", "match", "START", "backfill"}

// String names the cause.
func (c Cause) String() string {
	if int(c) < len(causeNames) {
		return causeNames[c]
	}
	return fmt.Sprintf("cause %d", uint8(c))
}

// Trace is one expression that was asked for a decision.
type Trace struct {
	Name   string         // as configured: "PREEMPT", "SLOT_TYPE_1_PREEMPT", "PREEMPT_VANILLA"
	Text   string         // the expression
	Value  classad.Value  // what it gave
	Taken  string         // what that was taken for: "TRUE", "FALSE", "undefined, taken as FALSE", "600s"
	Origin config.Origin  // where it was configured; meaningless with OfJob or without Text
	OfJob  bool           // the expression is the job's
	Reads  []classad.Read // what the evaluation looked at, in order
}

// String prints the trace on one line, values read behind it.
func (t Trace) String() string {
	var b strings.Builder
	if t.Text == "" {
		return t.Name + ": " + t.Taken
	}
	fmt.Fprintf(&b, "%s = %s is %s", t.Name, t.Text, t.Taken)
	if t.OfJob {
		b.WriteString(" [job]")
	} else {
		fmt.Fprintf(&b, " [%v]", t.Origin)
	}
	for i, r := range t.Reads {
		sep := ", "
		if i == 0 {
			sep = "; "
		}
		b.WriteString(sep)
		if r.Scope != "" {
			b.WriteString(r.Scope)
			b.WriteByte('.')
		}
		fmt.Fprintf(&b, "%s = %s", r.Name, r.Value)
	}
	return b.String()
}

// Hold says how a job is put on hold by WANT_HOLD.
type Hold struct {
	Reason        string
	Code, Subcode int
}
