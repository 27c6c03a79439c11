// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/explain"
	"github.com/execpoint/execpoint/lib/slot"
)

const (
	// longWait is how long a job waits before it is said why, looksEvery how often it
	// is looked whether one does.
	longWait, looksEvery = 5 * time.Second, 5 * time.Second
	// mostAsked bounds how many kinds of jobs are held against all slots in one look.
	mostAsked = 10
)

// tellWaits tells of jobs that the owner's policy keeps from every slot. What waits
// only for other jobs to end is not told of: that is what a queue is for.
func (n *node) tellWaits(now clock.Instant) {
	if n.serving() || now.Boot < n.wakes.waitsAt.Boot {
		return
	}
	n.wakes.waitsAt = now.Add(looksEvery)
	n.ap.TellWaits(now, longWait, mostAsked, func(job *classad.Ad) (reason, text string) {
		var slots []explain.Slot
		for v := range n.eng.Views() {
			if v.Kind != slot.Dynamic && len(slots) < maxExplained {
				slots = append(slots, n.slotOf(now, v))
			}
		}
		return explain.Kept(explain.Judge(n.source(now), job, slots))
	}, func(first string) string { return fmt.Sprintf("condor_ep explain %s", first) })
}
