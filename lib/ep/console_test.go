// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// TestOneOwnerSlot has a keyboard that belongs to slot1 alone: typing suspends
// the job there, and slot2 goes on.
//
// row: S2-025, S2-027
func TestOneOwnerSlot(t *testing.T) {
	t.Parallel()
	s := newStage(t, 2, "NUM_SLOTS = 2\nSLOT_TYPE_0_PARTITIONABLE = false\nPOLLING_INTERVAL = 1\nUPDATE_INTERVAL = 5\n"+
		"SLOTS_CONNECTED_TO_KEYBOARD = 1\nSLOTS_CONNECTED_TO_CONSOLE = 1\n"+
		"WANT_SUSPEND = true\nSUSPEND = KeyboardIdle < 60\nCONTINUE = KeyboardIdle > 300\nPREEMPT = false\n")
	idle := func(d time.Duration) {
		s.step(Sampled{Sample: machine.Sample{At: s.now, KeyboardIdle: d, ConsoleIdle: d, HasConsole: true, Fresh: machine.AllReadings}})
		s.run(2 * time.Second)
	}
	idle(time.Hour)
	for n := 1; n <= 2; n++ {
		ad := job(t, steady(time.Hour), "")
		s.activate(s.claim(slot.ID{N: n}, ad).Claim, ad)
	}
	idle(time.Hour)
	idle(0)
	if got := s.pair(slot.ID{N: 1}); got != policy.ClaimedSuspended {
		t.Errorf("slot1 is %v while its owner types", got)
	}
	if got := s.pair(slot.ID{N: 2}); got != policy.ClaimedBusy {
		t.Errorf("slot2 is %v while somebody else types", got)
	}
	for name, want := range map[string][2]int64{"KeyboardIdle": {0, 1200}, "ConsoleIdle": {0, 1200}} {
		for n := range want {
			got, _ := s.eng.SlotAd(slot.ID{N: n + 1}).Eval(name, nil).AsInt()
			if n == 0 && got != 0 || n == 1 && got < want[1] {
				t.Errorf("%s of slot%d is %d", name, n+1, got)
			}
		}
	}
	idle(301 * time.Second)
	if got := s.pair(slot.ID{N: 1}); got != policy.ClaimedBusy {
		t.Errorf("slot1 is %v when its owner has gone", got)
	}
}

// TestRankOfTheClaim: CurrentRank is what RANK says of the job, and 0.0 for
// nobody.
//
// row: S1-008
func TestRankOfTheClaim(t *testing.T) {
	t.Parallel()
	s := newStage(t, 1, static1+"RANK = (TARGET.Owner =?= \"alice\") * 2.5 + TARGET.Prio\nCLAIM_WORKLIFE = -1\n")
	rank := func() string { return s.shown(theSlot, "CurrentRank") }
	if got := rank(); got != "0.0" {
		t.Errorf("CurrentRank of an unclaimed slot is %s", got)
	}
	g := s.claim(theSlot, job(t, steady(time.Minute), "Prio = 1\n"))
	if got := rank(); got != "3.5" {
		t.Errorf("CurrentRank for the claiming job is %s", got)
	}
	s.activate(g.Claim, job(t, steady(time.Minute), "Prio = 7\n"))
	if got := rank(); got != "9.5" {
		t.Errorf("CurrentRank for the next job is %s", got)
	}
	s.step(ReleaseRequested{Claim: g.Claim})
	s.run(2 * time.Second)
	if got := rank(); got != "0.0" {
		t.Errorf("CurrentRank after the claim is %s", got)
	}
}

// TestPolicyPerType lets two types of slots of one machine differ in all that
// a policy may differ in.
//
// row: S2-028
func TestPolicyPerType(t *testing.T) {
	t.Parallel()
	s := newStage(t, 2, "SLOT_TYPE_1 = cpus=1\nNUM_SLOTS_TYPE_1 = 1\nSLOT_TYPE_2 = cpus=1\nNUM_SLOTS_TYPE_2 = 1\n"+
		"POLLING_INTERVAL = 1\nUPDATE_INTERVAL = 5\nWANT_SUSPEND = true\nSUSPEND = Typing =?= true\nCONTINUE = Typing =!= true\n"+
		"START = true\nSLOT_TYPE_2_START = TARGET.Owner =?= \"bob\"\nSLOT_TYPE_2_SUSPEND = false\n")
	alice := job(t, steady(time.Hour), "")
	bob := job(t, steady(time.Hour), "Owner = \"bob\"\n")
	s.activate(s.claim(slot.ID{N: 1}, alice).Claim, alice)
	r, _ := s.ask(func(ref Ref) Event { return ClaimRequested{Ref: ref, Slot: slot.ID{N: 2}, Job: alice} })
	if r.Err == nil {
		t.Error("slot2 takes a job that SLOT_TYPE_2_START refuses")
	}
	s.activate(s.claim(slot.ID{N: 2}, bob).Claim, bob)
	s.publish("Typing = true")
	s.run(2 * time.Second)
	if one, two := s.pair(slot.ID{N: 1}), s.pair(slot.ID{N: 2}); one != policy.ClaimedSuspended || two != policy.ClaimedBusy {
		t.Errorf("slot1 is %v, slot2 %v", one, two)
	}
}

// TestOldStates: what the 6.8 manual knew of states and activities is all
// there, and Vacating is the time a job has for a graceful end.
func TestOldStates(t *testing.T) {
	t.Parallel()
	for state, activities := range map[policy.State][]policy.Activity{
		policy.Owner: {policy.Idle}, policy.Unclaimed: {policy.Idle, policy.Benchmarking}, policy.Matched: {policy.Idle},
		policy.Claimed:    {policy.Idle, policy.Busy, policy.Suspended, policy.Retiring},
		policy.Preempting: {policy.Vacating, policy.Killing}, policy.Backfill: {policy.Idle, policy.Busy, policy.Killing},
	} {
		for _, act := range activities {
			if p := (policy.Pair{State: state, Activity: act}); !policy.Legal(p) {
				t.Errorf("%v is not there", p)
			}
		}
	}
	p := newPlay(t)
	p.busyWith(script{runs: time.Hour, onSoft: -1})
	p.vacate(Graceful)
	p.run(2 * time.Second)
	if got := p.shown(theSlot, "State") + p.shown(theSlot, "Activity"); got != classad.String("Preempting").String()+classad.String("Vacating").String() {
		t.Errorf("the ad says %s", got)
	}
	if len(p.orders) != 1 || p.orders[0].Op != SoftKill {
		t.Errorf("orders %+v", p.orders)
	}
}
