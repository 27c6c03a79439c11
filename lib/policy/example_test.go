// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package policy_test

import (
	"fmt"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// The owner is back at the keyboard: the job is suspended, and the decision shows
// why.
func ExampleDecide() {
	snap, err := config.Parse("desk.conf", "WANT_SUSPEND = True\nSUSPEND = KeyboardIdle < 60\nPREEMPT = False\n", config.Options{Subsystem: "STARTD"})
	if err != nil {
		fmt.Println(err)
		return
	}
	exprs, err := policy.ExpressionsFrom(snap, 0)
	if err != nil {
		fmt.Println(err)
		return
	}
	now := clock.Instant{Wall: time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC), Boot: time.Hour}
	mine, job := classad.NewAd(), classad.NewAd()
	mine.SetInt("KeyboardIdle", 5)
	job.SetInt("JobUniverse", 5)
	running := claim.Start("slot1#1", job, 5, 0, now)
	d := policy.Decide(&policy.View{
		Now: now, Pair: policy.ClaimedBusy, Slot: mine, Job: job, Exprs: exprs,
		Claim:      &claim.Claim{ID: claim.NewID("<127.0.0.1:9618>", 1, 1, "secret"), Slot: slot.ID{N: 1}, Since: now, Activations: 1},
		Activation: &running,
	})
	fmt.Println(d)
	for _, t := range d.Trace {
		fmt.Println(t)
	}
	// Output:
	// Claimed/Busy -> Claimed/Suspended (14): SUSPEND is TRUE
	// WANT_SUSPEND = true is TRUE [desk.conf:1]
	// SUSPEND = KeyboardIdle < 60 is TRUE [desk.conf:2]; MY.KeyboardIdle = 5
}

// Which moves there are is a table.
func ExampleMove() {
	row, err := policy.Move(policy.ClaimedBusy, policy.ClaimedSuspended, policy.Evaluated)
	fmt.Println(row.Number, err)
	_, err = policy.Move(policy.OwnerIdle, policy.ClaimedBusy, policy.Evaluated)
	fmt.Println(err)
	// Output:
	// 14 <nil>
	// policy.Move: internal error: a slot cannot go from Owner/Idle to Claimed/Busy when policy evaluated
}
