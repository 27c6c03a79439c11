// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/classad"
)

// TestDrainView looks at a drain from outside: who, why, and for how long at
// most the jobs stay.
func TestDrainView(t *testing.T) {
	t.Parallel()
	type seen struct {
		Jobs    int
		Left    time.Duration
		Drained bool
	}
	for _, tt := range []struct {
		name   string
		config string
		how    Haste
		sc     script
		want   [3]seen // at once, after 10 s, after 20 minutes
	}{
		{"graceful", "", DrainGraceful, script{runs: time.Hour, onSoft: 5 * time.Second},
			[3]seen{{1, 290 * time.Second, false}, {1, 280 * time.Second, false}, {0, 0, true}}},
		{"graceful, and the job does not obey", "MAXJOBRETIREMENTTIME = 0\n", DrainGraceful, script{runs: time.Hour, onSoft: -1},
			[3]seen{{1, 20 * time.Second, false}, {1, 10 * time.Second, false}, {0, 0, true}}},
		{"quick", "", DrainQuick, script{runs: time.Hour, onSoft: -1},
			[3]seen{{1, 20 * time.Second, false}, {1, 10 * time.Second, false}, {0, 0, true}}},
		{"fast", "", DrainFast, script{runs: time.Hour, onHard: 15 * time.Second},
			[3]seen{{1, 30 * time.Second, false}, {1, 20 * time.Second, false}, {0, 0, true}}},
	} {
		config := drainConfig + "MAXJOBRETIREMENTTIME = 300\nMachineMaxVacateTime = 20\nKILLING_TIMEOUT = 30\n" + tt.config
		s := newStage(t, 1, config)
		if _, on := s.eng.Drain(); on {
			t.Fatalf("%s: draining before anybody asked", tt.name)
		}
		ad := job(t, tt.sc, "JobLeaseDuration = 100000\n")
		s.activate(s.claim(slot1, ad).Claim, ad)
		s.run(10 * time.Second)
		start := classad.MustParseExpr(`TARGET.Short =?= true`)
		r := s.drain(DrainRequested{How: tt.how, Then: ThenExit, By: "bob@here", Reason: "new disk", Start: start})
		var got [3]seen
		for i, d := range []time.Duration{0, 10 * time.Second, 20 * time.Minute} {
			s.run(d)
			v, on := s.eng.Drain()
			if !on || v.ID != r.DrainID || v.How != tt.how || v.By != "bob@here" || v.Reason != "new disk" {
				t.Errorf("%s: %+v", tt.name, v)
			}
			if i == 0 && (v.Start != nil) != (tt.how == DrainGraceful) {
				t.Errorf("%s: lets in by %v", tt.name, v.Start)
			}
			got[i] = seen{v.Jobs, v.Left.Round(time.Second), v.Drained}
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
	}
	// A job that may stay as long as it likes has no end that could be told.
	s := newStage(t, 1, drainConfig+"MAXJOBRETIREMENTTIME = 10000000000\n")
	ad := job(t, steady(time.Hour), "")
	s.activate(s.claim(slot1, ad).Claim, ad)
	s.drain(DrainRequested{})
	if v, _ := s.eng.Drain(); v.Left < 365*24*time.Hour {
		t.Errorf("left: %v", v.Left)
	}
}
