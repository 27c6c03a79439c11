// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"context"
	"errors"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/pool/ads"
)

// A rehearsal is a failure of condor_now that the owner asks for with
// COALESCE_FAILURE_MODE, to see that an access point loses nothing by it.
// HTCondor's test of condor_now sets each.
type rehearsal int64

// The failures, by the knob's numbers. All other numbers have none.
const (
	coalesceSlow       rehearsal = 1 // COALESCE_SLOTS is not answered before the schedd has given up
	coalesceRefused    rehearsal = 2 // it is refused for good
	coalesceLater      rehearsal = 3 // it is refused for now, however often it is sent
	coalesceNoID       rehearsal = 4 // its answer has no claim id
	deactivateUnheeded rehearsal = 5 // no job is ended, and nobody is answered
)

// coalesceDelay is longer than the 20 seconds that a schedd waits.
const coalesceDelay = 21 * time.Second

// await lets a schedd wait in vain: by then it is gone, and an answer would grant a
// claim that has no holder.
func (r rehearsal) await(ctx context.Context) error {
	if r != coalesceSlow {
		return nil
	}
	delay := time.NewTimer(coalesceDelay)
	defer delay.Stop()
	select {
	case <-delay.C:
		return errs.E("claims.COALESCE_SLOTS", errs.Expired, "COALESCE_FAILURE_MODE", errors.New("it is 1: the access point has waited in vain"))
	case <-ctx.Done():
		return ctx.Err()
	}
}

// refuses says with which result and text COALESCE_SLOTS is refused whatever it
// asks for; both are empty where it is not.
func (r rehearsal) refuses() (result, text string) {
	switch r {
	case coalesceRefused:
		return ads.ResultFailure, "FAILURE INJECTION: 2"
	case coalesceLater:
		return resultInvalidState, "FAILURE INJECTION: 3"
	}
	return "", ""
}

// unheeded is the error of a command to end a job which is not heeded.
func (r rehearsal) unheeded(op, subject string) error {
	if r != deactivateUnheeded {
		return nil
	}
	return errs.E(op, errs.Denied, subject, errors.New("COALESCE_FAILURE_MODE is 5: nothing is deactivated; take the line out of the configuration"))
}
