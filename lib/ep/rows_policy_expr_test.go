// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/policy"
)

// TestSuspendExpression freezes a job and thaws it; the claim stays, and the
// load that was the job's goes.
//
// row: S4-003, S4-009
func TestSuspendExpression(t *testing.T) {
	t.Parallel()
	s := tell(t, 1, static1+"WANT_SUSPEND = True\nSUSPEND = KStop =?= True\nCONTINUE = KStop =!= True\n")
	s.load = 1
	g := s.busyWith(slot1, steady(time.Hour), "")
	s.run(10 * time.Minute)
	s.skip()
	if got := s.shown(slot1, "CondorLoadAvg"); got != "1.0" {
		t.Errorf("CondorLoadAvg of a running job: %s", got)
	}
	s.publish("KStop = True\n")
	s.run(2 * time.Second)
	s.expect("SUSPEND", "slot1", "Claimed/Busy 14 Claimed/Suspended")
	if len(s.orders) != 1 || s.orders[0].Op != Suspend {
		t.Errorf("the starter was told %+v", s.orders)
	}
	s.run(10 * time.Minute)
	if v, _ := s.eng.SlotView(slot1); v.Claim != g.Claim || v.Pair != policy.ClaimedSuspended {
		t.Errorf("%v, claimed %v", v.Pair, v.Claimed)
	}
	if got := s.shown(slot1, "CondorLoadAvg"); got != "0.0" {
		t.Errorf("CondorLoadAvg of a suspended job: %s", got)
	}
	s.publish("KStop = False\n")
	s.run(2 * time.Second)
	s.expect("CONTINUE", "slot1", "Claimed/Suspended 15 Claimed/Busy")
	if len(s.orders) != 2 || s.orders[1].Op != Continue {
		t.Errorf("the starter was told %+v", s.orders)
	}
}

// TestPreemptExpression ends a job once its retirement is over, and is not
// asked while WANT_SUSPEND is true. What is not true counts as false there.
//
// row: S4-004, S4-016
func TestPreemptExpression(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		want string
		asks bool // PREEMPT
	}{
		{"True", false}, {"1", false}, {"False", true}, {"0", true}, {"NoSuch", true}, {"1/0", true}, {`"yes"`, true}, {"", true},
	} {
		s := newStage(t, 1, static1+"MAXJOBRETIREMENTTIME = 3600\nMachineMaxVacateTime = 10\nPREEMPT = KPreempt =?= True\nSUSPEND = False\nWANT_SUSPEND = "+tt.want+"\n")
		ad := job(t, steady(10*time.Hour), "")
		s.activate(s.claim(slot1, ad).Claim, ad)
		s.run(10 * time.Minute)
		from := len(s.moves)
		s.publish("KPreempt = True\n")
		s.run(3 * time.Second)
		want := policy.ClaimedBusy
		if tt.asks {
			want = policy.ClaimedRetiring
		}
		if got := s.pair(slot1); got != want {
			t.Errorf("WANT_SUSPEND = %s: %v, want %v", tt.want, got, want)
		}
		s.run(49 * time.Minute)
		if got := s.pair(slot1); got != want {
			t.Errorf("WANT_SUSPEND = %s, 59 minutes after the start: %v, want %v", tt.want, got, want)
		}
		s.run(2 * time.Minute)
		path := ""
		if tt.asks {
			path = "Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating 22 Owner/Idle 1 Unclaimed/Idle"
		}
		if got := s.path("slot1", from); got != path {
			t.Errorf("WANT_SUSPEND = %s: went %q, want %q", tt.want, got, path)
		}
	}
}

// TestWantHoldExpressions puts a job on hold that PREEMPT sends away, when its
// retirement is over.
//
// row: S4-005, S4-007, S4-008
func TestWantHoldExpressions(t *testing.T) {
	t.Parallel()
	const text = static1 + "MAXJOBRETIREMENTTIME = 100\nMachineMaxVacateTime = 10\nPREEMPT = KPreempt =?= True\n"
	for _, tt := range []struct {
		name, text string
		reason     string // "" for no hold
		subcode    int
	}{
		{"reason and subcode", "WANT_HOLD = True\nWANT_HOLD_REASON = strcat(\"too \", \"big\")\nWANT_HOLD_SUBCODE = 40 + 2\n", "too big", 42},
		{"neither", "WANT_HOLD = True\n", "The startd put this job on hold.  (At preemption time, WANT_HOLD evaluated to true: WANT_HOLD = true)", 0},
		{"undefined both", "WANT_HOLD = True\nWANT_HOLD_REASON = undefined\nWANT_HOLD_SUBCODE = undefined\n", "The startd put this job on hold.", 0},
		{"WANT_HOLD is false", "WANT_HOLD = False\nWANT_HOLD_REASON = \"x\"\n", "", 0},
		{"WANT_HOLD is undefined", "WANT_HOLD = NoSuch\nWANT_HOLD_REASON = \"x\"\n", "", 0},
	} {
		s := newStage(t, 1, text+tt.text)
		ad := job(t, steady(time.Hour), "")
		s.activate(s.claim(slot1, ad).Claim, ad)
		s.run(20 * time.Second)
		s.publish("KPreempt = True\n")
		s.run(65 * time.Second)
		if len(s.orders) != 0 || s.pair(slot1) != policy.ClaimedRetiring {
			t.Errorf("%s: before retirement is over: %v, told %+v", tt.name, s.pair(slot1), s.orders)
		}
		s.run(10 * time.Second)
		if len(s.orders) != 1 {
			t.Errorf("%s: told %+v", tt.name, s.orders)
			continue
		}
		o := s.orders[0]
		code := 21
		if tt.reason == "" {
			code = 1011
		}
		if o.Op != SoftKill || o.Hold != (tt.reason != "") || o.Code != code || o.Subcode != tt.subcode || !strings.HasPrefix(o.Reason, tt.reason) {
			t.Errorf("%s: told %+v", tt.name, o)
		}
	}
	// With WANT_SUSPEND, PREEMPT is not asked and nothing is held.
	s := newStage(t, 1, text+"WANT_HOLD = True\nWANT_SUSPEND = True\nSUSPEND = False\n")
	ad := job(t, steady(time.Hour), "")
	s.activate(s.claim(slot1, ad).Claim, ad)
	s.publish("KPreempt = True\n")
	s.run(10 * time.Minute)
	if len(s.orders) != 0 || s.pair(slot1) != policy.ClaimedBusy {
		t.Errorf("with WANT_SUSPEND: %v, told %+v", s.pair(slot1), s.orders)
	}
}

// TestKillExpression kills a job before the vacate time is over; without KILL
// and with WANT_VACATE, which is true by default, the job has all of it.
//
// row: S4-010, S4-017
func TestKillExpression(t *testing.T) {
	t.Parallel()
	const text = static1 + "MachineMaxVacateTime = 100\nPREEMPT = KPreempt =?= True\n"
	for _, tt := range []struct {
		name, text, want string
		hard             time.Duration // after PREEMPT was seen
	}{
		{"KILL", text + "KILL = (time() - EnteredCurrentActivity) >= 20\n", "Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating 21 Preempting/Killing 25 Owner/Idle 1 Unclaimed/Idle", 20 * time.Second},
		{"MachineMaxVacateTime", text, "Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating 22 Owner/Idle 1 Unclaimed/Idle", 100 * time.Second},
		{"WANT_VACATE", text + "WANT_VACATE = True\n", "Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating 22 Owner/Idle 1 Unclaimed/Idle", 100 * time.Second},
		{"no WANT_VACATE", text + "WANT_VACATE = False\n", "Claimed/Busy 13 Claimed/Retiring 18 Preempting/Killing 25 Owner/Idle 1 Unclaimed/Idle", 0},
	} {
		s := newStage(t, 1, tt.text)
		ad := job(t, script{runs: 10 * time.Hour, onSoft: -1, onHard: 0}, "")
		s.activate(s.claim(slot1, ad).Claim, ad)
		s.run(time.Minute)
		from := len(s.moves)
		gone := time.Duration(0)
		s.onGone = func(*actor) { gone = s.elapsed() }
		s.publish("KPreempt = True\n")
		s.run(5 * time.Minute)
		if got := s.path("slot1", from); got != tt.want {
			t.Errorf("%s: got  %s\nwant %s", tt.name, got, tt.want)
		}
		if got := gone - s.at[from]; got != tt.hard {
			t.Errorf("%s: gone after %v, want %v", tt.name, got, tt.hard)
		}
	}
}

// TestRetirementExpression asks slot and job, guarantees so much run time from
// the start of the job, and does not count suspensions.
//
// row: S1-051, S4-013, S4-028
func TestRetirementExpression(t *testing.T) {
	t.Parallel()
	const text = static1 + "STARTD_ATTRS = Patience\nPatience = 3600\nMAXJOBRETIREMENTTIME = TARGET.Long =?= True ? MY.Patience : 60\n" +
		"MachineMaxVacateTime = 1\nPREEMPT = KPreempt =?= True\nWANT_SUSPEND = KStop =?= True\nSUSPEND = True\nCONTINUE = KStop =!= True\n"
	for _, tt := range []struct {
		name, more       string
		preempt, suspend time.Duration // after the start; the suspension lasts half an hour
		want             time.Duration // from the start to the end
	}{
		{"a long job", "Long = True\n", 10 * time.Minute, 0, time.Hour},
		{"a job for which the slot has little", "", 10 * time.Second, 0, time.Minute},
		{"told late: the guarantee is over", "Long = True\n", 2 * time.Hour, 0, 2 * time.Hour},
		{"the job wants less", "Long = True\nMaxJobRetirementTime = 1800\n", 10 * time.Minute, 0, 30 * time.Minute},
		{"the job wants more", "Long = True\nMaxJobRetirementTime = 1000000\n", 10 * time.Minute, 0, time.Hour},
		{"suspended before", "Long = True\n", 50 * time.Minute, 10 * time.Minute, 90 * time.Minute},
		{"suspended in retirement", "Long = True\n", 10 * time.Minute, 20 * time.Minute, 90 * time.Minute},
	} {
		s := newStage(t, 1, text)
		ad := job(t, steady(100*time.Hour), tt.more)
		s.activate(s.claim(slot1, ad).Claim, ad)
		began, gone := s.elapsed(), time.Duration(0)
		s.onGone = func(*actor) { gone = s.elapsed() - began }
		knobs := map[string]string{"KStop": "False", "KPreempt": "False"}
		set := func(name, value string) {
			knobs[name] = value
			s.publish("KStop = " + knobs["KStop"] + "\nKPreempt = " + knobs["KPreempt"] + "\n")
		}
		if tt.suspend > 0 {
			s.after(tt.suspend, func() { set("KStop", "True") })
			s.after(tt.suspend+30*time.Minute, func() { set("KStop", "False") })
		}
		s.after(tt.preempt, func() { set("KPreempt", "True") })
		s.run(3 * time.Hour)
		if d := gone - tt.want; d < -3*time.Second || d > 3*time.Second {
			t.Errorf("%s: gone after %v, want %v", tt.name, gone, tt.want)
		}
	}
}

// TestMachineMaxVacateTime is a pledge made at the start of a job: another
// configuration counts for the next one. A job may want less, or more if it
// has retirement left.
//
// row: S4-026, S2-015
func TestMachineMaxVacateTime(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text, more string
		ran              time.Duration
		then             string // the configuration after the start of the job
		vacate, gone     time.Duration
	}{
		{"as it was at the start", "MachineMaxVacateTime = 100\n", "", time.Minute, "MachineMaxVacateTime = 10\n", 100 * time.Second, 160 * time.Second},
		{"more later on", "MachineMaxVacateTime = 10\n", "", time.Minute, "MachineMaxVacateTime = 100\n", 10 * time.Second, 70 * time.Second},
		{"the job wants less", "MachineMaxVacateTime = 100\n", "JobMaxVacateTime = 20\n", time.Minute, "", 20 * time.Second, 80 * time.Second},
		{"the job wants more, nothing is left", "MachineMaxVacateTime = 100\n", "JobMaxVacateTime = 200\n", time.Minute, "", 100 * time.Second, 160 * time.Second},
		{"the job wants more, retirement is left", "MachineMaxVacateTime = 100\nMAXJOBRETIREMENTTIME = 600\n", "JobMaxVacateTime = 200\n", time.Minute, "", 200 * time.Second, 600 * time.Second},
		{"and no more than that", "MachineMaxVacateTime = 100\nMAXJOBRETIREMENTTIME = 210\n", "JobMaxVacateTime = 200\n", time.Minute, "", 150 * time.Second, 210 * time.Second},
		{"a promise of the machine and of the job", "MachineMaxVacateTime = 10\nMAXJOBRETIREMENTTIME = 600\n", "MaxJobRetirementTime = 1000\n", time.Minute, "", 10 * time.Second, 600 * time.Second},
		{"the job promises itself less", "MachineMaxVacateTime = 10\nMAXJOBRETIREMENTTIME = 600\n", "MaxJobRetirementTime = 100\n", time.Minute, "", 10 * time.Second, 100 * time.Second},
	} {
		const policies = static1 + "PREEMPT = KPreempt =?= True\n"
		s := newStage(t, 1, policies+tt.text)
		ad := job(t, script{runs: 10 * time.Hour, onSoft: -1, onHard: 0}, tt.more)
		s.activate(s.claim(slot1, ad).Claim, ad)
		began, told, gone := s.elapsed(), time.Duration(0), time.Duration(0)
		s.onGone = func(*actor) { gone = s.elapsed() }
		if tt.then != "" {
			s.reconfigure(policies + tt.then)
		}
		s.run(tt.ran - time.Millisecond)
		s.publish("KPreempt = True\n")
		s.run(20 * time.Minute)
		for i, m := range s.moves {
			if m.To.State == policy.Preempting {
				told = s.at[i]
			}
		}
		if d := gone - told - tt.vacate; d < -time.Second || d > time.Second {
			t.Errorf("%s: it had %v to leave, want %v", tt.name, gone-told, tt.vacate)
		}
		if d := gone - began - tt.gone; d < -2*time.Second || d > 2*time.Second {
			t.Errorf("%s: gone after %v, want %v", tt.name, gone-began, tt.gone)
		}
	}
}

// TestKillingTimeout ends a starter by force that does not obey a fast shutdown.
func TestKillingTimeout(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{static1: 30 * time.Second, static1 + "KILLING_TIMEOUT = 7\n": 7 * time.Second} {
		for _, ev := range []Event{ShutdownRequested{Manner: Fast}, VacateRequested{Slot: slot1, Manner: Fast}} {
			s := newStage(t, 1, text)
			ad := job(t, script{runs: time.Hour, onHard: -1}, "")
			s.activate(s.claim(slot1, ad).Claim, ad)
			s.run(time.Minute)
			s.step(ev)
			s.run(want - time.Millisecond)
			if len(s.killed) != 0 || s.pair(slot1) != policy.PreemptingKilling {
				t.Errorf("%T: before the time is over: %v, %d killed", ev, s.pair(slot1), len(s.killed))
			}
			s.run(2 * time.Millisecond)
			if len(s.killed) != 1 || len(s.starters) != 0 || s.pair(slot1) != policy.UnclaimedIdle {
				t.Errorf("%T: %v, %d killed, %d starters left", ev, s.pair(slot1), len(s.killed), len(s.starters))
			}
		}
	}
}

// TestPollingInterval looks every five seconds while a slot is claimed.
//
// row: S4-022
func TestPollingInterval(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]time.Duration{"": 5 * time.Second, "POLLING_INTERVAL = 2\n": 2 * time.Second} {
		s := newStage(t, 2, text+"WANT_SUSPEND = True\nSUSPEND = True\nCONTINUE = True\nNUM_SLOTS = 2\nSLOT_TYPE_0_PARTITIONABLE = False\n")
		s.run(time.Hour)
		if n := len(s.moves); n != 2 {
			t.Errorf("%d moves in an hour without a claim", n)
		}
		// A policy that contradicts itself moves at each look (recorded in
		// policy-suspend-08).
		ad := job(t, steady(time.Hour), "")
		s.activate(s.claim(slot2, ad).Claim, ad)
		s.moves, s.at = nil, nil
		s.run(time.Minute)
		for i := 1; i < len(s.at); i++ {
			if got := s.at[i] - s.at[i-1]; got != want {
				t.Errorf("%q: looked after %v, want %v", text, got, want)
			}
		}
		if n := time.Duration(len(s.at)); n < time.Minute/want-1 {
			t.Errorf("%q: %d looks in a minute", text, n)
		}
	}
}

// TestWorklives closes a claim that has taken jobs for long enough, once its
// job has ended: the access point has to ask for a new one.
//
// row: S1-050, S2-015, S4-029
func TestWorklives(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		jobs       int // of 500 s each that one claim takes
	}{
		{"today's default of 1200 s", "", 3},
		{"an hour", "CLAIM_WORKLIFE = 3600\n", 8},
		{"without end", "CLAIM_WORKLIFE = -1\n", 20},
		{"one job for each claim", "CLAIM_WORKLIFE = 0\n", 1},
	} {
		s := newStage(t, 1, static1+tt.text)
		ad := job(t, steady(499*time.Second), "")
		g := s.claim(slot1, ad)
		n := 0
		for n < 20 && s.pair(slot1) == policy.ClaimedIdle {
			s.activate(g.Claim, ad)
			n++
			s.run(500 * time.Second)
		}
		if n != tt.jobs {
			t.Errorf("%s: %d jobs, want %d", tt.name, n, tt.jobs)
		}
		if n == 20 {
			continue
		}
		if len(s.ended) != 1 || s.ended[0].Claim != g.Claim {
			t.Errorf("%s: told %+v", tt.name, s.ended)
		}
		if r, _ := s.ask(func(ref Ref) Event { return ActivateRequested{Ref: ref, Claim: g.Claim, Job: ad} }); r.Code != command.RefusedClaimNotFound {
			t.Errorf("%s: another job under the old claim: %+v", tt.name, r)
		}
		if again := s.claim(slot1, ad); again.Claim == g.Claim {
			t.Errorf("%s: the new claim has the old id", tt.name)
		}
	}
}

// TestRollUp shows in a partitionable slot what its dynamic slots are doing, as
// far as the owner wants it.
//
// row: S4-014, S4-015
func TestRollUp(t *testing.T) {
	t.Parallel()
	s := newStage(t, 4, "STARTD_PARTITIONABLE_SLOT_ATTRS = Mood\nSTARTD_ATTRS = Mood\nMood = 6 * 7\nMAXJOBRETIREMENTTIME = 100\n")
	ad := job(t, steady(time.Hour), "")
	mine := claim.Client{User: "alice@example", Owner: "alice", AccountingGroup: "physics.alice"}
	g := s.request(ClaimRequested{Slot: slot1, Client: mine}, ad)
	s.activate(g.Granted.Claim, ad)
	s.claim(slot1, ad)
	for name, want := range map[string]string{
		"ChildName": `{ "slot1_1@host.example","slot1_2@host.example" }`, "ChildState": `{ "Claimed","Claimed" }`, "ChildActivity": `{ "Busy","Idle" }`,
		"ChildCpus": "{ 1,1 }", "ChildMemory": "{ 128,128 }", "ChildRemoteUser": `{ "alice@example","alice@example" }`,
		"ChildRemoteOwner": `{ "alice","alice" }`, "ChildCurrentRank": "{ 0.0,0.0 }", "ChildEnteredCurrentState": "{ 1800000000,1800000000 }",
		"ChildRetirementTimeRemaining": "{ 100,0 }", "ChildAccountingGroup": `{ "physics.alice@example",undefined }`,
		"ChildMood": "{ 42,42 }", "PslotRollupInformation": "true",
	} {
		if got := s.shown(slot1, name); got != want {
			t.Errorf("%s = %s, want %s", name, got, want)
		}
	}
	off := newStage(t, 4, "ADVERTISE_PSLOT_ROLLUP_INFORMATION = False\n")
	off.activate(off.claim(slot1, ad).Claim, ad)
	for _, name := range []string{"ChildName", "ChildState", "PslotRollupInformation"} {
		if got := off.shown(slot1, name); got != "" {
			t.Errorf("switched off: %s = %s", name, got)
		}
	}
}
