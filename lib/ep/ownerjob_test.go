// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// IS_OWNER that looks at the job: the slot is its owner's but for one user, or
// for nobody but one.
const (
	onlyCarla   = "IS_OWNER = TARGET.Owner =!= \"carla\"\nCLAIM_WORKLIFE = -1\n"
	notCarla    = "IS_OWNER = TARGET.Owner =?= \"carla\"\nCLAIM_WORKLIFE = -1\n"
	carlaStarts = "START = TARGET.Owner =?= \"carla\"\nIS_OWNER = START =?= False\nCLAIM_WORKLIFE = -1\n" // as POLICY:DESKTOP has it
	carlaMaySay = "START = TARGET.Owner == \"carla\"\nIS_OWNER = START =?= False\nCLAIM_WORKLIFE = -1\n"  // undefined without a job
	byCarla     = "Owner = \"carla\"\nUser = \"carla@example\"\n"
	wholeToo    = "ENABLE_CLAIMABLE_PARTITIONABLE_SLOTS = True\n"
)

// TestOwnerAsksTheJob has what becomes of a slot without a job, of a request and
// of the claim after its first job.
func TestOwnerAsksTheJob(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		before     policy.Pair // without any job
		carla      bool        // gets a claim
		alice      bool
		after      bool // carla's claim stays when her job has ended
	}{
		{"for one user", onlyCarla, policy.OwnerIdle, true, false, false},
		{"for all but one", notCarla, policy.UnclaimedIdle, false, true, true},
		{"by START, false without a job", carlaStarts, policy.OwnerIdle, true, false, false},
		{"by START, undefined without a job", carlaMaySay, policy.UnclaimedIdle, true, false, true},
	} {
		for _, kind := range []struct{ name, text string }{{"static", static1}, {"partitionable", ""}} {
			s := newStage(t, 1, kind.text+tt.text)
			s.run(10 * time.Minute)
			if got := s.pair(slot1); got != tt.before {
				t.Errorf("%s, %s: without a job it is %v, want %v", tt.name, kind.name, got, tt.before)
			}
			for _, who := range []struct {
				more string
				gets bool
			}{{"", tt.alice}, {byCarla, tt.carla}} {
				ad := job(t, steady(time.Minute), who.more)
				r := s.request(ClaimRequested{Slot: slot1}, ad)
				if (r.Granted != nil) != who.gets {
					t.Errorf("%s, %s: the claim for %q: %+v", tt.name, kind.name, who.more, r)
				}
				if r.Granted == nil {
					if kind.name == "partitionable" && s.pair(slot1) != tt.before {
						t.Errorf("%s: a refused claim leaves %v", tt.name, s.pair(slot1))
					}
					continue
				}
				part := r.Granted.Slot
				s.run(time.Minute) // the first job has not come yet
				if got := s.pair(part); got != policy.ClaimedIdle {
					t.Errorf("%s, %s: the claim that waits for its job is %v", tt.name, kind.name, got)
				}
				s.activate(r.Granted.Claim, ad)
				s.run(30 * time.Second)
				if got := s.pair(part); got != policy.ClaimedBusy {
					t.Errorf("%s, %s: with the job it is %v", tt.name, kind.name, got)
				}
				s.run(time.Minute)
				if got := s.pair(part) == policy.ClaimedIdle; got != tt.after {
					t.Errorf("%s, %s: after the job it is %v, the claim should stay: %v", tt.name, kind.name, s.pair(part), tt.after)
				}
				s.ask(func(ref Ref) Event { return ReleaseRequested{Ref: ref, Claim: r.Granted.Claim} })
				s.run(time.Second)
				if got := s.pair(slot1); got != tt.before {
					t.Errorf("%s, %s: in the end it is %v, want %v", tt.name, kind.name, got, tt.before)
				}
			}
		}
	}
}

// TestOwnerAndTheWholeSlot: a slot that is claimed as a whole never has a job of
// its own, and keeps that of the request.
func TestOwnerAndTheWholeSlot(t *testing.T) {
	t.Parallel()
	s := newStage(t, 2, wholeToo+onlyCarla)
	mine := claim.Client{User: "carla@example", Schedd: "ap"}
	s.refused(s.request(ClaimRequested{Slot: slot1, Whole: true, Client: mine}, job(t, steady(time.Minute), "")), errs.Denied, "IS_OWNER keeps the slot")
	ad := job(t, steady(time.Minute), byCarla)
	whole := s.request(ClaimRequested{Slot: slot1, Whole: true, Client: mine}, ad)
	if whole.Granted == nil {
		t.Fatalf("%+v", whole)
	}
	part := s.request(ClaimRequested{Slot: slot1, Client: mine, DynamicSlots: 1}, ad)
	if part.Granted == nil {
		t.Fatalf("%+v", part)
	}
	s.activate(part.Granted.Claim, ad)
	s.run(2 * time.Minute)
	if got := s.pair(slot1); got != policy.ClaimedIdle {
		t.Errorf("the whole slot is %v", got)
	}
	if _, ok := s.eng.SlotView(slot.ID{N: 1, Sub: 1}); ok {
		t.Error("the claim of the dynamic slot outlives its job")
	}
}

// TestOwnerAndThePreemptingClaim: whoever may not have the slot sends nobody
// away for it, though the original finds that out after the job is gone; who
// may has it after.
func TestOwnerAndThePreemptingClaim(t *testing.T) {
	t.Parallel()
	s := newStage(t, 1, static1+"RANK = TARGET.Worth\nIS_OWNER = TARGET.Owner =?= \"dora\"\nCLAIM_WORKLIFE = -1\n")
	ad := job(t, steady(time.Hour), byCarla+"Worth = 1\n")
	g := s.claim(slot1, ad)
	s.activate(g.Claim, ad)
	s.run(time.Minute)
	s.refused(s.request(ClaimRequested{Slot: slot1}, job(t, steady(time.Hour), "Owner = \"dora\"\nWorth = 2\n")), errs.Denied, "IS_OWNER keeps the slot")
	if got := s.pair(slot1); got != policy.ClaimedBusy {
		t.Fatalf("the slot is %v", got)
	}
	next := job(t, steady(time.Hour), "Worth = 3\n")
	s.ref++
	ref := s.ref
	s.step(ClaimRequested{Ref: asked(ref), Slot: slot1, Job: next, Client: claim.Client{User: "alice@example"}})
	s.run(time.Minute)
	if r := s.replies[ref]; r.Granted == nil || s.pair(slot1) != policy.ClaimedIdle {
		t.Errorf("%+v, %v", r, s.pair(slot1))
	}
}
