// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// request asks for a claim as an access point of a pool does.
func (s *stage) request(ev ClaimRequested, ad *classad.Ad) Reply {
	s.t.Helper()
	r, ok := s.ask(func(ref Ref) Event {
		ev.Ref, ev.Job = ref, ad
		if ev.Client.User == "" {
			ev.Client.User = "alice@example"
		}
		return ev
	})
	if !ok {
		s.t.Fatalf("no reply to %+v", ev)
	}
	return r
}

// offer is the id by which a slot can be claimed now.
func (s *stage) offer(id slot.ID) claim.ID {
	s.t.Helper()
	v, ok := s.eng.SlotView(id)
	if !ok || v.NextClaim.IsZero() {
		s.t.Fatalf("%v is not to be claimed by any id", id)
	}
	return v.NextClaim
}

// refused demands that a request is refused, with words of the reason.
func (s *stage) refused(r Reply, kind errs.Kind, words string) {
	s.t.Helper()
	if r.Granted != nil || !errs.Is(r.Err, kind) || !strings.Contains(r.Err.Error(), words) {
		s.t.Errorf("%+v, want a refusal of kind %v with %q", r, kind, words)
	}
}

func parts(g *Grant) string {
	var names []string
	for _, x := range append([]Grant{*g}, g.More...) {
		names = append(names, strings.TrimSuffix(x.Name, "@"+testHost))
	}
	return strings.Join(names, " ")
}

// TestLeftovers carves three slots in one go: each time the answer has the
// p-slot's ad and the id for the next.
//
// row: S4-097
func TestLeftovers(t *testing.T) {
	t.Parallel()
	s := newStage(t, 3, "")
	ad := job(t, steady(time.Hour), "")
	id := s.offer(slot1)
	seen := map[claim.ID]bool{}
	for n := range 3 {
		r := s.request(ClaimRequested{Capability: id, Leftovers: true}, ad)
		if r.Err != nil || r.Granted.Claim != id {
			t.Fatalf("%+v, want the claim to have the id by which it was asked for", r)
		}
		rest := r.Granted.Leftovers
		if rest == nil || rest.Slot != slot1 || rest.Claim == id || seen[rest.Claim] || rest.Claim != s.offer(slot1) {
			t.Fatalf("leftovers %+v", rest)
		}
		if cpus, _ := rest.Ad.EvalInt("Cpus", nil); cpus != int64(2-n) {
			t.Errorf("%d processors are left after %d", cpus, n+1)
		}
		if last, _ := rest.Ad.EvalString("LastSlotName", nil); last != r.Granted.Name {
			t.Errorf("LastSlotName is %q, not %q", last, r.Granted.Name)
		}
		if name, _ := rest.Ad.EvalString("Name", nil); name != "slot1@"+testHost || rest.Name != name {
			t.Errorf("the leftovers are of %q", name)
		}
		seen[id] = true
		s.activate(r.Granted.Claim, ad)
		id = rest.Claim
	}
	s.refused(s.request(ClaimRequested{Capability: id, Leftovers: true}, ad), errs.Exhausted, "Cpus 1 > 0")

	plain := newStage(t, 3, "")
	if r := plain.request(ClaimRequested{Slot: slot1}, ad); r.Granted.Leftovers != nil {
		t.Error("leftovers that nobody asked for")
	}
	off := newStage(t, 3, "CLAIM_PARTITIONABLE_LEFTOVERS = false")
	if r := off.request(ClaimRequested{Slot: slot1, Leftovers: true}, ad); r.Granted.Leftovers != nil {
		t.Error("leftovers though CLAIM_PARTITIONABLE_LEFTOVERS is false")
	}
}

// TestOffers checks what an id is worth that a slot shows: one request.
func TestOffers(t *testing.T) {
	t.Parallel()
	s := newStage(t, 2, "START = TARGET.Good =!= false\nRANK = TARGET.Prio\nSLOT_TYPE_1 = 50%\nNUM_SLOTS_TYPE_1 = 1\n"+
		"SLOT_TYPE_2 = 50%\nSLOT_TYPE_2_PARTITIONABLE = true\nNUM_SLOTS_TYPE_2 = 1\n")
	slot2 := slot.ID{N: 2}
	ad, bad := job(t, steady(time.Hour), "Prio = 1"), job(t, steady(time.Hour), "Good = false")
	first := s.offer(slot1)
	if first == s.offer(slot2) {
		t.Fatal("two slots with one id")
	}
	for name, id := range map[string]claim.ID{
		"a wrong secret": {Public: first.Public, Secret: "guessed"}, "no secret": {Public: first.Public}, "an unknown one": {Public: "<x>#1#1", Secret: "y"},
	} {
		s.refused(s.request(ClaimRequested{Capability: id}, ad), errs.NotFound, "no slot is to be claimed by this id")
		if s.offer(slot1) != first {
			t.Errorf("%s changed the id of the slot", name)
		}
	}
	s.refused(s.request(ClaimRequested{Capability: first, Slot: slot2}, ad), errs.NotFound, "no slot")

	s.refused(s.request(ClaimRequested{Capability: first}, bad), errs.Denied, "START")
	second := s.offer(slot1)
	if second == first {
		t.Error("an id that was refused is still offered")
	}
	s.refused(s.request(ClaimRequested{Capability: first}, ad), errs.NotFound, "no slot")
	r := s.request(ClaimRequested{Capability: second}, ad)
	if r.Err != nil || r.Granted.Claim != second {
		t.Fatalf("%+v", r)
	}
	third := s.offer(slot1) // by which the claim can be preempted
	s.refused(s.request(ClaimRequested{Capability: second}, job(t, steady(time.Hour), "Prio = 5")), errs.NotFound, "no slot")
	r = s.request(ClaimRequested{Capability: third}, job(t, steady(time.Hour), "Prio = 5"))
	if r.Err != nil || r.Granted.Claim != third {
		t.Fatalf("preempting: %+v", r)
	}
	s.ask(func(ref Ref) Event { return ReleaseRequested{Ref: ref, Claim: third} })
	if id := s.offer(slot1); id == third || id == second || id == first {
		t.Errorf("the freed slot offers %v again", id)
	}
	for _, ev := range []ClaimRequested{{Slot: slot1, Whole: true}, {Slot: slot1, DynamicSlots: 2}, {Slot: slot1, Evict: []claim.ID{third}}} {
		s.refused(s.request(ev, ad), errs.Invalid, "only a partitionable slot")
	}
	for id, want := range map[claim.ID]slot.ID{
		s.offer(slot1): slot1, s.offer(slot2): slot2, third: {}, {}: {}, {Public: s.offer(slot2).Public, Secret: "guessed"}: {},
	} {
		if got, ok := s.eng.SlotOf(id); got != want || ok != (want != slot.ID{}) {
			t.Errorf("%v is of %v, want %v", id, got, want)
		}
	}
	// A d-slot takes the id that its parent offered, and offers one of its own.
	id := s.offer(slot2)
	if r = s.request(ClaimRequested{Capability: id}, ad); r.Err != nil || r.Granted.Claim != id || s.offer(r.Granted.Slot) == id {
		t.Errorf("%+v", r)
	}
	if got, ok := s.eng.SlotOf(id); got != r.Granted.Slot || !ok {
		t.Errorf("the claim is of %v", got)
	}
}

// TestManyAtOnce carves several slots by one request.
func TestManyAtOnce(t *testing.T) {
	t.Parallel()
	s := newStage(t, 3, "")
	ad := job(t, steady(time.Hour), "")
	id := s.offer(slot1)
	r := s.request(ClaimRequested{Capability: id, DynamicSlots: 2, Leftovers: true}, ad)
	if r.Err != nil || parts(r.Granted) != "slot1_1 slot1_2" || r.Granted.Claim != id || r.Granted.More[0].Claim == id {
		t.Fatalf("%+v", r)
	}
	if last, _ := r.Granted.Leftovers.Ad.EvalString("LastSlotName", nil); last != r.Granted.Name {
		t.Errorf("LastSlotName is %q", last)
	}
	for _, g := range append(r.Granted.More, *r.Granted) {
		s.activate(g.Claim, ad)
	}
	// What fits is given.
	if r = s.request(ClaimRequested{Slot: slot1, DynamicSlots: 5}, ad); r.Err != nil || parts(r.Granted) != "slot1_3" {
		t.Errorf("%+v", r)
	}
	s.refused(s.request(ClaimRequested{Slot: slot1, DynamicSlots: 5}, ad), errs.Exhausted, "Cpus 1 > 0")
	s.refused(s.request(ClaimRequested{Slot: slot1, DynamicSlots: -1}, ad), errs.Invalid, "-1 dynamic slots")
	cp := newStage(t, 3, "CONSUMPTION_POLICY = true")
	// One at a time, where each has its own price.
	if r = cp.request(ClaimRequested{Slot: slot1, DynamicSlots: 2}, ad); r.Err != nil || parts(r.Granted) != "slot1_1" {
		t.Errorf("a slot with a consumption policy gave %v", r)
	}
}

// TestWholeSlot claims a partitionable slot itself, carves from it, and sees
// others refused until the time is over.
//
// row: S4-098, S4-099
func TestWholeSlot(t *testing.T) {
	t.Parallel()
	s := newStage(t, 4, "ENABLE_CLAIMABLE_PARTITIONABLE_SLOTS = true")
	ad := job(t, steady(3*time.Hour), "JobLeaseDuration = 100000")
	mine, others := claim.Client{User: "alice@example", Schedd: "a.example"}, claim.Client{User: "bob@example", Schedd: "b.example"}
	id := s.offer(slot1)
	r := s.request(ClaimRequested{Capability: id, Whole: true, Client: mine}, ad)
	if r.Err != nil || parts(r.Granted) != "slot1" || r.Granted.Claim != id || r.Granted.Lease != time.Hour {
		t.Fatalf("%+v", r)
	}
	if state, _ := s.eng.SlotAd(slot1).EvalString("State", nil); state != "Claimed" || s.pair(slot1) != policy.ClaimedIdle {
		t.Errorf("the slot shows %s", state)
	}
	s.refused(s.request(ClaimRequested{Slot: slot1, Client: others}, ad), errs.Denied, `claimed as a whole by "a.example"`)
	s.refused(s.request(ClaimRequested{Slot: slot1, Whole: true, Client: mine}, ad), errs.Conflict, "already")
	activate, _ := s.ask(func(ref Ref) Event { return ActivateRequested{Ref: ref, Claim: id, Job: ad} })
	s.refused(activate, errs.Invalid, "runs no job itself")

	for _, want := range []string{"slot1_1", "slot1_2"} {
		r = s.request(ClaimRequested{Capability: id, Client: mine, Leftovers: true}, ad)
		if r.Err != nil || parts(r.Granted) != want || r.Granted.Claim == id || r.Granted.Leftovers.Claim != id {
			t.Fatalf("%+v", r)
		}
		s.activate(r.Granted.Claim, ad)
	}
	for range 59 {
		s.run(time.Minute)
		s.step(LeaseRenewed{Claim: id})
	}
	if got := s.pair(slot1); got != policy.ClaimedIdle {
		t.Errorf("after 59 minutes the slot is %v", got)
	}
	s.run(2 * time.Minute)
	if got := s.pair(slot1); got != policy.UnclaimedIdle {
		t.Errorf("after an hour the slot is %v", got)
	}
	if got := s.pair(slot.ID{N: 1, Sub: 1}); got != policy.ClaimedBusy {
		t.Errorf("a job in a part of it is %v", got)
	}
	if r = s.request(ClaimRequested{Slot: slot1, Client: others}, ad); r.Err != nil {
		t.Errorf("free again, and yet %v", r.Err)
	}
	// A shorter time may be asked for, and parts along with it.
	r = s.request(ClaimRequested{Slot: slot1, Whole: true, WholeTime: time.Minute, DynamicSlots: 1, Client: others}, ad)
	if r.Err != nil || parts(r.Granted) != "slot1_4 slot1" && parts(r.Granted) != "slot1 slot1_4" {
		t.Fatalf("%+v", r)
	}
	if s.pair(slot1) != policy.ClaimedIdle {
		t.Error("the slot itself is not claimed")
	}
	s.run(61 * time.Second)
	if got := s.pair(slot1); got != policy.UnclaimedIdle {
		t.Errorf("after its minute the slot is %v", got)
	}

	off := newStage(t, 4, "")
	s.refused(off.request(ClaimRequested{Slot: slot1, Whole: true}, ad), errs.Unsupported, "the owner lets nobody")
	cp := newStage(t, 4, "ENABLE_CLAIMABLE_PARTITIONABLE_SLOTS = true\nCONSUMPTION_POLICY = true")
	s.refused(cp.request(ClaimRequested{Slot: slot1, Whole: true}, ad), errs.Unsupported, "consumption policy")
	short := newStage(t, 4, "ENABLE_CLAIMABLE_PARTITIONABLE_SLOTS = true\nMAX_PARTITIONABLE_SLOT_CLAIM_TIME = 30")
	if r := short.request(ClaimRequested{Slot: slot1, Whole: true, WholeTime: time.Hour}, ad); r.Granted.Lease != 30*time.Second {
		t.Errorf("the claim lasts %v", r.Granted.Lease)
	}
}

// TestPreemptParts makes room in a partitionable slot: the named d-slots go at
// once, and since they are still there the new one has a fresh number.
//
// row: S0-053
func TestPreemptParts(t *testing.T) {
	t.Parallel()
	s := newStage(t, 2, "KILLING_TIMEOUT = 30")
	small := job(t, script{runs: time.Hour, onHard: 3 * time.Second, onSoft: time.Minute}, "")
	big := job(t, steady(time.Minute), "RequestCpus = 2")
	a, b := s.claim(slot1, small), s.claim(slot1, small)
	s.activate(a.Claim, small)
	s.activate(b.Claim, small)
	s.run(10 * time.Second)
	s.refused(s.request(ClaimRequested{Slot: slot1}, big), errs.Exhausted, "Cpus 2 > 0")

	r := s.request(ClaimRequested{Slot: slot1, Evict: []claim.ID{a.Claim, b.Claim}}, big)
	if r.Err != nil || parts(r.Granted) != "slot1_3" {
		t.Fatalf("%+v", r)
	}
	for _, id := range []slot.ID{a.Slot, b.Slot} {
		if got := s.pair(id); got != policy.PreemptingKilling {
			t.Errorf("%v is %v", id, got)
		}
	}
	if len(s.orders) != 2 || s.orders[0].Op != HardKill || s.orders[0].Code != 1019 || s.orders[0].Reason != "Preempted for a Priority user" {
		t.Errorf("orders: %+v", s.orders)
	}
	s.activate(r.Granted.Claim, big)
	s.run(5 * time.Second)
	if len(s.ended) != 2 || s.ended[0].Code != 1019 || s.ended[0].ByClient {
		t.Errorf("ended: %+v", s.ended)
	}
	if v, ok := s.eng.SlotView(a.Slot); ok {
		t.Errorf("%s is still there: %v", v.Name, v.Pair)
	}
	if err := s.eng.ledger.Check(); err != nil {
		t.Error(err)
	}
	s.run(5 * time.Minute)
	s.ask(func(ref Ref) Event { return ReleaseRequested{Ref: ref, Claim: r.Granted.Claim} })
	if got := resourcesOf(s.eng.SlotAd(slot1))["Cpus"]; got != 2 {
		t.Errorf("in the end %d processors are free", got)
	}
}

// TestPreemptPartsRefused says what keeps d-slots from being preempted for
// room; then all of them go on.
func TestPreemptPartsRefused(t *testing.T) {
	t.Parallel()
	s := newStage(t, 4, "MAXJOBRETIREMENTTIME = TARGET.Long\nSLOT_TYPE_1 = 50%\nSLOT_TYPE_1_PARTITIONABLE = true\nNUM_SLOTS_TYPE_1 = 2\n")
	plain, long := job(t, steady(time.Hour), "Long = 0"), job(t, steady(time.Hour), "Long = 600")
	a, b, c := s.claim(slot1, plain), s.claim(slot1, long), s.claim(slot.ID{N: 2}, plain)
	for _, g := range []Grant{a, b, c} {
		s.activate(g.Claim, map[claim.ID]*classad.Ad{a.Claim: plain, b.Claim: long, c.Claim: plain}[g.Claim])
	}
	big := job(t, steady(time.Minute), "RequestCpus = 2")
	for _, tt := range []struct {
		other claim.ID
		kind  errs.Kind
		words string
	}{
		{b.Claim, errs.Denied, "10m0s of retirement left"},
		{c.Claim, errs.Invalid, "gives nothing to slot1"},
		{claim.ID{Public: a.Claim.Public, Secret: "guessed"}, errs.NotFound, "no such claim to preempt"},
	} {
		s.refused(s.request(ClaimRequested{Slot: slot1, Evict: []claim.ID{a.Claim, tt.other}}, big), tt.kind, tt.words)
		if got := s.pair(a.Slot); got != policy.ClaimedBusy {
			t.Fatalf("%s is %v", a.Name, got)
		}
	}
	// An idle claim leaves its number free at once.
	s.step(StarterExited{Activation: s.eng.slots.byClaim[b.Claim.Public].act.ID})
	s.step(StarterExited{Activation: s.eng.slots.byClaim[a.Claim.Public].act.ID})
	if r := s.request(ClaimRequested{Slot: slot1, Evict: []claim.ID{a.Claim, b.Claim}}, big); r.Err != nil || parts(r.Granted) != "slot1_1" {
		t.Errorf("%+v", r)
	}
}

// TestPreemptionOfParts ranks a job above the one in a d-slot: the d-slot is
// preempted like any other, its parent never is.
//
// row: S0-049
func TestPreemptionOfParts(t *testing.T) {
	t.Parallel()
	s := newStage(t, 1, "RANK = TARGET.Prio")
	low, high := job(t, steady(time.Hour), "Prio = 1"), job(t, steady(time.Hour), "Prio = 2")
	g := s.claim(slot1, low)
	s.activate(g.Claim, low)
	s.refused(s.request(ClaimRequested{Slot: slot1}, high), errs.Exhausted, "Cpus 1 > 0")
	if got := s.pair(slot1); got != policy.UnclaimedIdle {
		t.Errorf("the parent is %v", got)
	}
	s.ref++
	s.step(ClaimRequested{Ref: asked(s.ref), Slot: g.Slot, Job: high, Client: claim.Client{User: "bob@example"}})
	s.run(time.Minute)
	if r := s.replies[s.ref]; r.Granted == nil || r.Granted.Slot != g.Slot {
		t.Fatalf("%+v", r)
	}
	if v, _ := s.eng.SlotView(g.Slot); v.Client.User != "bob@example" {
		t.Errorf("%s is claimed by %s", v.Name, v.Client.User)
	}
}

// TestRefusedPart has a START that takes jobs in partitionable slots only, as
// in slot-carve-65: the slot matches, and no part of it wants the job.
func TestRefusedPart(t *testing.T) {
	t.Parallel()
	s := newStage(t, 8, "START = PartitionableSlot =?= true")
	ad := job(t, steady(time.Minute), "")
	before := resourcesOf(s.eng.SlotAd(slot1))
	s.refused(s.request(ClaimRequested{Slot: slot1}, ad), errs.Denied, "request to create dslot resource refused")
	if m := classad.Match(ad, s.eng.SlotAd(slot1), &classad.Env{Now: s.now.Wall}); !m.RightOK {
		t.Error("the partitionable slot does not even match")
	}
	if got := resourcesOf(s.eng.SlotAd(slot1)); got["Cpus"] != before["Cpus"] || got["Memory"] != before["Memory"] {
		t.Errorf("the slot has %v of %v", got, before)
	}
}
