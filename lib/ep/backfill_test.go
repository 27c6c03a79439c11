// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"math"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

const boinc = static1 + `ENABLE_BACKFILL = true
BACKFILL_SYSTEM = BOINC
BOINC_Executable = /usr/bin/boinc
BOINC_InitialDir = /var/lib/boinc
BOINC_Universe = vanilla
START_BACKFILL = Backfill =!= false
EVICT_BACKFILL = Evict =?= true
CLAIM_WORKLIFE = -1
`

// boincStage is a stage whose backfill client comes up after a second and goes
// within two when told to.
type boincStage struct {
	*stage
	starts, stops int
	fails         bool // the client cannot be started
	dies          time.Duration
	gen           int
}

func newBoincStage(t testing.TB, cpus int, text string, set func(*boincStage)) *boincStage {
	t.Helper()
	b := &boincStage{stage: newStage(t, cpus, text)}
	if set != nil {
		set(b)
	}
	b.eng.cfg.Backfill = true
	b.eng.back.configured = backfilled(b.eng.cfg.Snapshot)
	b.onOther = b.effect
	return b
}

func (b *boincStage) effect(eff Effect) {
	s := b.stage
	switch eff.(type) {
	case StartBackfill:
		b.starts++
		b.gen++
		gen := b.gen
		later := func(d time.Duration, do func()) {
			s.after(d, func() {
				if gen == b.gen {
					do()
				}
			})
		}
		if b.fails {
			later(0, func() { s.step(BackfillExited{}) })
			return
		}
		later(time.Second, func() { s.step(BackfillRunning{}) })
		if b.dies > 0 {
			later(time.Second+b.dies, func() { s.step(BackfillExited{}) })
		}
	case StopBackfill:
		b.stops++
		b.gen++
		s.after(2*time.Second, func() { s.step(BackfillExited{}) })
	}
}

func TestBackfill(t *testing.T) {
	t.Parallel()
	one := slot.ID{N: 1}
	const up = "Unclaimed/Idle 7 Backfill/Idle 26 Backfill/Busy"
	for _, tt := range []struct {
		name   string
		config string
		then   func(s *boincStage)
		want   string
	}{
		// row: S0-107, S0-141, S0-174, S0-175, S4-086
		{"comes up", "", func(*boincStage) {}, up},
		// row: S0-114, S0-178, S0-179, S0-180, S0-195, S4-087
		{"evicted", "", func(s *boincStage) { s.publish("Evict = true\nBackfill = false") },
			up + " 28 Backfill/Killing 29 Backfill/Idle 30 Owner/Idle 1 Unclaimed/Idle"},
		{"vacated", "", func(s *boincStage) {
			s.publish("Backfill = false")
			s.step(VacateRequested{Slot: one, Manner: Graceful})
		}, up + " 28 Backfill/Killing 29 Backfill/Idle 30 Owner/Idle 1 Unclaimed/Idle"},
		{"shut down", "", func(s *boincStage) {
			s.step(ShutdownRequested{Manner: Fast})
			if s.complete {
				s.t.Error("the client is still there and the shutdown is complete")
			}
		}, up + " 28 Backfill/Killing 29 Backfill/Idle 30 Owner/Idle 1 Unclaimed/Idle"},
		{"drained", "", func(s *boincStage) { s.drain(DrainRequested{}) },
			up + " 28 Backfill/Killing 29 Backfill/Idle 30 Owner/Idle 1 Unclaimed/Idle 37 Drained/Retiring 33 Drained/Idle"},
		// row: S0-115, S0-182
		{"matched", "", func(s *boincStage) {
			if r := s.match(1); r.Err != nil {
				s.t.Error(r.Err)
			}
		}, up + " 28 Backfill/Killing 29 Backfill/Idle 32 Matched/Idle"},
		// row: S0-116, S0-181
		{"claimed", "", func(s *boincStage) {
			s.ref++
			ref := s.ref
			s.step(ClaimRequested{Ref: asked(ref), Slot: one, Job: job(s.t, steady(time.Hour), "")})
			if _, ok := s.replies[ref]; ok {
				s.t.Error("a reply while the client is still there")
			}
			s.run(5 * time.Second)
			if r := s.replies[ref]; r.Granted == nil {
				s.t.Errorf("reply %+v", r)
			}
		}, up + " 28 Backfill/Killing 29 Backfill/Idle 31 Claimed/Idle"},
		{"the claim is withdrawn", "", func(s *boincStage) {
			s.publish("Backfill = false")
			s.ref++
			s.step(ClaimRequested{Ref: asked(s.ref), Slot: one, Job: job(s.t, steady(time.Hour), "")})
			s.step(ClaimWithdrawn{Ref: asked(s.ref)})
		}, up + " 28 Backfill/Killing 29 Backfill/Idle 30 Owner/Idle 1 Unclaimed/Idle"},
		// row: S0-196
		{"after five minutes", "START_BACKFILL = (CurrentTime - EnteredCurrentState) > 5 * 60\nUPDATE_INTERVAL = 10\n", func(s *boincStage) {
			if got := s.pair(one); got != policy.UnclaimedIdle {
				s.t.Errorf("at first %v", got)
			}
			s.run(5*time.Minute + 10*time.Second)
		}, up},
		// row: S0-192
		{"not enabled", "ENABLE_BACKFILL = false\n", func(*boincStage) {}, ""},
		{"another system", "BACKFILL_SYSTEM = SETI\n", func(*boincStage) {}, ""},
		{"no executable", "BOINC_Executable =\n", func(*boincStage) {}, ""},
		{"switched off", "", func(s *boincStage) {
			s.step(Reconfigured{Snapshot: parse(s.t, s.inv, boinc+"ENABLE_BACKFILL = false\n")})
		}, up + " 28 Backfill/Killing 29 Backfill/Idle 30 Owner/Idle 1 Unclaimed/Idle"},
		{"nobody can run it any more", "", func(s *boincStage) { s.step(BackfillPossible{}) },
			up + " 28 Backfill/Killing 29 Backfill/Idle 30 Owner/Idle 1 Unclaimed/Idle"},
		{"and then somebody can", "", func(s *boincStage) {
			s.step(BackfillPossible{})
			s.run(10 * time.Second)
			s.step(BackfillPossible{Possible: true})
		}, up + " 28 Backfill/Killing 29 Backfill/Idle 30 Owner/Idle 1 Unclaimed/Idle 7 Backfill/Idle 26 Backfill/Busy"},
		{"possible and not enabled", "ENABLE_BACKFILL = false\n", func(s *boincStage) { s.step(BackfillPossible{Possible: true}) }, ""},
		{"the names of job attributes", "BOINC_Executable =\nBOINC_InitialDir =\nBOINC_Universe =\n" +
			"BOINC_Cmd = /usr/bin/boinc\nBOINC_Iwd = /var/lib/boinc\nBOINC_JobUniverse = 5\n", func(*boincStage) {}, up},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newBoincStage(t, 1, boinc+tt.config, nil)
			s.run(10 * time.Second)
			tt.then(s)
			s.run(10 * time.Second)
			got := s.path("slot1", 0)
			if got == "Owner/Idle 1 Unclaimed/Idle" {
				got = ""
			}
			if want := "Owner/Idle 1 " + tt.want; tt.want != "" && got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			} else if tt.want == "" && (got != "" || s.starts != 0) {
				t.Errorf("got %s with %d clients", got, s.starts)
			}
			if s.starts > s.stops+1 {
				t.Errorf("%d clients started, %d stopped", s.starts, s.stops)
			}
		})
	}
}

// TestOneClient shares one client among all slots, and restarts it when a slot
// had to leave.
//
// row: S0-176, S0-177
func TestOneClient(t *testing.T) {
	t.Parallel()
	s := newBoincStage(t, 3, boinc+"NUM_CPUS = 3\nNUM_SLOTS = 3\n", nil)
	s.run(10 * time.Second)
	for n := 1; n <= 3; n++ {
		if got := s.pair(slot.ID{N: n}); got != policy.BackfillBusy {
			t.Errorf("slot%d is %v", n, got)
		}
	}
	if s.starts != 1 {
		t.Errorf("%d clients for three slots", s.starts)
	}
	from := len(s.moves)
	ad := job(t, steady(time.Hour), "")
	s.ref++
	s.step(ClaimRequested{Ref: asked(s.ref), Slot: slot.ID{N: 2}, Job: ad})
	s.run(10 * time.Second)
	if got, want := s.path("slot2", from), "Backfill/Busy 28 Backfill/Killing 29 Backfill/Idle 31 Claimed/Idle"; got != want {
		t.Errorf("slot2: got  %s\nwant %s", got, want)
	}
	for _, name := range []string{"slot1", "slot3"} {
		if got, want := s.path(name, from), "Backfill/Busy 27 Backfill/Idle 26 Backfill/Busy"; got != want {
			t.Errorf("%s: got  %s\nwant %s", name, got, want)
		}
	}
	if s.starts != 2 || s.stops != 1 {
		t.Errorf("%d clients started, %d stopped", s.starts, s.stops)
	}
}

// TestLoadOfClient lets a policy that evicts backfill from a busy machine see
// what others make of the load, not the client itself.
func TestLoadOfClient(t *testing.T) {
	t.Parallel()
	s := newBoincStage(t, 3, boinc+"NUM_CPUS = 3\nNUM_SLOTS = 3\nEVICT_BACKFILL = LoadAvg - CondorLoadAvg > 0.5\n", nil)
	var spent time.Duration
	average := 0.0
	pass := func(d time.Duration, client, others float64) {
		t.Helper()
		const step = 5 * time.Second
		keep := math.Exp(-step.Seconds() / loadWindow.Seconds())
		for range d / step {
			s.run(step)
			spent += time.Duration(client * float64(step))
			average = average*keep + (client+others)*(1-keep)
			s.step(BackfillUsage{Usage: host.Usage{UserCPU: spent / 2, SysCPU: spent - spent/2}})
			s.step(Sampled{Sample: machine.Sample{At: s.now, LoadAvg: average, Fresh: machine.AllReadings}})
			s.step(Tick{})
		}
	}
	s.run(10 * time.Second)
	pass(10*time.Minute, 3, 0)
	condor := 0.0
	for n := 1; n <= 3; n++ {
		load, _ := s.eng.SlotAd(slot.ID{N: n}).EvalReal("CondorLoadAvg", nil)
		condor += load
	}
	if s.starts != 1 || s.stops != 0 || condor < 2.9 || condor > 3.1 {
		t.Fatalf("the client makes %g of the load; %d were started, %d stopped", condor, s.starts, s.stops)
	}
	pass(2*time.Minute, 0.6, 2) // it has little to do, others have more
	if s.stops == 0 {
		t.Errorf("the load of others, of %g in all, ends no client", average)
	}
}

// TestClientThatDies is started again, later and later if it dies at once.
//
// row: S0-177
func TestClientThatDies(t *testing.T) {
	t.Parallel()
	s := newBoincStage(t, 1, boinc, func(b *boincStage) { b.dies = 90 * time.Second })
	s.run(10 * time.Minute)
	if s.starts != 7 {
		t.Errorf("%d clients in ten minutes, each of which lives for 91 s", s.starts)
	}
	s = newBoincStage(t, 1, boinc, func(b *boincStage) { b.fails = true })
	s.run(time.Hour)
	if s.starts < 10 || s.starts > 25 {
		t.Errorf("%d attempts in an hour", s.starts)
	}
	if got := s.pair(slot.ID{N: 1}); got != policy.BackfillIdle {
		t.Errorf("slot1 is %v", got)
	}
}

// TestBackfillOfPartitionable carves as soon as the client is gone.
func TestBackfillOfPartitionable(t *testing.T) {
	t.Parallel()
	s := newBoincStage(t, 4, boinc+"NUM_CPUS = 4\nSLOT_TYPE_0_PARTITIONABLE = true\nSTART_BACKFILL = (CurrentTime - EnteredCurrentState) > 60\n", nil)
	s.run(70 * time.Second)
	if got := s.pair(slot.ID{N: 1}); got != policy.BackfillBusy {
		t.Fatalf("slot1 is %v", got)
	}
	ad := job(t, steady(time.Hour), "")
	first := s.ref + 1
	for range 2 {
		s.ref++
		s.step(ClaimRequested{Ref: asked(s.ref), Slot: slot.ID{N: 1}, Job: ad})
	}
	s.run(5 * time.Second)
	for ref := first; ref <= s.ref; ref++ {
		if r := s.replies[ref]; r.Granted == nil || r.Err != nil {
			t.Errorf("reply %+v", r)
		}
	}
	if got := s.pair(slot.ID{N: 1}); got != policy.UnclaimedIdle {
		t.Errorf("slot1 is %v", got)
	}
	s.run(70 * time.Second)
	if got := s.pair(slot.ID{N: 1}); got != policy.BackfillBusy {
		t.Errorf("what is left is %v a minute later", got)
	}
}

// TestLeftoversAfterBackfill offers what is left of a partitionable slot with
// an id that is good for a claim, also when several requests waited for the end
// of the client and each took a part: only the last one is told the rest.
func TestLeftoversAfterBackfill(t *testing.T) {
	t.Parallel()
	s := newBoincStage(t, 4, boinc+"NUM_CPUS = 4\nSLOT_TYPE_0_PARTITIONABLE = true\n", nil)
	s.run(10 * time.Second)
	ad := job(t, steady(time.Hour), "")
	first := s.ref + 1
	for range 3 {
		s.ref++
		s.step(ClaimRequested{Ref: asked(s.ref), Slot: slot.ID{N: 1}, Job: ad, Leftovers: true})
	}
	last := s.ref
	s.run(5 * time.Second)
	for ref := first; ref <= last; ref++ {
		if g := s.replies[ref].Granted; g == nil || (g.Leftovers != nil) != (ref == last) {
			t.Fatalf("request %d of %d to %d: reply %+v", ref, first, last, s.replies[ref])
		}
	}
	s.ref++
	s.step(ClaimRequested{Ref: asked(s.ref), Capability: s.replies[last].Granted.Leftovers.Claim, Job: ad})
	s.run(5 * time.Second) // what is left is in Backfill again
	if r := s.replies[s.ref]; r.Granted == nil {
		t.Errorf("the leftovers cannot be claimed: %v", r.Err)
	}
}

// TestLeftoversBeforeWhole tells nobody the id of a claim of the whole slot that
// another schedd waited for: who knows it can end the claim.
func TestLeftoversBeforeWhole(t *testing.T) {
	t.Parallel()
	s := newBoincStage(t, 4, boinc+"NUM_CPUS = 4\nSLOT_TYPE_0_PARTITIONABLE = true\nENABLE_CLAIMABLE_PARTITIONABLE_SLOTS = true\n", nil)
	s.run(10 * time.Second)
	ad := job(t, steady(time.Hour), "")
	s.ref += 2
	s.step(ClaimRequested{Ref: asked(s.ref - 1), Slot: slot.ID{N: 1}, Job: ad, Client: claim.Client{Schedd: "a"}, Leftovers: true})
	s.step(ClaimRequested{Ref: asked(s.ref), Slot: slot.ID{N: 1}, Job: ad, Client: claim.Client{Schedd: "b"}, Whole: true})
	s.run(5 * time.Second)
	part, whole := s.replies[s.ref-1].Granted, s.replies[s.ref].Granted
	if part == nil || whole == nil {
		t.Fatalf("replies %+v and %+v", s.replies[s.ref-1], s.replies[s.ref])
	}
	if part.Leftovers != nil {
		t.Errorf("a is told %v, the claim of b is %v", part.Leftovers.Claim, whole.Claim)
	}
}

// TestBackfillEnds refuses who waits when the EP ends.
func TestBackfillEnds(t *testing.T) {
	t.Parallel()
	s := newBoincStage(t, 1, boinc, nil)
	s.run(10 * time.Second)
	s.ref++
	s.step(ClaimRequested{Ref: asked(s.ref), Slot: slot.ID{N: 1}, Job: job(t, steady(time.Hour), "")})
	s.step(ShutdownRequested{Manner: Graceful})
	s.run(5 * time.Second)
	if r := s.replies[s.ref]; !errs.Is(r.Err, errs.Conflict) {
		t.Errorf("reply %+v", r)
	}
	if !s.complete || s.stops != 1 {
		t.Errorf("complete %v, stopped %d times", s.complete, s.stops)
	}
}
