// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/ci/source"
	"github.com/execpoint/execpoint/integration/realpool"
)

// example is where examples/customep is.
func example(t *testing.T) string {
	t.Helper()
	root, err := source.Root()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(root, "examples", "customep")
}

// TestCustomEP builds the program of somebody else, a module of its own, and has
// it run jobs without a pool: its own resource is bound by its properties, and its
// own policy keeps out who asks for none of it.
func TestCustomEP(t *testing.T) {
	t.Parallel()
	program, from := realpool.BuildExample(t, "linux"), example(t)
	dir := t.TempDir()
	for _, name := range []string{"flash.sub", "flash.sh"} {
		text, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "other.sub"), []byte("executable = flash.sh\noutput = other.out\nqueue\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, program, args...)
		cmd.WaitDelay = 10 * time.Second // for whoever holds its output after its end
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "BENCH="+filepath.Join(from, "boards"))
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := run("run", "flash.sub")
	if err != nil || !strings.Contains(out, "job 1.0 started on slot1_1@") || !strings.Contains(out, "job 1.0 completed on slot1_1@") {
		t.Errorf("%v:\n%s", err, out)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "flash.out")); err != nil || string(got) != "flashing blue\n" {
		t.Errorf("the job printed %q, %v", got, err)
	}
	var ended *exec.ExitError
	if out, err := run("run", "other.sub"); !errors.As(err, &ended) || ended.ExitCode() != 1 || !strings.Contains(out, "job 1.0 impossible") {
		t.Errorf("a job that wants no board: %v:\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "other.out")); err == nil {
		t.Error("a job that wants no board ran")
	}
	if out, err := run("run", "missing.sub"); err == nil || !strings.Contains(out, "customep: open missing.sub: no such file") {
		t.Errorf("%v:\n%s", err, out)
	}
}

// TestCustomEPElsewhere builds it for a system on which it can only say that it
// runs no jobs there.
func TestCustomEPElsewhere(t *testing.T) {
	t.Parallel()
	realpool.BuildExample(t, "windows")
}

// TestCustomEPInPool puts it into a pool of the original, in the place of
// condor_startd: the pool sees its resource and its policy, and its jobs run.
func TestCustomEPInPool(t *testing.T) {
	t.Parallel()
	realpool.Patient(t)
	p := realpool.New(t, "")
	p.Begin()
	e := p.NewEP(realpool.Ours, 4, "")
	program, startd := filepath.Join(e.Dir, "customep"), filepath.Join(e.Dir, "condor_startd")
	text, err := os.ReadFile(realpool.BuildExample(t, "linux"))
	p.Must(err)
	p.Must(os.WriteFile(program, text, 0o755))
	bench := filepath.Join(e.Dir, "bench")
	p.Mkdir(bench)
	p.Write(filepath.Join(bench, "red"), "v1\n", 0o644)
	p.Write(filepath.Join(bench, "blue"), "v2\n", 0o644)
	p.Must(os.Remove(startd)) // ours, which NewEP put there
	p.Write(startd, fmt.Sprintf("#!/bin/sh\nBENCH=%s exec %s pool \"$CONDOR_CONFIG\"\n", bench, program), 0o755)
	e.Begin()
	shown := func(args ...string) string {
		t.Helper()
		return strings.Join(strings.Fields(p.Tool("condor_status", append([]string{"-direct", e.Host(), "-constraint", "PartitionableSlot"}, args...)...)), " ")
	}
	if ad := shown("-af", "Bench", "Boards", "TotalBoards", "DetectedBoards"); ad != "customep 2 2 blue, red" {
		t.Errorf("the slot's ad shows %q", ad)
	}
	// What was configured is kept, and the program's condition added.
	if start := shown("-af:r", "START"); !strings.EqualFold(start, "(true) && TARGET.RequestBoards >= 1") {
		t.Errorf("START is %q", start)
	}
	dir := filepath.Join(p.Dir, "jobs")
	p.Mkdir(dir)
	p.Write(filepath.Join(dir, "job"), "#!/bin/sh\necho flashing $_CONDOR_AssignedBoards\n", 0o755)
	common := "executable = job\nlog = log\nshould_transfer_files = YES\nrequest_disk = 1024\nrequest_memory = 64\nleave_in_queue = JobStatus == 4\n"
	p.Write(filepath.Join(dir, "none.sub"), common+"output = none.out\nqueue\n", 0o644)
	p.Write(filepath.Join(dir, "board.sub"), common+"output = $(Process).out\nrequest_boards = 1\nqueue 2\n", 0o644)
	none, _, _ := strings.Cut(strings.TrimSpace(p.Submit(dir, "-terse", "none.sub")), ".")
	board, _, _ := strings.Cut(strings.TrimSpace(p.Submit(dir, "-terse", "board.sub")), ".")
	p.Eventually("the jobs with boards are done", 2*realpool.Patience, func(ctx context.Context) error {
		out, err := p.Run(ctx, "condor_q", board, "-af", "JobStatus")
		if err == nil && strings.Join(strings.Fields(out), "") != "44" {
			err = fmt.Errorf("they are %q; StartLog:\n%s", out, realpool.Last(e.Log("StartLog"), 20))
		}
		return err
	})
	for _, name := range []string{"0.out", "1.out"} {
		got, err := os.ReadFile(filepath.Join(dir, name))
		p.Must(err)
		if s := string(got); s != "flashing blue\n" && s != "flashing red\n" {
			t.Errorf("%s is %q", name, s)
		}
	}
	// It was submitted first, so it had its chance.
	if status := strings.TrimSpace(p.Tool("condor_q", none, "-af", "JobStatus", "NumJobMatches")); status != "1 undefined" {
		t.Errorf("the job without a board is %q, want idle and never matched", status)
	}
}
