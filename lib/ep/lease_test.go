// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/policy"
)

// leased claims the one slot with a lease and runs a job that never ends. The
// client has to keep the lease itself, as one that does not let starters do it
// must.
func leased(t *testing.T, more string, ask ClaimRequested) (*stage, Grant) {
	s := newStage(t, 1, static1)
	ad := job(t, steady(1000*time.Hour), "StarterHandlesAlives = False\n"+more)
	r, _ := s.ask(func(ref Ref) Event {
		ask.Ref, ask.Slot, ask.Job = ref, slot1, ad
		return ask
	})
	if r.Granted == nil {
		t.Fatalf("%+v", r)
	}
	s.activate(r.Granted.Claim, ad)
	return s, *r.Granted
}

// dropped returns when the slot left Claimed, -1 if it did not.
func (s *stage) dropped() time.Duration {
	for i, m := range s.moves {
		if m.From.State == policy.Claimed && m.To.State == policy.Preempting {
			return s.at[i]
		}
	}
	return -1
}

func TestLeases(t *testing.T) {
	t.Parallel()
	const minute = time.Minute
	for _, tt := range []struct {
		name string
		more string
		ask  ClaimRequested
		want time.Duration
	}{
		// row: S0-119
		{"JobLeaseDuration of 40 minutes", "JobLeaseDuration = 2400\n", ClaimRequested{Lease: time.Hour, AliveInterval: 5 * minute}, 40 * minute},
		// row: S0-121
		{"undefined, default interval", "", ClaimRequested{}, 6 * 5 * minute},
		{"undefined, six intervals of the client", "", ClaimRequested{AliveInterval: minute}, 6 * minute},
		{"JobLeaseDuration = 0 is undefined", "JobLeaseDuration = 0\n", ClaimRequested{AliveInterval: minute}, 6 * minute},
		{"undefined, length of the request", "", ClaimRequested{Lease: 7 * minute, AliveInterval: minute}, 7 * minute},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, g := leased(t, tt.more, tt.ask)
			s.run(3 * time.Hour)
			if got := s.dropped(); got != tt.want {
				t.Errorf("dropped after %v, want %v", got, tt.want)
			}
			if len(s.ended) != 1 || s.ended[0].Claim != g.Claim || s.ended[0].ByClient {
				t.Errorf("told of the end: %+v", s.ended)
			}
			if len(s.orders) != 1 || s.orders[0].Op != HardKill || len(s.starters) != 0 {
				t.Errorf("the job was told %+v", s.orders)
			}
		})
	}
}

// A lease that is longer than a clock can count, as of a job whose user means for
// ever, has no end; it does not end at once.
func TestLeaseWithoutEnd(t *testing.T) {
	t.Parallel()
	for _, length := range []string{"9223372036", "9999999999", "9223372036854775807"} {
		s, _ := leased(t, "JobLeaseDuration = "+length+"\n", ClaimRequested{})
		s.run(24 * time.Hour)
		if got := s.dropped(); got != -1 || len(s.starters) != 1 {
			t.Errorf("JobLeaseDuration = %s: dropped after %v", length, got)
		}
	}
}

// row: S0-118
func TestLeaseRenewed(t *testing.T) {
	t.Parallel()
	s, g := leased(t, "JobLeaseDuration = 60\n", ClaimRequested{})
	for range 20 {
		s.run(59 * time.Second)
		s.step(LeaseRenewed{Claim: g.Claim})
	}
	if got := s.dropped(); got != -1 {
		t.Fatalf("dropped after %v with alives every 59 s", got)
	}
	last := s.elapsed()
	// Signs of life with a wrong secret are none.
	for range 10 {
		s.run(30 * time.Second)
		s.step(LeaseRenewed{Claim: claim.ID{Public: g.Claim.Public, Secret: "guess"}})
	}
	if got := s.dropped(); got != last+time.Minute {
		t.Errorf("dropped after %v, want a minute after %v", got, last)
	}
}

// row: S0-122
func TestLeaseUsesTheFirstInterval(t *testing.T) {
	t.Parallel()
	// The client shortens its interval and sends more often. The lease stays
	// six times the interval that came with the claim.
	s, g := leased(t, "", ClaimRequested{AliveInterval: time.Minute})
	for range 30 {
		s.run(10 * time.Second)
		s.step(LeaseRenewed{Claim: g.Claim})
	}
	last := s.elapsed()
	s.run(time.Hour)
	if got := s.dropped(); got != last+6*time.Minute {
		t.Errorf("dropped after %v, want six minutes after %v", got, last)
	}
}

// TestStarterKeepsTheLease is today's way: a running starter has its own word
// with the access point.
func TestStarterKeepsTheLease(t *testing.T) {
	t.Parallel()
	s := newStage(t, 1, static1+"CLAIM_WORKLIFE = -1\n")
	ad := job(t, steady(3*time.Hour), "JobLeaseDuration = 60\n")
	g := s.claim(slot1, ad)
	act := s.activate(g.Claim, ad)
	s.run(2 * time.Hour)
	if got := s.pair(slot1); got != policy.ClaimedBusy {
		t.Fatalf("%v", got)
	}
	// The starter gives up on a silent client: the claim ends with it.
	s.later = nil
	s.step(JobEnded{Activation: act})
	s.step(StarterExited{Activation: act, ClientLost: true})
	const want = "Claimed/Busy 12 Claimed/Cleaning 12 Claimed/Idle 10 Preempting/Killing 25 Owner/Idle 1 Unclaimed/Idle"
	if got := s.path("slot1", len(s.moves)-5); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	// An idle claim has to be kept by its client.
	s = newStage(t, 1, static1)
	short := job(t, steady(10*time.Second), "JobLeaseDuration = 60\n")
	g = s.claim(slot1, short)
	s.activate(g.Claim, short)
	s.run(time.Hour)
	if got := s.dropped(); got != 70*time.Second {
		t.Errorf("an idle claim was dropped after %v, want 60 s after its job", got)
	}
}

// TestLeaseCountsBootTime lets the wall clock jump, and the machine sleep.
func TestLeaseCountsBootTime(t *testing.T) {
	t.Parallel()
	s, _ := leased(t, "JobLeaseDuration = 60\n", ClaimRequested{})
	s.run(10 * time.Second)
	s.now = clock.Instant{Wall: s.now.Wall.Add(24 * time.Hour), Boot: s.now.Boot}
	s.step(Tick{})
	if got := s.pair(slot1); got != policy.ClaimedBusy {
		t.Fatalf("a jump of the wall clock ended the claim: %v", got)
	}
	// Asleep for an hour: nothing ticked, and the lease is over on waking.
	s.now = s.now.Add(time.Hour)
	s.step(Tick{})
	if got := s.pair(slot1).State; got != policy.Preempting {
		t.Errorf("after an hour of sleep: %v", got)
	}
	// A clock that goes back is not believed.
	s.now.Boot -= 30 * time.Minute
	s.step(Tick{})
}

// row: S0-191
func TestWorklife(t *testing.T) {
	t.Parallel()
	s := newStage(t, 1, static1+"CLAIM_WORKLIFE = 30\n")
	ad := job(t, steady(20*time.Second), "")
	g := s.claim(slot1, ad)
	s.activate(g.Claim, ad)
	s.run(21 * time.Second)
	s.activate(g.Claim, ad) // at 21 s of 30
	s.run(15 * time.Second)
	r, _ := s.ask(func(ref Ref) Event { return DeactivateRequested{Ref: ref, Claim: g.Claim, How: Asking} })
	if r.Err != nil || !r.Closing {
		t.Errorf("at 36 s the client was told %+v", r)
	}
	s.run(10 * time.Second)
	const want = "Claimed/Busy 12 Claimed/Cleaning 12 Claimed/Idle 10 Preempting/Vacating 22 Owner/Idle 1 Unclaimed/Idle"
	if got := s.path("slot1", len(s.moves)-5); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	// 0 is one job for each claim, however short.
	s = newStage(t, 1, static1+"CLAIM_WORKLIFE = 0\n")
	quick := job(t, steady(10*time.Millisecond), "")
	g = s.claim(slot1, quick)
	s.activate(g.Claim, quick)
	s.run(time.Second)
	if got := s.pair(slot1); got != policy.UnclaimedIdle {
		t.Errorf("after the one job: %v", got)
	}
}
