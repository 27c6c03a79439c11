// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/host/hosttest"
)

// says is a program that prints and ends with a status.
func says(out, err string, code int) hosttest.Program {
	return func(p *hosttest.Process) host.ExitStatus {
		if _, bad := io.WriteString(p.Spec().Stdout, out); bad != nil {
			return host.ExitStatus{Signal: 13}
		}
		if _, bad := io.WriteString(p.Spec().Stderr, err); bad != nil {
			return host.ExitStatus{Signal: 13}
		}
		return host.ExitStatus{Exited: true, Code: code}
	}
}

func newRunner(programs map[string]hosttest.Program) (*Runner, *hosttest.Machine) {
	m := hosttest.New()
	for path, p := range programs {
		m.Install(path, p)
	}
	return &Runner{Spawner: m, Env: []string{"PATH=/bin", "A=old"}, Dir: "/log", Hangup: 1, Terminate: hosttest.SIGTERM}, m
}

// begin starts a program as job j and returns what it will have printed.
func begin(t *testing.T, ctx context.Context, r *Runner, path string) (*Run, chan Block) {
	t.Helper()
	blocks := make(chan Block, 100)
	run, err := r.Start(ctx, Job{Name: "j", Path: path, Args: []string{"j", "x"}, Env: []string{"A=new"}}, func(b Block) { blocks <- b })
	if err != nil {
		t.Fatal(err)
	}
	return run, blocks
}

func collected(blocks chan Block) []Block {
	close(blocks)
	return slices.Collect(func(yield func(Block) bool) {
		for b := range blocks {
			if !yield(b) {
				return
			}
		}
	})
}

// row: S0-241
func TestRunnerStart(t *testing.T) {
	t.Parallel()
	r, m := newRunner(map[string]hosttest.Program{"/ok": says("A=1\n- a\nB=2\n", "", 0)})
	run, blocks := begin(t, t.Context(), r, "/ok")
	report := run.Report()
	if report.Err != nil || report.Failed() {
		t.Errorf("%+v", report)
	}
	if d := cmp.Diff([]said{{Tag: "a", Ad: "A = 1\n"}, {Ad: "B = 2\n"}}, saidOf(collected(blocks))); d != "" {
		t.Error(d)
	}
	spec := m.Families()[0].Spec
	if d := cmp.Diff([]string{"PATH=/bin", "A=new", spec.Marker}, spec.Env); d != "" {
		t.Error(d)
	}
	if !slices.Equal(spec.Args, []string{"j", "x"}) || spec.Dir != "/log" || spec.Bond != host.Bound || spec.Stdin != nil {
		t.Errorf("started as %+v", spec)
	}
	_, err := r.Start(t.Context(), Job{Name: "j", Path: "/none"}, func(Block) {})
	if !errs.Is(err, errs.NotFound) || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "/none cannot be started") {
		t.Errorf("no program: %v", err)
	}
}

// row: S0-227
func TestRunnerLogsFailures(t *testing.T) {
	t.Parallel()
	r, _ := newRunner(map[string]hosttest.Program{"/bad": says("A=1\n-\nmore - of it\nthe rest\n", "oops\nagain\n", 4)})
	run, _ := begin(t, t.Context(), r, "/bad")
	report := run.Report()
	for _, failures := range []bool{true, false} {
		var log bytes.Buffer
		report.Log(t.Context(), slog.New(slog.NewTextHandler(&log, nil)), failures)
		for _, part := range []string{`status="exited with status 4"`, `stdout="more - of it\nthe rest\n"`, `stderr="oops\nagain\n"`} {
			if strings.Contains(log.String(), part) != failures {
				t.Errorf("log %v of %s:\n%s", failures, part, log.String())
			}
		}
		if !strings.Contains(log.String(), "bad line") {
			t.Errorf("bad lines are not told:\n%s", log.String())
		}
	}
}

func TestRunnerEndsWhatHangs(t *testing.T) {
	t.Parallel()
	r, m := newRunner(map[string]hosttest.Program{"/hangs": func(p *hosttest.Process) host.ExitStatus {
		says("A=1\n- a\nB=1\n", "", 0)(p)
		p.Fork(3)
		for p.Sleep(time.Hour) != hosttest.SIGKILL {
		}
		return host.ExitStatus{}
	}})
	over := errors.New("the time is over")
	ctx, cancel := context.WithCancelCause(t.Context())
	run, blocks := begin(t, ctx, r, "/hangs")
	if b := <-blocks; b.Tag != "a" {
		t.Errorf("first %+v", b)
	}
	cancel(over)
	report := run.Report()
	if !errs.Is(report.Err, errs.Expired) || !errors.Is(report.Err, over) {
		t.Errorf("report %v", report.Err)
	}
	if f := m.Families()[0]; !f.Alone() || !f.Closed() {
		t.Error("something of the family is left")
	}
	if _, err := r.Start(ctx, Job{Name: "j", Path: "/hangs"}, func(Block) {}); !errs.Is(err, errs.Expired) {
		t.Errorf("after the end: %v", err)
	}
}

func TestRunnerStopsAndHangsUp(t *testing.T) {
	t.Parallel()
	for _, grace := range []time.Duration{0, time.Millisecond} {
		heard := make(chan struct{})
		r, m := newRunner(map[string]hosttest.Program{"/stays": func(p *hosttest.Process) host.ExitStatus {
			<-heard // was told to hang up before it had said a word
			says("A=1\n- a\n", "", 0)(p)
			for p.Sleep(time.Hour) != hosttest.SIGKILL {
			}
			return host.ExitStatus{}
		}})
		r.Grace = grace
		run, blocks := begin(t, t.Context(), r, "/stays")
		if err := run.Hangup(); err != nil {
			t.Fatal(err)
		}
		close(heard)
		<-blocks
		if err := run.Hangup(); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := run.Stop(); err != nil {
				t.Fatal(err)
			}
		}
		if status := run.Report().Status; status.Signal != hosttest.SIGKILL {
			t.Errorf("ended as %v", status)
		}
		want := []int{1}
		if grace > 0 {
			want = append(want, hosttest.SIGTERM)
		}
		got := slices.DeleteFunc(m.Families()[0].Received(), func(sig int) bool { return sig == hosttest.SIGKILL })
		if !slices.Equal(got, want) {
			t.Errorf("signals %v, want %v", got, want)
		}
	}
}

func TestRunnerEndsWhatIsLeftBehind(t *testing.T) {
	t.Parallel()
	r, m := newRunner(map[string]hosttest.Program{"/forks": func(p *hosttest.Process) host.ExitStatus {
		p.Fork(2)
		return says("A=1\n", "", 0)(p)
	}})
	r.Census = m
	run, blocks := begin(t, t.Context(), r, "/forks")
	if report := run.Report(); report.Leftovers != 2 || report.Err != nil {
		t.Errorf("%+v", report)
	}
	if got := collected(blocks); len(got) != 1 {
		t.Errorf("%d blocks", len(got))
	}
	f := m.Families()[0]
	want := []host.Remains{{Boot: "boot", Parent: m.Self(), Main: f.Main(), Marker: f.Spec.Marker}}
	if d := cmp.Diff(want, m.Remains()); d != "" || !slices.Contains(f.Spec.Env, f.Spec.Marker) {
		t.Errorf("those who fled are not looked for by their mark: %s", d)
	}
	if !m.Families()[0].Alone() {
		t.Error("something of the family is left")
	}
}

func TestRunnerBoundsOutput(t *testing.T) {
	t.Parallel()
	huge := strings.Repeat("nothing of this is an ad\n", 100_000)
	r, _ := newRunner(map[string]hosttest.Program{
		"/huge":   says(huge+"A=1\n", huge, 0),
		"/binary": says("A=1\n-\n\x7fELF\x00"+huge, "", 0),
	})
	run, blocks := begin(t, t.Context(), r, "/huge")
	report := run.Report()
	if len(report.Output) != maxKept || len(report.Stderr) != maxKept || len(report.Bad) != maxBad || report.MoreBad != 100_000-maxBad {
		t.Errorf("kept %d and %d bytes, %d bad lines and %d more", len(report.Output), len(report.Stderr), len(report.Bad), report.MoreBad)
	}
	if got := saidOf(collected(blocks)); len(got) != 1 || got[0].Ad != "A = 1\n" {
		t.Errorf("blocks %v", got)
	}
	run, blocks = begin(t, t.Context(), r, "/binary")
	if report := run.Report(); !errs.Is(report.Err, errs.Invalid) || !strings.Contains(report.Err.Error(), "not text") {
		t.Errorf("binary: %v", report.Err)
	}
	if got := collected(blocks); len(got) != 1 {
		t.Errorf("%d blocks", len(got))
	}
}
