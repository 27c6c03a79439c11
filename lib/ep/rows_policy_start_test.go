// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// evaluated is what an attribute of a slot's ad comes to without a job.
func (s *stage) evaluated(id slot.ID, name string) string {
	return s.eng.SlotAd(id).Eval(name, &classad.Env{Now: s.now.Wall}).Text(classad.Old)
}

// TestStart follows START from the ad to the job: it may ask both ads, is
// undefined without a job, stands in Requirements with WithinResourceLimits,
// and is not offered while the slot leaves a claim.
//
// row: S1-036, S2-002
func TestStart(t *testing.T) {
	t.Parallel()
	const who = `Owner = "coltrane"`
	s := tell(t, 1, static1+"SLOTS_CONNECTED_TO_KEYBOARD = 1\n"+document(t, "s1-owner-state-567"))
	s.types(time.Minute)
	s.run(30 * time.Second)
	if got := s.evaluated(slot1, "Start"); got != "undefined" {
		t.Errorf("START without a job, keyboard in use: %s", got)
	}
	if got, want := s.shown(slot1, "Requirements"), "START && WithinResourceLimits"; !strings.EqualFold(got, want) {
		t.Errorf("Requirements = %s, want %s", got, want)
	}
	if s.wants(slot1, "") {
		t.Error("somebody else's job is taken while the keyboard is in use")
	}
	if !s.wants(slot1, who) {
		t.Error("coltrane's job is not taken")
	}
	s.run(17 * time.Minute)
	if got := s.evaluated(slot1, "Start"); got != "true" {
		t.Errorf("START without a job, keyboard idle: %s", got)
	}
	if !s.wants(slot1, "") {
		t.Error("somebody else's job is not taken by an idle machine")
	}
	s.busyWith(slot1, script{runs: time.Hour, onSoft: 10 * time.Second}, who)
	s.step(VacateRequested{Slot: slot1, Manner: Graceful})
	if got := s.shown(slot1, "Requirements"); s.pair(slot1) != policy.PreemptingVacating || got != "false" {
		t.Errorf("%v: Requirements = %s", s.pair(slot1), got)
	}

	// The four lines that let jobs run whatever somebody does at the machine.
	s = tell(t, 1, static1+"SLOTS_CONNECTED_TO_KEYBOARD = 1\n"+document(t, "s1-start-expression-431"))
	s.types(48 * time.Hour)
	s.load = 8
	s.run(time.Hour)
	s.skip()
	s.busyWith(slot1, steady(24*time.Hour), "ImageSize = 10000000\n")
	s.run(24*time.Hour + time.Minute)
	s.expect("a day at the keyboard", "slot1", "Unclaimed/Idle 5 Claimed/Idle 11 Claimed/Busy 12 Claimed/Cleaning 12 Claimed/Idle 10 Preempting/Vacating 22 Owner/Idle 1 Unclaimed/Idle")
	if len(s.orders) != 0 {
		t.Errorf("the job was told %+v", s.orders)
	}
}

// TestStartOfReplacement asks START of jobs for an idle slot, and of one that
// the machine likes better than that which it has.
//
// row: S4-001
func TestStartOfReplacement(t *testing.T) {
	t.Parallel()
	s := tell(t, 1, static1+"RANK = TARGET.Prio\nSTART = TARGET.Good =?= True\n")
	if s.wants(slot1, "Prio = 1\n") || !s.wants(slot1, "Prio = 1\nGood = True\n") {
		t.Error("an idle slot does not ask START")
	}
	s.busyWith(slot1, steady(time.Hour), "Prio = 1\nGood = True\n")
	s.run(time.Minute)
	s.skip()
	s.refused(s.request(ClaimRequested{Slot: slot1}, job(t, steady(time.Hour), "Prio = 9\n")), errs.Denied, "START does not accept the job")
	s.run(time.Minute)
	s.expect("a better job that START refuses", "slot1", "")
	s.refused(s.request(ClaimRequested{Slot: slot1}, job(t, steady(time.Hour), "Prio = 0\nGood = True\n")), errs.Denied, "rank")
	s.ask(func(ref Ref) Event {
		return ClaimRequested{Ref: ref, Slot: slot1, Job: job(t, steady(time.Hour), "Prio = 9\nGood = True\n")}
	})
	s.run(time.Minute)
	s.expect("a better job that START accepts", "slot1", "Claimed/Busy 18 Preempting/Vacating 23 Claimed/Idle")

	// What is asked is the new job, not the one whose attributes the slot shows.
	s = tell(t, 1, static1+"RANK = TARGET.Prio\nSTART = ImageSize < 1000\n")
	g := s.busyWith(slot1, steady(time.Minute), "Prio = 1\nImageSize = 500\n")
	s.refused(s.request(ClaimRequested{Slot: slot1}, job(t, steady(time.Hour), "Prio = 9\nImageSize = 5000\n")), errs.Denied, "START does not accept the job")
	s.run(2 * time.Minute)
	r, _ := s.ask(func(ref Ref) Event {
		return ActivateRequested{Ref: ref, Claim: g.Claim, Job: job(t, steady(time.Minute), "ImageSize = 5000\n")}
	})
	if !errs.Is(r.Err, errs.Denied) {
		t.Errorf("a second job that START refuses: %+v", r)
	}
}

// TestStartOfWaiting asks START once more of a job that waited for the slot,
// and of the parts of a slot that is claimed as a whole: each time about that
// job, whatever the slot shows of another.
func TestStartOfWaiting(t *testing.T) {
	t.Parallel()
	const small = "KStart =!= False || ImageSize > 1000"
	s := newStage(t, 1, static1+"RANK = TARGET.Prio\nSTART = "+small+"\n")
	first := job(t, script{runs: time.Hour, onSoft: 5 * time.Second}, "Prio = 1\nImageSize = 500\n")
	s.activate(s.claim(slot1, first).Claim, first)
	s.run(time.Minute)
	from := len(s.moves)
	s.ask(func(ref Ref) Event {
		return ClaimRequested{Ref: ref, Slot: slot1, Job: job(t, steady(time.Hour), "Prio = 2\nImageSize = 5000\n")}
	})
	s.publish("KStart = False\n")
	s.run(10 * time.Second)
	if got, want := s.path("slot1", from), "Claimed/Busy 18 Preempting/Vacating 23 Claimed/Idle"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}

	s = newStage(t, 4, "ENABLE_CLAIMABLE_PARTITIONABLE_SLOTS = True\nSTART = ImageSize < 1000\n")
	mine := claim.Client{User: "alice@example", Schedd: "ap"}
	if r := s.request(ClaimRequested{Slot: slot1, Whole: true, Client: mine}, job(t, steady(1), "ImageSize = 500\n")); r.Granted == nil {
		t.Fatalf("the whole slot: %+v", r)
	}
	s.refused(s.request(ClaimRequested{Slot: slot1, Client: mine}, job(t, steady(1), "ImageSize = 5000\n")), errs.Denied, "START does not accept the job")
}

// TestIsOwner keeps the slot for its owner while IS_OWNER is true; nothing is
// matched then. It is false unless it is configured. START =?= FALSE makes it
// what it was in 6.8.
//
// row: S1-038, S4-018
func TestIsOwner(t *testing.T) {
	t.Parallel()
	const desk = static1 + "SLOTS_CONNECTED_TO_KEYBOARD = 1\n"
	for _, tt := range []struct {
		name, text string
		used, idle policy.Pair // with the keyboard in use, and not
	}{
		{"today's default", desk + document(t, "s1-owner-state-562"), policy.UnclaimedIdle, policy.UnclaimedIdle},
		{"as in 6.8, && Owner", desk + document(t, "s1-owner-state-562") + "IsOwner = START =?= FALSE\n", policy.OwnerIdle, policy.UnclaimedIdle},
		{"as in 6.8, || Owner", desk + document(t, "s1-owner-state-567") + "IsOwner = START =?= FALSE\n", policy.UnclaimedIdle, policy.UnclaimedIdle},
		{"IS_OWNER", desk + "IS_OWNER = KeyboardIdle < 900\n", policy.OwnerIdle, policy.UnclaimedIdle},
	} {
		s := tell(t, 1, tt.text)
		s.types(time.Minute)
		s.run(35 * time.Second)
		if got := s.pair(slot1); got != tt.used {
			t.Errorf("%s: keyboard in use: %v, want %v", tt.name, got, tt.used)
		}
		if tt.used == policy.OwnerIdle && s.wants(slot1, `Owner = "coltrane"`) {
			t.Errorf("%s: a job is taken in Owner", tt.name)
		}
		s.run(20 * time.Minute)
		if got := s.pair(slot1); got != tt.idle {
			t.Errorf("%s: keyboard idle: %v, want %v", tt.name, got, tt.idle)
		}
		if !s.wants(slot1, `Owner = "coltrane"`) {
			t.Errorf("%s: no job is taken", tt.name)
		}
	}
}

// TestCheckpointPlatform has the old second half of Requirements: it is told to
// be of no effect, and jobs of the universe that it was for are refused. The
// owner's clauses have its place.
//
// row: S1-037, S1-039
func TestCheckpointPlatform(t *testing.T) {
	t.Parallel()
	const old = "IS_VALID_CHECKPOINT_PLATFORM = False\n"
	for _, text := range []string{static1 + old, old} {
		s := newStage(t, 1, text)
		if w := s.eng.cfg.Snapshot.Warnings(); len(w) != 1 || w[0].Knob != "IS_VALID_CHECKPOINT_PLATFORM" || w[0].Class != config.ObsoleteName {
			t.Errorf("warned of %v", w)
		}
		if got := s.shown(slot1, "Requirements"); !strings.EqualFold(got, "START && WithinResourceLimits") {
			t.Errorf("Requirements = %s", got)
		}
		standard, vanilla := job(t, steady(time.Hour), "JobUniverse = 1\n"), job(t, steady(time.Hour), "")
		s.refused(s.request(ClaimRequested{Slot: slot1}, standard), errs.Unsupported, "standard universe")
		g := s.claim(slot1, vanilla)
		r, _ := s.ask(func(ref Ref) Event { return ActivateRequested{Ref: ref, Claim: g.Claim, Job: standard} })
		if !errs.Is(r.Err, errs.Unsupported) || r.Code != command.RefusedNoMatch {
			t.Errorf("activation of a standard job: %+v", r)
		}
		s.activate(g.Claim, vanilla)
	}
	s := tell(t, 1, static1+"SLOT_REQUIREMENTS_CLAUSES = $(SLOT_REQUIREMENTS_CLAUSES) Plain\nPlain = TARGET.NumCkpts =?= 0\n")
	if got := s.shown(slot1, "Requirements"); !strings.Contains(got, "Plain") || !strings.Contains(got, "WithinResourceLimits") {
		t.Errorf("Requirements = %s", got)
	}
	ad := job(t, steady(time.Hour), "NumCkpts = 1\n")
	g := s.claim(slot1, job(t, steady(time.Hour), "NumCkpts = 0\n"))
	r, _ := s.ask(func(ref Ref) Event { return ActivateRequested{Ref: ref, Claim: g.Claim, Job: ad} })
	if !errs.Is(r.Err, errs.Denied) {
		t.Errorf("a job that the owner's clause refuses: %+v", r)
	}
	s.activate(g.Claim, job(t, steady(time.Hour), "NumCkpts = 0\n"))
}

// TestRank has the examples of the text: each job takes the slot from those
// that rank lower, and CurrentRank is the rank of who has it.
//
// row: S1-040, S2-003, S4-012
func TestRank(t *testing.T) {
	t.Parallel()
	by := func(owner string) string { return fmt.Sprintf("Owner = %q\nUser = \"%s@example\"\n", owner, owner) }
	type asks struct {
		more string
		rank float64
		wins bool
	}
	for _, tt := range []struct {
		name string
		list []asks
	}{
		{"s1-rank-expression-474", []asks{{by("davis"), 0, true}, {by("evans"), 0, false}, {by("tyner"), 1, true}, {by("coltrane"), 1, false}, {by("davis"), 0, false}}},
		{"s1-rank-expression-481", []asks{{by("davis"), 0, true}, {by("jones"), 1, true}, {by("tyner"), 1, false}, {by("garrison"), 10, true}, {by("coltrane"), 1, false}}},
		{"s1-rank-expression-491", []asks{{"ImageSize = 1000\n", 1000, true}, {"ImageSize = 999\n", 999, false}, {"ImageSize = 1000000\n", 1000000, true}, {"", 0, false}}},
	} {
		s := newStage(t, 1, static1+document(t, tt.name)+"CLAIM_WORKLIFE = -1\n")
		rank := 0.0
		for i, a := range tt.list {
			ad := job(t, steady(10*time.Hour), a.more)
			s.ref++
			s.step(ClaimRequested{Ref: asked(s.ref), Slot: slot1, Job: ad, Client: claim.Client{User: "bob@example"}})
			s.run(5 * time.Second)
			r := s.replies[s.ref]
			if (r.Granted != nil) != a.wins {
				t.Fatalf("%s, request %d: %+v", tt.name, i, r)
			}
			if a.wins {
				s.activate(r.Granted.Claim, ad)
				rank = a.rank
			} else {
				s.refused(r, errs.Denied, "rank")
			}
			s.run(5 * time.Second)
			if got, _ := s.eng.SlotAd(slot1).EvalReal("CurrentRank", nil); got != rank || s.pair(slot1) != policy.ClaimedBusy {
				t.Errorf("%s, request %d: CurrentRank is %v, want %v; %v", tt.name, i, got, rank, s.pair(slot1))
			}
		}
	}
}

// TestOneAdForEachSlot gives every slot an ad, state and activity of its own,
// with the number of its name.
//
// row: S2-001
func TestOneAdForEachSlot(t *testing.T) {
	t.Parallel()
	s := newStage(t, 4, "SLOT_TYPE_1 = cpus=1\nNUM_SLOTS_TYPE_1 = 2\nSLOT_TYPE_2 = cpus=2\nSLOT_TYPE_2_PARTITIONABLE = True\nNUM_SLOTS_TYPE_2 = 1\nSLOT_TYPE_1_PARTITIONABLE = False\n")
	ad := job(t, steady(time.Hour), "")
	s.activate(s.claim(slot.ID{N: 2}, ad).Claim, ad)
	s.claim(slot.ID{N: 3}, ad)
	var got []string
	for v := range s.eng.Views() {
		show := func(name string) string { return s.shown(v.ID, name) }
		got = append(got, strings.Join([]string{v.Name, show("Name"), show("SlotID"), show("State"), show("Activity")}, " "))
	}
	want := []string{
		`slot1 "slot1@host.example" 1 "Unclaimed" "Idle"`,
		`slot2 "slot2@host.example" 2 "Claimed" "Busy"`,
		`slot3 "slot3@host.example" 3 "Unclaimed" "Idle"`,
		`slot3_1 "slot3_1@host.example" 3 "Claimed" "Idle"`,
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("got\n%s\nwant\n%s", g, w)
	}
}
