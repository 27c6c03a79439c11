// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// Notices are effects that ask for nothing: people and scripts look for these
// events in the daemon's log.

// DrainBegun says that a drain has begun.
type DrainBegun struct {
	ID         string
	How        Haste
	Then       Completion
	Reason, By string
}

// DrainFinal says that the last of the jobs which a drain waited for is gone:
// those that it let in meanwhile have to leave.
type DrainFinal struct{ ID string }

// ClaimWaits says that a claim waits for the slot of another, which has to make
// room.
type ClaimWaits struct {
	Slot slot.ID
	Name string // "slot1_1"
	Why  policy.Waiting
	// Fetched says that it is one of fetched work.
	Fetched bool
}

// KeptAlive says that the lease of a claim begins anew.
type KeptAlive struct {
	Slot slot.ID
	Name string // "slot1_1"
	ID   claim.ID
	Job  string // "12.0", "" without a job
	By   Sign
}

// Sign says what shows that the client of a claim lives.
type Sign uint8

// The signs of life.
const (
	SignAnswer  Sign = iota // the access point was asked and still wants the claim
	SignMessage             // the access point said so by itself
	SignStarter             // a starter runs, which talks with the job's shadow
)

func (DrainBegun) effect() {}
func (DrainFinal) effect() {}
func (ClaimWaits) effect() {}
func (KeptAlive) effect()  {}

// renewLease renews the lease of a claim, and gives notice of it.
func (e *Engine) renewLease(sl *slotState, by Sign) {
	sl.cur.Lease = sl.cur.Lease.Renew(e.now)
	e.emitKeptAlive(sl, by)
}

// emitKeptAlive gives notice that the lease of a claim begins anew.
func (e *Engine) emitKeptAlive(sl *slotState, by Sign) {
	k := KeptAlive{Slot: sl.s.ID, Name: sl.name, ID: sl.cur.ID, By: by}
	if sl.act != nil {
		k.Job = sl.act.job.number
	}
	e.emit(k)
}
