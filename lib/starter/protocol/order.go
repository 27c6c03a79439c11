// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import "time"

// Order is what a startd wants of a starter: one of the types of this file, or a
// *Plan.
type Order interface {
	// Kind names the order, on the wire and in logs.
	Kind() string
	order()
}

// Manner is why a job is killed, which selects the signal.
type Manner string

// The manners. "" is MannerVacate.
const (
	MannerVacate Manner = "vacate" // KillSig
	MannerRemove Manner = "remove" // RemoveKillSig, else KillSig
	MannerHold   Manner = "hold"   // HoldKillSig, else KillSig
)

// Leave is what every order to leave says.
type Leave struct {
	Manner  Manner `json:"manner,omitempty"`
	Asked   string `json:"asked,omitempty"` // who asked: "startd", "user", …
	Reason  string `json:"reason,omitempty"`
	Code    int    `json:"code,omitempty"`
	Subcode int    `json:"subcode,omitempty"`
}

// Suspend stops the job, Continue lets it go on.
type (
	Suspend  struct{}
	Continue struct{}
)

// SoftKill sends the job's kill signal to its main process and waits.
type SoftKill struct {
	Leave
	// Final says that the job will not come back and its output is wanted all the
	// same.
	Final bool `json:"final,omitempty"`
	// Deadline has the starter itself kill a job that still runs after so long; 0
	// leaves that to the startd.
	Deadline time.Duration `json:"deadline,omitempty"`
}

// HardKill kills everything with SIGKILL.
type HardKill struct {
	Leave
	// OutputLimit is how long the output of a job whose program has ended by itself
	// may still be sent, as long as it moves. 0 is as long as for a starter whose
	// startd is gone.
	OutputLimit time.Duration `json:"output_limit,omitempty"`
}

// Checkpoint asks to save the state of a virtual machine, which goes on.
type Checkpoint struct{}

// SlotAd brings the slot's ad as the pool is told it now, for the job, who finds it
// in a file, and what the machine's monitors say that the job uses: both in old
// syntax. Usage has nothing but numbers and undefined values, by the names under
// which the job's ad gets them.
type SlotAd struct {
	Slot  string `json:"slot"`
	Usage string `json:"usage,omitempty"`
	// Limits are what the slot has by now; nil is what it had. They stand beside the
	// ad, for some of what that shows is from the job.
	Limits *SlotLimits `json:"limits,omitempty"`
}

// Cataloged answers a Catalog: the slots show it, or Why says why they do not. Answers
// come in the order of the reports.
type Cataloged struct {
	Why string `json:"why,omitempty"`
}

// Ping asks whether the starter reads its orders. All it does is answer.
type Ping struct{}

// Kind implements Order.
func (*Plan) Kind() string      { return "plan" }
func (Suspend) Kind() string    { return "suspend" }
func (Continue) Kind() string   { return "continue" }
func (SoftKill) Kind() string   { return "softkill" }
func (HardKill) Kind() string   { return "hardkill" }
func (Checkpoint) Kind() string { return "checkpoint" }
func (SlotAd) Kind() string     { return "slot-ad" }
func (Cataloged) Kind() string  { return "cataloged" }
func (Ping) Kind() string       { return "ping" }

func (*Plan) order()      {}
func (Suspend) order()    {}
func (Continue) order()   {}
func (SoftKill) order()   {}
func (HardKill) order()   {}
func (Checkpoint) order() {}
func (SlotAd) order()     {}
func (Cataloged) order()  {}
func (Ping) order()       {}
