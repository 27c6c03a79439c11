// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"slices"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// walk is a play that is followed through all moves of a state.
type walk struct {
	*play
	seen int
}

func newWalk(t testing.TB) *walk {
	w := &walk{play: newPlay(t)}
	w.seen = len(w.moves)
	return w
}

// goes demands the moves of the slot since the last look, "" for none.
func (w *walk) goes(what, path string) {
	w.t.Helper()
	if got := w.path("slot1", w.seen); got != path {
		w.t.Fatalf("%s: went %q, want %q", what, got, path)
	}
	w.seen = len(w.moves)
}

// TestOwnerState walks through the transitions from Owner.
//
// row: S1-043, S2-008
func TestOwnerState(t *testing.T) {
	t.Parallel()
	w := newWalk(t)
	if got, want := w.path("slot1", 0), "Owner/Idle 1 Unclaimed/Idle"; got != want {
		t.Errorf("at first %q, want %q", got, want)
	}
	w.set("KOwner", "true")
	w.goes("IS_OWNER true", "Unclaimed/Idle 2 Owner/Idle")
	w.set("KBench", "true")
	w.run(time.Minute)
	w.goes("benchmarks are wanted", "")
	if w.bench {
		t.Error("benchmarks were run in Owner")
	}
	w.set("KBench", "false")
	w.drain(DrainRequested{})
	w.goes("drained", "Owner/Idle 36 Drained/Retiring 33 Drained/Idle")
	w.cancelDrain("")
	w.goes("drained no more", "Drained/Idle 34 Owner/Idle")
	w.set("KOwner", "false")
	w.goes("IS_OWNER false", "Owner/Idle 1 Unclaimed/Idle")
	w.busy()
	w.seen = len(w.moves)
	w.set("KOwner", "true")
	w.run(time.Minute)
	w.goes("a job runs", "")
	w.jobEnds()
	w.run(time.Second)
	w.goes("the job has ended", "Claimed/Busy 12 Claimed/Cleaning 12 Claimed/Idle 10 Preempting/Vacating 22 Owner/Idle")

	// Nobody who does not say so owns his machine, and START alone decides
	// what it did in 6.8.
	for _, tt := range []struct {
		text string
		want policy.Pair
	}{
		{"", policy.UnclaimedIdle},
		{document(t, "s1-owner-state-562"), policy.UnclaimedIdle},
		{document(t, "s1-owner-state-562") + "IS_OWNER = START =?= FALSE\n", policy.OwnerIdle},
		{document(t, "s1-owner-state-567") + "IS_OWNER = START =?= FALSE\n", policy.UnclaimedIdle},
	} {
		s := tell(t, 1, static1+"SLOTS_CONNECTED_TO_KEYBOARD = 1\n"+tt.text)
		s.types(time.Hour)
		s.run(34 * time.Second)
		if got := s.pair(slot1); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.text, got, tt.want)
		}
	}
	// It is looked at every UPDATE_INTERVAL.
	s := tell(t, 1, static1+"UPDATE_INTERVAL = 300\nIS_OWNER = KOwner =?= true\n")
	s.publish("KOwner = true\n")
	s.run(290 * time.Second)
	s.skip()
	s.run(15 * time.Second)
	s.expect("looked at", "slot1", "Unclaimed/Idle 2 Owner/Idle")
	s.publish("KOwner = false\n")
	s.run(280 * time.Second)
	s.expect("not looked at yet", "slot1", "")
	s.run(20 * time.Second)
	s.expect("looked at again", "slot1", "Owner/Idle 1 Unclaimed/Idle")
}

// TestUnclaimedState walks through the transitions from Unclaimed. The helper
// BenchmarkTimer is that of the 6.8 manual. Of a first run at
// the very start (S0-138) the recorded daemons know nothing: it comes with the
// first look, as here.
//
// row: S1-044, S2-009
func TestUnclaimedState(t *testing.T) {
	t.Parallel()
	w := newWalk(t)
	w.set("KOwner", "true")
	w.set("KOwner", "false")
	w.goes("IS_OWNER", "Unclaimed/Idle 2 Owner/Idle 1 Unclaimed/Idle")
	w.set("KBench", "true")
	w.goes("RunBenchmarks", "Unclaimed/Idle 3 Unclaimed/Benchmarking")
	w.set("KBench", "false")
	w.step(BenchmarksDone{Complete: true})
	w.goes("benchmarks over", "Unclaimed/Benchmarking 4 Unclaimed/Idle")
	w.claimed()
	w.goes("a claim without a match", "Unclaimed/Idle 5 Claimed/Idle")
	w.release()
	w.goes("released", "Claimed/Idle 10 Preempting/Killing 25 Owner/Idle 1 Unclaimed/Idle")
	w.match(1)
	w.goes("a match first", "Unclaimed/Idle 6 Matched/Idle")
	w.run(121 * time.Second)
	w.goes("nobody came", "Matched/Idle 8 Owner/Idle 1 Unclaimed/Idle")
	w.set("KBackfill", "true")
	w.run(2 * time.Second)
	w.goes("START_BACKFILL", "Unclaimed/Idle 7 Backfill/Idle 26 Backfill/Busy")
	w.set("KBackfill", "false", "KEvict", "true")
	w.run(5 * time.Second)
	w.goes("EVICT_BACKFILL", "Backfill/Busy 28 Backfill/Killing 29 Backfill/Idle 30 Owner/Idle 1 Unclaimed/Idle")
	w.drain(DrainRequested{})
	w.goes("drained", "Unclaimed/Idle 37 Drained/Retiring 33 Drained/Idle")

	l := newLab(t, 1, 4*time.Second, "HOUR = 3600\n"+laboratory+"START = KStart =!= False\n"+document(t, "s1-unclaimed-state-588"))
	if got := l.attr(slot1, "LastBenchmark"); got != "0" {
		t.Errorf("LastBenchmark before the first run is %s", got)
	}
	l.run(9 * time.Hour)
	want := []time.Duration{time.Minute, 4*time.Hour + 2*time.Minute, 8*time.Hour + 3*time.Minute}
	if !slices.Equal(l.ran, want) {
		t.Errorf("benchmarks ran at %v, want %v", l.ran, want)
	}
	if got := l.attr(slot1, "Mips") + " " + l.attr(slot1, "KFlops"); got != "1000 10000" {
		t.Errorf("Mips and KFlops are %s", got)
	}
}

// TestMatchedState is not to be matched again; it ends by the clock, by START,
// by a refusal, or with the claim.
//
// row: S1-045
func TestMatchedState(t *testing.T) {
	t.Parallel()
	w := newWalk(t)
	w.match(1)
	if got := w.shown(slot1, "Requirements"); got != "false" {
		t.Errorf("Requirements of a matched slot are %s", got)
	}
	w.run(119 * time.Second)
	w.goes("matched", "Unclaimed/Idle 6 Matched/Idle")
	w.run(2 * time.Second)
	w.goes("MATCH_TIMEOUT", "Matched/Idle 8 Owner/Idle 1 Unclaimed/Idle")
	w.match(1)
	w.set("KStart", "false")
	w.goes("START turns false", "Unclaimed/Idle 6 Matched/Idle 8 Owner/Idle 1 Unclaimed/Idle")
	w.set("KStart", "true")
	w.match(1)
	w.refused(w.stage.request(ClaimRequested{Slot: slot1}, job(t, steady(1), "Good = false\n")), errs.Denied, "START")
	w.goes("a refused claim", "Unclaimed/Idle 6 Matched/Idle 8 Owner/Idle 1 Unclaimed/Idle")
	w.match(1)
	w.run(time.Minute)
	w.claimed()
	w.goes("a claim in time", "Unclaimed/Idle 6 Matched/Idle 9 Claimed/Idle")
}

// TestClaimedState walks through the transitions within Claimed and out of it.
//
// row: S1-046, S2-011
func TestClaimedState(t *testing.T) {
	t.Parallel()
	w := newWalk(t)
	w.claimed()
	w.vacate(Graceful)
	w.goes("an idle claim is vacated", "Unclaimed/Idle 5 Claimed/Idle 10 Claimed/Retiring 18 Preempting/Vacating 22 Owner/Idle 1 Unclaimed/Idle")
	w.set("KRetire", "1000")
	w.busy()
	w.goes("a job", "Unclaimed/Idle 5 Claimed/Idle 11 Claimed/Busy")
	w.set("KSuspend", "true")
	w.goes("SUSPEND without WANT_SUSPEND", "")
	w.set("KWantSuspend", "true", "KPreempt", "true")
	w.goes("both, and PREEMPT, which is not asked", "Claimed/Busy 14 Claimed/Suspended 16 Claimed/Retiring 20 Claimed/Suspended")
	w.set("KSuspend", "false", "KPreempt", "false", "KContinue", "true")
	w.goes("CONTINUE in a retiring claim", "Claimed/Suspended 16 Claimed/Retiring")
	w.request(9)
	w.run(2 * time.Second)
	w.goes("PREEMPT is not taken back", "")
	w.set("KRetire", "0")
	w.goes("no retirement is left", "Claimed/Retiring 18 Preempting/Vacating 23 Claimed/Idle")
	w.held = w.replies[w.ref].Granted.Claim

	w.set("KWantSuspend", "false", "KContinue", "false", "KRetire", "1000")
	w.act = w.activate(w.held, job(t, script{runs: time.Hour, reap: 500 * time.Millisecond}, "Prio = 9\n"))
	ref := w.request(10)
	w.run(2 * time.Second)
	w.goes("a better claim", "Claimed/Idle 11 Claimed/Busy 13 Claimed/Retiring")
	w.set("KWantSuspend", "true", "KSuspend", "true")
	w.goes("SUSPEND while retiring", "Claimed/Retiring 20 Claimed/Suspended")
	w.set("KSuspend", "false", "KContinue", "true")
	w.goes("CONTINUE while retiring", "Claimed/Suspended 16 Claimed/Retiring")
	w.step(ClaimWithdrawn{Ref: asked(ref)})
	w.run(2 * time.Second)
	w.goes("the better claim goes away", "Claimed/Retiring 19 Claimed/Busy")
	w.set("KSuspend", "true", "KContinue", "false")
	w.goes("SUSPEND", "Claimed/Busy 14 Claimed/Suspended")
	w.set("KSuspend", "false", "KContinue", "true")
	w.goes("CONTINUE", "Claimed/Suspended 15 Claimed/Busy")
	w.jobEnds()
	w.run(time.Second)
	w.goes("the job ends", "Claimed/Busy 12 Claimed/Cleaning 12 Claimed/Idle")

	w.act = w.activate(w.held, job(t, steady(time.Hour), "Prio = 9\n"))
	w.set("KSuspend", "true", "KContinue", "false")
	w.request(11)
	w.run(2 * time.Second)
	w.goes("a better claim for a suspended job", "Claimed/Idle 11 Claimed/Busy 14 Claimed/Suspended")
	w.set("KRetire", "0")
	w.goes("retirement ends while suspended", "Claimed/Suspended 17 Preempting/Vacating 23 Claimed/Idle")

	w.set("KSuspend", "false", "KRetire", "100")
	w.held = w.replies[w.ref].Granted.Claim
	w.act = w.activate(w.held, job(t, steady(time.Hour), "Prio = 11\n"))
	w.run(10 * time.Second)
	w.vacate(Graceful)
	w.run(70 * time.Second)
	w.goes("condor_vacate", "Claimed/Idle 11 Claimed/Busy 13 Claimed/Retiring")
	w.orders = nil
	w.run(15 * time.Second)
	w.goes("run time at the end of the promise", "Claimed/Retiring 18 Preempting/Vacating 22 Owner/Idle 1 Unclaimed/Idle")
	if len(w.orders) != 1 || w.orders[0].Op != SoftKill {
		t.Errorf("the job was told %+v", w.orders)
	}
	w.set("KWantSuspend", "false", "KRetire", "1000")
	w.busy()
	w.shut(Peaceful)
	w.run(30 * time.Minute)
	w.goes("peaceful shutdown", "Unclaimed/Idle 5 Claimed/Idle 11 Claimed/Busy 13 Claimed/Retiring")
	w.shut(Fast)
	w.run(2 * time.Second)
	w.goes("fast shutdown", "Claimed/Retiring 0 Preempting/Killing 25 Owner/Idle 1 Unclaimed/Idle")

	// Vanilla jobs have expressions of their own where there are any.
	for universe, want := range map[string]policy.Pair{"5": policy.ClaimedSuspended, "10": policy.ClaimedBusy} {
		s := newStage(t, 1, static1+"WANT_SUSPEND = False\nSUSPEND = False\nCONTINUE = True\nPREEMPT = False\n"+
			"WANT_SUSPEND_VANILLA = True\nSUSPEND_VANILLA = True\nCONTINUE_VANILLA = False\n")
		ad := job(t, steady(time.Hour), "JobUniverse = "+universe+"\n")
		s.activate(s.claim(slot1, ad).Claim, ad)
		s.run(10 * time.Second)
		if got := s.pair(slot1); got != want {
			t.Errorf("universe %s: %v, want %v", universe, got, want)
		}
	}
}

// TestPreemptingState has every way out of Claimed with a job, under the KILL
// of the 6.8 manual: there it was the only limit to the time of vacating.
//
// row: S1-048, S2-012
func TestPreemptingState(t *testing.T) {
	t.Parallel()
	const text = static1 + "WANT_VACATE = TARGET.Old =?= True\nPREEMPT = KPreempt =?= True\nRANK = TARGET.Prio\n" +
		"MaxVacateTime = 10 * 60\nActivityTimer = (CurrentTime - EnteredCurrentActivity)\nKILL = $(ActivityTimer) > $(MaxVacateTime)\nMachineMaxVacateTime = 24 * 3600\n"
	const old, better = "Old = True\n", "Old = True\nPrio = 9\n"
	owner := func(s *stage) { s.publish("KPreempt = True\n") }
	rank := func(s *stage) {
		s.ref++
		s.step(ClaimRequested{Ref: asked(s.ref), Slot: slot1, Job: job(t, steady(time.Hour), better), Lease: time.Hour})
	}
	for _, tt := range []struct {
		name string
		job  script
		more string
		do   func(s *stage)
		want string
		left time.Duration // from there to the end
	}{
		{"the job leaves by itself", script{runs: time.Hour, onSoft: time.Minute}, old, owner,
			"Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating 22 Owner/Idle", time.Minute},
		{"WANT_VACATE is false", script{runs: time.Hour, onSoft: time.Minute, onHard: time.Second}, "", owner,
			"Claimed/Busy 13 Claimed/Retiring 18 Preempting/Killing 25 Owner/Idle", time.Second},
		{"KILL", script{runs: time.Hour, onSoft: -1, onHard: time.Second}, old, owner,
			"Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating 21 Preempting/Killing 25 Owner/Idle", 602 * time.Second},
		{"a starter that is stuck", script{runs: time.Hour, onHard: -1, onKill: time.Second}, "", owner,
			"Claimed/Busy 13 Claimed/Retiring 18 Preempting/Killing 25 Owner/Idle", 31 * time.Second},
		{"a better claim", script{runs: time.Hour, onSoft: time.Minute}, old, rank,
			"Claimed/Busy 18 Preempting/Vacating 23 Claimed/Idle", time.Minute},
		{"a better claim, KILL", script{runs: time.Hour, onSoft: -1, onHard: time.Second}, old, rank,
			"Claimed/Busy 18 Preempting/Vacating 21 Preempting/Killing 24 Claimed/Idle", 602 * time.Second},
	} {
		s := newStage(t, 1, text)
		ad := job(t, tt.job, tt.more)
		g := s.claim(slot1, ad)
		s.activate(g.Claim, ad)
		s.run(time.Minute)
		from := len(s.moves)
		tt.do(s)
		s.run(2 * time.Second)
		if got := s.pair(slot1).State; got != policy.Preempting && tt.left > 2*time.Second {
			t.Errorf("%s: %v", tt.name, got)
		} else if tt.left > 2*time.Second && (s.shown(slot1, "Requirements") != "false" || len(s.ended) != 0) {
			t.Errorf("%s: Requirements = %s, told %+v", tt.name, s.shown(slot1, "Requirements"), s.ended)
		}
		s.run(11 * time.Minute)
		moves := s.moves[from:]
		end := slices.IndexFunc(moves, func(m Transitioned) bool { return m.From.State == policy.Preempting && m.To.State != policy.Preempting })
		begin := slices.IndexFunc(moves, func(m Transitioned) bool { return m.To.State == policy.Preempting })
		if end < 0 {
			t.Errorf("%s: still there: %s", tt.name, s.path("slot1", from))
			continue
		}
		if got := s.path("slot1", from)[:len(tt.want)]; got != tt.want {
			t.Errorf("%s: got  %s\nwant %s", tt.name, got, tt.want)
		}
		if got := s.at[from+end] - s.at[from+begin]; got != tt.left {
			t.Errorf("%s: gone after %v, want %v", tt.name, got, tt.left)
		}
		if len(s.ended) != 1 || s.ended[0].Claim != g.Claim {
			t.Errorf("%s: told %+v", tt.name, s.ended)
		}
		if forced := len(s.killed) > 0; forced != (tt.job.onHard < 0) {
			t.Errorf("%s: starters ended by force: %d", tt.name, len(s.killed))
		}
	}
}

// TestBackfillState walks through the transitions of Backfill.
//
// row: S1-049, S2-013
func TestBackfillState(t *testing.T) {
	t.Parallel()
	const up, down = "Unclaimed/Idle 7 Backfill/Idle 26 Backfill/Busy", " 28 Backfill/Killing 29 Backfill/Idle"
	w := newWalk(t)
	w.backfilling()
	w.goes("the client runs", up)
	if w.starts != 1 {
		t.Errorf("%d clients", w.starts)
	}
	w.step(BackfillExited{})
	w.run(3 * time.Second)
	w.goes("the client ends by itself", "Backfill/Busy 27 Backfill/Idle 26 Backfill/Busy")
	w.set("KEvict", "true", "KBackfill", "false")
	w.run(3 * time.Second)
	w.goes("EVICT_BACKFILL", "Backfill/Busy"+down+" 30 Owner/Idle 1 Unclaimed/Idle")
	w.set("KEvict", "false")
	w.backfilling()
	w.set("KBackfill", "false")
	w.vacate(Graceful)
	w.run(3 * time.Second)
	w.goes("condor_vacate", up+down+" 30 Owner/Idle 1 Unclaimed/Idle")

	w.backfilling()
	w.claimed()
	if w.replies[w.ref].Granted != nil {
		t.Error("the claim was granted before the client was gone")
	}
	w.run(3 * time.Second)
	w.goes("a claim first", up+down+" 31 Claimed/Idle")
	w.held = w.replies[w.ref].Granted.Claim
	w.set("KBackfill", "false")
	w.release()
	w.seen = len(w.moves)
	w.backfilling()
	w.match(1)
	w.run(3 * time.Second)
	w.goes("a match first", up+down+" 32 Matched/Idle")
	w.claimed()
	w.goes("and then the claim", "Matched/Idle 9 Claimed/Idle")
	if w.starts != w.stops+1 { // one ended by itself
		t.Errorf("%d clients were started, %d stopped", w.starts, w.stops)
	}

	// One client serves all slots.
	b := newBoincStage(t, 3, boinc+"NUM_CPUS = 3\nNUM_SLOTS = 3\n", nil)
	b.run(10 * time.Second)
	for n := range 3 {
		if got := b.pair(slot.ID{N: n + 1}); got != policy.BackfillBusy {
			t.Errorf("slot%d is %v", n+1, got)
		}
	}
	b.step(ShutdownRequested{Manner: Graceful})
	b.run(5 * time.Second)
	if b.starts != 1 || b.stops != 1 || !b.complete || b.pair(slot1).State == policy.Backfill {
		t.Errorf("%d clients for three slots, %d stopped; in the end %v", b.starts, b.stops, b.pair(slot1))
	}
}
