// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/sandbox"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/platform/linux/account"
	"github.com/execpoint/execpoint/platform/linux/proc"
)

// aStartd is a startd in a process of its own with one job running.
type aStartd struct {
	cmd     *exec.Cmd
	out     *json.Decoder
	starter int // pids
	job     int
}

// runStartd starts one and waits until the job runs.
func (s *stage) runStartd() *aStartd {
	s.Helper()
	exe, err := os.Executable()
	if err != nil {
		s.Fatal(err)
	}
	plan, err := json.Marshal(s.ready())
	if err != nil {
		s.Fatal(err)
	}
	d := &aStartd{cmd: exec.Command(exe)}
	d.cmd.Env = append(os.Environ(), roleEnv+"=startd")
	d.cmd.Stdin, d.cmd.Stderr = bytes.NewReader(plan), os.Stderr
	stdout, err := d.cmd.StdoutPipe()
	if err != nil {
		s.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		_ = d.cmd.Process.Kill()
		_ = d.cmd.Wait()
	})
	d.out = json.NewDecoder(stdout)
	for d.job == 0 {
		var w word
		if err := d.out.Decode(&w); err != nil {
			s.Fatalf("the startd said nothing more: %v", err)
		}
		switch w.Kind {
		case "starter":
			d.starter = w.N
		case "running":
			d.job = w.N
		case "ended":
			s.Fatal("the job does not run")
		}
	}
	return d
}

// last reads the rest of what the startd says.
func (d *aStartd) last(s *stage) word {
	s.Helper()
	var last word
	for {
		var r word
		err := d.out.Decode(&r)
		if err == io.EOF {
			return last
		}
		if err != nil {
			s.Fatal(err)
		}
		last = r
	}
}

// hiding makes the job one whose child hides as kind says; the child's pid
// will stand in the file that is returned.
func (s *stage) hiding(kind string) string {
	s.Helper()
	exe, file := jobProgram(s), filepath.Join(s.submit, "pid")
	s.sh(fmt.Sprintf(`%s=%s:%s %s; exec sleep 600`, roleEnv, kind, file, exe))
	return file
}

// gone waits at most patience for pid to end.
func gone(pid int, patience time.Duration) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return true
	}
	defer unix.Close(fd)
	for deadline := time.Now().Add(patience); ; {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(max(0, time.Until(deadline).Milliseconds())))
		if n > 0 {
			return true
		}
		if err != unix.EINTR {
			return false
		}
	}
}

// SIGKILL of the startd: its starter notices, kills the job with everything
// that hides, removes the sandbox and goes, all within two seconds.
func TestStartdKilled(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	file := s.hiding("detach")
	d := s.runStartd()
	hidden := await(t, file)
	if err := d.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for name, pid := range map[string]int{"starter": d.starter, "job": d.job, "hidden child": hidden} {
		if !gone(pid, 2*time.Second) {
			t.Errorf("the %s, process %d, is still there", name, pid)
		}
	}
	s.empty()
}

// SIGKILL of the starter: the job's main process goes with it, the startd
// kills what hid, and removes the sandbox.
//
// row: S0-171
func TestStarterKilled(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"detach", "marked"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			file := s.hiding(kind)
			d := s.runStartd()
			hidden := await(t, file)
			if err := unix.Kill(d.starter, unix.SIGKILL); err != nil {
				t.Fatal(err)
			}
			if r := d.last(s); r.Kind != "exited" || r.N < 1 {
				t.Errorf("the startd says %+v, want exited with at least one left over", r)
			}
			for name, pid := range map[string]int{"job": d.job, "hidden child": hidden} {
				if alive(pid) {
					t.Errorf("the %s, process %d, is still there", name, pid)
				}
			}
			s.empty()
		})
	}
}

// Handle.Kill takes the starter and all below it, with what hides.
//
// row: S0-171
func TestHandleKill(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	file := s.hiding("detach")
	h := s.launch(launcher(t, proc.Guest, 0))
	var job int
	for r := range h.Reports() {
		if run, ok := r.What.(protocol.Running); ok {
			job = run.Proc.PID
			await(t, file)
			if err := h.Kill(); err != nil {
				t.Error(err)
			}
		}
	}
	<-h.Exited()
	st, _ := h.Exit()
	if hidden := await(t, file); st.Signal != 9 || alive(job) || alive(hidden) {
		t.Errorf("starter %v, job alive %v, child alive %v", st, alive(job), alive(hidden))
	}
	s.empty()
}

// Startd and starter killed at once: what the record proves is killed by the
// next sweep, and the sandbox is removed. A live starter is left alone.
//
// row: S0-065
func TestSweepAfterAllWereKilled(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	file := s.hiding("marked")
	d := s.runStartd()
	hidden := await(t, file)

	census, err := proc.New(proc.Options{Role: proc.Guest})
	if err != nil {
		t.Fatal(err)
	}
	swept, err := sandbox.Sweeper{Census: census, Private: account.Directories{}.Private}.Sweep(s.execute)
	if err != nil || len(swept.Live) != 1 || len(swept.Removed) != 0 || !alive(d.job) {
		t.Errorf("sweep beside a live starter: %+v, %v", swept, err)
	}
	d.killAll(s)
	if !gone(d.job, 2*time.Second) || !gone(d.starter, 2*time.Second) {
		t.Error("the job's main process outlived its starter")
	}
	if !alive(hidden) {
		t.Fatal("the hidden child is gone before the sweep, the test shows nothing")
	}
	swept, err = sandbox.Sweeper{Census: census, Private: account.Directories{}.Private}.Sweep(s.execute)
	if err != nil || swept.Killed < 1 || len(swept.Removed) != 1 {
		t.Errorf("sweep: %+v, %v", swept, err)
	}
	if alive(hidden) {
		t.Errorf("the hidden child, process %d, is still there", hidden)
	}
	s.empty()
}

// killAll kills startd and starter, the starter without a chance to act.
func (d *aStartd) killAll(s *stage) {
	s.Helper()
	// the starter cannot see the end of its startd any more once it is stopped
	if err := unix.Kill(d.starter, unix.SIGSTOP); err != nil {
		s.Fatal(err)
	}
	if err := d.cmd.Process.Kill(); err != nil {
		s.Fatal(err)
	}
	_ = d.cmd.Wait()
	if err := unix.Kill(d.starter, unix.SIGKILL); err != nil {
		s.Fatal(err)
	}
}

// A child that has emptied its environment and left its session carries nothing that
// would show whose it is. The starter has written down that it is there, so the sweep
// after the end of startd and starter ends it too.
func TestSweepOfEmptiedEnvironment(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.configure("CGROUP_POLLING_INTERVAL = 1\n")
	file := s.hiding("detach")
	d := s.runStartd()
	hidden := await(t, file)
	record := filepath.Join(s.execute, fmt.Sprintf("dir_%d", d.starter), "htcondor", "starter.record")
	for deadline := time.Now().Add(30 * time.Second); ; pause() {
		text, err := os.ReadFile(record)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := sandbox.ParseRecord(text); err == nil && slices.ContainsFunc(r.Strays, func(p host.ProcID) bool { return p.PID == hidden }) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the record does not name the child:\n%s", text)
		}
	}
	d.killAll(s)
	if !gone(d.job, 2*time.Second) || !gone(d.starter, 2*time.Second) || !alive(hidden) {
		t.Fatal("the job's main process outlived its starter, or the hidden child did not: the test shows nothing")
	}
	census, err := proc.New(proc.Options{Role: proc.Guest})
	if err != nil {
		t.Fatal(err)
	}
	if swept, err := (sandbox.Sweeper{Census: census, Private: account.Directories{}.Private}).Sweep(s.execute); err != nil || swept.Killed < 1 || alive(hidden) {
		t.Errorf("sweep: %+v, %v; child alive %v", swept, err, alive(hidden))
	}
	s.empty()
}
