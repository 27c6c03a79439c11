// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/slot"
)

// ActivationEnded says that the starter of an activation is gone, and what the
// engine knows of its job. There is none for a starter that never began.
type ActivationEnded struct {
	Activation     claim.ActivationID
	Slot           slot.ID
	Name, FullName string // "slot1_1", "slot1_1@host"
	Claim          string // public
	Client         claim.Client
	Job            *classad.Ad // as it was activated
	Given          slot.Quantities

	Began clock.Instant
	Wall  time.Duration // since then, suspended or not
	// Ran says that the starter told how the job ended, in Exit.
	Ran  bool
	Exit Exit

	// Reason and Code say why the job was told to leave, "" and 0 if it was
	// not. Drained and Preempted say that draining, or a better claim or the
	// owner's PREEMPT, cost it its work.
	Reason             string
	Code, Subcode      int
	Rule               Rule
	Drained, Preempted bool
}

// Rule is the line of the owner's policy by which a job was told to leave; zero where
// that was no expression's doing.
type Rule struct {
	Name, Text string // PREEMPT, and what it is set to
	Origin     string // file:line, template or <default>
}

func (ActivationEnded) effect() {}

// emitActivationEnded reports the end of the activation of a slot.
func (e *Engine) emitActivationEnded(sl *slotState) {
	a := sl.act
	if a.proc.IsZero() {
		return
	}
	evicted := a.order.evicts()
	e.emit(ActivationEnded{
		Activation: a.ID, Slot: sl.s.ID, Name: sl.name, FullName: sl.full, Claim: sl.cur.ID.String(), Client: sl.cur.Client,
		Job: a.Job, Given: sl.s.Total, Began: a.Began, Wall: e.now.Sub(a.Began), Ran: a.outcome.exited, Exit: a.outcome.exit,
		Reason: a.order.why.reason, Code: a.order.why.code, Subcode: a.order.why.subcode,
		Rule:    a.order.why.rule,
		Drained: evicted && a.drained, Preempted: evicted && (a.PreemptWasTrue || sl.waiting != nil),
	})
}
