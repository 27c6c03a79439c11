// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

const static1 = "NUM_CPUS = 1\nMEMORY = 4096\nNUM_SLOTS = 1\nSLOT_TYPE_0_PARTITIONABLE = false\nPOLLING_INTERVAL = 1\nUPDATE_INTERVAL = 5\n"

func TestOneJob(t *testing.T) {
	t.Parallel()
	s := newStage(t, 4, "")
	p := slot.ID{N: 1}
	if got := s.pair(p); got != policy.UnclaimedIdle {
		t.Fatalf("p-slot is %v", got)
	}
	ad := job(t, steady(10*time.Second), "")
	g := s.claim(p, ad)
	if g.Slot != (slot.ID{N: 1, Sub: 1}) || g.Name != "slot1_1@"+testHost {
		t.Fatalf("granted %v %q", g.Slot, g.Name)
	}
	s.activate(g.Claim, ad)
	s.run(time.Minute)
	if got := s.pair(g.Slot); got != policy.ClaimedIdle {
		t.Fatalf("after the job: %v", got)
	}
	s.ask(func(ref uint64) Event { return ReleaseRequested{Ref: ref, Claim: g.Claim} })
	const want = "Owner/Idle 5 Claimed/Idle 11 Claimed/Busy 12 Claimed/Cleaning 12 Claimed/Idle 10 Preempting/Killing 25 Owner/Idle 1 Unclaimed/Idle"
	if got := s.path("slot1_1", 0); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if _, ok := s.eng.SlotView(g.Slot); ok {
		t.Error("the d-slot is still there")
	}
}
