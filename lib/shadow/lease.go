// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadow

import (
	"math"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
)

// Lease is how long a job may outlive the contact with its shadow: until
// Length after the last answer.
type Lease struct {
	Length  time.Duration
	Contact clock.Instant
}

// LeaseLength is JobLeaseDuration of a job. A job that has none is not waited
// for.
func LeaseLength(job *classad.Ad) time.Duration {
	seconds, ok := job.EvalInt("JobLeaseDuration", nil)
	if !ok || seconds <= 0 {
		return 0
	}
	return time.Duration(min(seconds, math.MaxInt64/int64(time.Second))) * time.Second
}

// Left is how much of the lease is left, never less than 0.
func (l Lease) Left(now clock.Instant) time.Duration {
	return max(0, l.Length-max(0, now.Sub(l.Contact)))
}
