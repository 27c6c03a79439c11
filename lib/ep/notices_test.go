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
	"github.com/execpoint/execpoint/lib/slot"
)

// told notes what the engine tells for people and scripts.
func (s *stage) told() *[]string {
	var all []string
	s.onOther = func(eff Effect) {
		switch eff := eff.(type) {
		case DrainBegun:
			all = append(all, fmt.Sprintf("%v drain %s, then %v: %s", eff.How, eff.ID, eff.Then, eff.Reason))
		case DrainFinal:
			all = append(all, "final "+eff.ID)
		case ClaimWaits:
			all = append(all, fmt.Sprintf("%s waits %d", eff.Name, eff.Why))
		case KeptAlive:
			all = append(all, fmt.Sprintf("%s alive %q by %d", eff.Name, eff.Job, eff.By))
		}
	}
	return &all
}

// A drain is told when it begins, before anything that it moves, and when only
// those are left that it let in.
func TestDrainTold(t *testing.T) {
	t.Parallel()
	s := newStage(t, 2, drainConfig+"NUM_SLOTS = 2\nMAXJOBRETIREMENTTIME = 600\nMachineMaxVacateTime = 5\n")
	told := s.told()
	old := job(t, steady(20*time.Second), "")
	s.activate(s.claim(slot.ID{N: 1}, old).Claim, old)
	*told = nil
	s.drain(DrainRequested{Start: classad.MustParseExpr("true"), Then: ThenResume, Reason: "disks"})
	ad := job(t, steady(time.Hour), "")
	s.activate(s.claim(slot.ID{N: 2}, ad).Claim, ad)
	s.run(19 * time.Second)
	if got := strings.Join(*told, "; "); strings.Contains(got, "final") {
		t.Errorf("too early: %s", got)
	}
	s.run(5 * time.Second)
	got := strings.Join(*told, "; ")
	if !strings.HasPrefix(got, "graceful drain 1, then resume: disks; ") || !strings.HasSuffix(got, "; final 1") {
		t.Errorf("told: %s", got)
	}
}

// A claim that waits for another's slot is told with what brings it there.
func TestClaimWaitsTold(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		good     int
		priority bool
		want     string
	}{{2, false, fmt.Sprintf("slot1 waits %d", policy.WaitsByRank)}, {1, true, fmt.Sprintf("slot1 waits %d", policy.WaitsByPriority)}} {
		s := newStage(t, 1, drainConfig+"RANK = TARGET.Good\nMAXJOBRETIREMENTTIME = 600\n")
		ad := job(t, steady(time.Hour), "Good = 1\n")
		s.activate(s.claim(slot1, ad).Claim, ad)
		told := s.told()
		better := job(t, steady(time.Hour), fmt.Sprintf("Good = %d\n", tt.good))
		s.step(ClaimRequested{Ref: asked(900), Slot: slot1, Job: better, Priority: tt.priority})
		if got := strings.Join(*told, "; "); got != tt.want {
			t.Errorf("told %q, want %q", got, tt.want)
		}
	}
}

// A lease that begins anew is told with the sign of life: of the access point,
// or of the starter, which counts as long as it runs.
func TestKeptAliveTold(t *testing.T) {
	t.Parallel()
	s := newStage(t, 1, drainConfig)
	told := s.told()
	ad := job(t, steady(100*time.Second), "ClusterId = 7\nProcId = 1\nJobLeaseDuration = 40\n")
	g := s.claim(slot1, ad)
	s.step(LeaseRenewed{Claim: g.Claim, By: SignMessage})
	s.activate(g.Claim, ad)
	s.run(90 * time.Second)
	s.step(LeaseRenewed{Claim: g.Claim})
	starter := fmt.Sprintf(`slot1 alive "7.1" by %d`, SignStarter)
	want := []string{fmt.Sprintf(`slot1 alive "" by %d`, SignMessage), starter, starter, starter, fmt.Sprintf(`slot1 alive "7.1" by %d`, SignAnswer)}
	if got := strings.Join(*told, "\n"); got != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", got, strings.Join(want, "\n"))
	}
	if got := s.pair(slot1); got != policy.ClaimedBusy {
		t.Errorf("slot1 is %v", got)
	}
}

// The hard kill of a job that did not leave in its vacate time is marked, that
// of one which gets no such time is not.
func TestLateOrder(t *testing.T) {
	t.Parallel()
	for _, fast := range []bool{false, true} {
		s := newStage(t, 1, drainConfig+"MachineMaxVacateTime = 5\n")
		ad := job(t, script{runs: time.Hour, onSoft: -1}, "")
		s.activate(s.claim(slot1, ad).Claim, ad)
		s.run(time.Second)
		manner := Graceful
		if fast {
			manner = Fast
		}
		s.step(VacateRequested{Slot: slot1, Manner: manner})
		s.run(10 * time.Second)
		late := 0
		for _, o := range s.orders {
			if o.Late && o.Op == HardKill {
				late++
			} else if o.Late {
				t.Errorf("a late %v", o.Op)
			}
		}
		if want := map[bool]int{false: 1, true: 0}[fast]; late != want {
			t.Errorf("fast %v: %d late orders, want %d", fast, late, want)
		}
	}
}
