// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

func (s *stage) match(n int) Reply {
	s.t.Helper()
	r, ok := s.ask(func(ref Ref) Event { return MatchTold{Ref: ref, Slot: slot.ID{N: n}} })
	if !ok {
		s.t.Fatal("no reply to the match")
	}
	return r
}

func TestMatch(t *testing.T) {
	t.Parallel()
	one := slot.ID{N: 1}
	for _, tt := range []struct {
		name   string
		config string
		then   func(s *stage)
		want   string
		at     time.Duration // of the last move
	}{
		// row: S0-109, S0-143, S0-144, S4-031, S2-010
		{"nobody claims", "", func(s *stage) {
			if got := s.shown(one, "Requirements"); got != "false" {
				s.t.Errorf("Requirements %s while matched", got)
			}
		}, "Unclaimed/Idle 6 Matched/Idle 8 Owner/Idle 1 Unclaimed/Idle", 120 * time.Second},
		{"a shorter MATCH_TIMEOUT", "MATCH_TIMEOUT = 30\n", func(*stage) {},
			"Unclaimed/Idle 6 Matched/Idle 8 Owner/Idle 1 Unclaimed/Idle", 30 * time.Second},
		// row: S0-110, S0-145
		{"claimed in time", "CLAIM_WORKLIFE = -1\n", func(s *stage) {
			s.run(60 * time.Second)
			s.claim(one, job(s.t, steady(time.Hour), ""))
		}, "Unclaimed/Idle 6 Matched/Idle 9 Claimed/Idle", 60 * time.Second},
		// row: S0-109
		{"the claim is refused", "START = TARGET.Good =?= true\n", func(s *stage) {
			r, _ := s.ask(func(ref Ref) Event { return ClaimRequested{Ref: ref, Slot: one, Job: job(s.t, steady(1), "")} })
			if !errs.Is(r.Err, errs.Denied) {
				s.t.Errorf("claim: %v", r.Err)
			}
		}, "Unclaimed/Idle 6 Matched/Idle 8 Owner/Idle 1 Unclaimed/Idle", 0},
		{"vacated", "", func(s *stage) { s.step(VacateRequested{Slot: one, Manner: Graceful}) },
			"Unclaimed/Idle 6 Matched/Idle 8 Owner/Idle 1 Unclaimed/Idle", 0},
		// row: S0-144
		{"START turns false", "START = Free =!= false\n", func(s *stage) { s.publish("Free = false") },
			"Unclaimed/Idle 6 Matched/Idle 8 Owner/Idle 1 Unclaimed/Idle", 5 * time.Second},
		{"shutdown", "", func(s *stage) { s.step(ShutdownRequested{Manner: Graceful}) },
			"Unclaimed/Idle 6 Matched/Idle 8 Owner/Idle 1 Unclaimed/Idle", 0},
		{"drained", "", func(s *stage) { s.drain(DrainRequested{}) },
			"Unclaimed/Idle 6 Matched/Idle 8 Owner/Idle 1 Unclaimed/Idle 37 Drained/Retiring 33 Drained/Idle", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, 1, static1+tt.config)
			from, began := len(s.moves), s.elapsed()
			if r := s.match(1); r.Err != nil {
				t.Fatal(r.Err)
			}
			tt.then(s)
			s.run(5 * time.Minute)
			if got := s.path("slot1", from); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if got := s.at[len(s.at)-1] - began; got != tt.at {
				t.Errorf("the last move came after %v, want %v", got, tt.at)
			}
		})
	}
}

func TestMatchRefused(t *testing.T) {
	t.Parallel()
	s := newStage(t, 2, static1+"IS_OWNER = KeyboardIdle < 10\n")
	if r := s.match(7); !errs.Is(r.Err, errs.NotFound) {
		t.Errorf("no such slot: %v", r.Err)
	}
	if r := s.match(1); !errs.Is(r.Err, errs.Conflict) && s.pair(slot.ID{N: 1}) == policy.OwnerIdle {
		t.Errorf("in Owner: %v", r.Err)
	}
	p := newStage(t, 2, "")
	if r := p.match(1); r.Err != nil || p.pair(slot.ID{N: 1}) != policy.UnclaimedIdle {
		t.Errorf("a p-slot stays open: %v, %v", r.Err, p.pair(slot.ID{N: 1}))
	}
}
