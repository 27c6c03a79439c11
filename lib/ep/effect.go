// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// Effect is something to be done in the world. Effects are values and come in
// the order in which they are to be done. Ads in them are not changed by the
// engine afterwards and must not be changed by others.
type Effect interface{ effect() }

// Reply answers the event with that Ref.
type Reply struct {
	Ref     Ref
	Granted *Grant // of a claim request that was granted
	// DrainID names the drain that was begun or cancelled.
	DrainID string
	// Activation is set for an activation that was granted.
	Activation claim.ActivationID
	// Closing tells the holder of a claim that it takes no more jobs and is
	// given back without being asked.
	Closing bool
	// Err refuses. Its Kind tells what can be done about it, and Code is the
	// field's number for the refusal.
	Err  error
	Code int
}

// Grant is a claim that was granted.
type Grant struct {
	Claim claim.ID
	Slot  slot.ID
	Name  string      // full name of the slot, "slot1_1@host"
	Ad    *classad.Ad // the slot's ad at that moment, flat
	Job   *classad.Ad // of the request; not to be changed
	Lease time.Duration
	// More are further slots that the same request got.
	More []Grant
	// Leftovers is what can be claimed next of the partitionable slot; nil if
	// it was not asked for or is not given.
	Leftovers *Leftovers
}

// Leftovers is the rest of a partitionable slot after a claim of a part.
type Leftovers struct {
	Claim claim.ID // for the next request
	Slot  slot.ID
	Name  string      // full name of the slot
	Ad    *classad.Ad // the slot's ad at that moment, flat
}

// SlotBroke says that a slot takes no job any more, and that what it held is lost
// to all others until the EP starts again, or until SlotMended.
type SlotBroke struct {
	Slot slot.ID
	Name string // "slot1_1"
	Why  slot.BrokenReason
	Held slot.Quantities
}

// SlotMended says that what broke a slot is gone, and that what it held is of use again.
type SlotMended struct {
	Slot slot.ID
	Name string
	Held slot.Quantities
}

// ClaimIDChanged says that a slot is now to be claimed by another id, or one of
// its further ids by another. They are secret: the pool's collector may be told,
// and the claim id file.
type ClaimIDChanged struct {
	Slot slot.ID
	Name string   // "slot1_1"
	ID   claim.ID // zero if there are fewer now
	// Old is worth nothing from now on, unless a claim was granted by it; zero if
	// there was none.
	Old     claim.ID
	Further bool // it is one of several of a consumption policy (NUM_CLAIMS)
}

// StartStarter asks for the starter of a new activation. StarterStarted or
// StarterFailed answers.
type StartStarter struct {
	Activation claim.ActivationID
	Claim      claim.ID
	Split      claim.ID // by which a part of the slot can be claimed besides; zero for none
	Slot       slot.ID
	SlotName   string      // "slot1_1"
	FullName   string      // "slot1_1@host"
	Job        *classad.Ad // as it was sent with the activation
	MachineAd  *classad.Ad // the slot's ad, flat, for the job to read
	Given      slot.Quantities
	MaxVacate  time.Duration // how long a soft kill may take at present
	Fetched    bool          // the job is one that the slot has fetched: it has no shadow
}

// Order is what a starter can be told.
type Order uint8

// The orders.
const (
	Suspend Order = iota
	Continue
	SoftKill
	HardKill
	Checkpoint // a virtual machine, which goes on
)

var orderNames = [...]string{"suspend", "continue", "softkill", "hardkill", "checkpoint"}

// String returns the word of the starter's protocol.
func (o Order) String() string {
	if int(o) < len(orderNames) {
		return orderNames[o]
	}
	return "unknown order"
}

// OrderStarter passes an order to the starter of an activation. An order to
// end the job says why; a Hold puts the job on hold with that reason.
type OrderStarter struct {
	Activation    claim.ActivationID
	Op            Order
	Reason        string
	Code, Subcode int
	Hold          bool
	// Final says of a SoftKill that the output of the job is wanted although it
	// will not run again.
	Final bool
	// Purpose is what the access point that takes the job back does with it.
	Purpose Purpose
	// Late says of a HardKill that the job has used up the vacate time of a
	// SoftKill.
	Late bool
	// Deadline is when the engine will ask for more than this order does: a
	// hard kill after a soft one, the end of the starter after a hard one.
	Deadline clock.Instant
	// OutputLimit is how long, after a HardKill, the output of a job whose program
	// has ended by itself may still be sent. The starter cuts it off earlier when
	// it does not move.
	OutputLimit time.Duration
}

// KillStarter ends the starter of an activation, and everything it started,
// by force: it did not obey. StarterExited follows as for any end.
type KillStarter struct {
	Activation claim.ActivationID
	Reason     string
}

// ClaimEnded tells the holder of a claim that it has no claim any more.
type ClaimEnded struct {
	Claim  claim.ID
	Slot   slot.ID
	Client claim.Client
	Reason string
	Code   int
	// ByClient is set when the client gave the claim back itself.
	ByClient bool
}

// Transitioned reports that a slot moved. There is one for every step, also
// where several follow one another in the same instant.
type Transitioned struct {
	Slot       slot.ID
	Name       string // "slot1_1"
	From, To   policy.Pair
	On         policy.Class       // what moved it
	Number     int                // of the transition in the documents, 0 if it has none
	Decision   policy.Decision    // why, with the trace if an expression decided
	Activation claim.ActivationID // "" when no starter was there
}

// AdChanged says that the ad of a slot is no longer what it was.
type AdChanged struct{ Slot slot.ID }

// AdWithdrawn says that a slot is gone.
type AdWithdrawn struct {
	Slot slot.ID
	Name string
}

// WakeAt asks for a Tick at that instant and replaces every earlier WakeAt.
type WakeAt struct{ At clock.Instant }

// ShutdownComplete says that no starter and no benchmark is left and nothing
// more will happen.
type ShutdownComplete struct{}

func (Reply) effect()            {}
func (ClaimIDChanged) effect()   {}
func (SlotBroke) effect()        {}
func (SlotMended) effect()       {}
func (StartStarter) effect()     {}
func (OrderStarter) effect()     {}
func (KillStarter) effect()      {}
func (ClaimEnded) effect()       {}
func (Transitioned) effect()     {}
func (AdChanged) effect()        {}
func (AdWithdrawn) effect()      {}
func (WakeAt) effect()           {}
func (ShutdownComplete) effect() {}
