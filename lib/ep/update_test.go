// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// updates collects when every ad was due, and when that of single slots was.
type updates struct {
	all []time.Duration
	of  map[slot.ID][]time.Duration
}

// watchUpdates collects from the start on. The first effects are those of New,
// which nobody could see before.
func (s *stage) watchUpdates() *updates {
	u := &updates{of: make(map[slot.ID][]time.Duration)}
	see := func(eff Effect) {
		if d, ok := eff.(UpdateDue); ok {
			if d.Slot.IsZero() {
				u.all = append(u.all, s.elapsed())
			} else {
				u.of[d.Slot] = append(u.of[d.Slot], s.elapsed())
			}
		}
	}
	for _, eff := range s.eng.effects {
		see(eff)
	}
	s.onOther = see
	return u
}

// row: S4-024
func TestUpdateOffset(t *testing.T) {
	t.Parallel()
	s := newStage(t, 1, static1+"UPDATE_OFFSET = 7\nUPDATE_INTERVAL = 300\n")
	u := s.watchUpdates()
	s.run(10 * time.Minute)
	if d := cmp.Diff([]time.Duration{7 * time.Second, 307 * time.Second}, u.all); d != "" {
		t.Error(d)
	}
}

// An update is due every UPDATE_INTERVAL from the start, and at once when the
// State, the Activity or START changes.
//
// row: S4-023
func TestUpdateDue(t *testing.T) {
	t.Parallel()
	s := newStage(t, 1, static1+"UPDATE_INTERVAL = 300\nSTART = Friendly =!= false\nPOLLING_INTERVAL = 5\n")
	u := s.watchUpdates()
	s.run(11 * time.Minute)
	if d := cmp.Diff([]time.Duration{0, 5 * time.Minute, 10 * time.Minute}, u.all); d != "" {
		t.Error(d)
	}
	// Owner/Idle became Unclaimed/Idle at the start; then nothing happened.
	if d := cmp.Diff([]time.Duration{0}, u.of[slot1]); d != "" {
		t.Error(d)
	}
	// A claim and an activation are changes of State and Activity.
	ad := job(t, steady(time.Hour), "")
	g := s.claim(slot1, ad)
	s.activate(g.Claim, ad)
	at := s.elapsed()
	if d := cmp.Diff([]time.Duration{0, at, at}, u.of[slot1]); d != "" {
		t.Error(d)
	}
	// START changes with what is published, and is seen at the next look.
	s.run(2 * time.Second)
	s.publish("Friendly = false\n")
	before := len(u.of[slot1])
	s.run(5 * time.Second)
	if got := len(u.of[slot1]); got != before+1 || s.pair(slot1) != policy.ClaimedBusy {
		t.Errorf("START became false: %d updates, %v", got-before, s.pair(slot1))
	}
	s.run(time.Minute)
	if got := len(u.of[slot1]); got != before+1 {
		t.Errorf("START stayed as it was: %d updates", got-before)
	}
}

// STARTD_NOCLAIM_SHUTDOWN counts from the start, from the end of the last
// claim, and not while there is one.
//
// row: S4-065
func TestNoClaimShutdown(t *testing.T) {
	t.Parallel()
	var begun []ShutdownBegun
	stage := func() *stage {
		s := newStage(t, 1, static1+"STARTD_NOCLAIM_SHUTDOWN = 600\nCLAIM_WORKLIFE = -1\n")
		begun = nil
		s.onOther = func(eff Effect) {
			if b, ok := eff.(ShutdownBegun); ok {
				begun = append(begun, b)
			}
		}
		return s
	}
	s := stage()
	s.run(599 * time.Second)
	if len(begun) != 0 || s.complete {
		t.Fatalf("ended too early: %+v", begun)
	}
	s.run(time.Second)
	if len(begun) != 1 || begun[0].Manner != Graceful || begun[0].Why != "no slot was claimed for 10m0s" || !s.complete {
		t.Errorf("after 600 s: %+v, complete %v", begun, s.complete)
	}

	s = stage()
	s.run(300 * time.Second)
	ad := job(t, steady(2*time.Hour), "")
	g := s.claim(slot1, ad)
	s.activate(g.Claim, ad)
	s.run(time.Hour)
	if len(begun) != 0 {
		t.Fatalf("ended under a claim: %+v", begun)
	}
	s.step(ReleaseRequested{Claim: g.Claim})
	s.run(599 * time.Second)
	if len(begun) != 0 {
		t.Fatalf("ended too early after a claim: %+v", begun)
	}
	s.run(2 * time.Second)
	if len(begun) != 1 || !s.complete {
		t.Errorf("600 s after the claim: %+v, complete %v", begun, s.complete)
	}
	// A clock that is set ends nothing; the time that the machine slept counts.
	s = stage()
	s.now = clock.Instant{Wall: s.now.Wall.Add(time.Hour), Boot: s.now.Boot}
	s.step(Tick{})
	if len(begun) != 0 {
		t.Errorf("the wall clock ended the EP: %+v", begun)
	}
	s.now = s.now.Add(time.Hour)
	s.step(Tick{})
	if len(begun) != 1 {
		t.Error("an hour of sleep did not count")
	}
}

// The sixth missed alive message ends a claim, or as many as are configured.
//
// row: S4-030
func TestAlivesMissed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		config string
		want   time.Duration
	}{{"", 6 * time.Minute}, {"MAX_CLAIM_ALIVES_MISSED = 2\n", 2 * time.Minute}} {
		s := newStage(t, 1, static1+tt.config)
		ad := job(t, steady(10*time.Second), "StarterHandlesAlives = false\n")
		r := s.request(ClaimRequested{Slot: slot1, AliveInterval: time.Minute}, ad)
		if r.Err != nil {
			t.Fatal(r.Err)
		}
		s.run(tt.want - time.Second)
		if got := s.pair(slot1); got != policy.ClaimedIdle {
			t.Errorf("%q: a second before: %v", tt.config, got)
		}
		s.run(time.Second)
		if got := s.pair(slot1); got != policy.UnclaimedIdle {
			t.Errorf("%q: after the last missed one: %v", tt.config, got)
		}
	}
}
