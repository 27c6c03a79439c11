// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// drainConfig is the machine of the recorded drains: static slots, looked at
// every second.
const drainConfig = "SLOT_TYPE_0_PARTITIONABLE = false\nNUM_SLOTS = 1\nPOLLING_INTERVAL = 1\nUPDATE_INTERVAL = 5\nCLAIM_WORKLIFE = -1\nWANT_SUSPEND = false\n"

func (s *stage) drain(ev DrainRequested) Reply {
	s.t.Helper()
	r, ok := s.ask(func(ref Ref) Event { ev.Ref = ref; return ev })
	if !ok {
		s.t.Fatal("no reply to the drain")
	}
	return r
}

func (s *stage) cancelDrain(id string) Reply {
	s.t.Helper()
	r, ok := s.ask(func(ref Ref) Event { return DrainCancelled{Ref: ref, ID: id} })
	if !ok {
		s.t.Fatal("no reply to the end of the drain")
	}
	return r
}

// shown returns the text of an attribute of a slot as it is published, "" for
// one that is not.
func (s *stage) shown(id slot.ID, name string) string {
	a, ok := s.eng.ads.Slot(id)
	if !ok {
		s.t.Fatalf("no slot %v", id)
	}
	e, ok := a.Snapshot(s.now).Lookup(name)
	if !ok {
		return ""
	}
	return e.String()
}

// TestDrainIdle drains a machine without jobs, after the recorded runs
// policy-drain2-01, -07, -08, -18 and -19.
func TestDrainIdle(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		config string
		then   Completion
		cancel bool
		want   string
		ended  bool // the EP
	}{
		// row: S0-108, S0-117, S0-142, S0-183, S0-184, S0-185, S2-014
		{"cancelled", drainConfig, ThenStay, true,
			"Unclaimed/Idle 37 Drained/Retiring 33 Drained/Idle 34 Owner/Idle 1 Unclaimed/Idle", false},
		{"stays", drainConfig, ThenStay, false, "Unclaimed/Idle 37 Drained/Retiring 33 Drained/Idle", false},
		// row: S0-117
		{"resumes", drainConfig, ThenResume, false,
			"Unclaimed/Idle 37 Drained/Retiring 33 Drained/Idle 34 Owner/Idle 1 Unclaimed/Idle", false},
		{"reconfigures", drainConfig, ThenReconfigure, false,
			"Unclaimed/Idle 37 Drained/Retiring 33 Drained/Idle 34 Owner/Idle 1 Unclaimed/Idle", false},
		{"exits", drainConfig, ThenExit, false, "Unclaimed/Idle 37 Drained/Retiring 33 Drained/Idle", true},
		{"restarts", drainConfig, ThenRestart, false, "Unclaimed/Idle 37 Drained/Retiring 33 Drained/Idle", true},
		// row: S0-103, S0-132
		{"in Owner", drainConfig + "IS_OWNER = true\n", ThenStay, true,
			"Owner/Idle 36 Drained/Retiring 33 Drained/Idle 34 Owner/Idle", false},
		{"p-slot", "POLLING_INTERVAL = 1\n", ThenResume, false,
			"Unclaimed/Idle 37 Drained/Retiring 33 Drained/Idle 34 Owner/Idle 1 Unclaimed/Idle", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, 1, tt.config)
			s.run(2 * time.Second)
			from := len(s.moves)
			if r := s.drain(DrainRequested{Then: tt.then, Reason: "because I say so"}); r.Err != nil || r.DrainID != "1" {
				t.Fatalf("%+v", r)
			}
			if got := s.pair(slot.ID{N: 1}); got != policy.DrainedIdle {
				t.Errorf("at once %v", got)
			}
			for name, want := range map[string]string{
				"Draining": "true", "DrainReason": `"because I say so"`, "DrainingRequestId": `"1"`, "Requirements": "false",
				"Start": "", "WithinResourceLimits": "", "ExpectedMachineGracefulDrainingBadput": "0",
			} {
				if got := s.shown(slot.ID{N: 1}, name); got != want {
					t.Errorf("%s is %s, want %s", name, got, want)
				}
			}
			s.run(4 * time.Second)
			if tt.cancel {
				if r := s.cancelDrain("1"); r.Err != nil {
					t.Error(r.Err)
				}
			}
			s.run(time.Second)
			name := "slot1"
			if got := s.path(name, from); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if s.complete != tt.ended {
				t.Errorf("EP ended: %v", s.complete)
			}
			back := strings.HasSuffix(tt.want, "Unclaimed/Idle") || tt.cancel
			if got := s.shown(slot.ID{N: 1}, "Draining"); (got == "") != back {
				t.Errorf("Draining is %q", got)
			}
			if got := s.shown(slot.ID{N: 1}, "LastDrainStopTime"); (got == "") == back {
				t.Errorf("LastDrainStopTime is %q", got)
			}
		})
	}
}

// TestDrainBusy drains a machine whose one job has retirement time, after
// policy-drain2-02, -03 and -06.
func TestDrainBusy(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		config string
		how    Haste
		job    script
		want   string
		gone   time.Duration // from the drain to the job's end
		badput string
	}{
		// row: S2-050, S2-054
		{"graceful", "MAXJOBRETIREMENTTIME = 12\nMachineMaxVacateTime = 2\n", DrainGraceful, script{runs: time.Minute},
			"Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating 22 Owner/Idle 1 Unclaimed/Idle 37 Drained/Retiring 33 Drained/Idle",
			7 * time.Second, "10"},
		{"quick", "MAXJOBRETIREMENTTIME = 30\nMachineMaxVacateTime = 4\n", DrainQuick, script{runs: time.Minute, onSoft: -1},
			"Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating 22 Owner/Idle 1 Unclaimed/Idle 37 Drained/Retiring 33 Drained/Idle",
			4 * time.Second, "3"},
		{"fast", "MAXJOBRETIREMENTTIME = 30\nMachineMaxVacateTime = 4\n", DrainFast, script{runs: time.Minute},
			"Claimed/Busy 0 Preempting/Killing 25 Owner/Idle 1 Unclaimed/Idle 37 Drained/Retiring 33 Drained/Idle", 0, "3"},
		{"ends by itself", "MAXJOBRETIREMENTTIME = 30\nMachineMaxVacateTime = 4\n", DrainGraceful, script{runs: 10 * time.Second},
			"Claimed/Busy 13 Claimed/Retiring 12 Claimed/Cleaning 12 Claimed/Idle 10 Preempting/Vacating 22 Owner/Idle 1 Unclaimed/Idle 37 Drained/Retiring 33 Drained/Idle",
			7 * time.Second, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, 1, drainConfig+tt.config)
			ad := job(t, tt.job, "")
			g := s.claim(slot.ID{N: 1}, ad)
			s.activate(g.Claim, ad)
			s.run(3 * time.Second)
			from, began := len(s.moves), s.elapsed()
			gone := time.Duration(-1)
			s.onGone = func(*actor) { gone = s.elapsed() - began }
			if r := s.drain(DrainRequested{How: tt.how, By: "root@host"}); r.Err != nil {
				t.Fatal(r.Err)
			}
			if got := s.shown(slot.ID{N: 1}, "DrainReason"); got != `"by root@host"` {
				t.Errorf("reason %s", got)
			}
			s.run(30 * time.Second)
			if got := s.path("slot1", from); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
			if gone < tt.gone-time.Second || gone > tt.gone+time.Second {
				t.Errorf("the job was gone after %v, want %v", gone, tt.gone)
			}
			if got := s.shown(slot.ID{N: 1}, "TotalMachineDrainingBadput"); got != tt.badput {
				t.Errorf("badput %q, want %q", got, tt.badput)
			}
			if got := s.shown(slot.ID{N: 1}, "TotalMachineDrainingUnclaimedTime"); got == "" {
				t.Error("no unclaimed time")
			}
			if len(s.ended) != 1 || s.ended[0].Code != 1014 || s.ended[0].Reason != "Startd was draining" {
				t.Errorf("ends of claims: %+v", s.ended)
			}
		})
	}
}

// TestDrainCommonEnd lets a slot with little retirement wait for the one with
// the most. The original sends it away earlier (policy-drain2-11); the
// documents promise this.
//
// row: S2-052
func TestDrainCommonEnd(t *testing.T) {
	t.Parallel()
	s := newStage(t, 2, drainConfig+"NUM_SLOTS = 2\nMAXJOBRETIREMENTTIME = TARGET.Ret\nMachineMaxVacateTime = 1\n")
	for n, ret := range []string{"Ret = 10\n", "Ret = 24\n"} {
		ad := job(t, steady(80*time.Second), ret)
		s.activate(s.claim(slot.ID{N: n + 1}, ad).Claim, ad)
	}
	s.run(8 * time.Second)
	if r := s.drain(DrainRequested{}); r.Err != nil {
		t.Fatal(r.Err)
	}
	s.run(14 * time.Second)
	for n := 1; n <= 2; n++ {
		if got := s.pair(slot.ID{N: n}); got != policy.ClaimedRetiring {
			t.Errorf("slot%d is %v at %v", n, got, s.elapsed())
		}
	}
	s.run(2 * time.Second)
	for n := 1; n <= 2; n++ {
		if got := s.pair(slot.ID{N: n}); got != policy.DrainedIdle {
			t.Errorf("slot%d is %v at %v", n, got, s.elapsed())
		}
	}
}

// TestDrainAdmits lets jobs in that the drain's START accepts, after
// policy-drain3-03 and -04. Those with no retirement of their own stay as well
// (policy-drain3-01 has them evicted and let in again every few seconds; the
// documents keep them until the last of the others goes).
//
// row: S2-051, S2-053, S4-002
func TestDrainAdmits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, ret string
		dflt      bool // by DEFAULT_DRAINING_START_EXPR
	}{{"with retirement of its own", "60", false}, {"without", "0", false}, {"by default", "0", true}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			config := drainConfig + "NUM_SLOTS = 2\nMAXJOBRETIREMENTTIME = TARGET.Ret\nMachineMaxVacateTime = 1\n"
			start := classad.MustParseExpr("TARGET.Intr =?= true")
			if tt.dflt {
				config += "DEFAULT_DRAINING_START_EXPR = TARGET.Intr =?= true\n"
				start = nil
			}
			s := newStage(t, 2, config)
			old := job(t, steady(90*time.Second), "Ret = 44\n")
			s.activate(s.claim(slot.ID{N: 1}, old).Claim, old)
			s.run(3 * time.Second)
			if r := s.drain(DrainRequested{Start: start}); r.Err != nil {
				t.Fatal(r.Err)
			}
			s.run(4 * time.Second)
			plain := job(t, steady(90*time.Second), "Ret = 0\n")
			r, _ := s.ask(func(ref Ref) Event { return ClaimRequested{Ref: ref, Slot: slot.ID{N: 2}, Job: plain} })
			if !errs.Is(r.Err, errs.Denied) {
				t.Errorf("a job that the drain does not let in: %v", r.Err)
			}
			if got := s.shown(slot.ID{N: 2}, "Start"); got != "TARGET.Intr =?= true" {
				t.Errorf("Start is %s", got)
			}
			from := len(s.moves)
			ad := job(t, steady(90*time.Second), "Intr = true\nRet = "+tt.ret+"\n")
			s.activate(s.claim(slot.ID{N: 2}, ad).Claim, ad)
			if got := s.shown(slot.ID{N: 2}, "AcceptedWhileDraining"); got != "true" {
				t.Errorf("AcceptedWhileDraining is %s", got)
			}
			s.run(34 * time.Second)
			if got := s.pair(slot.ID{N: 2}); got != policy.ClaimedBusy {
				t.Errorf("slot2 is %v at %v", got, s.elapsed())
			}
			s.run(5 * time.Second)
			const want = "Drained/Retiring 0 Claimed/Idle 11 Claimed/Busy 18 Preempting/Vacating 22 Owner/Idle 1 Unclaimed/Idle 37 Drained/Retiring 33 Drained/Idle"
			if got := s.path("slot2", from); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			if got := s.shown(slot.ID{N: 2}, "AcceptedWhileDraining"); got != "false" {
				t.Errorf("afterwards AcceptedWhileDraining is %s", got)
			}
		})
	}
}

// TestDrainLastOriginalLeaves sends away who was let in as soon as the others
// have ended by themselves.
//
// row: S2-053
func TestDrainLastOriginalLeaves(t *testing.T) {
	t.Parallel()
	s := newStage(t, 2, drainConfig+"NUM_SLOTS = 2\nMAXJOBRETIREMENTTIME = 600\nMachineMaxVacateTime = 5\n")
	old := job(t, steady(40*time.Second), "")
	g := s.claim(slot.ID{N: 1}, old)
	s.activate(g.Claim, old)
	s.run(3 * time.Second)
	s.drain(DrainRequested{Start: classad.MustParseExpr("true")})
	s.run(time.Second)
	ad := job(t, script{runs: time.Hour, onSoft: 2 * time.Second}, "")
	from := len(s.moves)
	s.activate(s.claim(slot.ID{N: 2}, ad).Claim, ad)
	s.run(35 * time.Second)
	if got := s.pair(slot.ID{N: 2}); got != policy.ClaimedBusy {
		t.Fatalf("slot2 is %v", got)
	}
	s.run(10 * time.Second)
	const want = "Drained/Retiring 0 Claimed/Idle 11 Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating 22 Owner/Idle 1 Unclaimed/Idle 37 Drained/Retiring 33 Drained/Idle"
	if got := s.path("slot2", from); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := s.shown(slot.ID{N: 2}, "Start"); got != "" {
		t.Errorf("Start is %s", got)
	}
}

// TestDrainUnretires: a drain that is taken back leaves the job where it was.
func TestDrainUnretires(t *testing.T) {
	t.Parallel()
	s := newStage(t, 1, drainConfig+"MAXJOBRETIREMENTTIME = 600\nMachineMaxVacateTime = 5\n")
	ad := job(t, steady(time.Hour), "")
	s.activate(s.claim(slot.ID{N: 1}, ad).Claim, ad)
	s.run(3 * time.Second)
	from := len(s.moves)
	s.drain(DrainRequested{})
	s.run(10 * time.Second)
	s.cancelDrain("")
	s.run(10 * time.Second)
	if got, want := s.path("slot1", from), "Claimed/Busy 13 Claimed/Retiring 19 Claimed/Busy"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := s.shown(slot.ID{N: 1}, "Requirements"); got != "Start && WithinResourceLimits" {
		t.Errorf("Requirements %s", got)
	}
}

// TestDrainRefusals follows policy-drain2-10 and -16: nothing of what is asked
// is done.
func TestDrainRefusals(t *testing.T) {
	t.Parallel()
	s := newStage(t, 1, drainConfig)
	for _, tt := range []struct {
		name, check string
		code        int
		want        string
	}{
		{"false", "Cpus > 1000", command.DrainCheckFailed, "draining check expression is false on slot1@host.example"},
		{"no boolean", "Cpus", command.DrainCheckFailed, "does not evaluate to a bool on slot1@host.example"},
		{"undefined", "NoSuchThing > 1", command.DrainCheckFailed, "does not evaluate to a bool"},
		{"costly", `regexp("(.*a){500}b", "` + strings.Repeat("a", 20_000) + `")`, command.DrainCheckFailed, "takes more than 1000000 steps"},
	} {
		r := s.drain(DrainRequested{Check: classad.MustParseExpr(tt.check)})
		if r.Code != tt.code || r.Err == nil || !strings.Contains(r.Err.Error(), tt.want) {
			t.Errorf("%s: %d %v", tt.name, r.Code, r.Err)
		}
	}
	if got := s.pair(slot.ID{N: 1}); got != policy.UnclaimedIdle {
		t.Errorf("slot1 is %v", got)
	}
	if r := s.cancelDrain(""); r.Err != nil {
		t.Errorf("to end nothing: %v", r.Err)
	}
	if r := s.cancelDrain("7"); r.Code != command.DrainUnknownID || !errs.Is(r.Err, errs.NotFound) {
		t.Errorf("an unknown drain: %d %v", r.Code, r.Err)
	}
	if r := s.drain(DrainRequested{Check: classad.MustParseExpr("Cpus < 1000"), Reason: "first"}); r.Err != nil || r.DrainID != "1" {
		t.Fatalf("%+v", r)
	}
	if r := s.drain(DrainRequested{Reason: "second"}); r.Code != command.DrainInProgress || !errs.Is(r.Err, errs.Conflict) {
		t.Errorf("a second drain: %d %v", r.Code, r.Err)
	}
	if got := s.shown(slot.ID{N: 1}, "DrainReason"); got != `"first"` {
		t.Errorf("reason %s", got)
	}
	ad := job(t, steady(time.Hour), "")
	r, _ := s.ask(func(ref Ref) Event { return ClaimRequested{Ref: ref, Slot: slot.ID{N: 1}, Job: ad} })
	if !errs.Is(r.Err, errs.Conflict) {
		t.Errorf("claim while draining: %v", r.Err)
	}
	s.cancelDrain("1")
	if r := s.drain(DrainRequested{}); r.Err != nil || r.DrainID != "2" {
		t.Errorf("the next drain: %+v", r)
	}
}

// TestDrainCost foresees what a drain would cost.
func TestDrainCost(t *testing.T) {
	t.Parallel()
	s := newStage(t, 6, "POLLING_INTERVAL = 1\nMAXJOBRETIREMENTTIME = 1000\nMachineMaxVacateTime = 600\n")
	ad := job(t, steady(time.Hour), "RequestCpus = 6\n")
	s.activate(s.claim(slot.ID{N: 1}, ad).Claim, ad)
	s.run(3 * time.Second)
	s.step(Sampled{})
	for name, want := range map[string]string{
		"ExpectedMachineQuickDrainingBadput":        "3618", // 6 x (3 + 600)
		"ExpectedMachineGracefulDrainingBadput":     "6000", // 6 x (3 + 997)
		"ExpectedMachineQuickDrainingCompletion":    seconds(s.now, 600),
		"ExpectedMachineGracefulDrainingCompletion": seconds(s.now, 997),
	} {
		if got := s.shown(slot.ID{N: 1, Sub: 1}, name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

func seconds(now clock.Instant, more int64) string {
	return classad.Int(now.Wall.Unix() + more).String()
}
