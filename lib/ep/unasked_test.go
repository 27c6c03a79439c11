// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"slices"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// Who asks how a drain goes, or is refused a claim for it, changes nothing that is
// decided until the next poll.
func TestDrainIsAsItWasWhoeverAsks(t *testing.T) {
	t.Parallel()
	s := newStage(t, 1, drainConfig+"POLLING_INTERVAL = 60\nMAXJOBRETIREMENTTIME = 3600\n")
	one := slot.ID{N: 1}
	ad := job(t, steady(time.Hour), "")
	g := s.claim(one, ad)
	s.activate(g.Claim, ad)
	s.run(time.Second)
	if r := s.drain(DrainRequested{Start: classad.MustParseExpr("true")}); r.Err != nil {
		t.Fatal(r.Err)
	}
	left := s.eng.drain.left
	if left == 0 {
		t.Fatal("no time is left at the beginning")
	}
	s.run(5 * time.Second)
	before := s.eng.drain
	v, ok := s.eng.Drain()
	if !ok || v.Left == 0 || v.Left > left {
		t.Errorf("%+v", v)
	}
	_ = s.eng.refusesClaims()
	if s.eng.drain != before {
		t.Errorf("it is %+v after the questions, and was %+v", s.eng.drain, before)
	}
}

// A claim that begins to wait, or is withdrawn, changes the ad of its slot, which is
// told.
func TestWaitingClaimsAreAdvertised(t *testing.T) {
	t.Parallel()
	s := newStage(t, 1, "SLOT_TYPE_0_PARTITIONABLE = false\nNUM_SLOTS = 1\nRANK = TARGET.Worth\nMAXJOBRETIREMENTTIME = 3600\n")
	one := slot.ID{N: 1}
	ad := job(t, steady(time.Hour), "Worth = 1\n")
	s.activate(s.claim(one, ad).Claim, ad)
	s.run(time.Minute)
	tells := func(ev Event) bool {
		effects := slices.Clone(s.eng.Step(s.now, ev))
		s.perform(effects)
		return slices.ContainsFunc(effects, func(eff Effect) bool { return eff == Effect(AdChanged{Slot: one}) })
	}
	better := job(t, steady(time.Hour), "Worth = 2\n")
	ref := asked(900)
	// What waits is not told by a move: the job is left its time, and asked already.
	if !tells(ClaimRequested{Ref: ref, Slot: one, Job: better, Client: claim.Client{User: "bob@example"}}) {
		t.Error("nothing tells that a claim waits")
	}
	s.run(time.Second)
	if !tells(ClaimWithdrawn{Ref: ref}) {
		t.Error("nothing tells that no claim waits any more")
	}
}

// Claims are not given up for one that a machine with a fault would not grant.
func TestCoalesceAsksForFaults(t *testing.T) {
	t.Parallel()
	a := newAiling(t, 4, "")
	small, big := job(t, steady(time.Hour), ""), job(t, steady(time.Hour), "RequestCpus = 2\n")
	ids := []claim.ID{a.claim(slot1, small).Claim, a.claim(slot1, small).Claim}
	third := a.claim(slot1, small)
	failing := job(t, steady(time.Hour), "")
	failing.SetBool("SimFails", true)
	act := a.activate(third.Claim, failing)
	a.step(StarterFailed{Activation: act, Err: errs.E("", errs.Other, "", nil), Fault: &MachineFault{Kind: FaultStarter, Reason: "no luck"}})
	a.refused(a.coalesce(CoalesceRequested{Claims: ids, Job: big}), errs.Transient, "the machine takes no jobs: no luck")
	for i := range ids {
		if p := a.pair(slot.ID{N: 1, Sub: i + 1}); p != policy.ClaimedIdle {
			t.Errorf("slot1_%d is %v after a refusal", i+1, p)
		}
	}
}
