// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/ep/eptest"
)

// shown says which numbered transitions a recorded run shows: what the slot
// does in it, with the numbers of the documents. Where the run itself is held
// against the record, these name what it proves.
var shown = []struct {
	id, slot, path string
}{
	// row: S0-042
	{"policy-pertype-02", "slot1", "Claimed/Busy 14 Claimed/Suspended 15 Claimed/Busy"},
	{"policy-pertype-02", "slot2", "Claimed/Busy 14 Claimed/Suspended 15 Claimed/Busy"},
	// row: S0-125, S0-133
	{"policy-owner2-03", "slot1", "Owner/Idle 1 Unclaimed/Idle 2 Owner/Idle 1 Unclaimed/Idle"},
	// row: S0-102, S0-104
	{"policy-desktop-01", "slot1", "Owner/Idle 1 Unclaimed/Idle 2 Owner/Idle 1 Unclaimed/Idle"},
	// row: S0-106, S0-139
	{"policy-exit-01", "slot1", "Unclaimed/Idle 5 Claimed/Idle 11 Claimed/Busy 12 Claimed/Cleaning 12 Claimed/Idle"},
	// row: S0-146
	{"policy-variant-01", "slot1", "Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating 22 Owner/Idle"},
	{"policy-variant-02", "slot1", "Claimed/Busy 14 Claimed/Suspended 15 Claimed/Busy"},
	{"policy-variant-04", "slot1", "Preempting/Vacating 21 Preempting/Killing 25 Owner/Idle"},
	// row: S0-149
	{"policy-vacate-06", "slot1", "Claimed/Idle 10 Claimed/Retiring 18 Preempting/Vacating"},
	{"policy-owner-04", "slot1", "Claimed/Cleaning 12 Claimed/Idle 10 Preempting/Vacating 22 Owner/Idle"},
	{"policy-worklife-06", "slot1", "Claimed/Cleaning 12 Claimed/Idle 10 Preempting/Vacating 22 Owner/Idle"},
	// row: S0-152
	{"policy-preempt-01", "slot1", "Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating 22 Owner/Idle 1 Unclaimed/Idle"},
	// row: S0-153
	{"policy-rank-08", "slot1", "Claimed/Busy 13 Claimed/Retiring 19 Claimed/Busy"},
	// row: S0-154
	{"policy-off-02", "slot1", "Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating"},
	{"policy-off-03", "slot1", "Claimed/Busy 0 Preempting/Killing 25 Owner/Idle"},
	// row: S0-155
	{"policy-suspend-07", "slot1", "Claimed/Busy 13 Claimed/Retiring"},
	// row: S0-156, S0-157
	{"policy-desktop2-02", "slot1", "Claimed/Busy 14 Claimed/Suspended 15 Claimed/Busy 12 Claimed/Cleaning"},
	// row: S0-158
	{"policy-suspend-09", "slot1", "Claimed/Suspended 16 Claimed/Retiring 18 Preempting/Vacating"},
	// row: S0-158
	{"policy-preempt2-02", "slot1", "Claimed/Suspended 16 Claimed/Retiring 20 Claimed/Suspended"},
	// row: S0-160
	{"policy-preempt-04", "slot1", "Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating"},
	// row: S0-161
	{"policy-off-01", "slot1", "Claimed/Busy 13 Claimed/Retiring 12 Claimed/Cleaning 12 Claimed/Idle"},
	// row: S0-163
	{"policy-rank-05", "slot1", "Claimed/Retiring 19 Claimed/Busy"},
	// row: S0-165
	{"policy-preempt-06", "slot1", "Claimed/Retiring 18 Preempting/Killing 25 Owner/Idle"},
	{"policy-preempt-15", "slot1", "Claimed/Retiring 18 Preempting/Vacating 22 Owner/Idle"},
	// row: S0-167
	{"policy-preempt-09", "slot1", "Preempting/Vacating 21 Preempting/Killing"},
	// row: S0-170
	{"policy-rank2-01", "slot1_1", "Preempting/Vacating 23 Claimed/Idle 11 Claimed/Busy"},
	// row: S0-171
	{"policy-killing-01", "slot1", "Claimed/Retiring 18 Preempting/Vacating 22 Owner/Idle"},
	// row: S0-173
	{"policy-vacate-02", "slot1", "Preempting/Killing 25 Owner/Idle 1 Unclaimed/Idle"},
	// row: S0-186
	{"policy-preempt-11", "slot1", "Claimed/Retiring 18 Preempting/Vacating 22 Owner/Idle"},
	{"policy-preempt-13", "slot1", "Claimed/Retiring 18 Preempting/Vacating 22 Owner/Idle"},
	// row: S0-187
	{"policy-preempt2-05", "slot1", "Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating"},
	// row: S0-188
	{"policy-preempt-16", "slot1", "Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating"},
	{"policy-preempt-17", "slot1", "Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating"},
	// row: S0-191
	{"policy-worklife-03", "slot1", "Claimed/Cleaning 12 Claimed/Idle 10 Preempting/Vacating"},
	{"policy-worklife-05", "slot1_1", "Claimed/Cleaning 12 Claimed/Idle 10 Preempting/Vacating"},
}

func TestRecordedTransitions(t *testing.T) {
	t.Parallel()
	byID := map[string]eptest.Run{}
	for _, g := range goldens(t) {
		byID[g.ID] = g
	}
	for _, tt := range shown {
		t.Run(tt.id+" "+tt.slot, func(t *testing.T) {
			g, ok := byID[tt.id]
			if !ok {
				t.Fatal("no such run")
			}
			p := newPool(t, g)
			moves, known := p.play()
			if !known {
				t.Fatal("has actions that are not played here")
			}
			if got := p.path(tt.slot, 0); !strings.Contains(got, tt.path) {
				t.Errorf("got  %s\nwant %s", got, tt.path)
			}
			if _, ok := diverging[tt.id]; ok {
				t.Error("the run differs from the record")
			}
			if diff := g.Diff(moves); diff != "" {
				t.Errorf("the run differs from the record:\n%s", diff)
			}
		})
	}
}
