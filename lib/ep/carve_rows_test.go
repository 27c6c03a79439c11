// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"fmt"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

const twoSlots = "NUM_SLOTS = 2\nSLOT_TYPE_0_PARTITIONABLE = false\n"

// published is an attribute of a slot's ad as it is published, "-" without it.
func (s *stage) published(id slot.ID, name string) string {
	sl, ok := s.eng.slots.byID[id]
	if !ok {
		return "no slot"
	}
	if e, ok := sl.ad.Snapshot(s.now).Lookup(name); ok {
		return e.String()
	}
	return "-"
}

// Typing suspends the job in the slot that is wired to the keyboard, and no
// other one, under the same policy.
//
// row: S2-027
func TestTypingSuspendsTheWiredSlot(t *testing.T) {
	t.Parallel()
	p := &person{stage: newStage(t, 2, twoSlots+"POLLING_INTERVAL = 5\nSLOTS_CONNECTED_TO_KEYBOARD = 1\nSLOTS_CONNECTED_TO_CONSOLE = 1\n"+
		"START = KeyboardIdle > 600\nWANT_SUSPEND = true\nSUSPEND = KeyboardIdle < 60\nCONTINUE = KeyboardIdle > 300\nPREEMPT = false\nIS_OWNER = false\n")}
	p.watch()
	p.run(15 * time.Minute)
	for n := 1; n <= 2; n++ {
		ad := job(t, steady(5*time.Hour), "")
		p.activate(p.claim(slot.ID{N: n}, ad).Claim, ad)
	}
	look := func(what, want string) {
		t.Helper()
		got := fmt.Sprintf("%v %v", p.pair(slot.ID{N: 1}), p.pair(slot.ID{N: 2}))
		if got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	p.run(time.Minute)
	look("nobody types", "Claimed/Busy Claimed/Busy")
	p.types(30 * time.Second)
	p.run(time.Minute)
	look("somebody typed", "Claimed/Suspended Claimed/Busy")
	p.run(10 * time.Minute)
	look("left alone again", "Claimed/Busy Claimed/Busy")
}

// CurrentRank is 0.0 without a claim, else RANK for the job of the claim; the
// daemon's ad counts what jobs and claims went through.
//
// row: S1-008
func TestRankAndStatistics(t *testing.T) {
	t.Parallel()
	s := newStage(t, 2, twoSlots+"RANK = TARGET.Prio\nMAXJOBRETIREMENTTIME = 0\nPREEMPT = false\n")
	if got := s.published(slot1, "CurrentRank"); got != "0.0" {
		t.Errorf("unclaimed: CurrentRank = %s", got)
	}
	first := job(t, script{begins: 2 * time.Second, runs: time.Hour, reap: time.Second}, "Prio = 3\n")
	s.activate(s.claim(slot1, first).Claim, first)
	s.run(12 * time.Second)
	if got := s.published(slot1, "CurrentRank"); got != "3.0" {
		t.Errorf("claimed: CurrentRank = %s", got)
	}
	s.ref++
	better := job(t, steady(4*time.Second), "Prio = 7\n")
	ref := s.ref
	s.step(ClaimRequested{Ref: asked(ref), Slot: slot1, Job: better, Client: claim.Client{User: "bob@example"}})
	s.run(time.Minute)
	r := s.replies[ref]
	if r.Granted == nil {
		t.Fatalf("the better job was not let in: %v", r.Err)
	}
	if got := s.published(slot1, "CurrentRank"); got != "7.0" {
		t.Errorf("preempted: CurrentRank = %s", got)
	}
	s.activate(r.Granted.Claim, better)
	s.run(time.Minute)
	if got := s.pair(slot1); got != policy.ClaimedIdle {
		t.Fatalf("the second job has not ended: %v", got)
	}
	d := s.eng.ads.Daemon(nil, s.now)
	for name, want := range map[string]string{
		"JobStarts": "2", "RecentJobStarts": "2", "JobPreemptions": "1", "JobRankPreemptions": "1", "JobUserPrioPreemptions": "0",
		"JobBusyTimeCount": "2", "JobBusyTimeMin": "4.0", "JobBusyTimeMax": "13.0",
		"JobDurationCount": "2", "JobDurationMin": "4.0", "JobDurationMax": "10.0",
	} {
		if e, ok := d.Lookup(name); !ok || e.String() != want {
			t.Errorf("%s = %v, want %s", name, e, want)
		}
	}
}

// A dynamic slot is ranked like any other and its claim shows when it ends.
func TestDynamicSlotShowsItsClaim(t *testing.T) {
	t.Parallel()
	s := newStage(t, 2, "RANK = TARGET.Prio\n")
	ad := job(t, steady(time.Minute), "Prio = 2\n")
	g := s.claim(slot1, ad)
	for name, want := range map[string]string{"CurrentRank": "2.0", "IsSplittable": "true", "RemoteUser": `"alice@example"`, "ClaimEndTime": "0"} {
		if got := s.published(g.Slot, name); got != want {
			t.Errorf("%s = %s, want %s", name, got, want)
		}
	}
	s.step(ReleaseRequested{Claim: g.Claim})
	if got := s.published(g.Slot, "CurrentRank"); got != "no slot" {
		t.Errorf("after the release: %s", got)
	}
}

// Slots follow the same policy each for itself: one is the owner's while the
// other runs a job; an expression may ask which slot it is about, and what it
// says of a job is about that slot's own.
//
// row: S0-041, S0-042, S2-028
func TestSlotsAreIndependent(t *testing.T) {
	t.Parallel()
	s := newStage(t, 2, twoSlots+"POLLING_INTERVAL = 5\nUPDATE_INTERVAL = 5\nIS_OWNER = SlotID == 2 && Mine =?= true\nSTART = true\nPREEMPT = false\n"+
		"WANT_SUSPEND = true\nCONTINUE = false\nSUSPEND = (SlotID == 1 && A =?= true) || (SlotID == 2 && B =?= true) || ProcId == C\n")
	two := slot.ID{N: 2}
	run := func(id slot.ID, proc int64) {
		ad := job(t, steady(time.Hour), "")
		ad.SetInt("ClusterId", 1)
		ad.SetInt("ProcId", proc)
		s.activate(s.claim(id, ad).Claim, ad)
	}
	look := func(what, want string) {
		t.Helper()
		s.run(10 * time.Second)
		if got := fmt.Sprintf("%v %v", s.pair(slot1), s.pair(two)); got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	s.publish("Mine = true\n")
	s.run(10 * time.Second)
	run(slot1, 7)
	look("the second is the owner's", "Claimed/Busy Owner/Idle")
	s.publish("Mine = false\nA = false\nB = true\n")
	look("B without a job in the second", "Claimed/Busy Unclaimed/Idle")
	s.publish("A = false\nB = false\nC = 7\n")
	run(two, 8)
	look("ProcId of the first", "Claimed/Suspended Claimed/Busy")
	s.publish("A = false\nB = true\n")
	look("then B", "Claimed/Suspended Claimed/Suspended")

	s = newStage(t, 2, twoSlots+"POLLING_INTERVAL = 5\nSTART = true\nPREEMPT = false\nWANT_SUSPEND = true\nCONTINUE = false\nIS_OWNER = false\n"+
		"SUSPEND = (SlotID == 1 && A =?= true) || (SlotID == 2 && B =?= true)\n")
	run(slot1, 1)
	run(two, 2)
	s.publish("A = true\nB = false\n")
	look("only A", "Claimed/Suspended Claimed/Busy")
}

// A policy sees what the running job uses, as its starter tells it: a job that
// takes more memory than its slot has is put on hold.
func TestPolicySeesUsage(t *testing.T) {
	t.Parallel()
	s := newStage(t, 2, "use POLICY : Hold_If_Memory_Exceeded\nPOLLING_INTERVAL = 5\n")
	ad := job(t, steady(time.Hour), "")
	g := s.claim(slot1, ad)
	act := s.activate(g.Claim, ad)
	s.run(time.Minute)
	usage := JobUsage{Activation: act, Usage: host.Usage{ImageSizeKiB: 1 << 20, RSSKiB: 100 << 10}, DiskKiB: 1}
	s.step(usage)
	s.run(time.Minute)
	if len(s.orders) != 0 {
		t.Fatalf("within its memory: %+v", s.orders)
	}
	usage.Usage.RSSKiB = 200 << 10
	s.step(usage)
	s.run(time.Minute)
	if len(s.orders) == 0 || !s.orders[0].Hold || s.orders[0].Subcode != 102 {
		t.Errorf("above its %s MiB: %+v", s.published(g.Slot, "Memory"), s.orders)
	}
}
