// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package job

import (
	"math"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
)

// Deferral is how long a job has to wait for its DeferralTime, in seconds since 1970
// by the clock of its access point: DeferralOffset is how far ours is ahead of that.
// missed says that the time is past by more than DeferralWindow, and the job must not
// begin any more.
//
// condor_submit writes a DeferralTime for deferral_time, and the schedd works out one
// for each run of a job with cron_*: a starter knows no calendar. DeferralPrepTime is
// the schedd's too, which looks for a slot so long before. As with HTCondor a
// DeferralTime that is no number above 0 has been missed, and one of a job that comes
// late within its window is no reason to wait.
func Deferral(ad *classad.Ad, now time.Time) (wait time.Duration, missed bool) {
	if _, deferred := ad.Lookup("DeferralTime"); !deferred {
		return 0, false
	}
	env := &classad.Env{My: ad, Now: now}
	at, ok := ad.EvalInt("DeferralTime", env)
	if !ok || at <= 0 {
		return 0, true
	}
	offset, _ := ad.EvalInt("DeferralOffset", env)
	window, _ := ad.EvalInt("DeferralWindow", env)
	ours := float64(now.UnixNano())/1e9 - float64(offset)
	left := float64(at) - ours
	switch {
	case left >= 0:
		return time.Duration(min(left*1e9, math.MaxInt64/2)), false
	case math.Floor(-left) > float64(window): // whole seconds, as HTCondor counts
		return 0, true
	}
	return 0, false
}
