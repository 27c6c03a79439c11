// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/rapidtest"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/slot"
)

func (s *stage) coalesce(ev CoalesceRequested) Reply {
	s.t.Helper()
	r, ok := s.ask(func(ref Ref) Event { ev.Ref = ref; return ev })
	if !ok {
		s.t.Fatalf("no reply to %+v", ev)
	}
	return r
}

// TestCoalesce makes one slot of three, as condor_now wants it.
func TestCoalesce(t *testing.T) {
	t.Parallel()
	s := newStage(t, 4, "")
	small, big := job(t, steady(time.Hour), ""), job(t, steady(time.Hour), "RequestCpus = 4\nRequestMemory = 500\n")
	var ids []claim.ID
	for range 4 {
		ids = append(ids, s.claim(slot1, small).Claim)
	}
	s.activate(ids[3], small)
	s.run(time.Second)
	s.refused(s.coalesce(CoalesceRequested{Claims: ids, Job: big}), errs.Transient, "given slot is not idle")
	s.refused(s.coalesce(CoalesceRequested{Claims: ids[:3], Job: big}), errs.Exhausted, "Cpus 4 > 3")
	for i := range 3 {
		if p := s.pair(slot.ID{N: 1, Sub: i + 1}); p != policy.ClaimedIdle {
			t.Errorf("slot1_%d is %v after a refusal", i+1, p)
		}
	}
	s.ask(func(ref Ref) Event { return ReleaseRequested{Ref: ref, Claim: ids[3]} })
	s.run(time.Minute)
	before := len(s.ended)
	r := s.coalesce(CoalesceRequested{Claims: []claim.ID{ids[0], ids[1], ids[0], ids[2]}, Job: big})
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	g := r.Granted
	v, _ := s.eng.SlotView(g.Slot)
	if v.Pair != policy.ClaimedIdle || v.Total.Cpus != 4 || v.Client.User != "alice@example" || v.Claim != g.Claim || slices.Contains(ids, g.Claim) {
		t.Errorf("the new slot is %+v", v)
	}
	if n, _ := g.Ad.EvalInt("Cpus", nil); n != 4 {
		t.Errorf("its ad has %d processors", n)
	}
	for _, e := range s.ended[before:] {
		if e.Code != int(reason.StartdCoalesce) || e.Reason != "Claim was coalesced" {
			t.Errorf("a claim ended with %+v", e)
		}
	}
	if n := len(s.ended) - before; n != 3 {
		t.Errorf("%d claims ended, want 3", n)
	}
	if n := s.eng.ledger.Len(); n != 2 {
		t.Errorf("there are %d slots", n)
	}
	if err := s.eng.ledger.Check(); err != nil {
		t.Error(err)
	}
	s.activate(g.Claim, big)
	s.run(time.Second)
	if p := s.pair(g.Slot); p != policy.ClaimedBusy {
		t.Errorf("the new slot is %v", p)
	}
	s.refused(s.coalesce(CoalesceRequested{Claims: ids[:1], Job: big}), errs.NotFound, "can't find slot with given claim ID")
	s.refused(s.coalesce(CoalesceRequested{Job: big}), errs.Invalid, "no claims are named")

	static := newStage(t, 2, "NUM_SLOTS = 2\nNUM_SLOTS_TYPE_1 = 2\nSLOT_TYPE_1 = 50%\nSLOT_TYPE_1_PARTITIONABLE = false\n")
	id := static.claim(slot1, small).Claim
	static.refused(static.coalesce(CoalesceRequested{Claims: []claim.ID{id}, Job: small}), errs.Invalid, "given slot is not dynamic")
	two := newStage(t, 2, "NUM_SLOTS = 2\nNUM_SLOTS_TYPE_1 = 2\nSLOT_TYPE_1 = 50%\nSLOT_TYPE_1_PARTITIONABLE = true\n")
	a, b := two.claim(slot1, small).Claim, two.claim(slot2, small).Claim
	two.refused(two.coalesce(CoalesceRequested{Claims: []claim.ID{a, b}, Job: small}), errs.Invalid, "all slots must have the same parent")
	closed := newStage(t, 2, "START = TARGET.RequestCpus < 2\n")
	a, b = closed.claim(slot1, small).Claim, closed.claim(slot1, small).Claim
	closed.refused(closed.coalesce(CoalesceRequested{Claims: []claim.ID{a, b}, Job: job(t, steady(time.Hour), "RequestCpus = 2\n")}), errs.Denied, "START")
}

// However claims are put together, nothing of the machine is lost or doubled.
func TestCoalesceConserves(t *testing.T) {
	t.Parallel()
	rapidtest.Check(t, func(rt *rapid.T) {
		s := newStage(t, 6, "MACHINE_RESOURCE_Bolts = b1 b2 b3 b4\n")
		whole := s.eng.ledger.Account()
		held := map[slot.ID]claim.ID{}
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			ad := job(t, steady(time.Hour), "")
			ad.SetInt("RequestCpus", rapid.Int64Range(1, 4).Draw(rt, "cpus"))
			ad.SetInt("RequestBolts", rapid.Int64Range(0, 2).Draw(rt, "bolts"))
			if rapid.Bool().Draw(rt, "claim") {
				if r := s.request(ClaimRequested{Slot: slot1}, ad); r.Granted != nil {
					held[r.Granted.Slot] = r.Granted.Claim
				}
			} else {
				ev := CoalesceRequested{Job: ad}
				var from []slot.ID
				for _, id := range slices.SortedFunc(maps.Keys(held), slot.ID.Compare) {
					if rapid.Bool().Draw(rt, "take") {
						ev.Claims, from = append(ev.Claims, held[id]), append(from, id)
					}
				}
				if r := s.coalesce(ev); r.Granted != nil {
					for _, id := range from {
						delete(held, id)
					}
					held[r.Granted.Slot] = r.Granted.Claim
				}
			}
			if err := s.eng.ledger.Check(); err != nil {
				rt.Fatal(err)
			}
			if n := s.eng.ledger.Len(); n != len(held)+1 {
				rt.Fatalf("%d slots for %d claims", n, len(held))
			}
			for id, c := range held {
				if got, ok := s.eng.SlotOf(c); got != id || !ok {
					rt.Fatalf("%v is of %v, want %v", c, got, id)
				}
			}
		}
		for _, c := range held {
			s.ask(func(ref Ref) Event { return ReleaseRequested{Ref: ref, Claim: c} })
		}
		if d := cmp.Diff(whole, s.eng.ledger.Account()); d != "" {
			rt.Fatalf("what is left (-want +got)\n%s", d)
		}
	})
}

// TestRehomed ends every claim at once.
func TestRehomed(t *testing.T) {
	t.Parallel()
	s := newStage(t, 3, "MAXJOBRETIREMENTTIME = 3600\nMachineMaxVacateTime = 600\n")
	ad := job(t, script{runs: time.Hour, onSoft: -1}, "")
	one, two := s.claim(slot1, ad), s.claim(slot1, ad)
	s.activate(one.Claim, ad)
	s.run(10 * time.Second)
	if s.eng.Empty() {
		t.Error("it is empty before")
	}
	s.step(Rehomed{})
	s.run(time.Second)
	if !s.eng.Empty() || len(s.ended) != 2 {
		t.Errorf("%d claims have ended, empty: %v", len(s.ended), s.eng.Empty())
	}
	for _, e := range s.ended {
		if e.Code != 1037 || e.Reason != "rehome" || e.Claim != one.Claim && e.Claim != two.Claim {
			t.Errorf("ended with %+v", e)
		}
	}
	if o := s.orders; len(o) != 1 || o[0].Op != HardKill || o[0].Code != 1037 {
		t.Errorf("the job was told %+v", o)
	}
}
