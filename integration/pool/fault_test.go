// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/execpoint/execpoint/integration/realpool"
)

// TestBrokenExecute breaks EXECUTE under an Execution Point of a pool. One job
// finds out; then the collector shows that the slot takes none, so that nothing is
// matched, and once the directory is mended it takes jobs again.
func TestBrokenExecute(t *testing.T) {
	t.Parallel()
	begin := func(t *testing.T) (*realpool.Pool, *realpool.EP) {
		p := realpool.New(t, "")
		p.Begin()
		e := p.NewEP(realpool.Ours, 2, "")
		e.Begin()
		return p, e
	}
	submit := func(p *realpool.Pool) (id, log string) {
		dir := filepath.Join(p.Dir, "job")
		p.Mkdir(dir)
		p.Write(filepath.Join(dir, "in"), strings.Repeat("input\n", 50_000), 0o644)
		p.Write(filepath.Join(dir, "submit"), "executable = /bin/cat\narguments = in\noutput = out\nlog = log\nshould_transfer_files = YES\n"+
			"transfer_input_files = in\nrequest_disk = 1024\nrequest_memory = 64\nqueue\n", 0o644)
		out := p.Submit(dir, "-terse", "submit")
		id, _, _ = strings.Cut(strings.TrimSpace(out), " ")
		return id, filepath.Join(dir, "log")
	}
	refuses := func(p *realpool.Pool, e *realpool.EP, want bool) {
		p.Eventually(fmt.Sprintf("the collector shows that jobs are refused: %t", want), realpool.Patience, func(ctx context.Context) error {
			out, err := p.Run(ctx, "condor_status", "-constraint", "PartitionableSlot && Rig == \"ours\"", "-af", "Requirements", "StartRefusedReason")
			requirements, why, _ := strings.Cut(strings.TrimSpace(out), " ")
			if err == nil && (why == "" || (requirements == "false") != want || (why != "undefined") != want) {
				err = fmt.Errorf("it shows %q; StartLog:\n%s", out, realpool.Last(e.Log("StartLog"), 20))
			}
			return err
		})
	}

	t.Run("gone", func(t *testing.T) {
		t.Parallel()
		p, e := begin(t)
		dir, aside := filepath.Join(e.Dir, "execute"), filepath.Join(e.Dir, "aside")
		p.Must(os.Rename(dir, aside))
		id, log := submit(p)
		refuses(p, e, true)
		out := p.Tool("condor_q", id, "-af", "JobStatus", "NumJobStarts", "NumShadowStarts")
		if words := strings.Fields(out); len(words) != 3 || words[0] == "5" || words[1] != "undefined" && words[1] != "0" || words[2] != "1" {
			t.Errorf("status, starts and shadows of the job are %q, want a job that met the fault once and never began", out)
		}
		p.Must(os.Rename(aside, dir))
		p.Eventually("the job is done", realpool.Patience, func(context.Context) error {
			text, err := os.ReadFile(log)
			if err == nil && !strings.Contains(string(text), "Job terminated.") {
				err = fmt.Errorf("its log is\n%s\nStartLog:\n%s", text, realpool.Last(e.Log("StartLog"), 20))
			}
			if n := strings.Count(string(text), "Job executing on host"); n > 1 {
				t.Errorf("the job began %d times", n)
			}
			return err
		})
		refuses(p, e, false)
		if n := strings.Count(e.Log("StartLog"), "the machine takes jobs again"); n != 1 {
			t.Errorf("StartLog says %d times that the machine takes jobs again", n)
		}
	})

	t.Run("full", func(t *testing.T) {
		t.Parallel()
		realpool.NeedRoot(t)
		p, e := begin(t)
		dir := filepath.Join(e.Dir, "execute")
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=2m,mode=0777"); err != nil {
			t.Skipf("root may mount nothing here: %v", err)
		}
		t.Cleanup(func() {
			e.Stop(syscall.SIGKILL, realpool.Patience)
			p.Must(syscall.Unmount(dir, syscall.MNT_DETACH))
		})
		filler := filepath.Join(dir, "filler")
		p.Must(os.WriteFile(filler, make([]byte, 2<<20-8<<10), 0o644))
		id, log := submit(p)
		p.Eventually("the job is held", realpool.Patience, func(ctx context.Context) error {
			out, err := p.Run(ctx, "condor_q", id, "-af", "JobStatus", "HoldReasonCode", "HoldReasonSubCode")
			if err == nil && strings.TrimSpace(out) != "5 13 28" {
				err = fmt.Errorf("its status, code and subcode are %q, want 5 13 28; StartLog:\n%s", out, realpool.Last(e.Log("StartLog"), 20))
			}
			return err
		})
		refuses(p, e, true)
		if text, err := os.ReadFile(log); err != nil || strings.Contains(string(text), "Job executing on host") {
			t.Errorf("the job's log is\n%s, %v: it never ran", text, err)
		}
		p.Must(os.Remove(filler))
		p.Tool("condor_release", id)
		p.Eventually("the job is done", realpool.Patience, func(context.Context) error {
			text, err := os.ReadFile(log)
			if err == nil && !strings.Contains(string(text), "Job terminated.") {
				err = fmt.Errorf("its log is\n%s\nStartLog:\n%s", text, realpool.Last(e.Log("StartLog"), 20))
			}
			return err
		})
		refuses(p, e, false)
	})
}

// TestQuitWhileOutputFlows has a fast shutdown come when the output of a job that
// has ended is on its way: it arrives, and the job is done.
func TestQuitWhileOutputFlows(t *testing.T) {
	t.Parallel()
	const size = 1 << 30
	p := realpool.New(t, "")
	p.Begin()
	e := p.NewEP(realpool.Ours, 2, "")
	e.Begin()
	dir := filepath.Join(p.Dir, "job")
	p.Mkdir(dir)
	p.Write(filepath.Join(dir, "job.sh"), fmt.Sprintf("#!/bin/sh\ntruncate -s %d large\n", size), 0o755)
	p.Write(filepath.Join(dir, "submit"), "executable = job.sh\nlog = log\nshould_transfer_files = YES\ntransfer_output_files = large\n"+
		"request_disk = 1024\nrequest_memory = 64\nqueue\n", 0o644)
	p.Submit(dir, "submit")
	events := func() string {
		text, err := os.ReadFile(filepath.Join(dir, "log"))
		p.Must(err)
		return string(text)
	}
	has := func(event string) func(context.Context) error {
		return func(context.Context) error {
			if text := events(); !strings.Contains(text, event) {
				return fmt.Errorf("its log is\n%s\nStartLog:\n%s", text, realpool.Last(e.Log("StartLog"), 20))
			}
			return nil
		}
	}
	p.Eventually("the output is on its way", realpool.Patience, has("Started transferring output files"))
	e.Signal(syscall.SIGQUIT)
	if strings.Contains(events(), "Job terminated.") {
		t.Fatal("the output was faster than the order, so this shows nothing")
	}
	p.Eventually("the job is done", realpool.Patience, has("Job terminated."))
	if !e.Wait(realpool.Patience) {
		t.Error("the daemon does not end")
	}
	text := events()
	for _, bad := range []string{"Job was evicted", "disconnected", "Shadow exception"} {
		if strings.Contains(text, bad) {
			t.Errorf("the job's log says %q:\n%s", bad, text)
		}
	}
	if info, err := os.Stat(filepath.Join(dir, "large")); err != nil || info.Size() != size {
		t.Errorf("the output is %v, %v", info, err)
	}
}
