// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/policy"
)

// timers is a policy of nothing but ages.
const timers = static1 + `CLAIM_WORKLIFE = 3600
MAXJOBRETIREMENTTIME = 600
MachineMaxVacateTime = 20
WANT_SUSPEND = true
SUSPEND = KSuspend =?= true && Activity == "Busy"
CONTINUE = KSuspend =!= true
PREEMPT = (Activity == "Suspended") && (CurrentTime - EnteredCurrentActivity > 300)
KILL = CurrentTime - EnteredCurrentActivity > 15
`

// TestClockIsSet sets the wall clock by hours in every stage of a job's life:
// nothing happens to the job, and ages stay what they were.
func TestClockIsSet(t *testing.T) {
	t.Parallel()
	for _, by := range []time.Duration{5 * time.Hour, -5 * time.Hour, 36 * time.Hour, 6 * time.Second, -6 * time.Second} {
		for _, tt := range []struct {
			name string
			do   func(s *stage)
			want policy.Pair
			left time.Duration // until the next move without a clock that is set
			then policy.Pair
		}{
			{"running", func(s *stage) { s.run(100 * time.Second) }, policy.ClaimedBusy, 500 * time.Second, policy.ClaimedBusy},
			{"suspended", func(s *stage) { s.publish("KSuspend = true"); s.run(200 * time.Second) }, policy.ClaimedSuspended, 102 * time.Second, policy.ClaimedRetiring},
			{"retiring", func(s *stage) { s.step(VacateRequested{Slot: theSlot, Manner: Graceful}); s.run(100 * time.Second) },
				policy.ClaimedRetiring, 480 * time.Second, policy.PreemptingVacating},
			{"vacating", func(s *stage) {
				s.step(VacateRequested{Slot: theSlot, Manner: Graceful})
				s.run(585 * time.Second)
			}, policy.PreemptingVacating, 11 * time.Second, policy.PreemptingKilling},
		} {
			t.Run(fmt.Sprint(tt.name, " by ", by), func(t *testing.T) {
				t.Parallel()
				s := newStage(t, 1, timers)
				ad := job(t, script{runs: 10 * time.Hour, onSoft: -1, onHard: -1}, "")
				g := s.claim(theSlot, ad)
				s.activate(g.Claim, ad)
				s.run(time.Second)
				tt.do(s)
				if got := s.pair(theSlot); got != tt.want {
					t.Fatalf("%v, want %v", got, tt.want)
				}
				age := func(name string) int64 {
					n, _ := s.eng.SlotAd(theSlot).Eval(name, nil).AsInt()
					return s.now.Wall.Unix() - n
				}
				ran := func() string {
					return s.eng.SlotAd(theSlot).Eval("TotalJobRunTime", &classad.Env{Now: s.now.Wall}).String()
				}
				ages := func() string {
					return fmt.Sprint(age("EnteredCurrentState"), age("EnteredCurrentActivity"), age("JobStart"), ran())
				}
				before := ages()
				s.now.Wall = s.now.Wall.Add(by)
				s.step(Tick{})
				if got := ages(); got != before {
					t.Errorf("ages %s, before the clock was set %s", got, before)
				}
				s.step(LeaseRenewed{Claim: g.Claim})
				s.run(tt.left - 5*time.Second)
				if got := s.pair(theSlot); got != tt.want {
					t.Errorf("%v too early, want %v still", got, tt.want)
				}
				s.run(10 * time.Second)
				if got := s.pair(theSlot); got != tt.then {
					t.Errorf("%v, want %v", got, tt.then)
				}
			})
		}
	}
}

// TestSleep lets the machine sleep for two hours: a lease has run out, since
// nobody renewed it, and retirement is over.
func TestSleep(t *testing.T) {
	t.Parallel()
	s := newStage(t, 1, timers)
	ad := job(t, steady(10*time.Hour), "StarterHandlesAlives = false\nJobLeaseDuration = 1200\n")
	g := s.claim(theSlot, ad)
	s.activate(g.Claim, ad)
	s.run(time.Minute)
	s.now = s.now.Add(2 * time.Hour)
	s.step(Tick{})
	s.run(10 * time.Second)
	if len(s.ended) != 1 || s.pair(theSlot) != policy.UnclaimedIdle {
		t.Errorf("after a sleep that was longer than the lease: %v, %+v", s.pair(theSlot), s.ended)
	}

	s = newStage(t, 1, timers)
	ad = job(t, steady(10*time.Hour), "")
	g = s.claim(theSlot, ad)
	s.activate(g.Claim, ad)
	s.run(time.Minute)
	s.step(VacateRequested{Slot: theSlot, Manner: Graceful})
	s.now = s.now.Add(2 * time.Hour)
	s.step(Tick{})
	s.run(10 * time.Second)
	if got := s.pair(theSlot); got != policy.UnclaimedIdle {
		t.Errorf("after a sleep that was longer than the retirement: %v", got)
	}
}

// TestDriftIsNoJump does nothing about a clock that is a little off, until it
// is off by much.
func TestDriftIsNoJump(t *testing.T) {
	t.Parallel()
	s := newStage(t, 1, static1)
	s.run(10 * time.Second)
	entered := func() int64 {
		n, _ := s.eng.SlotAd(theSlot).Eval("EnteredCurrentState", nil).AsInt()
		return n
	}
	first := entered()
	for range 4 {
		s.now.Wall = s.now.Wall.Add(time.Second)
		s.step(Tick{})
	}
	if got := entered(); got != first {
		t.Errorf("four seconds of drift moved a time by %d s", got-first)
	}
	s.now.Wall = s.now.Wall.Add(time.Second)
	s.step(Tick{})
	if got := entered(); got != first+5 {
		t.Errorf("five seconds of drift moved a time by %d s", got-first)
	}
}

// TestNoAgeIsNegative sets the clock forwards and backwards again and again
// while jobs come and go: nothing in the ad of a slot began in the future or
// took less than no time, and the lease of the claim does not end.
func TestNoAgeIsNegative(t *testing.T) {
	t.Parallel()
	s := newStage(t, 1, timers)
	for i, by := range []time.Duration{time.Hour, -time.Hour, -26 * time.Hour, 7 * time.Second, -7 * time.Second, 400 * 24 * time.Hour, -400 * 24 * time.Hour} {
		ad := job(t, steady(30*time.Second), "")
		g := s.claim(theSlot, ad)
		s.activate(g.Claim, ad)
		for range 4 {
			s.run(20 * time.Second)
			s.now.Wall = s.now.Wall.Add(by)
			s.step(Tick{})
			env := &classad.Env{Now: s.now.Wall}
			for name := range s.eng.SlotAd(theSlot).All() {
				v := s.eng.SlotAd(theSlot).Eval(name, env)
				n, ok := v.AsInt()
				switch {
				case !ok:
				case strings.HasPrefix(name, "TotalTime"), strings.HasPrefix(name, "TotalJob"), strings.HasPrefix(name, "TotalClaim"):
					if n < 0 || n > int64(s.elapsed()/time.Second)+1 {
						t.Errorf("%v the %d. time: %s is %d after %v", by, i, name, n, s.elapsed())
					}
				case strings.HasPrefix(name, "Entered"), name == "JobStart", name == "LastBenchmark":
					if age := s.now.Wall.Unix() - n; n > 0 && (age < 0 || age > int64(s.elapsed()/time.Second)+1) {
						t.Errorf("%v the %d. time: %s was %d s ago, the slot is %v old", by, i, name, age, s.elapsed())
					}
				}
			}
		}
		if len(s.ended) != i {
			t.Fatalf("%v: a claim ended: %+v", by, s.ended)
		}
		s.ask(func(ref Ref) Event { return ReleaseRequested{Ref: ref, Claim: g.Claim} })
		s.run(time.Second)
	}
}
