// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/slot"
)

// TestDesktopAmongDedicated mixes a desktop into dedicated resources: jobs of
// the dedicated scheduler always start, are not touched, and come first; others
// are treated as the pool's policy has it. The text multiplies before it
// compares, which no job would satisfy, so a parenthesis is put in.
//
// row: S3-025
func TestDesktopAmongDedicated(t *testing.T) {
	t.Parallel()
	const dedicated = "Scheduler = \"DedicatedScheduler@full.host.name\"\n"
	third := strings.Replace(document(t, "s3-configuration-examples-for-dedicated-resources-462"),
		"(Scheduler =?= $(DedicatedScheduler) * $(RANK_FACTOR))", "((Scheduler =?= $(DedicatedScheduler)) * $(RANK_FACTOR))", 1)
	text := sixEight(t) + "RANK = TARGET.Prio\n" + document(t, "s3-configuration-examples-for-dedicated-resources-372") + third
	if !strings.Contains(text, "((Scheduler") {
		t.Fatal("the text is another one")
	}
	for more, want := range map[string]string{
		dedicated: "",
		"":        "Claimed/Busy 14 Claimed/Suspended 16 Claimed/Retiring 18 Preempting/Vacating 22 Owner/Idle",
	} {
		s := tell(t, 1, text)
		s.run(time.Minute)
		s.busyWith(slot1, steady(10*time.Hour), "Prio = 1\n"+more)
		s.run(time.Minute)
		s.skip()
		s.types(2 * time.Hour)
		s.load = 3
		s.run(time.Hour)
		if got := s.path("slot1", s.seen["slot1"]); !strings.HasPrefix(got, want) || (want == "") != (got == "") {
			t.Errorf("%q at a desk in use: went %q, want %q", more, got, want)
		}
	}
	s := tell(t, 1, text+"IS_OWNER = False\n")
	s.types(time.Minute)
	s.run(2 * time.Minute)
	if s.wants(slot1, "Prio = 1\n") || !s.wants(slot1, dedicated+"Prio = 1\n") {
		t.Error("at a desk in use START does not tell the jobs apart")
	}
	// The rank of the pool counts among jobs of one kind only.
	s.run(time.Hour)
	s.busyWith(slot1, steady(10*time.Hour), "Prio = 999999\n")
	s.run(time.Minute)
	s.skip()
	s.ref++
	ref := s.ref
	s.step(ClaimRequested{Ref: asked(ref), Slot: slot1, Job: job(t, steady(time.Hour), dedicated+"Prio = 1\n")})
	s.run(time.Minute)
	s.expect("a dedicated job", "slot1", "Claimed/Busy 18 Preempting/Vacating 23 Claimed/Idle")
	if got := s.evaluated(slot1, "CurrentRank"); got != "1000001.0" {
		t.Errorf("CurrentRank is %s", got)
	}
	s.refused(s.request(ClaimRequested{Slot: slot1}, job(t, steady(time.Hour), "Prio = 999999\n")), errs.Denied, "rank 999999 is not above 1.000001e+06")
}

// TestDedicatedAttributes shows what parallel jobs are placed by: the priority
// of the running job, and the group that a machine belongs to.
//
// row: S3-027, S3-028
func TestDedicatedAttributes(t *testing.T) {
	t.Parallel()
	s := newStage(t, 2, document(t, "s3-preemption-with-dedicated-jobs-505")+
		"ParallelSchedulingGroup = \"host1\"\nSTARTD_ATTRS = $(STARTD_ATTRS), ParallelSchedulingGroup\n")
	if got := s.shown(slot1, "JobPrio"); got != "" {
		t.Errorf("JobPrio of a free slot is %s", got)
	}
	ad := job(t, steady(time.Hour), "JobPrio = 7\n")
	g := s.claim(slot1, ad)
	s.activate(g.Claim, ad)
	for _, id := range []slot.ID{slot1, g.Slot} {
		if got := s.shown(id, "ParallelSchedulingGroup"); got != `"host1"` {
			t.Errorf("%v: ParallelSchedulingGroup is %s", id, got)
		}
	}
	if got := s.shown(g.Slot, "JobPrio"); got != "7" {
		t.Errorf("JobPrio of the running job is %s", got)
	}
	// A group that is not listed is not shown.
	s = newStage(t, 1, "ParallelSchedulingGroup = \"host1\"\n")
	if got := s.shown(slot1, "ParallelSchedulingGroup"); got != "" {
		t.Errorf("not listed: %s", got)
	}
}
