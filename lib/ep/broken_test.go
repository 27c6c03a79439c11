// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// ruin lets a job of slot1 end, and its starter, and says how.
func (s *stage) ruin(exit Exit, immortal int) Grant {
	s.t.Helper()
	ad := job(s.t, steady(time.Hour), "ClusterId = 7\nProcId = 3\nRequestCpus = 2\nColor = \"red\"")
	r := s.request(ClaimRequested{Slot: slot1, Client: claim.Client{User: "alice@example", Schedd: "a.example", Host: "ap.example"}}, ad)
	if r.Err != nil {
		s.t.Fatal(r.Err)
	}
	act := s.activate(r.Granted.Claim, ad)
	s.broke = act
	s.run(time.Second)
	delete(s.starters, act)
	s.step(JobEnded{Activation: act, Exit: exit})
	s.step(StarterExited{Activation: act, Status: host.ExitStatus{Exited: true}, Immortal: immortal})
	return *r.Granted
}

var unclean = Exit{Broken: &slot.BrokenReason{Code: slot.BrokenUnclean, Reason: "Could not clean up after job"}}

// TestBrokenPart breaks a d-slot: it is deleted, and its parent is so much
// smaller, or it is kept to be seen.
//
// row: S4-051
func TestBrokenPart(t *testing.T) {
	t.Parallel()
	amounts := []string{"BrokenSlotCpus", "BrokenSlotMemory", "Cpus", "TotalSlotCpus"}
	for _, c := range []struct {
		name, config string
		exit         Exit
		kept         bool
		parent       map[string]string
	}{
		{"deleted", "", unclean, false, map[string]string{"BrokenSlotCpus": "2", "BrokenSlotMemory": "128", "Cpus": "2", "TotalSlotCpus": "2"}},
		{"kept", "CONTINUE_TO_ADVERTISE_BROKEN_DYNAMIC_SLOTS = true", unclean, true, map[string]string{"Cpus": "2", "TotalSlotCpus": "4"}},
		{"a control group that is still there keeps its slot", "", Exit{Broken: &slot.BrokenReason{Code: slot.BrokenHungGroup, Reason: "Could not cleanup CGroup for slot"}},
			true, map[string]string{"Cpus": "2", "TotalSlotCpus": "4"}},
	} {
		s := newStage(t, 4, c.config)
		g := s.ruin(c.exit, 0)
		s.run(time.Minute)
		if d := cmp.Diff(c.parent, shows(s.eng.SlotAd(slot1), amounts...)); d != "" {
			t.Errorf("%s: the parent: %s", c.name, d)
		}
		v, there := s.eng.SlotView(g.Slot)
		if there != c.kept {
			t.Errorf("%s: the d-slot is there: %v", c.name, there)
		}
		if there {
			if v.Claimed || v.Claimable() || v.Pair.State != policy.Unclaimed {
				t.Errorf("%s: %+v", c.name, v)
			}
			want := map[string]string{"Cpus": "0", "Memory": "0", "SlotBrokenCode": "4", "SlotBrokenReason": `"Could not clean up after job"`}
			if c.exit.Broken.Code == slot.BrokenHungGroup {
				want["SlotBrokenCode"], want["SlotBrokenReason"] = "7", `"Could not cleanup CGroup for slot"`
			}
			if d := cmp.Diff(want, shows(s.eng.SlotAd(g.Slot), "Cpus", "Memory", "SlotBrokenCode", "SlotBrokenReason")); d != "" {
				t.Errorf("%s: %s", c.name, d)
			}
			s.refused(s.request(ClaimRequested{Slot: g.Slot}, job(t, steady(time.Minute), "")), errs.Broken, c.exit.Broken.Reason)
		}
		// The rest goes on.
		if r := s.request(ClaimRequested{Slot: slot1, DynamicSlots: 9}, job(t, steady(time.Minute), "")); r.Err != nil || len(r.Granted.More) != 1 {
			t.Errorf("%s: of the other half got %+v", c.name, r)
		}
		if err := s.eng.ledger.Check(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestImmortalProcesses leaves processes of a job that nobody can end.
//
// row: S4-050
func TestImmortalProcesses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		config   string
		immortal int
		broken   bool
	}{
		{"STARTD_LEFTOVER_PROCS_BREAK_SLOTS = true", 2, true},
		{"STARTD_LEFTOVER_PROCS_BREAK_SLOTS = true", 0, false},
		{"STARTD_LEFTOVER_PROCS_BREAK_SLOTS = false", 2, false},
		{"", 2, false},
	} {
		s := newStage(t, 2, c.config+"\nNUM_SLOTS_TYPE_1 = 1\nSLOT_TYPE_1 = 100%\n")
		g := s.ruin(Exit{}, c.immortal)
		s.ask(func(ref Ref) Event { return ReleaseRequested{Ref: ref, Claim: g.Claim} })
		r := s.request(ClaimRequested{Slot: slot1}, job(t, steady(time.Minute), ""))
		if broken := r.Err != nil; broken != c.broken {
			t.Errorf("%q with %d processes left: %v", c.config, c.immortal, r.Err)
		}
		if !c.broken {
			continue
		}
		if d := cmp.Diff(map[string]string{"SlotBrokenCode": "6", "SlotBrokenReason": `"Could not terminate all job processes"`, "Cpus": "0"},
			shows(s.eng.SlotAd(slot1), "SlotBrokenCode", "SlotBrokenReason", "Cpus")); d != "" {
			t.Error(d)
		}
	}
}

// TestVolumeThatStays has a slot whose job's volume could not be removed.
//
// row: S4-082
func TestVolumeThatStays(t *testing.T) {
	t.Parallel()
	s := newStage(t, 2, "NUM_SLOTS_TYPE_1 = 1\nSLOT_TYPE_1 = 100%\n")
	ad := job(t, steady(time.Hour), "ClusterId = 7\nProcId = 3\n")
	r := s.request(ClaimRequested{Slot: slot1}, ad)
	if r.Err != nil {
		t.Fatal(r.Err)
	}
	act := s.activate(r.Granted.Claim, ad)
	s.run(time.Second)
	delete(s.starters, act)
	s.step(JobEnded{Activation: act})
	s.step(StarterExited{Activation: act, Status: host.ExitStatus{Exited: true}, Broken: &slot.BrokenReason{Code: slot.BrokenVolume, Reason: "Could not clean up Logical Volume"}})
	if d := cmp.Diff(map[string]string{"SlotBrokenCode": "5", "SlotBrokenReason": `"Could not clean up Logical Volume"`},
		shows(s.eng.SlotAd(slot1), "SlotBrokenCode", "SlotBrokenReason")); d != "" {
		t.Error(d)
	}
}

// TestVolumeThatGoesLater has the volume removed by a later try: its slot is whole
// again, whether it is still there or not. A slot that a process broke stays broken.
//
// row: S4-082
func TestVolumeThatGoesLater(t *testing.T) {
	t.Parallel()
	volume := Exit{Broken: &slot.BrokenReason{Code: slot.BrokenVolume, Reason: "Could not clean up Logical Volume"}}
	for _, c := range []struct {
		name, config string
		exit         Exit
		heals        bool
	}{
		{"deleted", "", volume, true},
		{"kept", "CONTINUE_TO_ADVERTISE_BROKEN_DYNAMIC_SLOTS = true", volume, true},
		{"static", "NUM_SLOTS_TYPE_1 = 1\nSLOT_TYPE_1 = 100%\nSLOT_TYPE_1_PARTITIONABLE = false", volume, true},
		{"a process", "", Exit{Broken: &slot.BrokenReason{Code: slot.BrokenHungProcess, Reason: "Could not terminate all job processes"}}, false},
	} {
		s := newStage(t, 4, c.config)
		amounts := []string{"Cpus", "TotalSlotCpus", "Memory", "SlotBrokenCode"}
		was := shows(s.eng.SlotAd(slot1), amounts...)
		g := s.ruin(c.exit, 0)
		act := s.broke
		if c.name == "static" {
			s.ask(func(ref Ref) Event { return ReleaseRequested{Ref: ref, Claim: g.Claim} })
		}
		s.run(time.Minute)
		// Another has the number of the slot that is gone meanwhile.
		var next *Grant
		if c.name == "deleted" {
			next = s.request(ClaimRequested{Slot: slot1}, job(t, steady(time.Hour), "RequestCpus = 1")).Granted
			if next == nil || next.Slot != g.Slot {
				t.Fatalf("%s: got %+v", c.name, next)
			}
		}
		var mended []SlotMended
		for range 2 { // the second tells nothing new
			effects := slices.Clone(s.eng.Step(s.now, VolumeRemoved{Activation: act}))
			s.perform(effects)
			for _, eff := range effects {
				if e, ok := eff.(SlotMended); ok {
					mended = append(mended, e)
				}
			}
		}
		if next != nil {
			s.ask(func(ref Ref) Event { return ReleaseRequested{Ref: ref, Claim: next.Claim} })
		}
		s.run(time.Minute)
		if err := s.eng.ledger.Check(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		d := cmp.Diff(was, shows(s.eng.SlotAd(slot1), amounts...))
		told := s.eng.DaemonAd(nil).Eval("BrokenReasons", &classad.Env{}).Kind() != classad.KindUndefined
		if (d == "") != c.heals || (len(mended) == 1) != c.heals || told == c.heals {
			t.Errorf("%s: mended %+v, the daemon's ad tells of it: %v\n%s", c.name, mended, told, d)
		}
		if len(mended) == 1 && mended[0].Name != g.Slot.String() {
			t.Errorf("%s: %+v", c.name, mended[0])
		}
	}
}

// TestJobAsksToBreak has jobs that want their slots broken, which they get where
// the owner tries that out and nothing else went wrong.
func TestJobAsksToBreak(t *testing.T) {
	t.Parallel()
	const allowed = "TEST_JOB_CAN_BREAK_SLOT = true\n"
	well := host.ExitStatus{Exited: true}
	for _, c := range []struct {
		config, job string
		status      host.ExitStatus
		broken      bool
	}{
		{allowed, "StarterShouldExitBroken = true\n", well, true},
		{allowed, "StarterShouldExitBroken = 1\n", well, true},
		{allowed, "StarterShouldExitBroken = false\n", well, false},
		{allowed, "StarterShouldExitBroken = \"yes\"\n", well, false},
		{allowed, "", well, false},
		{allowed, "StarterShouldExitBroken = true\n", host.ExitStatus{Exited: true, Code: 1}, false},
		{allowed, "StarterShouldExitBroken = true\n", host.ExitStatus{Signal: 9}, false},
		{"TEST_JOB_CAN_BREAK_SLOT = false\n", "StarterShouldExitBroken = true\n", well, false},
		{"", "StarterShouldExitBroken = true\n", well, false},
	} {
		s := newStage(t, 4, c.config)
		var broke []SlotBroke
		s.onOther = func(eff Effect) {
			if e, ok := eff.(SlotBroke); ok {
				broke = append(broke, e)
			}
		}
		ad := job(t, steady(time.Hour), c.job+"RequestCpus = 2\n")
		act := s.activate(s.claim(slot1, ad).Claim, ad)
		s.run(time.Second)
		delete(s.starters, act)
		s.step(JobEnded{Activation: act})
		s.step(StarterExited{Activation: act, Status: c.status})
		if (len(broke) == 1) != c.broken {
			t.Errorf("%q, %q, %+v: %+v", c.config, c.job, c.status, broke)
		}
		if c.broken {
			if e := broke[0]; e.Name != "slot1_1" || e.Why != *unclean.Broken || e.Held.Cpus != 2 || e.Held.MemoryMiB == 0 {
				t.Errorf("%+v", e)
			}
			ctx, ok := s.eng.DaemonAd(nil).Eval("slot1_1BrokenContext", nil).AsAd()
			if !ok {
				t.Fatal("the daemon's ad does not tell of it")
			}
			if d := cmp.Diff(map[string]string{"Cpus": "2.0", "GPUs": "0", "Code": "4"}, shows(ctx, "Cpus", "GPUs", "Code", "AssignedGPUs")); d != "" {
				t.Error(d)
			}
		}
	}
}

// TestBrokenContext tells in the daemon's ad whose job broke a slot. What was
// broken from the beginning has no such context.
//
// row: S4-052
func TestBrokenContext(t *testing.T) {
	t.Parallel()
	s := newStage(t, 4, "")
	s.ruin(unclean, 0)
	s.run(time.Minute)
	if g := s.ruin(unclean, 0); g.Slot.Sub != 1 {
		t.Fatalf("the second one is %v", g.Slot)
	}
	never := []slot.Problem{{TypeID: 2, Reason: "Could not create required number of type2 slots"}}
	ad := s.eng.DaemonAd(never)
	if d := cmp.Diff(map[string]string{
		"BrokenReasons":          "{ slot_type2BrokenReason,slot1_1BrokenReason,slot1_1aBrokenReason }",
		"BrokenContextAds":       "{ slot1_1BrokenContext,slot1_1aBrokenContext }",
		"slot1_1aBrokenReason":   `"Could not clean up after job"`,
		"slot_type2BrokenReason": `"Could not create required number of type2 slots"`,
		"slot1_1BrokenReason":    `"Could not clean up after job"`,
	}, shows(ad, "BrokenReasons", "BrokenContextAds", "slot1_1BrokenReason", "slot1_1aBrokenReason", "slot_type2BrokenReason", "slot_type2BrokenContext")); d != "" {
		t.Error(d)
	}
	context := func(s *stage, tag string) map[string]string {
		ctx, ok := s.eng.DaemonAd(nil).Eval(tag+"BrokenContext", nil).AsAd()
		if !ok {
			t.Fatalf("no context of %s", tag)
		}
		return shows(ctx, "Id", "Code", "Reason", "JobId", "RemoteUser", "RemoteScheddName", "ClientMachine", "Color")
	}
	want := map[string]string{"Id": `"slot1_1"`, "Code": "4", "Reason": `"Could not clean up after job"`,
		"JobId": `"7.3"`, "RemoteUser": `"alice@example"`, "RemoteScheddName": `"a.example"`}
	if d := cmp.Diff(want, context(s, "slot1_1")); d != "" {
		t.Error(d)
	}
	s.reconfigure("BROKEN_SLOT_CONTEXT_ATTRS = ClientMachine, Color, Nothing")
	want = map[string]string{"Id": `"slot1_1"`, "Code": "4", "Reason": `"Could not clean up after job"`, "ClientMachine": `"ap.example"`, "Color": `"red"`}
	if d := cmp.Diff(want, context(s, "slot1_1a")); d != "" {
		t.Errorf("other attributes: %s", d)
	}
	whole := newStage(t, 4, "")
	if ad := whole.eng.DaemonAd(nil); ad.Eval("BrokenContextAds", &classad.Env{}).Kind() != classad.KindUndefined {
		t.Error("a sound EP has BrokenContextAds")
	}
}
