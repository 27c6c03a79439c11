// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ad

import "time"

// The attributes of a slot that fetches work for itself. Those of others have the
// machine's: 0, 0 and -1.
const (
	attrFetchSpawned   = "LastFetchWorkSpawned"
	attrFetchCompleted = "LastFetchWorkCompleted"
	attrFetchDelay     = "NextFetchWorkDelay"
	attrFetchWorkDelay = "FetchWorkDelay" // the expression, where the owner has set it
)

// SetFetched shows when the hook that fetches work for the slot was last started, and
// when it last answered, which may be never.
func (a *Slot) SetFetched(spawned, completed time.Time) {
	a.ad.SetInt(attrFetchSpawned, spawned.Unix())
	if !completed.IsZero() {
		a.ad.SetInt(attrFetchCompleted, completed.Unix())
	}
}

// SetNextFetch shows the value that FetchWorkDelay had last.
func (a *Slot) SetNextFetch(delay time.Duration) {
	a.ad.SetInt(attrFetchDelay, int64(delay/time.Second))
}
