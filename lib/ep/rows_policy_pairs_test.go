// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// pairs is the documents' machine with two slots for each of n processors: the
// second of each pair gives way to the first. The parenthesis that the text
// lacks is put in, and the slots are static, which it takes for granted.
func pairs(t testing.TB, n int, more string) *story {
	text := strings.Replace(document(t, "s0-examples-of-policy-configuration-3050"), `"_State")`, `"_State"))`, 1)
	return tell(t, n, text+"NUM_SLOTS = $(DETECTED_CORES)*2\nSLOT_TYPE_0_PARTITIONABLE = False\nRunBenchmarks = False\nCLAIM_WORKLIFE = -1\n"+more)
}

const patient = "IsSuspendableJob = True\n"

// TestFourCases has a job in a pair of slots and another that might run,
// suspendable or not. A nonsuspendable job freezes a suspendable one, whatever
// their users' priorities; among equals rank and priority decide; a suspendable
// job never moves a nonsuspendable one. A frozen job is thawed, a nonsuspendable
// one that must go is evicted.
//
// row: S2-018, S2-019
func TestFourCases(t *testing.T) {
	t.Parallel()
	free, gives := slot.ID{N: 1}, slot.ID{N: 2}
	comes := func(s *story, id slot.ID, more string, priority bool) Reply {
		s.ref++
		s.step(ClaimRequested{Ref: asked(s.ref), Slot: id, Priority: priority, Job: job(t, steady(20*time.Minute), more), Client: claim.Client{User: "bob@example"}, Lease: time.Hour})
		s.run(10 * time.Second)
		r := s.replies[s.ref]
		if r.Granted != nil {
			s.activate(r.Granted.Claim, job(t, steady(20*time.Minute), more))
			s.run(10 * time.Second)
		}
		return r
	}
	for _, priority := range []bool{false, true} {
		// 1: suspendable, and a nonsuspendable one comes.
		s := pairs(t, 1, "")
		s.busyWith(gives, steady(time.Hour), patient)
		s.run(time.Minute)
		s.skip()
		urgent := comes(s, free, "", priority)
		if urgent.Granted == nil {
			t.Fatalf("the nonsuspendable job got %+v", urgent)
		}
		s.expect("frozen", "slot2", "Claimed/Busy 14 Claimed/Suspended")
		s.run(30 * time.Minute)
		s.step(ReleaseRequested{Claim: urgent.Granted.Claim})
		s.run(10 * time.Second)
		s.expect("thawed", "slot2", "Claimed/Suspended 15 Claimed/Busy")
		s.run(time.Hour)
		s.expect("ended", "slot2", "Claimed/Busy 12 Claimed/Cleaning 12 Claimed/Idle")
		if len(s.ended) != 1 {
			t.Errorf("told %+v", s.ended)
		}

		// 2 and 3: equals, in the slot that is for them.
		for id, more := range map[slot.ID]string{gives: patient, free: ""} {
			s = pairs(t, 1, "")
			g := s.busyWith(id, steady(time.Hour), more)
			s.run(time.Minute)
			s.skip()
			name := id.Name("slot")
			r := comes(s, id, more, priority)
			if !priority {
				s.refused(r, errs.Denied, "rank 0 is not above 0 of the present claim")
				s.expect("no better", name, "")
				continue
			}
			if r.Granted == nil {
				t.Fatalf("a job of a better user got %+v", r)
			}
			s.expect("evicted", name, "Claimed/Busy 18 Preempting/Vacating 23 Claimed/Idle 11 Claimed/Busy")
			if len(s.ended) != 1 || s.ended[0].Claim != g.Claim || s.ended[0].Code != 1019 {
				t.Errorf("told %+v", s.ended)
			}
		}

		// 4: nonsuspendable, and a suspendable one comes.
		s = pairs(t, 1, "")
		s.busyWith(free, steady(time.Hour), "")
		s.run(time.Minute)
		s.skip()
		for _, id := range []slot.ID{gives, free} {
			r := comes(s, id, patient, priority)
			s.refused(r, errs.Denied, "START does not accept the job")
		}
		s.expect("goes on", "slot1", "")
		s.step(VacateRequested{Slot: free, Manner: Graceful})
		s.run(10 * time.Second)
		s.expect("evicted", "slot1", "Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating 22 Owner/Idle 1 Unclaimed/Idle")
	}
}

// TestLaterExamples has the examples that end the text together: the desktop
// and its toggle, no preemption unless it is configured, pairs of slots, and a
// slot for interactive jobs.
//
// row: S2-017
func TestLaterExamples(t *testing.T) {
	t.Parallel()
	// The toggle: the same policy, a keyboard that counts or not, and
	// retirement for dedicated machines alone.
	for desktop, want := range map[string]string{"IsDesktop = True\n": "Claimed/Busy 14 Claimed/Suspended", "": ""} {
		text := strings.Replace(document(t, "s0-examples-of-policy-configuration-2923"), "(IsDesktop =!= True) * 0", "(IsDesktop =!= True) * 7200", 1)
		s := tell(t, 1, document(t, "s0-examples-of-policy-configuration-2787")+text+oneDesk+desktop)
		s.run(time.Minute)
		s.busyWith(slot1, steady(3*time.Hour), "")
		s.run(time.Hour)
		s.skip()
		s.types(time.Second)
		s.run(10 * time.Second)
		s.expect("a key, "+desktop, "slot1", want)
		left := time.Hour - 10*time.Second
		if desktop != "" {
			left = 0
		}
		if got, _ := s.eng.RetirementLeft(slot1); got < left-time.Second || got > left+time.Second {
			t.Errorf("%q: retirement left %v, want %v", desktop, got, left)
		}
		s.run(10 * time.Minute)
		if desktop != "" {
			s.expect("five minutes without a key", "slot1", "Claimed/Suspended 15 Claimed/Busy")
		}
		// A load that is not the job's counts on both.
		s.load = 3
		s.run(3 * time.Minute)
		s.expect("load, "+desktop, "slot1", "Claimed/Busy 14 Claimed/Suspended")
	}

	// Nothing is preempted where nothing says so.
	s := tell(t, 1, "NUM_SLOTS = 1\nSLOT_TYPE_0_PARTITIONABLE = False\nSLOTS_CONNECTED_TO_KEYBOARD = 1\nRunBenchmarks = False\n")
	s.types(48 * time.Hour)
	s.load = 8
	s.busyWith(slot1, steady(24*time.Hour), "ImageSize = 100000000\n")
	s.run(23 * time.Hour)
	s.refused(s.request(ClaimRequested{Slot: slot1}, job(t, steady(1), "")), errs.Denied, "rank")
	if got := s.pair(slot1); got != policy.ClaimedBusy || len(s.orders) != 0 {
		t.Errorf("after a day: %v, told %+v", got, s.orders)
	}

	// Two slots for each processor, of which the second sees the first.
	s = pairs(t, 2, "")
	n := 0
	for v := range s.eng.Views() {
		if v.Total.Cpus != 1 {
			t.Errorf("%s has %v processors", v.Name, v.Total.Cpus)
		}
		n++
	}
	if n != 4 {
		t.Errorf("%d slots on two processors", n)
	}
	s.busyWith(slot.ID{N: 3}, steady(time.Hour), patient)
	s.busyWith(slot.ID{N: 4}, steady(time.Hour), patient)
	s.run(time.Minute)
	s.skip()
	g := s.busyWith(slot1, steady(time.Minute), "")
	s.run(10 * time.Second)
	for _, of := range []struct{ name, want string }{
		{"slot1_State", `"Claimed"`}, {"NonSuspendableSlotState", `"Claimed"`}, {"IsSuspendableSlot", "true"},
	} {
		if got := s.evaluated(slot.ID{N: 3}, of.name); got != of.want {
			t.Errorf("slot3: %s is %s, want %s", of.name, got, of.want)
		}
	}
	s.expect("its partner is claimed", "slot3", "Claimed/Busy 14 Claimed/Suspended")
	s.expect("its partner is not", "slot4", "")
	s.run(5 * time.Minute)
	s.expect("the claim is still there", "slot3", "")
	s.step(ReleaseRequested{Claim: g.Claim})
	s.run(10 * time.Second)
	s.expect("its partner is free", "slot3", "Claimed/Suspended 15 Claimed/Busy")

	// A slot that prefers interactive jobs, and one that takes no others.
	const two = "NUM_SLOTS = 2\nNUM_CPUS = 2\nSLOT_TYPE_0_PARTITIONABLE = False\nRunBenchmarks = False\n"
	const interactive = "InteractiveJob = True\n"
	s = tell(t, 2, two+document(t, "s0-examples-of-policy-configuration-3119"))
	for n := range 2 {
		s.busyWith(slot.ID{N: n + 1}, steady(time.Hour), "")
	}
	s.run(time.Minute)
	s.skip()
	for n := range 2 {
		s.ref++
		s.step(ClaimRequested{Ref: asked(s.ref), Slot: slot.ID{N: n + 1}, Job: job(t, steady(time.Hour), interactive)})
	}
	s.run(10 * time.Second)
	s.expect("an interactive job", "slot1", "Claimed/Busy 18 Preempting/Vacating 23 Claimed/Idle")
	s.expect("an interactive job elsewhere", "slot2", "")
	s = tell(t, 2, two+document(t, "s0-examples-of-policy-configuration-3125"))
	if s.wants(slot1, "") || !s.wants(slot1, interactive) {
		t.Error("slot1 is not for interactive jobs alone")
	}
}

// TestEarlierExamples has the examples that begin the text together: the
// default policy with its macros, jobs of a tester, and the time of day.
//
// row: S2-016
func TestEarlierExamples(t *testing.T) {
	t.Parallel()
	shipped := document(t, "s0-examples-of-policy-configuration-2787", "s0-examples-of-policy-configuration-2812")
	s := tell(t, 1, shipped+oneDesk)
	s.types(10 * time.Hour)
	s.load = 3
	s.busyWith(slot1, steady(5*time.Hour), "")
	s.skip()
	s.run(4 * time.Hour)
	s.expect("the default policy", "slot1", "")
	// What the macros stand for, as attributes of the slot would have it.
	s = tell(t, 1, shipped+oneDesk+"STARTD_ATTRS = A, B, C, D, E, F, G\nA = $(StateTimer)\nB = $(ActivityTimer)\nC = $(NonCondorLoadAvg)\nD = $(KeyboardBusy)\nE = $(CPUIdle)\nF = $(CPUBusy)\nG = CpuBusyTime\n")
	s.types(time.Hour)
	s.load = 0.75
	s.run(100 * time.Second)
	now := s.now.Wall.Unix() - 1_800_000_000
	for name, want := range map[string]string{
		"A": fmt.Sprint(now), "B": fmt.Sprint(now), "C": "0.75", "D": "true", "E": "false", "F": "true", "G": "95",
	} {
		if got := s.evaluated(slot1, name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}

	// The tester's jobs go on where others stop.
	text := shipped + "START = KeyboardIdle > 900\nSUSPEND = $(KeyboardBusy)\nWANT_SUSPEND = True\nCONTINUE = False\nPREEMPT = (Activity == \"Suspended\") && ($(ActivityTimer) > 60)\n" +
		document(t, "s0-examples-of-policy-configuration-2838") + oneDesk
	for owner, want := range map[string]string{
		"coltrane": "",
		"davis":    "Claimed/Busy 14 Claimed/Suspended 16 Claimed/Retiring 18 Preempting/Killing 25 Owner/Idle",
	} {
		s := tell(t, 1, strings.Replace(text, "IS_OWNER = (START =?= False)", "IS_OWNER = KeyboardIdle < 900", 1))
		s.run(time.Minute)
		s.busyWith(slot1, steady(5*time.Hour), fmt.Sprintf("Owner = %q\n", owner))
		s.run(time.Minute)
		s.skip()
		s.types(time.Hour)
		s.run(5 * time.Minute)
		s.expect(owner, "slot1", want)
	}
	s = tell(t, 1, text)
	s.types(time.Hour)
	s.run(10 * time.Second)
	if s.wants(slot1, "Owner = \"davis\"\n") || !s.wants(slot1, "Owner = \"coltrane\"\n") {
		t.Error("the tester's jobs are not started at a desk in use")
	}

	// After hours.
	s = tell(t, 1, shipped+document(t, "s0-examples-of-policy-configuration-2875", "s0-examples-of-policy-configuration-2888")+oneDesk)
	for _, at := range []struct {
		day  time.Weekday
		hour int
		want bool
		min  string
	}{
		{time.Monday, 10, false, "600"}, {time.Monday, 18, true, "1080"}, {time.Tuesday, 8, false, "480"},
		{time.Friday, 17, true, "1020"}, {time.Sunday, 12, true, "720"},
	} {
		s.until(at.day, at.hour, 0)
		s.run(10 * time.Second)
		if got, want := s.evaluated(slot1, "ClockMin")+" "+s.evaluated(slot1, "ClockDay"), at.min+" "+fmt.Sprint(int(at.day)); got != want {
			t.Errorf("%v at %d: ClockMin and ClockDay are %s, want %s", at.day, at.hour, got, want)
		}
		if got := s.wants(slot1, ""); got != at.want {
			t.Errorf("%v at %d: a job is taken: %v", at.day, at.hour, got)
		}
	}
}
