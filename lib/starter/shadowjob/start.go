// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"context"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/starter/job"
)

// awaitStart waits until a job with a DeferralTime may start, or one whose
// shadow is too young. missed says that its window has passed.
func (v *conversation) awaitStart(ctx context.Context, ad *classad.Ad) (missed bool, err error) {
	now := v.clock.Now().Wall
	wait, missed := job.Deferral(ad, now)
	if !missed && !v.caller.AtLeast(25, 8, 0) {
		wait = max(wait, untilOld(ad, now.Sub(v.met)))
	}
	if missed || wait <= 0 {
		return missed, nil
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return false, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// old is how old a shadow has to be when a job with an AllowedExecuteDuration
// begins: it counts in whole seconds, and before 25.8.0 takes a beginning in the
// second of its own for that of an earlier run, which nothing limits. HTCondor
// keeps a second between input and job anyway.
const old = time.Second

// untilOld is how long a job has to wait until its shadow, which is known for
// some time, is old enough for it.
func untilOld(ad *classad.Ad, known time.Duration) time.Duration {
	if _, limited := ad.Lookup("AllowedExecuteDuration"); !limited {
		return 0
	}
	return min(old, max(0, old-known)) // a clock that was set back says nothing
}
