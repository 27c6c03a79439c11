// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
)

// The next transfer waits until the job's ad shows the end of the last, and no
// longer; a shadow that never shows one costs a second, one that shows no end of it
// twenty.
func TestAwaitTransferChild(t *testing.T) {
	t.Parallel()
	const never = time.Hour
	before := transferCounters{starts: 3, finished: 100}
	for name, tt := range map[string]struct {
		after     time.Duration // the ad is now from then on
		before    string        // and this until then; "" is that no transfer is shown
		answer    time.Duration // which it takes to answer
		now       string
		cancelled time.Duration
		fails     bool
		want      bool
		most      time.Duration
	}{
		"at once":                            {0, "", 0, "NumInputTransferStarts = 4\nTransferInFinished = 107\nTransferringInput = false\n", 0, false, true, 0},
		"in the same second":                 {0, "", 0, "NumInputTransferStarts = 4\nTransferInFinished = 100\nTransferringInput = false\n", 0, false, true, 0},
		"an older shadow":                    {0, "", 0, "TransferInFinished = 107\nTransferringInput = false\n", 0, false, true, 0},
		"a shadow that is late":              {300 * time.Millisecond, "", 0, "NumInputTransferStarts = 4\nTransferInFinished = 107\nTransferringInput = false\n", 0, false, true, 350 * time.Millisecond},
		"begun":                              {0, "", 0, "NumInputTransferStarts = 4\nTransferInFinished = 100\nTransferringInput = true\n", 0, false, false, 20*time.Second + 50*time.Millisecond},
		"a shadow that waits for its schedd": {4 * time.Second, "NumInputTransferStarts = 4\nTransferInFinished = 100\nTransferringInput = true\n", 0, "NumInputTransferStarts = 4\nTransferInFinished = 107\nTransferringInput = false\n", 0, false, true, 4050 * time.Millisecond},
		"a shadow that is slow to answer":    {3 * time.Second, "", 1100 * time.Millisecond, "NumInputTransferStarts = 4\nTransferInFinished = 107\nTransferringInput = false\n", 0, false, true, 3400 * time.Millisecond},
		"never":                              {never, "", 0, "", 0, false, false, 1050 * time.Millisecond},
		"the shadow is lost":                 {never, "", 0, "", 0, true, false, 0},
		"somebody wants it to be now":        {never, "", 0, "", 70 * time.Millisecond, false, false, 70 * time.Millisecond},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tt.cancelled > 0 {
				time.AfterFunc(tt.cancelled, cancel)
			}
			began := time.Now()
			look := func(context.Context) (*classad.Ad, error) {
				time.Sleep(tt.answer)
				text := cmp.Or(tt.before, "NumInputTransferStarts = 3\nTransferInFinished = 100\nTransferringInput = false\n")
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
