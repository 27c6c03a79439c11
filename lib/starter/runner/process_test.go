// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/host/hosttest"
	"github.com/execpoint/execpoint/lib/reason"
)

// limits are some of each kind.
func limits() host.Limits {
	core, stack, score := int64(7), host.Unlimited, 800
	return host.Limits{Core: &core, Stack: &stack, OOMScore: &score, Group: host.GroupLimits{CPUWeight: 200}}
}

// readAny reads everybody's files for everybody.
func readAny(_ *host.Identity, path string) (*os.File, error) { return os.Open(path) }

// prepared is a job of alice that a plain process on m is prepared for.
func prepared(t *testing.T, m host.Spawner) Prepared {
	t.Helper()
	r, err := Choose(All(Machine{Spawner: m, Errno: hosttest.Errno, Enter: func(u *host.Identity, dir string) error {
		if u.Name == "alice" && dir == "/barred" {
			return os.ErrPermission
		}
		return nil
	}, Read: readAny}), Request{Job: classad.NewAd(), Wanted: func(string) bool { return false }})
	if err != nil {
		t.Fatal(err)
	}
	ready, err := r.Prepare(t.Context(), Task{
		Job: classad.NewAd(), Scratch: "/scratch", User: &host.Identity{Name: "alice", UID: 1000}, Group: "slot1", Marker: "MARK=1",
		Limits: limits(), Space: &host.Space{Root: "/root"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ready.Close(); err != nil {
			t.Error(err)
		}
	})
	return ready
}

// A process is started with all that the job was prepared with, again for each run,
// and a job that is only prepared has started nothing.
func TestProcessStarts(t *testing.T) {
	t.Parallel()
	m := hosttest.New()
	m.Install("/bin/job", func(*hosttest.Process) host.ExitStatus { return host.ExitStatus{Exited: true, Code: 3} })
	ready := prepared(t, m)
	if n := len(m.Families()); n != 0 {
		t.Fatalf("%d families before the start", n)
	}
	stdout, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer stdout.Close()
	args := make([]string, 2, 10)
	args[0], args[1] = "a", "b c"
	for i := range 2 {
		run, err := ready.Start(Program{
			Path: "/bin/job", Args: args, Env: []string{"MARK=1"}, Dir: "/scratch", Home: "/scratch", Nice: 10 + i, Files: [3]*os.File{nil, stdout, nil},
		})
		if err != nil {
			t.Fatal(err)
		}
		<-run.Done()
		if left, err := run.Close(); left != 0 || err != nil || run.Status() != (host.ExitStatus{Exited: true, Code: 3}) || !run.Grouped() {
			t.Errorf("run %d: %v, %d left, %v", i, run.Status(), left, err)
		}
		want := host.SpawnSpec{
			Path: "/bin/job", Args: []string{"/bin/job", "a", "b c"}, Env: []string{"MARK=1"}, Dir: "/scratch", Stdout: stdout,
			User: &host.Identity{Name: "alice", UID: 1000}, Bond: host.Bound, Nice: 10 + i, Limits: limits(), Space: &host.Space{Root: "/root"},
			Group: "slot1", Marker: "MARK=1",
		}
		got := m.Families()[i].Spec
		if got.Stdout != stdout {
			t.Error("another standard output")
		}
		got.Stdout, want.Stdout = nil, nil
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("run %d:\n%s", i, d)
		}
	}
}

// The handle suspends, resumes, asks to stop, kills and measures, and the end has the
// status and the final usage.
func TestProcessHandle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := hosttest.New()
		m.Install("/bin/job", func(p *hosttest.Process) host.ExitStatus {
			p.Fork(2)
			p.Use(host.Usage{UserCPU: time.Second})
			sig := p.Sleep(time.Hour)
			p.Use(host.Usage{UserCPU: time.Minute})
			return host.ExitStatus{Signal: sig}
		})
		ready := prepared(t, m)
		start := func() *Run {
			run, err := ready.Start(Program{Path: "/bin/job"})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			return run
		}
		run := start()
		family := m.Families()[0]
		if n, err := run.Suspend(); n != 3 || err != nil || !family.Suspended() {
			t.Errorf("%d suspended, %v", n, err)
		}
		if err := run.Continue(); err != nil || family.Suspended() {
			t.Error(err)
		}
		if u, err := run.Usage(); u.UserCPU != time.Second || u.Procs != 3 || err != nil {
			t.Errorf("%+v, %v", u, err)
		}
		visitor, err := run.Beside(host.SpawnSpec{Path: "/bin/job", User: &host.Identity{Name: "root"}, Bond: host.Independent})
		if err != nil {
			t.Fatal(err)
		}
		if s := m.Families()[1].Spec; s.Beside != host.Family(family) || s.User.Name != "alice" || s.Bond != host.Bound {
			t.Errorf("a visitor runs as %+v", s)
		}
		if err := run.Signal(hosttest.SIGTERM); err != nil {
			t.Error(err)
		}
		<-run.Done()
		if visitor.Status().Ended() {
			t.Error("the visitor has ended with the job")
		}
		_, _ = visitor.Close()
		left, err := run.Close()
		usage, uerr := run.Usage()
		if left != 2 || err != nil || uerr != nil || usage.UserCPU != time.Minute || run.Status() != (host.ExitStatus{Signal: hosttest.SIGTERM}) {
			t.Errorf("%v, %d left, %+v, %v, %v", run.Status(), left, usage, err, uerr)
		}

		run = start()
		if n, err := run.Kill(); n != 3 || err != nil {
			t.Errorf("%d killed, %v", n, err)
		}
		<-run.Done()
		if !run.Alone() || run.Status().Signal != hosttest.SIGKILL {
			t.Errorf("%v", run.Status())
		}
		_, _ = run.Close()
	})
}

// failing starts nothing, for one reason.
type failing struct{ err error }

func (f failing) Spawn(host.SpawnSpec) (host.Family, error) { return nil, f.err }

// A program that cannot be executed is the job's fault, in HTCondor's words; a limit
// that cannot be applied is the machine's.
func TestProcessFails(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/no/such/shell\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		program Program
		err     error
		subcode int
		text    string
	}{
		{"no program", Program{Path: "/no/job"}, os.ErrNotExist, 2, "Failed to execute '/no/job': (errno=2: 'No such file or directory')"},
		{"arguments", Program{Path: "/no/job", Args: []string{"a", "b c"}}, os.ErrPermission, 13,
			"Failed to execute '/no/job' with arguments a b' 'c: (errno=13: 'Permission denied')"},
		{"no interpreter", Program{Path: script}, os.ErrNotExist, 2, "Failed to execute '" + script +
			"': invalid interpreter (/no/such/shell) specified on first line of script (errno=2: 'No such file or directory')"},
		{"a directory that is barred", Program{Path: script, Dir: "/barred", Home: "/scratch"}, os.ErrPermission, 13, "Failed to execute '" + script +
			"': Cannot access initial working directory \"/barred\" (errno=13: 'Permission denied')"},
		{"a directory that is not", Program{Path: script, Dir: "/open", Home: "/scratch"}, os.ErrPermission, 13, "Failed to execute '" + script +
			"': (errno=13: 'Permission denied')"},
		{"no number", Program{Path: "/no/job"}, errors.New("odd"), 0, "Failed to execute '/no/job': (errno=0: 'odd')"},
	} {
		run, err := prepared(t, failing{c.err}).Start(c.program)
		var r *Refusal
		if !errors.As(err, &r) || run != nil || r.Code != reason.FailedToCreateProcess || r.Subcode != c.subcode || r.Text != c.text || !errors.Is(err, c.err) {
			t.Errorf("%s: %v, %v", c.name, run, err)
		}
	}
	limit := fmt.Errorf("%w: no such device", host.ErrLimit)
	run, err := prepared(t, failing{limit}).Start(Program{Path: "/bin/job"})
	if run != nil || err != limit {
		t.Errorf("%v, %v", run, err)
	}
}

// A preparation that is given up prepares nothing.
func TestProcessGivenUp(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	if ready, err := (&Process{}).Prepare(ctx, Task{}); ready != nil || !errors.Is(err, enough) {
		t.Errorf("%v, %v", ready, err)
	}
}

func TestInterpreter(t *testing.T) {
	t.Parallel()
	script := process{machine: Machine{Read: readAny}}
	dir := t.TempDir()
	for text, want := range map[string]string{
		"#!/bin/sh\necho": "/bin/sh", "#! /usr/bin/env python3 -u\n": "/usr/bin/env", "#!/no/newline": "/no/newline", "#!\n": "", "#!   \n": "",
		"": "", "\x7fELF": "", "# !/bin/sh\n": "", "#!/" + strings.Repeat("x", 1000): "/" + strings.Repeat("x", 509),
	} {
		path := filepath.Join(dir, "f")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := script.interpreter(path); got != want {
			t.Errorf("%.30q: %.40q, want %.40q", text, got, want)
		}
	}
	if got := script.interpreter(dir); got != "" {
		t.Errorf("a directory: %q", got)
	}
}
