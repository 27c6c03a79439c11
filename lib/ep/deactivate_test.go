// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/policy"
)

// What is only asked changes nothing, and a job that has ended leaves a claim
// that is not closing as it is: another job follows under it.
func TestClaimAfterJobDone(t *testing.T) {
	t.Parallel()
	s := newStage(t, 1, static1)
	ad := job(t, steady(10*time.Second), "ClusterId = 7\nProcId = 2\nGlobalJobId = \"s#7.2#1\"\n")
	g := s.claim(slot1, ad)
	for n := range 3 {
		s.activate(g.Claim, ad)
		s.run(time.Second)
		if v, _ := s.eng.SlotView(slot1); v.JobID != "7.2" || v.GlobalJobID != "s#7.2#1" || v.StarterAddress != "" {
			t.Errorf("the view names job %q %q at %q", v.JobID, v.GlobalJobID, v.StarterAddress)
		}
		v, _ := s.eng.SlotView(slot1)
		s.step(StarterReached{Activation: v.Activation, Address: "<10.0.0.1:7>"})
		if v, _ := s.eng.SlotView(slot1); v.StarterAddress != "<10.0.0.1:7>" {
			t.Errorf("the starter is reached at %q", v.StarterAddress)
		}
		for _, how := range []Deactivation{Asking, JobDone, Asking} {
			moves := len(s.moves)
			r, ok := s.ask(func(ref Ref) Event { return DeactivateRequested{Ref: ref, Claim: g.Claim, How: how} })
			if !ok || r.Err != nil || r.Closing || len(s.moves) != moves {
				t.Errorf("job %d: deactivation %d: %+v, %d moves", n, how, r, len(s.moves)-moves)
			}
		}
		s.run(20 * time.Second)
		if got := s.pair(slot1); got != policy.ClaimedIdle {
			t.Fatalf("after job %d the slot is %v", n, got)
		}
	}
}

// A claim that closes is over for its client once it was told so: by the end
// of a job at once when the starter is gone, else with it.
func TestClosingClaimEnds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		how   Deactivation
		at    time.Duration
		still policy.Pair // right after the answer
	}{
		{"the job is said to be over, its starter runs", JobDone, 35 * time.Second, policy.ClaimedBusy},
		{"softly", Gracefully, 35 * time.Second, policy.PreemptingVacating},
		{"at once", Forcibly, 35 * time.Second, policy.PreemptingVacating},
		{"only asked", Asking, 35 * time.Second, policy.ClaimedBusy},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, 1, static1+"CLAIM_WORKLIFE = 30\n")
			ad := job(t, steady(40*time.Second), "")
			g := s.claim(slot1, ad)
			s.activate(g.Claim, ad)
			s.run(tt.at)
			r, _ := s.ask(func(ref Ref) Event { return DeactivateRequested{Ref: ref, Claim: g.Claim, How: tt.how} })
			if r.Err != nil || !r.Closing {
				t.Fatalf("%+v", r)
			}
			if got := s.pair(slot1); got.State != tt.still.State {
				t.Errorf("right after the answer the slot is %v, want %v", got, tt.still)
			}
			if r, _ := s.ask(func(ref Ref) Event { return ActivateRequested{Ref: ref, Claim: g.Claim, Job: ad} }); r.Err == nil {
				t.Error("another job follows")
			}
			s.run(20 * time.Second)
			if v, _ := s.eng.SlotView(slot1); v.Claimed {
				t.Errorf("the claim lives, the slot is %v", v.Pair)
			}
		})
	}
}

// A job that is removed and whose output is wanted leaves softly, and only the
// order for that says so.
func TestFinalTransfer(t *testing.T) {
	t.Parallel()
	for _, final := range []bool{false, true} {
		s := newStage(t, 1, static1)
		ad := job(t, steady(time.Hour), "")
		g := s.claim(slot1, ad)
		s.activate(g.Claim, ad)
		s.run(time.Second)
		var got []OrderStarter
		for _, eff := range s.eng.Step(s.now, DeactivateRequested{Ref: asked(99), Claim: g.Claim, How: Gracefully, Final: final}) {
			if o, ok := eff.(OrderStarter); ok {
				got = append(got, o)
			}
		}
		if len(got) != 1 || got[0].Op != SoftKill || got[0].Final != final || got[0].Code != 1009 || got[0].Reason != "Claim deactivated" {
			t.Errorf("final %v: %+v", final, got)
		}
		if r, _ := s.ask(func(ref Ref) Event { return ActivateRequested{Ref: ref, Claim: g.Claim, Job: ad} }); !errs.Is(r.Err, errs.Transient) || r.Code != command.RefusedStillCleaning {
			t.Errorf("while the job leaves another one is answered %+v", r)
		}
	}
}
