// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/host/hosttest"
)

// A program answers what it is given, and how it goes is in its report.
func TestAsk(t *testing.T) {
	t.Parallel()
	input := strings.Repeat("A = 1\n", 1<<17) // more than a pipe holds
	r, m := newRunner(map[string]hosttest.Program{
		"/echo": func(p *hosttest.Process) host.ExitStatus {
			n, err := io.Copy(p.Spec().Stdout, p.Spec().Stdin)
			if err != nil || n != int64(len(input)) {
				return host.ExitStatus{Exited: true, Code: 9}
			}
			_, _ = io.WriteString(p.Spec().Stderr, "said\n")
			return host.ExitStatus{Exited: true, Code: 3}
		},
		"/deaf":  func(p *hosttest.Process) host.ExitStatus { return host.ExitStatus{Exited: true} },
		"/hangs": func(p *hosttest.Process) host.ExitStatus { return host.ExitStatus{Signal: p.Sleep(100 * time.Hour)} },
		"/leaves": func(p *hosttest.Process) host.ExitStatus {
			p.Fork(2)
			return host.ExitStatus{Exited: true}
		},
		"/talks": func(p *hosttest.Process) host.ExitStatus {
			for p.Sleep(0) == 0 {
				if _, err := io.WriteString(p.Spec().Stdout, input); err != nil {
					break
				}
			}
			return host.ExitStatus{Signal: hosttest.SIGKILL}
		},
	})
	ask := func(ctx context.Context, path string) *Report {
		t.Helper()
		run, err := r.Ask(ctx, "PREPARE_JOB", host.SpawnSpec{Path: path, Args: []string{path, "x"}, Env: []string{"B=2"}, Dir: "/scratch"}, input)
		if err != nil {
			t.Fatal(err)
		}
		return run.Report()
	}
	got := ask(t.Context(), "/echo")
	if string(got.Output) != input || string(got.Stderr) != "said\n" || got.Status.Code != 3 || got.Err != nil {
		t.Errorf("%d bytes, %q, %v, %v", len(got.Output), got.Stderr, got.Status, got.Err)
	}
	spec := m.Families()[0].Spec
	if !slices.Contains(spec.Env, "B=2") || !slices.Contains(spec.Env, "A=old") || !slices.Contains(spec.Env, spec.Marker) || !strings.HasPrefix(spec.Marker, markName) || spec.Dir != "/scratch" {
		t.Errorf("%+v", spec)
	}
	if got := ask(t.Context(), "/deaf"); !got.Status.Success() || got.Err != nil {
		t.Errorf("%v, %v", got.Status, got.Err)
	}
	if got := ask(t.Context(), "/leaves"); got.Leftovers != 2 {
		t.Errorf("%+v", got)
	}
	if got := ask(t.Context(), "/talks"); got.Err == nil || len(got.Output) != maxAnswer || got.Status.Signal != hosttest.SIGKILL {
		t.Errorf("%d bytes, %v, %v", len(got.Output), got.Status, got.Err)
	}
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(10*time.Millisecond, func() { cancel(why) })
	if got := ask(ctx, "/hangs"); !errors.Is(got.Err, why) || got.Status.Signal != hosttest.SIGKILL {
		t.Errorf("%v, %v", got.Status, got.Err)
	}
	if _, err := r.Ask(t.Context(), "PREPARE_JOB", host.SpawnSpec{Path: "/none"}, input); !errs.Is(err, errs.NotFound) {
		t.Error(err)
	}
	for _, f := range m.Families() {
		if !f.Closed() {
			t.Errorf("%s is not closed", f.Spec.Path)
		}
	}
}
