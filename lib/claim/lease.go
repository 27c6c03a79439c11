// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"math"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
)

// DefaultLease is the length of a lease when neither the job nor the client
// says anything: six missed alives of five minutes.
const DefaultLease = 6 * 300 * time.Second

// Lease is how long a claim lives without a sign of life from its client. It
// counts in time since boot, sleep included: a machine that slept over the end
// of a lease wakes up without it. The zero Lease has no end.
type Lease struct {
	Duration time.Duration
	Until    time.Duration // on clock.Instant's Boot scale
}

// longest is more than anybody waits for, and can be added to any time since boot.
const longest = time.Duration(math.MaxInt64 / 4)

// NewLease returns a lease of d that begins now. A d that is not positive
// gives DefaultLease.
func NewLease(d time.Duration, now clock.Instant) Lease {
	if d <= 0 {
		d = DefaultLease
	}
	d = min(d, longest) // a job may ask for more seconds than there are
	return Lease{Duration: d, Until: now.Boot + d}
}

// Renew returns l with its end moved to a whole duration from now, never back.
func (l Lease) Renew(now clock.Instant) Lease {
	if l.Duration > 0 {
		l.Until = max(l.Until, now.Boot+l.Duration)
	}
	return l
}

// Resize returns a lease of length d that begins now, whatever was left of l.
func (l Lease) Resize(d time.Duration, now clock.Instant) Lease { return NewLease(d, now) }

// Expired reports whether the lease is over.
func (l Lease) Expired(now clock.Instant) bool { return l.Duration > 0 && now.Boot >= l.Until }

// LeaseLength returns the length of the lease for job under a client that
// sends an alive message every interval: the job's JobLeaseDuration when that
// is a positive integer, else so many missed alives. 0 means that neither is
// known.
func LeaseLength(job *classad.Ad, interval time.Duration, missed int) time.Duration {
	if job != nil {
		if s, ok := job.EvalInt("JobLeaseDuration", nil); ok && s > 0 {
			return seconds(s)
		}
	}
	return interval * time.Duration(missed)
}

// seconds turns whole seconds into a duration without overflow.
func seconds(s int64) time.Duration {
	const most = int64(1<<63-1) / int64(time.Second)
	return time.Duration(min(max(s, -most), most)) * time.Second
}
