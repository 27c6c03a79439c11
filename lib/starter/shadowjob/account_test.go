// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/starter/job"
)

// What was read and written is told, ever and within a window.
func TestBlockIO(t *testing.T) {
	t.Parallel()
	var h ioHistory
	at := time.Unix(1000, 0)
	for _, c := range []struct {
		after time.Duration
		reads int64
		want  int64
	}{{0, 5, 5}, {100 * time.Second, 7, 7}, {100 * time.Second, 10, 5}, {1, 10, 5}, {500 * time.Second, 10, 0}} {
		at = at.Add(c.after)
		if got := h.recent(at, blockIO{reads: c.reads}, 150*time.Second); got.reads != c.want {
			t.Errorf("%v: %+v, want %d", at, got, c.want)
		}
	}
	c := condition{word: "Running", State: job.State{Usage: host.Usage{BlockReads: 3, BlockWriteBytes: 4096}}, recent: blockIO{reads: 1}, counted: 2000 * time.Second, window: 1200 * time.Second}
	ad := c.ad()
	for name, want := range map[string]int64{
		"BlockReads": 3, "BlockWrites": 0, "BlockReadKbytes": 0, "BlockWriteKbytes": 4, "StatsLifetime": 2000,
		"RecentBlockReads": 1, "RecentBlockWriteKbytes": 0, "RecentStatsLifetime": 1200,
	} {
		if got, ok := ad.EvalInt(name, nil); !ok || got != want {
			t.Errorf("%s = %d, want %d", name, got, want)
		}
	}
}
