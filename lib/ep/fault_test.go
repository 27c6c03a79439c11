// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/slot"
)

// ailing is a stage whose machine can be broken.
type ailing struct {
	*stage
	tests   []string // places that were tested
	changes []string // what FaultChanged said, with the time since the start
	told    []slot.ID
}

func newAiling(t *testing.T, cpus int, text string) *ailing {
	a := &ailing{stage: newStage(t, cpus, text)}
	a.onOther = func(eff Effect) {
		switch eff := eff.(type) {
		case TestExecute:
			a.tests = append(a.tests, eff.Place)
		case FaultChanged:
			word := "takes jobs"
			if eff.Refusing {
				word = "refuses for " + eff.Pause.String()
			}
			a.changes = append(a.changes, fmt.Sprintf("%v %v%s %d: %s: %s", a.elapsed(), eff.Kind, eff.Place, eff.Row, word, eff.Reason))
		case UpdateDue:
			a.told = append(a.told, eff.Slot)
		}
	}
	return a
}

// said returns the changes since it was last asked.
func (a *ailing) said() []string {
	out := a.changes
	a.changes = nil
	return out
}

// fail runs a job in a slot up to a failure of the machine.
func (a *ailing) fail(id slot.ID, f MachineFault) {
	a.t.Helper()
	ad := job(a.t, steady(time.Hour), "")
	ad.SetBool("SimFails", true)
	ad.SetReal("SimBegins", 3600) // the stage's own starter says nothing
	g := a.claim(id, ad)
	act := a.activate(g.Claim, ad)
	delete(a.starters, act)
	a.step(JobEnded{Activation: act, Exit: Exit{Evicted: true, Fault: &f}})
	a.step(StarterExited{Activation: act, Status: host.ExitStatus{Exited: true}})
	a.step(ReleaseRequested{Claim: g.Claim})
}

// works runs a job in a slot that starts.
func (a *ailing) works(id slot.ID) {
	a.t.Helper()
	ad := job(a.t, steady(time.Millisecond), "")
	g := a.claim(id, ad)
	a.activate(g.Claim, ad)
	a.run(10 * time.Millisecond)
	a.step(ReleaseRequested{Claim: g.Claim})
}

// answer is what the next test of EXECUTE finds.
func (a *ailing) answer(err error) {
	a.t.Helper()
	if len(a.tests) == 0 {
		a.t.Fatal("no test of EXECUTE was asked for")
	}
	place := a.tests[0]
	a.tests = a.tests[1:]
	a.step(ExecuteTested{Place: place, Err: err})
}

var readOnly = MachineFault{Kind: FaultExecute, Reason: "mkdir dir_7: read-only file system"}

// TestFaultPauses follows EXECUTE from its first failure until it is mended:
// one word for each change, longer and longer between the tests, no job
// meanwhile.
func TestFaultPauses(t *testing.T) {
	t.Parallel()
	a := newAiling(t, 4, "")
	a.fail(slot1, readOnly)
	start := a.elapsed()
	if d := cmp.Diff([]string{fmt.Sprintf("%v EXECUTE 1: refuses for 5s: mkdir dir_7: read-only file system", start)}, a.said()); d != "" {
		t.Fatal(d)
	}
	if !slices.Contains(a.told, slot1) {
		t.Errorf("the pool is not told: %v", a.told)
	}
	if d := cmp.Diff(map[string]string{
		"Requirements": "false", "StartRefusedReason": `"mkdir dir_7: read-only file system"`, "StartRefusedSince": fmt.Sprint(a.now.Wall.Unix()),
		"StartRefusedUntil": fmt.Sprint(a.now.Wall.Unix() + 5),
	}, shows(a.eng.SlotAd(slot1), "Requirements", "StartRefusedReason", "StartRefusedSince", "StartRefusedUntil")); d != "" {
		t.Error(d)
	}
	if ad := a.eng.PublicAd(slot1); ad != nil {
		if _, ok := ad.Lookup("Start"); ok {
			t.Error("the pool is shown a START")
		}
	}
	if v, _ := a.eng.SlotView(slot1); v.Claimable() {
		t.Error("the slot can be claimed")
	}
	if r, ok := a.eng.Refusal(slot1); !ok || r.Reason != readOnly.Reason || r.Until.Sub(a.now) != 5*time.Second {
		t.Errorf("%+v", r)
	}
	plain := job(t, steady(time.Minute), "")
	a.refused(a.request(ClaimRequested{Slot: slot1}, plain), errs.Transient, "the machine takes no jobs: mkdir dir_7")

	still := errors.New("still read-only")
	want := []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 160 * time.Second, faultMost, faultMost}
	pause := faultFirst
	for i, next := range want {
		a.run(pause - time.Millisecond)
		if len(a.tests) != 0 {
			t.Fatalf("pause %d: tested too early", i)
		}
		a.run(time.Millisecond)
		a.answer(still)
		if d := cmp.Diff([]string{fmt.Sprintf("%v EXECUTE %d: refuses for %v: still read-only", a.elapsed(), i+2, next)}, a.said()); d != "" {
			t.Fatal(d)
		}
		pause = next
	}
	a.run(pause)
	a.answer(nil)
	if d := cmp.Diff([]string{fmt.Sprintf("%v EXECUTE %d: takes jobs: still read-only", a.elapsed(), len(want)+1)}, a.said()); d != "" {
		t.Fatal(d)
	}
	if got := shows(a.eng.SlotAd(slot1), "StartRefusedReason", "StartRefusedUntil"); len(got) != 0 {
		t.Errorf("the ad still shows %v", got)
	}
	a.works(slot1)
	a.run(time.Hour)
	if len(a.tests) != 0 || len(a.said()) != 0 {
		t.Error("there is more to say about a directory that was mended")
	}
	a.fail(slot1, readOnly)
	if got := a.said(); len(got) != 1 || !strings.Contains(got[0], " 1: refuses for 5s") {
		t.Errorf("after a program ran the row goes on: %v", got)
	}
}

// TestFaultComesBack keeps the row when a test finds nothing and the next job
// fails all the same.
func TestFaultComesBack(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		kind  Fault
		after time.Duration // from the end of the refusal to the next failure
		pause time.Duration
	}{
		{"at once", FaultExecute, 0, 10 * time.Second},
		{"a starter", FaultStarter, time.Second, 10 * time.Second},
		{"long after", FaultStarter, faultForget, 5 * time.Second},
	} {
		a := newAiling(t, 4, "")
		f := MachineFault{Kind: c.kind, Reason: "no luck"}
		a.fail(slot1, f)
		a.run(faultFirst)
		if c.kind == FaultExecute {
			a.answer(nil)
		}
		got := a.said()
		if len(got) != 2 || !strings.Contains(got[1], "takes jobs") {
			t.Errorf("%s: %v", c.name, got)
		}
		a.run(c.after)
		a.fail(slot1, f)
		if got := a.said(); len(got) != 1 || !strings.Contains(got[0], "refuses for "+c.pause.String()) {
			t.Errorf("%s: %v, want a pause of %v", c.name, got, c.pause)
		}
		if len(a.tests) != 0 {
			t.Errorf("%s: a test at once", c.name)
		}
	}
}

// TestFaultDoubtful gives the first job that may have filled the disk itself
// the benefit of the doubt, and the machine no more than that.
func TestFaultDoubtful(t *testing.T) {
	t.Parallel()
	full := MachineFault{Kind: FaultExecute, Reason: "no space left on device", Doubtful: true}
	a := newAiling(t, 4, "")
	a.fail(slot1, full)
	if _, refused := a.eng.Refusal(slot1); refused || len(a.tests) != 1 || len(a.said()) != 0 {
		t.Fatalf("refused %v, tests %v", refused, a.tests)
	}
	a.answer(nil)
	a.works(slot1)
	a.fail(slot1, full)
	if _, refused := a.eng.Refusal(slot1); refused {
		t.Error("refused although a program ran between the two")
	}
	a.answer(nil)
	a.fail(slot1, full)
	if got := a.said(); len(got) != 1 || !strings.Contains(got[0], " 2: refuses for 10s") {
		t.Errorf("the second in a row: %v", got)
	}

	b := newAiling(t, 4, "")
	b.fail(slot1, full)
	b.answer(errors.New("no space left on device (tested)"))
	if got := b.said(); len(got) != 1 || !strings.Contains(got[0], "refuses for 5s: no space left on device (tested)") {
		t.Errorf("a test that confirms it: %v", got)
	}
}

// TestFaultBurst takes failures of starters that were under way as one.
func TestFaultBurst(t *testing.T) {
	t.Parallel()
	a := newAiling(t, 4, "")
	ad := job(t, steady(time.Hour), "")
	ad.SetReal("SimBegins", 60)
	ran := a.activate(a.claim(slot1, ad).Claim, ad)
	failing := a.activate(a.claim(slot1, ad).Claim, ad)
	g := a.claim(slot1, ad)
	a.step(StarterFailed{Activation: failing, Err: errors.New("fork"), Fault: &MachineFault{Kind: FaultStarter, Reason: "fork: resource temporarily unavailable"}})
	r, _ := a.ask(func(ref Ref) Event { return ActivateRequested{Ref: ref, Claim: g.Claim, Job: ad} })
	a.refused(r, errs.Transient, "fork: resource temporarily unavailable")
	if r.Code != command.RefusedBroken {
		t.Errorf("code %d", r.Code)
	}
	// A program that was set up before proves nothing.
	a.step(JobRunning{Activation: ran})
	if _, refused := a.eng.Refusal(slot1); !refused {
		t.Error("an older activation ended the refusal")
	}
	if got := a.said(); len(got) != 1 {
		t.Errorf("%v", got)
	}
	a.run(faultFirst)
	if _, ok := a.ask(func(ref Ref) Event { return ActivateRequested{Ref: ref, Claim: g.Claim, Job: ad} }); !ok {
		t.Fatal("no answer")
	}
	if v, _ := a.eng.SlotView(g.Slot); v.Activation == "" {
		t.Error("no try after the pause")
	}
}

// TestFaultClosesClaim tells the shadow of a job that met a fault that no other
// job follows under the claim, and gives the claim back: the schedd would send
// the next one at once.
func TestFaultClosesClaim(t *testing.T) {
	t.Parallel()
	for _, doubtful := range []bool{false, true} {
		a := newAiling(t, 4, "")
		ad := job(t, steady(time.Hour), "")
		ad.SetReal("SimBegins", 60)
		g := a.claim(slot1, ad)
		act := a.activate(g.Claim, ad)
		delete(a.starters, act)
		f := readOnly
		f.Doubtful = doubtful
		a.step(JobEnded{Activation: act, Exit: Exit{Evicted: true, Fault: &f}})
		r, _ := a.ask(func(ref Ref) Event { return DeactivateRequested{Ref: ref, Claim: g.Claim, How: JobDone} })
		if r.Closing == doubtful {
			t.Errorf("doubtful %v: closing %v", doubtful, r.Closing)
		}
		a.step(StarterExited{Activation: act, Status: host.ExitStatus{Exited: true}})
		if v, there := a.eng.SlotView(g.Slot); (there && v.Claimed) != doubtful {
			t.Errorf("doubtful %v: the claim is there: %v", doubtful, there)
		}
	}
}

// TestFaultPlaces keeps a broken SLOT<N>_EXECUTE from the slots that have
// another directory, and a machine without descriptors from none.
func TestFaultPlaces(t *testing.T) {
	t.Parallel()
	inv, snap := inventory(t, 4, "NUM_SLOTS = 2\nSLOT_TYPE_1 = 50%\nNUM_SLOTS_TYPE_1 = 2\nSLOT_TYPE_1_PARTITIONABLE = true")
	layout, err := slot.LayoutFrom(snap, inv)
	if err != nil {
		t.Fatal(err)
	}
	ledger, problems := slot.Build(layout, inv)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	a := &ailing{stage: stageWith(t, inv, snap, ledger)}
	a.eng.cfg.Place = func(id slot.ID) string { return fmt.Sprintf("/execute%d", id.N) }
	a.onOther = func(eff Effect) {
		if eff, ok := eff.(TestExecute); ok {
			a.tests = append(a.tests, eff.Place)
		}
	}
	two := slot.ID{N: 2}
	a.fail(slot1, readOnly)
	if _, one := a.eng.Refusal(slot1); !one {
		t.Error("slot1 takes jobs")
	}
	if _, other := a.eng.Refusal(two); other {
		t.Error("slot2 takes no jobs, and its directory is sound")
	}
	a.works(two)
	a.run(faultFirst)
	if d := cmp.Diff([]string{"/execute1"}, a.tests); d != "" {
		t.Fatal(d)
	}
	a.answer(errors.New("gone"))

	ad := job(t, steady(time.Hour), "")
	g := a.claim(two, ad)
	r, _ := a.ask(func(ref Ref) Event {
		return ActivateRequested{Ref: ref, Claim: g.Claim, Job: ad, Fault: &MachineFault{Kind: FaultDescriptors, Reason: "60 of 64 descriptors are in use"}}
	})
	a.refused(r, errs.Transient, "60 of 64 descriptors are in use")
	for _, id := range []slot.ID{slot1, two} {
		if _, refused := a.eng.Refusal(id); !refused {
			t.Errorf("%v takes jobs", id)
		}
	}
}

// TestFaultDescriptors makes the pauses longer only while there is no room at
// all: where some jobs fit, each lack is a new one.
func TestFaultDescriptors(t *testing.T) {
	t.Parallel()
	a := newAiling(t, 4, "")
	ad := job(t, steady(time.Hour), "")
	short := &MachineFault{Kind: FaultDescriptors, Reason: "60 of 64 descriptors are in use"}
	try := func(lack *MachineFault, pause time.Duration) {
		t.Helper()
		g := a.claim(slot1, ad)
		r, _ := a.ask(func(ref Ref) Event { return ActivateRequested{Ref: ref, Claim: g.Claim, Job: ad, Fault: lack} })
		if (r.Err != nil) != (lack != nil) {
			t.Fatalf("%+v", r)
		}
		got := a.said()
		if lack != nil && (len(got) != 1 || !strings.Contains(got[0], "refuses for "+pause.String())) {
			t.Errorf("%v, want a pause of %v", got, pause)
		}
		a.step(ReleaseRequested{Claim: g.Claim})
		a.run(pause)
		a.said()
	}
	try(short, 5*time.Second)
	try(short, 10*time.Second)
	try(nil, 0)
	try(short, 5*time.Second)
}

// TestFaultJitter takes up to a quarter off each pause.
func TestFaultJitter(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		row  int
		rand float64
		want time.Duration
	}{{1, 0, 5 * time.Second}, {1, 0.5, 4375 * time.Millisecond}, {4, 0.5, 35 * time.Second}, {100, 0, faultMost}, {100, 0.999999, 225 * time.Second}} {
		e := &Engine{cfg: Config{Rand: func() float64 { return c.rand }}}
		if got := e.faultPause(c.row); got.Round(time.Second/8) != c.want {
			t.Errorf("row %d, %v: %v, want %v", c.row, c.rand, got, c.want)
		}
	}
}
