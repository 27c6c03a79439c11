// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/policy"
)

// TestShutdown has the manners of ending with a job that has retirement left: a
// peaceful one waits for ever, a graceful one as long as was promised or
// SHUTDOWN_GRACEFUL_TIMEOUT, a fast one not at all.
//
// row: S4-027
func TestShutdown(t *testing.T) {
	t.Parallel()
	const retirement = static1 + "CLAIM_WORKLIFE = -1\nMAXJOBRETIREMENTTIME = 100\nMachineMaxVacateTime = 10\n"
	for _, tt := range []struct {
		name   string
		config string
		how    []Manner // one every 20 s
		job    script
		want   string
		gone   time.Duration // when the job was gone, counted from the first request
	}{
		// row: S0-154, S0-162
		{"fast", retirement, []Manner{Fast}, steady(time.Hour),
			"Claimed/Busy 0 Preempting/Killing 25 Owner/Idle 1 Unclaimed/Idle", 0},
		{"graceful", retirement, []Manner{Graceful}, script{runs: time.Hour, onSoft: -1, onHard: 0},
			"Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating 22 Owner/Idle 1 Unclaimed/Idle", 90 * time.Second},
		{"graceful without retirement", static1, []Manner{Graceful}, script{runs: time.Hour, onSoft: 5 * time.Second},
			"Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating 22 Owner/Idle 1 Unclaimed/Idle", 5 * time.Second},
		// row: S0-161
		{"peaceful", retirement, []Manner{Peaceful}, steady(time.Hour),
			"Claimed/Busy 13 Claimed/Retiring 12 Claimed/Cleaning 12 Claimed/Idle", time.Hour - 10*time.Second},
		{"graceful, then fast", retirement, []Manner{Graceful, Fast}, steady(time.Hour),
			"Claimed/Busy 13 Claimed/Retiring 0 Preempting/Killing 25 Owner/Idle 1 Unclaimed/Idle", 20 * time.Second},
		{"peaceful, then graceful", retirement, []Manner{Peaceful, Graceful}, steady(time.Hour),
			"Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating 22 Owner/Idle 1 Unclaimed/Idle", 80 * time.Second},
		{"fast, then peaceful", retirement, []Manner{Fast, Peaceful}, steady(time.Hour),
			"Claimed/Busy 0 Preempting/Killing 25 Owner/Idle 1 Unclaimed/Idle", 0},
		{"graceful takes too long", retirement + "SHUTDOWN_GRACEFUL_TIMEOUT = 30\n", []Manner{Graceful}, steady(time.Hour),
			"Claimed/Busy 13 Claimed/Retiring 0 Preempting/Killing 25 Owner/Idle 1 Unclaimed/Idle", 30 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, 1, tt.config)
			ad := job(t, tt.job, "")
			g := s.claim(slot1, ad)
			s.activate(g.Claim, ad)
			s.run(10 * time.Second)
			from, began := len(s.moves), s.elapsed()
			gone := time.Duration(-1)
			s.onGone = func(*actor) { gone = s.elapsed() - began }
			for i, m := range tt.how {
				s.step(ShutdownRequested{Manner: m})
				if i+1 < len(tt.how) {
					s.run(20 * time.Second)
				}
			}
			if i := len(s.starters); i > 0 && s.complete {
				t.Error("complete with a starter still there")
			}
			r, _ := s.ask(func(ref Ref) Event { return ClaimRequested{Ref: ref, Slot: slot1, Job: ad} })
			if !errs.Is(r.Err, errs.Conflict) || r.Code != 1013 {
				t.Errorf("a claim during the shutdown: %+v", r)
			}
			s.run(70 * time.Minute)
			if got := s.path("slot1", from); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if gone != tt.gone {
				t.Errorf("the job was gone after %v, want %v", gone, tt.gone)
			}
			if !s.complete {
				t.Error("the shutdown is not complete")
			}
			for v := range s.eng.Views() {
				if v.Claimable() {
					t.Error("a slot is offered")
				}
			}
		})
	}
}

// TestShutdownIdle ends claims that run nothing.
func TestShutdownIdle(t *testing.T) {
	t.Parallel()
	s := newStage(t, 2, static2)
	g := s.claim(slot1, job(t, steady(0), ""))
	s.step(ShutdownRequested{Manner: Graceful})
	if !s.complete || s.pair(slot1) != policy.UnclaimedIdle {
		t.Errorf("%v, complete %v", s.pair(slot1), s.complete)
	}
	if len(s.ended) != 1 || s.ended[0].Claim != g.Claim || s.ended[0].Code != 1013 {
		t.Errorf("the client was told %+v", s.ended)
	}
}

// TestVacate is the owner's command in each situation.
func TestVacate(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		config string
		manner Manner
		idle   bool
		want   string
	}{
		// row: S0-149
		{"idle claim", static1, Graceful, true, "Claimed/Idle 10 Claimed/Retiring 18 Preempting/Vacating 22 Owner/Idle 1 Unclaimed/Idle"},
		{"idle claim, fast", static1, Fast, true, "Claimed/Idle 10 Preempting/Killing 25 Owner/Idle 1 Unclaimed/Idle"},
		// row: S0-169
		{"busy", static1, Graceful, false, "Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating 22 Owner/Idle 1 Unclaimed/Idle"},
		// row: S0-173
		{"busy, fast", static1, Fast, false, "Claimed/Busy 0 Preempting/Killing 25 Owner/Idle 1 Unclaimed/Idle"},
		{"suspended", static1 + "WANT_SUSPEND = True\nSUSPEND = True\nCONTINUE = False\n", Graceful, false,
			"Claimed/Suspended 16 Claimed/Retiring 18 Preempting/Vacating 22 Owner/Idle 1 Unclaimed/Idle"},
		{"suspended, fast", static1 + "WANT_SUSPEND = True\nSUSPEND = True\nCONTINUE = False\n", Fast, false,
			"Claimed/Suspended 0 Preempting/Killing 25 Owner/Idle 1 Unclaimed/Idle"},
		// row: S0-113
		{"while the owner is there", static1 + "IS_OWNER = Own =?= True\n", Graceful, false, "Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating 22 Owner/Idle"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, 1, tt.config)
			ad := job(t, steady(time.Hour), "")
			g := s.claim(slot1, ad)
			if !tt.idle {
				s.activate(g.Claim, ad)
			}
			s.run(3 * time.Second)
			s.publish("Own = True")
			if tt.idle {
				s.publish("Own = False")
			}
			from := len(s.moves)
			r, ok := s.ask(func(ref Ref) Event { return VacateRequested{Ref: ref, Slot: slot1, Manner: tt.manner} })
			if !ok || r.Err != nil {
				t.Fatalf("%+v", r)
			}
			s.run(3 * time.Second)
			if got := s.path("slot1", from); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if len(s.ended) != 1 || s.ended[0].Code != 1010 || s.ended[0].Reason != "Claim vacated by the administrator" {
				t.Errorf("the client was told %+v", s.ended)
			}
			if len(s.starters) != 0 {
				t.Error("the job is still there")
			}
		})
	}
}

// TestShutdownView looks at the end of an EP from outside: how many jobs there
// are, what they may still do, and for how long at most.
func TestShutdownView(t *testing.T) {
	t.Parallel()
	const retirement = static1 + "MAXJOBRETIREMENTTIME = 100\nMachineMaxVacateTime = 10\n"
	for _, tt := range []struct {
		name, config string
		how          Manner
		later        time.Duration
		want         ShutdownView
	}{
		{"vacate time", static1 + "MachineMaxVacateTime = 77\n", Graceful, 0, ShutdownView{Manner: Graceful, Jobs: 1, Left: 77 * time.Second}},
		{"some of it is over", static1 + "MachineMaxVacateTime = 77\n", Graceful, 7 * time.Second, ShutdownView{Manner: Graceful, Jobs: 1, Left: 70 * time.Second}},
		{"retirement, of which 10 s are over", retirement, Graceful, 0, ShutdownView{Manner: Graceful, Jobs: 1, Retiring: 1, Left: 90 * time.Second}},
		{"the end of the retirement", retirement, Graceful, 80 * time.Second, ShutdownView{Manner: Graceful, Jobs: 1, Left: 10 * time.Second}},
		{"the limit of a graceful shutdown", retirement + "SHUTDOWN_GRACEFUL_TIMEOUT = 30\n", Graceful, 0, ShutdownView{Manner: Graceful, Jobs: 1, Retiring: 1, Left: 30 * time.Second}},
		{"fast", retirement + "KILLING_TIMEOUT = 20\n", Fast, 0, ShutdownView{Manner: Fast, Jobs: 1, Left: 20 * time.Second}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, 1, tt.config)
			ad := job(t, script{runs: time.Hour, onSoft: -1, onHard: -1}, "")
			g := s.claim(slot1, ad)
			s.activate(g.Claim, ad)
			s.run(10 * time.Second)
			if _, ok := s.eng.Shutdown(); ok {
				t.Error("nothing ends")
			}
			s.step(ShutdownRequested{Manner: tt.how})
			s.run(tt.later)
			if v, ok := s.eng.Shutdown(); !ok || v != tt.want {
				t.Errorf("%+v, want %+v", v, tt.want)
			}
			for _, o := range s.orders {
				if o.Reason != "Startd was shutdown" || o.Code != 1013 { // as a pool knows it
					t.Errorf("the job is told %q, code %d", o.Reason, o.Code)
				}
			}
			if (len(s.orders) > 0) != (tt.want.Retiring == 0) {
				t.Errorf("%d orders", len(s.orders))
			}
		})
	}
	s := newStage(t, 1, static1)
	ad := job(t, steady(time.Hour), "")
	act := s.activate(s.claim(slot1, ad).Claim, ad)
	s.step(OutputMoved{Activation: act})
	s.step(ShutdownRequested{Manner: Fast})
	if v, ok := s.eng.Shutdown(); !ok || v != (ShutdownView{Manner: Fast, Sending: 1}) {
		t.Errorf("output of a job that ended is on its way: %+v", v)
	}
	s = newStage(t, 1, static1)
	s.step(ShutdownRequested{Manner: Peaceful})
	if v, ok := s.eng.Shutdown(); !ok || v != (ShutdownView{Manner: Peaceful}) {
		t.Errorf("without a job: %+v", v)
	}
}
