// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
)

// The next transfer waits until the job's ad shows the end of the last, and no
// longer; a shadow that never shows it costs a second.
func TestAwaitTransferChild(t *testing.T) {
	t.Parallel()
	const never = time.Hour
	before := transferCounters{starts: 3, finished: 100}
	for name, tt := range map[string]struct {
		after     time.Duration // the ad is now from then on
		now       string
		cancelled time.Duration
		fails     bool
		want      bool
		most      time.Duration
	}{
		"at once":                     {0, "NumInputTransferStarts = 4\nTransferInFinished = 107\nTransferringInput = false\n", 0, false, true, 0},
		"in the same second":          {0, "NumInputTransferStarts = 4\nTransferInFinished = 100\nTransferringInput = false\n", 0, false, true, 0},
		"an older shadow":             {0, "TransferInFinished = 107\nTransferringInput = false\n", 0, false, true, 0},
		"a shadow that is late":       {300 * time.Millisecond, "NumInputTransferStarts = 4\nTransferInFinished = 107\nTransferringInput = false\n", 0, false, true, 350 * time.Millisecond},
		"begun":                       {0, "NumInputTransferStarts = 4\nTransferInFinished = 100\nTransferringInput = true\n", 0, false, false, 1050 * time.Millisecond},
		"never":                       {never, "", 0, false, false, 1050 * time.Millisecond},
		"the shadow is lost":          {never, "", 0, true, false, 0},
		"somebody wants it to be now": {never, "", 70 * time.Millisecond, false, false, 70 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.cancelled > 0 {
				time.AfterFunc(tt.cancelled, cancel)
			}
			began := time.Now()
			look := func(context.Context) (*classad.Ad, error) {
				text := "NumInputTransferStarts = 3\nTransferInFinished = 100\nTransferringInput = false\n"
				if time.Since(began) >= tt.after {
					text = tt.now
				}
				if tt.fails {
					return nil, errors.New("lost")
				}
				ad, err := classad.ParseAd(text, classad.Old)
				if err != nil {
					t.Fatal(err)
				}
				return ad, nil
			}
			last := map[direction]transferCounters{inward: before}
			got := awaitTransferChild(ctx, look, inward, last)
			if took := time.Since(began); got != tt.want || took > tt.most {
				t.Errorf("%s: %v after %v, want %v within %v", name, got, took, tt.want, tt.most)
			}
			if got && last[inward] == before {
				t.Errorf("%s: the next transfer would take this one's end for its own", name)
			}
		})
	}
}
