// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/starter/launch"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/platform/linux/proc"
)

// A job that stops its own starter does not keep its slot: a starter that leaves an
// order without an answer is killed, and the job with it.
func TestStarterStoppedByItsJob(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	begin, stopped := filepath.Join(s.submit, "begin"), filepath.Join(s.submit, "stopped")
	s.sh("until [ -e " + begin + " ]; do sleep 0.01; done; kill -STOP $PPID 2>/dev/null; echo $$ > " + stopped + "; exec sleep 600")
	startd, err := proc.New(proc.Options{Role: proc.Guest})
	if err != nil {
		t.Fatal(err)
	}
	spec := launchSpec(startd, 0)
	spec.AnswerWithin = 100 * time.Millisecond
	l := launch.NewLauncher(spec)
	t.Cleanup(l.Close)
	h := s.launch(l)
	late := time.AfterFunc(30*time.Second, func() { _ = h.Kill() }) // which the test would notice
	defer late.Stop()
	job := 0
	for r := range h.Reports() {
		if run, ok := r.What.(protocol.Running); ok {
			job = run.Proc.PID
			if os.Geteuid() == 0 { // the starter is root's, whom its job cannot stop
				if err := syscall.Kill(h.Proc().PID, syscall.SIGSTOP); err != nil {
					t.Error(err)
				}
			}
			s.file("begin", "", 0o600)
			await(t, stopped)
			if err := h.Send(protocol.SoftKill{}); err != nil {
				t.Error(err)
			}
		}
	}
	<-h.Exited()
	if st, err := h.Exit(); st.Signal != 9 || !errs.Is(err, errs.Broken) || alive(job) {
		t.Errorf("the starter %v (%v), its job alive %v", st, err, alive(job))
	}
	s.empty()
}
