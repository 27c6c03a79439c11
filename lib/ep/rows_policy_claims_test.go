// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/policy"
)

// TestLeasesOfOneClaim keeps a claim by signs of life, each of which begins the
// lease anew, and loses it when they stop: after JobLeaseDuration, or without
// one after so many intervals as they were when the claim was asked for.
//
// row: S2-006
func TestLeasesOfOneClaim(t *testing.T) {
	t.Parallel()
	const minute = time.Minute
	for _, tt := range []struct {
		name, text, more string
		interval         time.Duration // of the request, 0: none is said
		every            time.Duration // a sign of life
		want             time.Duration // from the last one to the end
	}{
		{"40 minutes", "", "JobLeaseDuration = 2400\n", 5 * minute, 13 * minute, 40 * minute},
		{"undefined: six times five minutes", "", "", 0, 29 * minute, 30 * minute},
		{"undefined, ALIVE_INTERVAL of the machine", "ALIVE_INTERVAL = 100\n", "", 0, 9 * minute, 10 * minute},
		{"undefined, three may be missed", "MAX_CLAIM_ALIVES_MISSED = 3\n", "", minute, 2 * minute, 3 * minute},
		{"undefined, more often than was said", "", "", minute, 10 * time.Second, 6 * minute},
	} {
		s := newStage(t, 1, static1+"CLAIM_WORKLIFE = -1\n"+tt.text)
		ad := job(t, steady(1000*time.Hour), "StarterHandlesAlives = False\n"+tt.more)
		g := s.request(ClaimRequested{Slot: slot1, AliveInterval: tt.interval}, ad)
		s.activate(g.Granted.Claim, ad)
		for range 20 {
			s.run(tt.every)
			s.step(LeaseRenewed{Claim: g.Granted.Claim})
		}
		if got := s.dropped(); got != -1 {
			t.Errorf("%s: dropped after %v with signs of life", tt.name, got)
			continue
		}
		last := s.elapsed()
		s.run(tt.want - time.Second)
		if got := s.pair(slot1); got != policy.ClaimedBusy {
			t.Errorf("%s: a second before the end: %v", tt.name, got)
		}
		s.run(2 * time.Second)
		if got := s.dropped() - last; got != tt.want {
			t.Errorf("%s: dropped after %v, want %v", tt.name, got, tt.want)
		}
		if len(s.orders) != 1 || s.orders[0].Op != HardKill || len(s.ended) != 1 || s.ended[0].ByClient {
			t.Errorf("%s: the job was told %+v, the client %+v", tt.name, s.orders, s.ended)
		}
	}
}

// TestPreemptionByPriority lets a user whom a negotiator prefers take a slot
// from an equal job, and not from one that ranks higher. Who waits is shown, and
// gives way to a still better one.
func TestPreemptionByPriority(t *testing.T) {
	t.Parallel()
	s := newStage(t, 1, static1+"RANK = TARGET.Prio\nMAXJOBRETIREMENTTIME = 60\nMachineMaxVacateTime = 1\n")

	ask := func(prio, user string, priority bool) uint64 {
		s.ref++
		s.step(ClaimRequested{Ref: asked(s.ref), Slot: slot1, Priority: priority, Job: job(t, steady(time.Hour), "Prio = "+prio+"\n"), Client: claim.Client{User: user}})
		return s.ref
	}
	first := job(t, steady(time.Hour), "Prio = 5\n")
	g := s.claim(slot1, first)
	s.activate(g.Claim, first)
	s.run(2 * time.Second)
	from := len(s.moves)
	if r := s.replies[ask("4", "bob@example", true)]; r.Code != command.RefusedPreempted || !strings.Contains(r.Err.Error(), "rank 4 is not above 5") {
		t.Errorf("a lower rank with priority: %+v", r)
	}
	if r := s.replies[ask("5", "bob@example", false)]; r.Code != command.RefusedPreempted {
		t.Errorf("an equal rank without priority: %+v", r)
	}
	bob := ask("5", "bob@example", true)
	if got := s.shown(slot1, "PreemptingUser"); got != `"bob@example"` || s.pair(slot1) != policy.ClaimedRetiring {
		t.Errorf("%v, PreemptingUser = %s", s.pair(slot1), got)
	}
	carol := ask("6", "carol@example", false)
	if r := s.replies[bob]; r.Code != command.RefusedPreempted {
		t.Errorf("bob, whom carol outranks: %+v", r)
	}
	s.run(2 * time.Minute)
	if r := s.replies[carol]; r.Granted == nil {
		t.Errorf("carol: %+v", r)
	}
	if got, want := s.path("slot1", from), "Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating 23 Claimed/Idle"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if len(s.ended) != 1 || s.ended[0].Claim != g.Claim || s.ended[0].Code != 1018 {
		t.Errorf("told %+v", s.ended)
	}
	if got := s.shown(slot1, "PreemptingUser"); got != "" {
		t.Errorf("afterwards PreemptingUser = %s", got)
	}
}

// TestRelease gives a claim back in every activity of Claimed. A job under it
// is killed at once, one that has ended is waited for; whoever is not the
// holder gives nothing back.
func TestRelease(t *testing.T) {
	t.Parallel()
	const gone = " 25 Owner/Idle 1 Unclaimed/Idle"
	for _, tt := range []struct {
		name string
		do   func(w *walk)
		want string
		hard bool
	}{
		{"Idle", func(w *walk) { w.claimed() }, "Claimed/Idle 10 Preempting/Killing" + gone, false},
		{"Busy", func(w *walk) { w.busy() }, "Claimed/Busy 0 Preempting/Killing" + gone, true},
		{"Suspended", func(w *walk) { w.suspended() }, "Claimed/Suspended 0 Preempting/Killing" + gone, true},
		{"Retiring", func(w *walk) { w.retiring() }, "Claimed/Retiring 0 Preempting/Killing" + gone, true},
		{"Cleaning", func(w *walk) { w.busy(); w.jobEnds() }, "Claimed/Cleaning 0 Preempting/Vacating 22 Owner/Idle 1 Unclaimed/Idle", false},
	} {
		w := newWalk(t)
		tt.do(w)
		w.seen, w.orders = len(w.moves), nil
		guess := claim.ID{Public: w.held.Public, Secret: "guess"}
		if r, _ := w.ask(func(ref Ref) Event { return ReleaseRequested{Ref: ref, Claim: guess} }); r.Code != command.RefusedClaimNotFound {
			t.Errorf("%s: released by a stranger: %+v", tt.name, r)
		}
		w.goes(tt.name+", a stranger", "")
		if r, _ := w.ask(func(ref Ref) Event { return ReleaseRequested{Ref: ref, Claim: w.held} }); r.Err != nil {
			t.Errorf("%s: %+v", tt.name, r)
		}
		w.run(3 * time.Second)
		w.goes(tt.name, tt.want)
		killed := false
		for _, o := range w.orders {
			killed = killed || o.Op == HardKill
		}
		if killed != tt.hard || len(w.ended) != 1 || !w.ended[0].ByClient {
			t.Errorf("%s: the job was told %+v, the client %+v", tt.name, w.orders, w.ended)
		}
	}
}

// An order that comes between the end of a job and that of its starter ends the claim
// with the starter, as it does when it comes a moment earlier.
func TestOrdersWhileCleaning(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		ev   Event
		code int
	}{
		{"vacate", VacateRequested{Slot: slot1, Manner: Graceful}, 1010},
		{"vacate all", VacateRequested{Manner: Graceful}, 1010},
		{"vacate fast", VacateRequested{Slot: slot1, Manner: Fast}, 1010},
		{"graceful shutdown", ShutdownRequested{Graceful}, 1013},
		{"peaceful shutdown", ShutdownRequested{Peaceful}, 1013},
		{"quick drain", DrainRequested{Ref: asked(98), How: DrainQuick}, 1014},
	} {
		w := newWalk(t)
		w.busy()
		w.jobEnds()
		w.seen = len(w.moves)
		w.step(tt.ev)
		w.goes(tt.name+", before the starter is gone", "")
		w.run(3 * time.Second)
		if v, _ := w.eng.SlotView(slot1); v.Claimed || len(w.ended) != 1 || w.ended[0].Code != tt.code {
			t.Errorf("%s: the claim is in %v, its client was told %+v, want %d", tt.name, v.Pair, w.ended, tt.code)
		}
	}
}
