// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/slot"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// activate asks for a claim of slot1 and to run a job there.
func (l *laboratory) activate() {
	l.t.Helper()
	ad, err := classad.ParseAd("JobUniverse = 5\nRequestCpus = 1\nRequestMemory = 16\nRequestDisk = 16\nCmd = \"/bin/true\"\n", classad.Old)
	if err != nil {
		l.t.Fatal(err)
	}
	one, now := slot.ID{N: 1}, l.clock.Now()
	l.step(now, ep.ClaimRequested{Slot: one, Job: ad})
	for v := range l.eng.Views() {
		if v.Claimed && v.Activation == "" {
			l.step(now, ep.ActivateRequested{Claim: v.Claim, Job: ad})
			return
		}
	}
	l.t.Fatal("no claim was given")
}

// logged returns the lines of the log with a message.
func (l *laboratory) logged(msg string) (lines []string) {
	for line := range strings.Lines(l.log.String()) {
		if strings.Contains(line, `msg="`+msg+`"`) {
			lines = append(lines, line)
		}
	}
	return lines
}

const refuses, takes = "the machine refuses jobs", "the machine takes jobs again"

// explained is what explain answers for slot1.
func (l *laboratory) explained() string {
	l.t.Helper()
	x, err := l.explain(l.clock.Now(), observe.Request{Subject: "slot1"})
	if err != nil {
		l.t.Fatal(err)
	}
	return x[0].Answer
}

// A starter that cannot be started is tried again after a pause, then after a
// longer one: there is no program here.
func TestNoStarterPauses(t *testing.T) {
	t.Parallel()
	l := newLaboratory(t, "NUM_SLOTS = 1\n", nil, func(o *Options) { o.StarterPath = "/gone/condor_starter" })
	offered := func() bool { return len(l.offers()) == 1 }
	for i, pause := range []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second} {
		l.activate()
		l.until(func() bool { return len(l.logged(refuses)) == i+1 })
		if line := l.logged(refuses)[i]; !strings.Contains(line, "fault=starter") || !strings.Contains(line, "/gone/condor_starter") || !strings.Contains(line, "pause="+pause.String()) {
			t.Errorf("%d: %s", i, line)
		}
		if offered() {
			t.Errorf("%d: slot1 is offered", i)
		}
		if got := l.explained(); !strings.Contains(got, "because the machine has a fault") || !strings.Contains(got, "/gone/condor_starter") || !strings.Contains(got, "tried again in "+pause.String()) {
			t.Errorf("%d: %s", i, got)
		}
		l.release()
		l.pass(pause - time.Millisecond)
		if offered() || len(l.logged(takes)) != i {
			t.Errorf("%d: the pause is too short", i)
		}
		l.pass(time.Millisecond)
		if !offered() || len(l.logged(takes)) != i+1 {
			t.Errorf("%d: the pause has no end", i)
		}
	}
}

// release gives all claims back.
func (l *laboratory) release() {
	for v := range l.eng.Views() {
		if v.Claimed {
			l.step(l.clock.Now(), ep.ReleaseRequested{Claim: v.Claim})
			return
		}
	}
}

// Descriptors are counted before an activation is granted, and nothing is
// granted that would find none left.
func TestDescriptorsAreCounted(t *testing.T) {
	t.Parallel()
	d, counts := host.Descriptors{Open: 40, Most: 64}, 0
	l := newLaboratory(t, "NUM_SLOTS = 1\n", nil, func(o *Options) {
		o.StarterPath = "/gone/condor_starter"
		o.Host.Descriptors = func() (host.Descriptors, error) { counts++; return d, nil }
	})
	l.activate()
	lines := l.logged(refuses)
	if len(lines) != 1 || !strings.Contains(lines[0], "fault=descriptors") || !strings.Contains(lines[0], "40 of 64 file descriptors are in use") {
		t.Fatalf("%q", lines)
	}
	if len(l.starter.live) != 0 || len(l.logged("no starter")) != 0 {
		t.Error("a starter was tried")
	}
	l.release()
	d.Open = 10
	l.pass(5 * time.Second)
	l.activate()
	if counts != 2 || len(l.logged(refuses)) != 1 {
		t.Errorf("%d counts, %q", counts, l.logged(refuses))
	}
	// The one on its way is reckoned with: it has opened nothing yet.
	d.Open = 30
	if f := l.lacking(l.clock.Advance(countDescriptors)); f == nil || !strings.Contains(f.Reason, "starters on their way: 1") {
		t.Errorf("%+v", f)
	}
	l.until(func() bool { return len(l.starter.live) == 0 })
}

// With many descriptors they are not counted for each activation, but again
// after a moment.
func TestDescriptorsSeldom(t *testing.T) {
	t.Parallel()
	counts := 0
	l := newLaboratory(t, "", nil, func(o *Options) {
		o.Host.Descriptors = func() (host.Descriptors, error) { counts++; return host.Descriptors{Open: 100, Most: 1000}, nil }
	})
	grant := func(n int) {
		for range n {
			if f := l.lacking(l.clock.Now()); f != nil {
				t.Fatal(f.Reason)
			}
		}
	}
	grant(37) // (1000 - 100 - 16) / 12 is 73: one, and half of the others
	if counts != 1 {
		t.Errorf("%d counts", counts)
	}
	grant(2)
	if counts != 2 {
		t.Errorf("%d counts after half of what there was", counts)
	}
	grant(1)
	l.clock.Advance(time.Second)
	grant(1)
	if counts != 3 {
		t.Errorf("%d counts after a second", counts)
	}
}

// What the engine asks of a directory is answered by a test of it.
func TestExecuteIsTested(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "execute")
	l := newLaboratory(t, "NUM_SLOTS = 1\n", nil, func(o *Options) { o.Execute = dir })
	l.perform(l.clock.Now(), ep.TestExecute{Place: dir})
	if len(l.faults.tests) != 1 {
		t.Fatalf("%d tests", len(l.faults.tests))
	}
	l.until(func() bool { return len(l.faults.tests) == 0 })

	// A file system that hangs is asked once, however often it is waited for.
	held := &executeTest{done: make(chan error, 1)}
	l.faults.tests[dir] = held
	l.testExecute(dir)
	if l.faults.tests[dir] != held {
		t.Error("a second test of a directory that does not answer")
	}
	held.done <- errors.New("at last")
	l.until(func() bool { return len(l.faults.tests) == 0 })
}

// TestTestExecute makes what a starter makes, and leaves nothing.
func TestTestExecute(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	used := &acting{}
	user := &host.Identity{Name: "me", UID: uint32(os.Getuid()), GID: uint32(os.Getgid())}
	if err := testExecute(dir, user, used); err != nil || used.as != user {
		t.Errorf("%v, as %v", err, used.as)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
	used.err = errors.New("the user may not")
	if err := testExecute(dir, user, used); !errs.Is(err, errs.Exhausted) || !strings.Contains(err.Error(), "the user may not") {
		t.Errorf("%v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind after a failure: %v", left)
	}
	gone := filepath.Join(dir, "gone")
	if err := testExecute(gone, nil, nil); !errs.Is(err, errs.Denied) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(gone); err == nil {
		t.Error("a test made the directory, which may be where a file system is missing")
	}
}

// acting is an access that notes for whom it acts.
type acting struct {
	host.Access
	as  *host.Identity
	err error
}

func (a *acting) As(u *host.Identity, f func() error) error {
	a.as = u
	return errors.Join(a.err, f())
}

// TestFaultOf tells the machine's faults from those of shadows and jobs.
func TestFaultOf(t *testing.T) {
	t.Parallel()
	if f := faultOf(nil); f != nil {
		t.Errorf("%+v", f)
	}
	if f := faultOf(&protocol.Fault{Kind: protocol.FaultExecute, Reason: "r", Doubtful: true}); *f != (ep.MachineFault{Kind: ep.FaultExecute, Reason: "r", Doubtful: true}) {
		t.Errorf("%+v", f)
	}
	if f := faultOf(&protocol.Fault{Kind: protocol.FaultSpawn}); f.Kind != ep.FaultStarter {
		t.Errorf("%+v", f)
	}
	if f := faultOfLaunch(errs.E("run.RunAs", errs.NotFound, "alice", nil)); f != nil {
		t.Errorf("a submitter without an account: %+v", f)
	}
	if f := faultOfLaunch(launchFailure{errs.E("starter.Launch", errs.Invalid, "", errors.New("order is too long"))}); f == nil || !f.Doubtful {
		t.Errorf("a plan that is too long: %+v", f)
	}
	ended := host.ExitStatus{Exited: true, Code: 2}
	for _, c := range []struct {
		name  string
		a     activation
		fault bool
	}{
		{"no word", activation{}, true},
		{"it ran", activation{job: host.ProcID{PID: 7}}, false},
		{"it has said how it ended", activation{record: &protocol.ExitRecord{}}, false},
		{"told to leave", activation{leaving: true}, false},
		{"killed by us", activation{kill: true}, false},
	} {
		if f := c.a.silent(ended); (f != nil) != c.fault || f != nil && (!f.Doubtful || !strings.Contains(f.Reason, "exited with status 2")) {
			t.Errorf("%s: %+v", c.name, f)
		}
	}
}
