// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// Transfers keep a distance which the job's own time counts for, and which
// nobody who is told to end waits for.
func TestKeepDistance(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		ago, want time.Duration
		cancelled bool
	}{
		"at once":               {0, distance, false},
		"of a short job":        {distance / 2, distance / 2, false},
		"of a longer one":       {time.Second, 0, false},
		"when it has to be now": {0, 0, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.cancelled {
				cancel()
			}
			began := time.Now()
			keepDistance(ctx, began.Add(-tt.ago))
			if took := time.Since(began); took != tt.want {
				t.Errorf("%s: %v, want %v", name, took, tt.want)
			}
		})
	}
}
