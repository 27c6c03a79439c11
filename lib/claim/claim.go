// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/slot"
)

// Client is who holds a claim, as the request for it said.
type Client struct {
	User            string // user@domain who is charged
	Owner           string // who claimed; User may change with each job, Owner does not
	Host            string // name or address of the machine the request came from
	Address         string // where the access point is reached, a sinful string or ""
	Schedd          string // name of the access point
	AccountingGroup string
	Project         string
}

// Claim is the right of one client to run jobs in one slot, one after the
// other. The zero Claim is none. Claim values are owned and changed by lib/ep
// alone.
type Claim struct {
	ID     ID
	Slot   slot.ID
	Client Client
	// Request is the ad of the request; no activation changes it.
	Request *classad.Ad
	// Rank is what the machine thinks of the present job, before the first
	// activation of the request.
	Rank float64
	// Since is when the claim was granted.
	Since clock.Instant
	// Lease is renewed while the client is known to live.
	Lease Lease
	// Granted is the length that the lease has while no job asks for another.
	Granted time.Duration
	// Fixed says that the lease is a term: no sign of life makes it longer.
	Fixed bool
	// KeptByStarter says that a running starter, which has its own word with
	// the client, renews the lease.
	KeptByStarter bool
	// Activations counts the jobs that were started under the claim.
	Activations int
	// Work is what the claim was made for, nil unless it is one of fetched work.
	Work *Work
	// Closing is set when the client was told that the claim takes no more
	// jobs.
	Closing bool
	// Released is set when the claim was given back or taken away while its
	// starter was being reaped; the slot must not go back to Claimed/Idle.
	Released bool
	// TotalRun and TotalSuspended add up over the activations that ended.
	TotalRun, TotalSuspended time.Duration
}

// Age returns for how long the claim has existed.
func (c *Claim) Age(now clock.Instant) time.Duration { return now.Sub(c.Since) }

// NoWorklife is a worklife that never ends.
const NoWorklife time.Duration = -1

// WorklifeOver reports whether a claim with that CLAIM_WORKLIFE takes no more
// jobs. A claim that has not yet run a job always takes one; a worklife of 0
// allows no second one, and a negative worklife never ends. Ages count in
// whole seconds.
func (c *Claim) WorklifeOver(worklife time.Duration, now clock.Instant) bool {
	if worklife < 0 || c.Activations == 0 {
		return false
	}
	return worklife == 0 || c.Age(now).Truncate(time.Second) > worklife
}

// Add counts the times of an activation that has ended.
func (c *Claim) Add(a *Activation, now clock.Instant) {
	c.TotalRun += a.RunTime(now)
	c.TotalSuspended += a.SuspendedTime(now)
}

// Work is a job that a slot has fetched for itself.
type Work struct {
	Keyword  string      // of the hooks that fetched it
	Job      *classad.Ad // the last one
	Accepted bool        // its source was told so
	Started  bool        // it was activated, or that was tried
}
