// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"slices"
	"testing"

	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// The text and the codes are those of the recorded holds (oom-hard-fast and others of
// starter.jsonl), but that the limit is the one that was hit (oom-custom).
//
// row: S0-073
func TestOOMHold(t *testing.T) {
	t.Parallel()
	const over = "Job has gone over cgroup memory limit of 128 megabytes. Last measured usage: 128 megabytes.  Consider resubmitting with a higher request_memory."
	for _, c := range []struct {
		name   string
		over   host.OverMemory
		always bool
		want   string
	}{
		{"its own limit", host.OverMemory{LimitKiB: 128 << 10, PeakKiB: 128 << 10, Own: true}, false, over},
		{"its own limit, and all are held", host.OverMemory{LimitKiB: 128 << 10, PeakKiB: 128 << 10, Own: true}, true, over},
		{"no peak is kept", host.OverMemory{LimitKiB: 128 << 10, Own: true}, false, over},
		{"a peak before the limit was lowered", host.OverMemory{LimitKiB: 128 << 10, PeakKiB: 300 << 10, Own: true}, false, over},
		{"a custom limit", host.OverMemory{LimitKiB: 300 << 10, PeakKiB: 299 << 10, Own: true}, false,
			"Job has gone over cgroup memory limit of 300 megabytes. Last measured usage: 299 megabytes.  Consider resubmitting with a higher request_memory."},
		{"a victim", host.OverMemory{LimitKiB: 128 << 10, PeakKiB: 20 << 10}, false, ""},
		{"a victim without a limit", host.OverMemory{PeakKiB: 20 << 10}, false, ""},
		{"a victim, and all are held", host.OverMemory{PeakKiB: 20 << 10}, true,
			"Job has encountered an out-of-memory event: the machine was out of memory, the job used 20 megabytes."},
	} {
		hold := oomHold(host.Usage{OOMKills: 1, OverMemory: &c.over}, c.always)
		switch {
		case hold == nil && c.want != "", hold != nil && hold.Reason != c.want:
			t.Errorf("%s: %+v, want %q", c.name, hold, c.want)
		case hold != nil && (hold.Code != 34 || hold.Subcode != 102):
			t.Errorf("%s: %+v", c.name, hold)
		}
	}
}

// The shadow of a job that came to its limit hears of the hold at once, and nothing
// else; one that is away hears of it when it is back.
func TestStarvedTellsTheShadow(t *testing.T) {
	t.Parallel()
	hold := &protocol.Hold{Code: 34}
	l := life{phase: finishing, remote: true, ran: true}
	if got := l.starved(hold, eviction{}); !slices.Equal(got, []duty{dutyHold, dutyEnd}) || !l.held || l.hold != hold {
		t.Errorf("%v, %+v", got, l)
	}
	l = life{phase: finishing, remote: true, ran: true, apart: true}
	if got := l.starved(hold, eviction{}); !slices.Equal(got, []duty{dutyTell}) || l.held || l.hold != hold {
		t.Errorf("away: %v, %+v", got, l)
	}
	l = life{phase: finishing, remote: true, ran: true}
	if got := l.starved(nil, eviction{reason: "x", hard: true}); !slices.Equal(got, []duty{dutyTell}) || l.evicted == nil || l.hold != nil {
		t.Errorf("a victim: %v, %+v", got, l)
	}
}
