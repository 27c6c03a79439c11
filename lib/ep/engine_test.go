// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// static1 is a machine with one static slot, looked at every second while it
// is claimed and every five seconds otherwise.
const static1 = "NUM_CPUS = 1\nMEMORY = 4096\nNUM_SLOTS = 1\nSLOT_TYPE_0_PARTITIONABLE = false\nPOLLING_INTERVAL = 1\nUPDATE_INTERVAL = 5\n"

// static2 is the same with two.
const static2 = "NUM_CPUS = 2\nMEMORY = 4096\nNUM_SLOTS = 2\nSLOT_TYPE_0_PARTITIONABLE = false\nPOLLING_INTERVAL = 1\nUPDATE_INTERVAL = 5\n"

var (
	slot1 = slot.ID{N: 1}
	slot2 = slot.ID{N: 2}
)

// row: S0-100, S0-106, S0-139, S0-150, S0-151
func TestOneJob(t *testing.T) {
	t.Parallel()
	s := newStage(t, 4, "")
	if first := s.moves[0]; first.From != policy.OwnerIdle || first.To != policy.UnclaimedIdle {
		t.Errorf("the first move of a new slot is %v", first.Decision)
	}
	if got := s.pair(slot1); got != policy.UnclaimedIdle {
		t.Fatalf("p-slot is %v", got)
	}
	ad := job(t, steady(10*time.Second), "")
	g := s.claim(slot1, ad)
	if g.Slot != (slot.ID{N: 1, Sub: 1}) || g.Name != "slot1_1@"+testHost {
		t.Fatalf("granted %v %q", g.Slot, g.Name)
	}
	if state, _ := g.Ad.EvalString("State", nil); state != "Claimed" {
		t.Errorf("the granted ad says %q", state)
	}
	act := s.activate(g.Claim, ad)
	if act != "slot1_1#1" {
		t.Errorf("activation %q", act)
	}
	s.run(time.Minute)
	if got := s.pair(g.Slot); got != policy.ClaimedIdle {
		t.Fatalf("after the job: %v", got)
	}
	s.ask(func(ref Ref) Event { return ReleaseRequested{Ref: ref, Claim: g.Claim} })
	const want = "Owner/Idle 5 Claimed/Idle 11 Claimed/Busy 12 Claimed/Cleaning 12 Claimed/Idle 10 Preempting/Killing 25 Owner/Idle 1 Unclaimed/Idle"
	if got := s.path("slot1_1", 0); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if _, ok := s.eng.SlotView(g.Slot); ok {
		t.Error("the d-slot is still there")
	}
	if v, _ := s.eng.SlotView(slot1); v.Free.Cpus != 4 {
		t.Errorf("the p-slot has %v", v.Free)
	}
	// row: S0-168
	if len(s.ended) != 1 || s.ended[0].Claim != g.Claim || !s.ended[0].ByClient {
		t.Errorf("told of the end: %+v", s.ended)
	}
}

// TestReuse runs one job after the other in the same dynamic slot.
func TestReuse(t *testing.T) {
	t.Parallel()
	s := newStage(t, 4, "")
	ad := job(t, steady(time.Second), "")
	g := s.claim(slot1, ad)
	for range 3 {
		s.activate(g.Claim, ad)
		s.run(10 * time.Second)
	}
	if v, _ := s.eng.SlotView(g.Slot); v.Claim != g.Claim || v.Pair != policy.ClaimedIdle {
		t.Errorf("%+v", v)
	}
	if n := s.eng.ledger.Len(); n != 2 {
		t.Errorf("%d slots, want the p-slot and its d-slot", n)
	}
}

// row: S0-112, S0-153, S0-170, S0-098
func TestPreemptionByRank(t *testing.T) {
	t.Parallel()
	s := newStage(t, 1, static1+`RANK = (Owner == "coltrane") + ((Owner == "garrison") * 10) + (Owner == "jones")`)
	jones := job(t, steady(time.Hour), "Owner = \"jones\"\n")
	g := s.claim(slot1, jones)
	s.activate(g.Claim, jones)
	s.run(3 * time.Second)
	rank := func() float64 { f, _ := s.eng.SlotAd(slot1).EvalReal("CurrentRank", nil); return f }
	if rank() != 1 {
		t.Errorf("CurrentRank of jones is %v", rank())
	}
	for _, worse := range []string{"davis", "jones"} {
		r, ok := s.ask(func(ref Ref) Event {
			return ClaimRequested{Ref: ref, Slot: slot1, Job: job(t, steady(time.Hour), "Owner = \""+worse+"\"\n")}
		})
		if !ok || !errs.Is(r.Err, errs.Denied) || r.Code != command.RefusedPreempted {
			t.Fatalf("a claim of %s: %+v", worse, r)
		}
	}
	from := len(s.moves)
	garrison := job(t, steady(time.Hour), "Owner = \"garrison\"\n")
	r, ok := s.ask(func(ref Ref) Event { return ClaimRequested{Ref: ref, Slot: slot1, Job: garrison} })
	if ok {
		t.Fatalf("the answer came before the slot was free: %+v", r)
	}
	s.run(3 * time.Second)
	r, ok = s.replies[s.ref]
	if !ok || r.Granted == nil {
		t.Fatalf("garrison got %+v", r)
	}
	const want = "Claimed/Busy 18 Preempting/Vacating 23 Claimed/Idle"
	if got := s.path("slot1", from); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if len(s.ended) != 1 || s.ended[0].Claim != g.Claim || s.ended[0].Code != 1018 || s.ended[0].Reason != "Preempted for a higher Ranked job" {
		t.Errorf("jones was told %+v", s.ended)
	}
	if rank() != 10 {
		t.Errorf("CurrentRank of garrison is %v", rank())
	}
	s.activate(r.Granted.Claim, garrison)
}

// row: S0-097
func TestBooleanRank(t *testing.T) {
	t.Parallel()
	for owner, want := range map[string]string{"coltrane": "1.0", "davis": "0.0"} {
		s := newStage(t, 1, static1+`RANK = Owner == "coltrane" || Owner == "tyner"`)
		ad := job(t, steady(time.Hour), "Owner = \""+owner+"\"\n")
		s.activate(s.claim(slot1, ad).Claim, ad)
		if e, _ := s.eng.SlotAd(slot1).Lookup("CurrentRank"); e == nil || e.String() != want {
			t.Errorf("CurrentRank for %s is %v, want %s", owner, e, want)
		}
	}
}

// row: S0-172
func TestKillingForBetterClaim(t *testing.T) {
	t.Parallel()
	s := newStage(t, 1, static1+"RANK = TARGET.Prio\nKILL = True\n")
	low := job(t, script{runs: time.Hour, onSoft: -1, onHard: time.Second}, "Prio = 1\n")
	g := s.claim(slot1, low)
	s.activate(g.Claim, low)
	s.run(3 * time.Second)
	from := len(s.moves)
	s.ask(func(ref Ref) Event {
		return ClaimRequested{Ref: ref, Slot: slot1, Job: job(t, steady(time.Hour), "Prio = 2\n")}
	})
	s.run(10 * time.Second)
	const want = "Claimed/Busy 18 Preempting/Vacating 21 Preempting/Killing 24 Claimed/Idle"
	if got := s.path("slot1", from); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if s.at[from+1] == s.at[from] {
		t.Error("KILL was looked at before the next poll")
	}
}

// row: S0-113, S0-170
func TestWaitingClaimRefusedAtTheEnd(t *testing.T) {
	t.Parallel()
	s := newStage(t, 1, static1+"RANK = TARGET.Prio\nSTART = Open =!= False\n")
	low := job(t, script{runs: time.Hour, onSoft: 5 * time.Second}, "Prio = 1\n")
	s.activate(s.claim(slot1, low).Claim, low)
	s.run(3 * time.Second)
	s.ask(func(ref Ref) Event {
		return ClaimRequested{Ref: ref, Slot: slot1, Job: job(t, steady(time.Hour), "Prio = 2\n")}
	})
	s.publish("Open = False")
	from := len(s.moves)
	s.run(10 * time.Second)
	r := s.replies[s.ref]
	if !errs.Is(r.Err, errs.Conflict) {
		t.Errorf("the waiting claim got %+v", r)
	}
	const want = "Preempting/Vacating 22 Owner/Idle 1 Unclaimed/Idle"
	if got := s.path("slot1", from); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// What keeps a slot from being claimed keeps the claim out that waits for it, too: a
// slot that is about to be given up is not handed on.
func TestWaitingClaimRefusedAsAnyOther(t *testing.T) {
	t.Parallel()
	fault := Exit{Fault: &MachineFault{Kind: FaultStarter, Reason: "no more processes"}}
	for _, tt := range []struct {
		name string
		exit Exit  // of the first job
		ev   Event // before it
	}{
		{"shutdown", Exit{Evicted: true}, ShutdownRequested{Graceful}},
		{"fast shutdown", Exit{Evicted: true}, ShutdownRequested{Fast}},
		{"drain", Exit{Evicted: true}, DrainRequested{Ref: asked(98), How: DrainGraceful}},
		{"broken", unclean, nil},
		{"fault", fault, nil},
	} {
		s := newStage(t, 1, static1+"RANK = TARGET.Prio\n")
		low := job(t, script{runs: time.Hour, onSoft: -1, onHard: -1}, "Prio = 1\n")
		id := s.activate(s.claim(slot1, low).Claim, low)
		s.run(3 * time.Second)
		s.ask(func(ref Ref) Event {
			return ClaimRequested{Ref: ref, Slot: slot1, Job: job(t, steady(time.Hour), "Prio = 2\n")}
		})
		ref := s.ref
		if tt.ev != nil {
			s.step(tt.ev)
		}
		s.step(JobEnded{Activation: id, Exit: tt.exit})
		s.step(StarterExited{Activation: id, Status: host.ExitStatus{Exited: true}})
		v, _ := s.eng.SlotView(slot1)
		if r := s.replies[ref]; r.Err == nil || v.Claimed {
			t.Errorf("%s: the slot is %v, the waiting claim got %+v", tt.name, v.Pair, r)
		}
	}
}

// row: S0-163
func TestUnretirement(t *testing.T) {
	t.Parallel()
	for _, withdrawn := range []bool{true, false} {
		s := newStage(t, 1, static1+"RANK = TARGET.Prio\nMAXJOBRETIREMENTTIME = 60\nMachineMaxVacateTime = 2\n")
		low := job(t, steady(time.Hour), "Prio = 1\n")
		g := s.claim(slot1, low)
		s.activate(g.Claim, low)
		s.run(3 * time.Second)
		_, answered := s.ask(func(ref Ref) Event {
			return ClaimRequested{Ref: ref, Slot: slot1, Job: job(t, steady(time.Hour), "Prio = 2\n")}
		})
		if answered || s.pair(slot1) != policy.ClaimedRetiring {
			t.Fatalf("%v", s.pair(slot1))
		}
		if !withdrawn {
			// The owner's word makes the retirement irrevocable.
			s.step(VacateRequested{Slot: slot1, Manner: Graceful})
		}
		s.step(ClaimWithdrawn{Ref: asked(s.ref)})
		s.run(5 * time.Second)
		want := policy.ClaimedBusy
		if !withdrawn {
			want = policy.ClaimedRetiring
		}
		if got := s.pair(slot1); got != want {
			t.Errorf("after the better claim went away: %v, want %v", got, want)
		}
		if _, answered := s.replies[s.ref]; answered {
			t.Error("a withdrawn request was answered")
		}
	}
}

// row: S0-041
func TestIndependence(t *testing.T) {
	t.Parallel()
	s := newStage(t, 2, static2+"IS_OWNER = SlotID == 2\nWANT_SUSPEND = True\nSUSPEND = ProcId == 1\nCONTINUE = False\n")
	if got := s.pair(slot2); got != policy.OwnerIdle {
		t.Fatalf("slot2 is %v", got)
	}
	one := job(t, steady(time.Hour), "ClusterId = 7\nProcId = 0\n")
	s.activate(s.claim(slot1, one).Claim, one)
	s.run(10 * time.Second)
	if a, b := s.pair(slot1), s.pair(slot2); a != policy.ClaimedBusy || b != policy.OwnerIdle {
		t.Errorf("slot1 is %v, slot2 %v", a, b)
	}
	// Both slots claimed: each expression sees the job of its own slot.
	s = newStage(t, 2, static2+"WANT_SUSPEND = True\nSUSPEND = ProcId == 1\nCONTINUE = False\n")
	for n := range 2 {
		ad := job(t, steady(time.Hour), "ClusterId = 7\nProcId = "+string(rune('0'+n))+"\n")
		s.activate(s.claim(slot.ID{N: n + 1}, ad).Claim, ad)
	}
	s.run(10 * time.Second)
	if a, b := s.pair(slot1), s.pair(slot2); a != policy.ClaimedBusy || b != policy.ClaimedSuspended {
		t.Errorf("slot1 runs proc 0 and is %v, slot2 runs proc 1 and is %v", a, b)
	}
}

// row: S0-093
func TestStartRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{static1, ""} {
		s := newStage(t, 1, text+"START = KeyboardIdle > 60 && TARGET.ImageSize < 1000\n")
		s.step(Sampled{Sample: machine.Sample{At: s.now, KeyboardIdle: 2 * time.Minute, Fresh: machine.AllReadings}})
		r, _ := s.ask(func(ref Ref) Event {
			return ClaimRequested{Ref: ref, Slot: slot1, Job: job(t, steady(0), "ImageSize = 1000\n")}
		})
		if !errs.Is(r.Err, errs.Denied) || r.Code != command.RefusedNoMatch {
			t.Fatalf("%+v", r)
		}
		if s.eng.ledger.Len() != 1 || s.pair(slot1) != policy.UnclaimedIdle {
			t.Errorf("a refused claim left %v", s.pair(slot1))
		}
		small := job(t, steady(0), "ImageSize = 999\n")
		g := s.claim(slot1, small)
		// The same question again for each activation.
		r, _ = s.ask(func(ref Ref) Event {
			return ActivateRequested{Ref: ref, Claim: g.Claim, Job: job(t, steady(0), "ImageSize = 5000\n")}
		})
		if !errs.Is(r.Err, errs.Denied) || r.Code != command.RefusedNoMatch || !strings.Contains(r.Err.Error(), "TARGET.ImageSize = 5000") {
			t.Errorf("%+v", r)
		}
		s.activate(g.Claim, small)
	}
}

// TestRefusals are requests that cannot be. Each is answered and changes
// nothing.
func TestRefusals(t *testing.T) {
	t.Parallel()
	s := newStage(t, 2, "")
	ad := job(t, steady(time.Hour), "")
	g := s.claim(slot1, ad)
	big := job(t, steady(0), "RequestMemory = 100000\n")
	s.activate(g.Claim, ad)
	s.run(time.Second)
	for _, tt := range []struct {
		name string
		ev   func(ref Ref) Event
		kind errs.Kind
		code int
	}{
		{"no such slot", func(r Ref) Event { return ClaimRequested{Ref: r, Slot: slot.ID{N: 5}, Job: ad} }, errs.NotFound, command.RefusedClaimNotFound},
		{"no job", func(r Ref) Event { return ClaimRequested{Ref: r, Slot: slot1} }, errs.Invalid, command.RefusedBadRequest},
		{"too big", func(r Ref) Event { return ClaimRequested{Ref: r, Slot: slot1, Job: big} }, errs.Exhausted, command.RefusedNoMatch},
		{"not idle", func(r Ref) Event { return ActivateRequested{Ref: r, Claim: g.Claim, Job: ad} }, errs.Conflict, command.RefusedNotIdle},
		{"activation without a job", func(r Ref) Event { return ActivateRequested{Ref: r, Claim: g.Claim} }, errs.Invalid, command.RefusedBadRequest},
		{"wrong secret", func(r Ref) Event {
			return ActivateRequested{Ref: r, Claim: claim.ID{Public: g.Claim.Public, Secret: "x"}, Job: ad}
		}, errs.NotFound, command.RefusedClaimNotFound},
		{"unknown claim", func(r Ref) Event { return ReleaseRequested{Ref: r, Claim: claim.ID{Public: "<a>#1#2", Secret: "x"}} }, errs.NotFound, command.RefusedClaimNotFound},
		{"no claim", func(r Ref) Event { return DeactivateRequested{Ref: r} }, errs.NotFound, command.RefusedClaimNotFound},
		{"nothing suspended", func(r Ref) Event { return ContinueRequested{Ref: r, Claim: g.Claim} }, errs.Conflict, 0},
		{"vacate of a p-slot", func(r Ref) Event { return VacateRequested{Ref: r, Slot: slot1, Manner: Graceful} }, errs.Conflict, 0},
		{"vacate of nothing", func(r Ref) Event { return VacateRequested{Ref: r, Slot: slot.ID{N: 1, Sub: 9}} }, errs.NotFound, 0},
	} {
		moves, before := len(s.moves), s.pair(g.Slot)
		r, ok := s.ask(tt.ev)
		if !ok || !errs.Is(r.Err, tt.kind) || r.Code != tt.code {
			t.Errorf("%s: %v, kind %v, code %d", tt.name, r.Err, errs.KindOf(r.Err), r.Code)
		}
		if len(s.moves) != moves || s.pair(g.Slot) != before {
			t.Errorf("%s: something moved", tt.name)
		}
		if strings.Contains(r.Err.Error(), g.Claim.Secret.Reveal()) {
			t.Errorf("%s: the secret is in the answer: %v", tt.name, r.Err)
		}
	}
	// Events about what is over are nothing at all.
	moves := len(s.moves)
	for _, ev := range []Event{
		JobRunning{Activation: "slot9#1"}, JobEnded{Activation: "x"}, StarterExited{Activation: ""}, StarterFailed{Activation: "x"}, StarterStarted{Activation: "x"},
		JobUsage{Activation: "x"}, JobSuspended{"x"}, JobContinued{"x"}, LeaseRenewed{}, ClaimWithdrawn{Ref: asked(99)}, Reconfigured{},
		ReleaseRequested{Claim: claim.ID{Public: "p"}},
	} {
		for _, eff := range s.eng.Step(s.now, ev) {
			if _, ok := eff.(WakeAt); !ok {
				t.Errorf("%#v has the effect %#v", ev, eff)
			}
		}
	}
	if len(s.moves) != moves {
		t.Error("something moved")
	}
}

// TestStarterTrouble is a starter that dies, one that never lives, and one
// that breaks its slot.
func TestStarterTrouble(t *testing.T) {
	t.Parallel()
	s := newStage(t, 1, static1)
	ad := job(t, script{runs: 5 * time.Second, crash: true}, "")
	g := s.claim(slot1, ad)
	from := len(s.moves)
	s.activate(g.Claim, ad)
	s.run(10 * time.Second)
	if got := s.path("slot1", from); got != "Claimed/Idle 11 Claimed/Busy 12 Claimed/Idle" {
		t.Errorf("a starter that dies: %s", got)
	}
	r, _ := s.ask(func(ref Ref) Event { return ActivateRequested{Ref: ref, Claim: g.Claim, Job: ad} })
	s.step(StarterFailed{Activation: r.Activation, Err: errors.New("no such file")})
	if got := s.pair(slot1); got != policy.ClaimedIdle {
		t.Errorf("a starter that never lived: %v", got)
	}
	delete(s.starters, r.Activation)
	s.later = nil

	p := newStage(t, 2, "")
	whole := job(t, script{}, "RequestCpus = 2\n")
	g = p.claim(slot1, whole)
	p.later = nil
	act := p.activate(g.Claim, whole)
	p.later = nil
	p.step(JobRunning{Activation: act})
	p.step(JobEnded{Activation: act, Exit: Exit{Broken: &slot.BrokenReason{Code: slot.BrokenUnclean, Reason: "Could not clean up after job"}}})
	p.step(StarterExited{Activation: act, Status: host.ExitStatus{Exited: true, Code: 1}})
	if _, ok := p.eng.SlotView(g.Slot); ok {
		t.Error("the broken d-slot is still there")
	}
	if v, _ := p.eng.SlotView(slot1); v.Free.Cpus != 0 || v.Claimable() {
		t.Errorf("what the broken d-slot held is free again: %v", v.Free)
	}
	if err := p.eng.ledger.Check(); err != nil {
		t.Error(err)
	}
	if len(p.ended) != 1 || p.ended[0].ByClient {
		t.Errorf("the client was told %+v", p.ended)
	}
}

// row: S0-171
func TestStuckStarter(t *testing.T) {
	t.Parallel()
	s := newStage(t, 1, static1+"KILLING_TIMEOUT = 4\nMachineMaxVacateTime = 3\n")
	ad := job(t, script{runs: time.Hour, onSoft: -1, onHard: -1, onKill: 9 * time.Second}, "")
	s.activate(s.claim(slot1, ad).Claim, ad)
	s.run(10 * time.Second)
	from, began := len(s.moves), s.elapsed()
	s.step(VacateRequested{Slot: slot1, Manner: Graceful})
	s.run(time.Minute)
	var orders []string
	for _, o := range s.orders {
		orders = append(orders, o.Op.String())
	}
	if got := strings.Join(orders, " "); got != "softkill hardkill" {
		t.Errorf("orders: %s", got)
	}
	if d := s.orders[1].Deadline.Sub(s.orders[0].Deadline); d != 4*time.Second {
		t.Errorf("the deadlines are %v apart, want KILLING_TIMEOUT", d)
	}
	if s.orders[0].Code != 1010 || s.orders[0].Reason != "Claim vacated by the administrator" || s.orders[1].Code != 1010 {
		t.Errorf("reasons: %+v", s.orders)
	}
	// Until it is gone it is ended by force again and again.
	if len(s.killed) != 3 {
		t.Errorf("ended by force %d times", len(s.killed))
	}
	if gone := s.at[len(s.at)-1] - began; gone != 3*time.Second+4*time.Second+9*time.Second && gone != 3*time.Second+4*time.Second+8*time.Second+9*time.Second {
		t.Errorf("free again after %v", gone)
	}
	const want = "Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating 22 Owner/Idle 1 Unclaimed/Idle"
	if got := s.path("slot1", from); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestHold passes WANT_HOLD's wish on with both kills.
func TestHold(t *testing.T) {
	t.Parallel()
	s := newStage(t, 1, static1+"PREEMPT = Go =?= True\nWANT_HOLD = True\nWANT_HOLD_REASON = \"too much\"\nWANT_HOLD_SUBCODE = 5\nMachineMaxVacateTime = 2\n")
	ad := job(t, script{runs: time.Hour, onSoft: -1, onHard: time.Second}, "")
	s.activate(s.claim(slot1, ad).Claim, ad)
	s.publish("Go = True")
	s.run(10 * time.Second)
	if len(s.orders) < 2 {
		t.Fatalf("orders %+v", s.orders)
	}
	for i, op := range []Order{SoftKill, HardKill} {
		o := s.orders[i]
		if o.Op != op || !o.Hold || o.Reason != "too much" || o.Code != 21 || o.Subcode != 5 {
			t.Errorf("order %d: %+v", i, o)
		}
	}
	for _, m := range s.moves {
		if m.To == policy.PreemptingVacating && (m.Decision.Hold == nil || m.Decision.Hold.Subcode != 5) {
			t.Errorf("the move does not tell of the hold: %+v", m.Decision)
		}
	}
}

// row: S0-166
func TestRequirementsWhilePreempting(t *testing.T) {
	t.Parallel()
	s := newStage(t, 1, static1)
	ad := job(t, script{runs: time.Hour, onSoft: 3 * time.Second}, "")
	s.activate(s.claim(slot1, ad).Claim, ad)
	requirements := func() string { e, _ := s.eng.SlotAd(slot1).Lookup("Requirements"); return e.String() }
	if got := requirements(); got != "START && WithinResourceLimits" && got != "Start && WithinResourceLimits" {
		t.Errorf("while Busy: %s", got)
	}
	s.step(VacateRequested{Manner: Graceful})
	if got := requirements(); s.pair(slot1).State != policy.Preempting || got != "false" {
		t.Errorf("while %v: %s", s.pair(slot1), got)
	}
	s.run(10 * time.Second)
	if got := requirements(); got == "false" {
		t.Errorf("while %v: %s", s.pair(slot1), got)
	}
}

// row: S0-130, S0-147
func TestPolling(t *testing.T) {
	t.Parallel()
	s := newStage(t, 2, strings.Replace(static2, "UPDATE_INTERVAL = 5", "UPDATE_INTERVAL = 300", 1)+"IS_OWNER = Own =?= True\nWANT_SUSPEND = True\nSUSPEND = Sus =?= True\nCONTINUE = False\n")
	when := func(to policy.Pair) time.Duration {
		for i := len(s.moves) - 1; i >= 0; i-- {
			if s.moves[i].To == to {
				return s.at[i]
			}
		}
		return -1
	}
	s.run(10 * time.Second)
	s.publish("Own = True")
	s.run(289 * time.Second)
	if at := when(policy.OwnerIdle); at != -1 {
		t.Errorf("an unclaimed machine was looked at after %v", at)
	}
	s.run(2 * time.Second)
	if at := when(policy.OwnerIdle); at != 300*time.Second {
		t.Errorf("looked at after %v, want UPDATE_INTERVAL", at)
	}
	s.publish("Own = False")
	s.run(300 * time.Second)

	// With one slot claimed, all are looked at often.
	ad := job(t, steady(time.Hour), "")
	s.activate(s.claim(slot1, ad).Claim, ad)
	s.run(10 * time.Second)
	changed := s.elapsed()
	s.publish("Own = True\nSus = True")
	s.run(5 * time.Second)
	for name, to := range map[string]policy.Pair{"slot1": policy.ClaimedSuspended, "slot2": policy.OwnerIdle} {
		if d := when(to) - changed; d < 0 || d > time.Second {
			t.Errorf("%s was looked at %v after the change, want POLLING_INTERVAL", name, d)
		}
	}
}

// row: S0-131
func TestOwnerDoesNotTouchARunningJob(t *testing.T) {
	t.Parallel()
	s := newStage(t, 1, static1+"IS_OWNER = Own =?= True\n")
	ad := job(t, steady(time.Hour), "")
	s.activate(s.claim(slot1, ad).Claim, ad)
	from := len(s.moves)
	s.publish("Own = True")
	s.run(10 * time.Minute)
	if got := s.path("slot1", from); got != "" {
		t.Errorf("moved: %s", got)
	}
}

// TestUserSuspends is a job that its user suspends and lets go on.
func TestUserSuspends(t *testing.T) {
	t.Parallel()
	s := newStage(t, 1, static1+"CONTINUE = True\n")
	ad := job(t, steady(20*time.Second), "")
	g := s.claim(slot1, ad)
	act := s.activate(g.Claim, ad)
	s.run(5 * time.Second)
	s.ask(func(ref Ref) Event { return SuspendRequested{Ref: ref, Claim: g.Claim} })
	s.run(30 * time.Second)
	v, _ := s.eng.SlotView(slot1)
	if v.Pair != policy.ClaimedSuspended || v.RunTime != 5*time.Second {
		t.Errorf("%v after %v of run time", v.Pair, v.RunTime)
	}
	if r, _ := s.ask(func(ref Ref) Event { return SuspendRequested{Ref: ref, Claim: g.Claim} }); !errs.Is(r.Err, errs.Conflict) {
		t.Errorf("suspended twice: %+v", r)
	}
	s.ask(func(ref Ref) Event { return ContinueRequested{Ref: ref, Claim: g.Claim} })
	s.run(14 * time.Second)
	if got := s.pair(slot1); got != policy.ClaimedBusy {
		t.Errorf("%v", got)
	}
	s.run(2 * time.Second)
	if _, there := s.starters[act]; there || s.pair(slot1) != policy.ClaimedIdle {
		t.Errorf("the job did not end after its run time: %v", s.pair(slot1))
	}
}

// A job that was suspended while its files were on their way runs later like any other:
// the slot shows its process, and what the program shows of the machine counts.
func TestSuspendedBeforeItRuns(t *testing.T) {
	t.Parallel()
	for _, continued := range []bool{false, true} {
		s := newStage(t, 1, static1)
		ad := job(t, script{begins: time.Hour, runs: time.Hour}, "")
		g := s.claim(slot1, ad)
		id := s.activate(g.Claim, ad)
		s.run(time.Second)
		s.ask(func(ref Ref) Event { return SuspendRequested{Ref: ref, Claim: g.Claim} })
		if continued {
			s.ask(func(ref Ref) Event { return ContinueRequested{Ref: ref, Claim: g.Claim} })
		}
		was := s.pair(slot1)
		s.step(JobRunning{Activation: id, Proc: host.ProcID{PID: 4711, Start: 1}})
		if pid, _ := s.eng.SlotAd(slot1).EvalInt("JobPid", nil); pid != 4711 || s.pair(slot1) != was {
			t.Errorf("continued %v: JobPid = %d, the slot is %v", continued, pid, s.pair(slot1))
		}
		s.step(JobRunning{Activation: id, Proc: host.ProcID{PID: 4712, Start: 1}}) // there is no second beginning
		if pid, _ := s.eng.SlotAd(slot1).EvalInt("JobPid", nil); pid != 4711 {
			t.Errorf("continued %v: JobPid = %d", continued, pid)
		}
	}
}

// TestReconfigured changes the policy under a running job.
func TestReconfigured(t *testing.T) {
	t.Parallel()
	s := newStage(t, 1, static1+"PREEMPT = False\nSTART = True\n")
	ad := job(t, steady(time.Hour), "")
	s.activate(s.claim(slot1, ad).Claim, ad)
	s.run(5 * time.Second)
	from := len(s.moves)
	bad, err := config1(t, s, static1+"PREEMPT = (\n")
	if err == nil {
		t.Fatal("the broken configuration reads")
	}
	s.step(Reconfigured{Snapshot: bad})
	s.run(5 * time.Second)
	if len(s.moves) != from {
		t.Error("a broken configuration was taken over")
	}
	s.step(Reconfigured{Snapshot: parse(t, s.inv, static1+"PREEMPT = True\nSTART = False\n")})
	if e, _ := s.eng.SlotAd(slot1).Lookup("Start"); e.String() != "false" {
		t.Errorf("the ad says START = %v", e)
	}
	s.run(5 * time.Second)
	if got := s.path("slot1", from); !strings.HasPrefix(got, "Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating") {
		t.Errorf("got %s", got)
	}
}

func TestQueries(t *testing.T) {
	t.Parallel()
	s := newStage(t, 4, "WANT_SUSPEND = True\nSUSPEND = KeyboardIdle < 60\nCONTINUE = KeyboardIdle > 300\nSTART = TARGET.Department =!= \"enemy\"\nPOLLING_INTERVAL = 1\nMACHINE_RESOURCE_Bolts = 2\nSLOTS_CONNECTED_TO_KEYBOARD = 1\n")
	s.step(Sampled{Sample: machine.Sample{At: s.now, KeyboardIdle: time.Hour, Fresh: machine.AllReadings}})
	ad := job(t, steady(time.Hour), "")
	g := s.claim(slot1, ad)
	act := s.activate(g.Claim, ad)
	s.run(2 * time.Second)
	s.step(Sampled{Sample: machine.Sample{At: s.now, KeyboardIdle: time.Second, Fresh: machine.AllReadings}})
	s.run(2 * time.Second)

	x, ok := s.eng.Explain(g.Slot)
	if !ok || x.Pair != policy.ClaimedSuspended || x.Activation != act || x.Last.Number != 14 {
		t.Fatalf("%+v", x)
	}
	last, now := x.Last.Trace[len(x.Last.Trace)-1].String(), x.Now.Trace[len(x.Now.Trace)-1].String()
	if want := "SUSPEND = KeyboardIdle < 60 is TRUE [ep.conf:2]; MY.KeyboardIdle = 1"; last != want {
		t.Errorf("last: %s\nwant: %s", last, want)
	}
	if want := "CONTINUE = KeyboardIdle > 300 is FALSE [ep.conf:3]; MY.KeyboardIdle = 1"; now != want {
		t.Errorf("now:  %s\nwant: %s", now, want)
	}
	if _, ok := s.eng.Explain(slot.ID{N: 9}); ok {
		t.Error("explains a slot that is not there")
	}

	if !s.eng.Mentions("department") || s.eng.Mentions("Owner") {
		t.Error("Mentions is wrong")
	}
	for _, tt := range []struct{ more, want string }{
		{"", ""},
		{"RequestCpus = 4\n", ""},
		{"RequestMemory = 9000000\n", "RequestMemory 9000000 > 8192 of the largest slot"},
		{"RequestCpus = 5\n", "RequestCpus 5 > 4 of the largest slot"},
		{"RequestBolts = 2\n", ""},
		{"RequestBolts = 3\n", "RequestBolts 3 > 2 of the largest slot"},
	} {
		err := s.eng.CouldEverRun(job(t, steady(0), tt.more))
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%q: %v, want %q", tt.more, err, tt.want)
		}
	}

	names := ""
	for v := range s.eng.Views() {
		names += v.Name + " "
	}
	if names != "slot1 slot1_1 " {
		t.Errorf("views %s", names)
	}
	v, _ := s.eng.SlotView(g.Slot)
	if v.FullName != "slot1_1@"+testHost || v.Client.User != "alice@example" || v.Starter.PID == 0 || v.Job == nil {
		t.Errorf("%+v", v)
	}
	if left, ok := s.eng.RetirementLeft(g.Slot); !ok || left != 0 {
		t.Errorf("retirement left %v", left)
	}
	if s.eng.SlotAd(slot.ID{N: 9}) != nil {
		t.Error("an ad of nothing")
	}
}

// TestJobLoad keeps what a job makes of the load out of what counts as the
// owner's.
func TestJobLoad(t *testing.T) {
	t.Parallel()
	s := newStage(t, 2, "POLLING_INTERVAL = 1\n")
	ad := job(t, steady(time.Hour), "")
	g := s.claim(slot1, ad)
	act := s.activate(g.Claim, ad)
	cpu := time.Duration(0)
	for range 600 {
		s.run(time.Second)
		cpu += 500 * time.Millisecond
		s.step(JobUsage{Activation: act, Usage: host.Usage{UserCPU: cpu, ImageSizeKiB: 77}})
		s.step(Sampled{Sample: machine.Sample{At: s.now, LoadAvg: 0.75, Fresh: machine.AllReadings}})
	}
	load, _ := s.eng.SlotAd(g.Slot).EvalReal("CondorLoadAvg", nil)
	if load < 0.49 || load > 0.51 {
		t.Errorf("CondorLoadAvg %v of a job that uses half a processor", load)
	}
	if used, _ := s.eng.SlotAd(g.Slot).EvalReal("CpusUsage", nil); used != 0.5 {
		t.Errorf("CpusUsage %v", used)
	}
	total, _ := s.eng.SlotAd(slot1).EvalReal("TotalCondorLoadAvg", nil)
	if total < 0.49 || total > 0.51 {
		t.Errorf("TotalCondorLoadAvg %v", total)
	}
	// The load average remembers the job for a while, and so must its share.
	s.step(ReleaseRequested{Claim: g.Claim})
	s.run(2 * time.Second)
	s.run(10 * time.Second)
	s.step(Sampled{Sample: machine.Sample{At: s.now, LoadAvg: 0.6, Fresh: machine.AllReadings}})
	if left, _ := s.eng.SlotAd(slot1).EvalReal("TotalCondorLoadAvg", nil); left < 0.3 || left > 0.5 {
		t.Errorf("12 s after the job TotalCondorLoadAvg is %v", left)
	}
}

func config1(t *testing.T, s *stage, text string) (*config.Snapshot, error) {
	t.Helper()
	snap := parse(t, s.inv, text)
	_, err := policy.ExpressionsFrom(snap, 0)
	return snap, err
}

// TestSecretsStaySecret looks for claim secrets in everything that is printed.
func TestSecretsStaySecret(t *testing.T) {
	t.Parallel()
	s := newStage(t, 2, "")
	ad := job(t, steady(time.Second), "")
	g := s.claim(slot1, ad)
	s.activate(g.Claim, ad)
	s.run(10 * time.Second)
	s.step(ReleaseRequested{Claim: g.Claim})
	var out strings.Builder
	print := func(v any) { fmt.Fprintf(&out, "%v %+v %#v", v, v, v) }
	for v := range s.eng.Views() {
		print(v)
	}
	print(s.moves)
	print(s.ended)
	print(s.replies)
	out.WriteString(s.eng.SlotAd(slot1).TextAll(classad.Old))
	out.WriteString(g.Ad.TextAll(classad.Old))
	if strings.Contains(out.String(), g.Claim.Secret.Reveal()) {
		t.Error("a secret is printed")
	}
}

// row: S0-159, S0-164
func TestSuspensionInRetirement(t *testing.T) {
	t.Parallel()
	const policyText = static1 + "PREEMPT = Pre =?= True\nWANT_SUSPEND = Want =?= True\nSUSPEND = Sus =?= True\nCONTINUE = Sus =!= True\n" +
		"MAXJOBRETIREMENTTIME = Retire\nMachineMaxVacateTime = 2\n"
	s := newStage(t, 1, policyText)
	s.publish("Retire = 100")
	ad := job(t, steady(time.Hour), "")
	s.activate(s.claim(slot1, ad).Claim, ad)
	s.run(3 * time.Second)
	s.publish("Retire = 100\nPre = True")
	s.run(2 * time.Second)
	from := len(s.moves)
	s.publish("Retire = 100\nWant = True\nSus = True")
	s.run(5 * time.Second)
	s.publish("Retire = 100\nWant = True\nSus = False")
	s.run(5 * time.Second)
	if got := s.path("slot1", from); got != "Claimed/Retiring 20 Claimed/Suspended 16 Claimed/Retiring" {
		t.Errorf("got %s", got)
	}
	// While it is suspended the promise shrinks.
	s.publish("Retire = 100\nWant = True\nSus = True")
	s.run(2 * time.Second)
	from = len(s.moves)
	s.publish("Retire = 3\nWant = True\nSus = True")
	s.run(2 * time.Second)
	if got := s.path("slot1", from); got != "Claimed/Suspended 17 Preempting/Vacating 22 Owner/Idle 1 Unclaimed/Idle" {
		t.Errorf("got %s", got)
	}
	// A job that is to leave is let go on first.
	n := len(s.orders)
	if n < 2 || s.orders[n-2].Op != Continue || s.orders[n-1].Op != SoftKill {
		t.Errorf("last orders: %+v", s.orders[max(0, n-2):])
	}
}
