// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
)

// State is the state of a slot as an ad's State attribute names it.
type State uint8

// The seven states.
const (
	Owner State = iota
	Unclaimed
	Matched
	Claimed
	Preempting
	Backfill
	Drained
)

// States lists every state in the order of the documents.
var States = [...]State{Owner, Unclaimed, Matched, Claimed, Preempting, Backfill, Drained}

var stateNames = [...]string{"Owner", "Unclaimed", "Matched", "Claimed", "Preempting", "Backfill", "Drained"}

// String returns the name as ads and logs spell it.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// Activity is what a slot does within its state, as an ad's Activity
// attribute names it.
type Activity uint8

// The eight activities.
const (
	Idle Activity = iota
	Busy
	Suspended
	Retiring
	Vacating
	Killing
	Benchmarking
	Cleaning
)

// Activities lists every activity.
var Activities = [...]Activity{Idle, Busy, Suspended, Retiring, Vacating, Killing, Benchmarking, Cleaning}

var activityNames = [...]string{"Idle", "Busy", "Suspended", "Retiring", "Vacating", "Killing", "Benchmarking", "Cleaning"}

// String returns the name as ads and logs spell it.
func (a Activity) String() string {
	if int(a) < len(activityNames) {
		return activityNames[a]
	}
	return fmt.Sprintf("Activity(%d)", uint8(a))
}

// Pair is a state and the activity in it. The zero Pair is Owner/Idle, where
// every new slot starts.
type Pair struct {
	State    State
	Activity Activity
}

// String returns "Claimed/Busy".
func (p Pair) String() string { return p.State.String() + "/" + p.Activity.String() }

// The legal pairs, by name: those of the documents and Claimed/Cleaning, which
// is newer than they are.
var (
	OwnerIdle             = Pair{Owner, Idle}
	UnclaimedIdle         = Pair{Unclaimed, Idle}
	UnclaimedBenchmarking = Pair{Unclaimed, Benchmarking}
	MatchedIdle           = Pair{Matched, Idle}
	ClaimedIdle           = Pair{Claimed, Idle}
	ClaimedBusy           = Pair{Claimed, Busy}
	ClaimedSuspended      = Pair{Claimed, Suspended}
	ClaimedRetiring       = Pair{Claimed, Retiring}
	ClaimedCleaning       = Pair{Claimed, Cleaning}
	PreemptingVacating    = Pair{Preempting, Vacating}
	PreemptingKilling     = Pair{Preempting, Killing}
	BackfillIdle          = Pair{Backfill, Idle}
	BackfillBusy          = Pair{Backfill, Busy}
	BackfillKilling       = Pair{Backfill, Killing}
	DrainedIdle           = Pair{Drained, Idle}
	DrainedRetiring       = Pair{Drained, Retiring}
)

// legal[state] has one bit for each activity the state may show.
var legal = [len(States)]uint8{
	Owner:      1 << Idle,
	Unclaimed:  1<<Idle | 1<<Benchmarking,
	Matched:    1 << Idle,
	Claimed:    1<<Idle | 1<<Busy | 1<<Suspended | 1<<Retiring | 1<<Cleaning,
	Preempting: 1<<Vacating | 1<<Killing,
	Backfill:   1<<Idle | 1<<Busy | 1<<Killing,
	Drained:    1<<Idle | 1<<Retiring,
}

// Legal reports whether a slot may ever be in p.
func Legal(p Pair) bool {
	return int(p.State) < len(legal) && p.Activity < 8 && legal[p.State]&(1<<p.Activity) != 0
}
