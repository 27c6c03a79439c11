// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/policy"
)

func (s *stage) dataSlot(ev DataSlotRequested) Reply {
	s.t.Helper()
	r, ok := s.ask(func(ref Ref) Event { ev.Ref = ref; return ev })
	if !ok {
		s.t.Fatalf("no reply to %+v", ev)
	}
	return r
}

// A data slot has the claim of the slot that it was made of, with what was asked for. The
// rest of that slot is free, and its client hears of no end of the claim.
func TestDataSlot(t *testing.T) {
	t.Parallel()
	s := newStage(t, 4, "")
	big, small := job(t, steady(time.Hour), "RequestCpus = 3\nRequestMemory = 300\n"), job(t, steady(time.Hour), "RequestCpus = 2\nRequestMemory = 200\n")
	old := s.claim(slot1, big)
	s.run(10 * time.Second)
	was := *s.eng.slots.byID[old.Slot].cur
	before := len(s.moves)
	var moved []ClaimMoved
	s.onOther = func(eff Effect) {
		if m, ok := eff.(ClaimMoved); ok {
			moved = append(moved, m)
		}
	}
	r := s.dataSlot(DataSlotRequested{Claim: old.Claim, Job: small, Prefix: "data"})
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	g := r.Granted
	if g.Claim != old.Claim || g.Name != "data1_2@"+s.eng.ads.Name() || len(s.ended) != 0 || len(moved) != 1 || moved[0] != (ClaimMoved{old.Claim, old.Slot, g.Slot}) {
		t.Errorf("granted %v of %s, %d claims ended, moved %v", g.Claim, g.Name, len(s.ended), moved)
	}
	if is, _ := g.Ad.EvalBool("IsDataSlot", nil); !is {
		t.Error("the ad does not say that it is a data slot")
	}
	v, _ := s.eng.SlotView(g.Slot)
	if v.Pair != policy.ClaimedIdle || v.Total.Cpus != 2 || v.Total.MemoryMiB != 256 || v.Client.User != "alice@example" || v.Client.Host != was.Client.Host {
		t.Errorf("the data slot is %+v", v)
	}
	now := s.eng.slots.byID[g.Slot].cur
	if now.Since != was.Since || now.Lease != was.Lease || now.Slot != g.Slot {
		t.Errorf("the claim is %+v, was %+v", now, was)
	}
	if _, stays := s.eng.SlotView(old.Slot); stays {
		t.Error("the old slot is still there")
	}
	parent, _ := s.eng.SlotView(slot1)
	if parent.Free.Cpus != 2 || s.eng.ledger.Check() != nil {
		t.Errorf("%v cpus are free, %v", parent.Free.Cpus, s.eng.ledger.Check())
	}
	var path []string
	for _, m := range s.moves[before:] {
		path = append(path, m.Name+" "+m.To.String())
	}
	if !slices.Equal(path, []string{"slot1_1 Owner/Idle", "slot1_1 Unclaimed/Idle", "data1_2 Claimed/Idle"}) {
		t.Errorf("moved by %q", path)
	}

	act := s.activate(g.Claim, small)
	s.run(time.Second)
	if p := s.pair(g.Slot); p != policy.ClaimedBusy || act == "" {
		t.Errorf("the data slot is %v", p)
	}
	s.ask(func(ref Ref) Event { return ReleaseRequested{Ref: ref, Claim: g.Claim} })
	s.run(time.Minute)
	if n := s.eng.ledger.Len(); n != 1 || len(s.ended) != 1 {
		t.Errorf("%d slots, %d claims ended", n, len(s.ended))
	}
}

func TestDataSlotRefusals(t *testing.T) {
	t.Parallel()
	s := newStage(t, 4, "START = TARGET.RequestMemory < 400\n")
	small := job(t, steady(time.Hour), "")
	a, b := s.claim(slot1, small), s.claim(slot1, small)
	s.activate(b.Claim, small)
	s.run(time.Second)
	static := newStage(t, 2, "NUM_SLOTS = 1\nNUM_SLOTS_TYPE_1 = 1\nSLOT_TYPE_1 = 100%\nSLOT_TYPE_1_PARTITIONABLE = false\n")
	c := static.claim(slot1, small)
	forged := claim.ID{Public: a.Claim.Public, Secret: "guessed"}
	for _, tt := range []struct {
		s    *stage
		ev   DataSlotRequested
		kind errs.Kind
		why  string
	}{
		{s, DataSlotRequested{Claim: forged, Job: small}, errs.Invalid, "can't find slot with given claim ID"},
		{s, DataSlotRequested{Claim: a.Claim}, errs.Invalid, "no job"},
		{s, DataSlotRequested{Claim: b.Claim, Job: small}, errs.Invalid, "given slot is not idle"},
		{static, DataSlotRequested{Claim: c.Claim, Job: small}, errs.Invalid, "given slot is not dynamic"},
		{s, DataSlotRequested{Claim: a.Claim, Job: job(t, steady(time.Hour), "RequestCpus = 2\n")}, errs.Exhausted, "Cpus 2 > 1"},
		{s, DataSlotRequested{Claim: a.Claim, Job: job(t, steady(time.Hour), "RequestMemory = 500\n")}, errs.Exhausted, "Memory"},
		{s, DataSlotRequested{Claim: a.Claim, Job: small, Prefix: "../x"}, errs.Invalid, "cannot begin the name"},
	} {
		tt.s.refused(tt.s.dataSlot(tt.ev), tt.kind, tt.why)
		if p := s.pair(a.Slot); p != policy.ClaimedIdle {
			t.Fatalf("%s: the slot is %v", tt.why, p)
		}
	}
}

// splitOf is the id by which a part of the slot of the last starter can be claimed.
func (s *stage) splitOf(start func() claim.ActivationID) claim.ID {
	s.t.Helper()
	act := start()
	return s.starters[act].start.Split
}

// A job's slot can be split off a data slot while that is claimed, by the id that its
// starter was given. Both go back to their partitionable slot by themselves.
func TestSplitSlot(t *testing.T) {
	t.Parallel()
	s := newStage(t, 4, "")
	two, one := job(t, steady(time.Hour), "RequestCpus = 2\n"), job(t, steady(time.Hour), "")
	old := s.claim(slot1, two)
	data := s.dataSlot(DataSlotRequested{Claim: old.Claim, Job: two, Prefix: "data"}).Granted
	split := s.splitOf(func() claim.ActivationID { return s.activate(data.Claim, two) })
	if split.IsZero() || split == data.Claim || s.eng.PublicAd(data.Slot).Eval("IsSplittable", nil).String() != "true" {
		t.Fatalf("the data slot is split by %v", split)
	}
	s.run(time.Second)
	forged := split
	forged.Secret += "x"
	s.refused(s.request(ClaimRequested{Capability: forged}, one), errs.NotFound, "")
	s.refused(s.request(ClaimRequested{Capability: split}, job(t, steady(time.Hour), "RequestCpus = 3\n")), errs.Exhausted, "Cpus 3 > 2")
	s.refused(s.request(ClaimRequested{Capability: split, Whole: true}, one), errs.Invalid, "")
	r := s.request(ClaimRequested{Capability: split, Leftovers: true}, one)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	g := r.Granted
	if g.Claim != split || !strings.HasPrefix(g.Name, "slot1_1@") || g.Leftovers == nil || g.Leftovers.Slot != slot1 {
		t.Errorf("granted %v of %s with %+v", g.Claim, g.Name, g.Leftovers)
	}
	if _, may := g.Ad.Lookup("IsSplittable"); may {
		t.Error("a part may be split again")
	}
	if v, _ := s.eng.SlotView(data.Slot); v.Total.Cpus != 1 || v.Pair != policy.ClaimedBusy {
		t.Errorf("the data slot is %v with %v cpus", v.Pair, v.Total.Cpus)
	}
	s.refused(s.request(ClaimRequested{Capability: split}, one), errs.NotFound, "")
	if again := s.splitOf(func() claim.ActivationID { return s.activate(g.Claim, one) }); !again.IsZero() {
		t.Error("the starter of a part could split it")
	}
	s.run(time.Second)
	if p := s.pair(g.Slot); p != policy.ClaimedBusy {
		t.Errorf("the part is %v", p)
	}
	s.ask(func(ref Ref) Event { return ReleaseRequested{Ref: ref, Claim: data.Claim} })
	s.run(time.Minute)
	if v, _ := s.eng.SlotView(slot1); v.Free.Cpus != 3 {
		t.Errorf("%v cpus are free", v.Free.Cpus)
	}
	if next := s.eng.slots.byID[data.Slot]; next != nil {
		t.Error("the data slot is still there")
	}
	s.ask(func(ref Ref) Event { return ReleaseRequested{Ref: ref, Claim: g.Claim} })
	s.run(time.Minute)
	if n := s.eng.ledger.Len(); n != 1 || s.eng.ledger.Check() != nil || len(s.eng.slots.byOffer) != 1 {
		t.Errorf("%d slots, %v, %d ids", n, s.eng.ledger.Check(), len(s.eng.slots.byOffer))
	}
}

// The id is worth nothing where nobody has the slot's claim.
func TestSplitNeedsAClaim(t *testing.T) {
	t.Parallel()
	s := newStage(t, 4, "")
	one := job(t, steady(time.Hour), "")
	g := s.claim(slot1, one)
	split := s.splitOf(func() claim.ActivationID { return s.activate(g.Claim, one) })
	s.ask(func(ref Ref) Event { return VacateRequested{Ref: ref, Slot: g.Slot} })
	if r := s.request(ClaimRequested{Capability: split}, one); r.Err == nil {
		t.Errorf("a part of a slot that is %v was granted", s.pair(g.Slot))
	}
	s.run(time.Hour)
	if r := s.request(ClaimRequested{Capability: split}, one); !errs.Is(r.Err, errs.NotFound) {
		t.Errorf("after its slot: %v", r.Err)
	}
}
