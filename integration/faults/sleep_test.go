// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package faults

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/shadow/shadowtest"
)

// TestEverythingStops stops the daemon, its starters and their jobs for longer
// than a lease, as a machine that sleeps or a virtual machine that is paused.
// docs/policy.md promises that what ran out meanwhile is found when it wakes, and
// a job whose shadow is there goes on.
func TestEverythingStops(t *testing.T) {
	t.Parallel()
	const lease, stopped = 12 * time.Second, 14 * time.Second
	w := newWorld(t, "")
	id := w.begin()
	p := w.peer(nil, w.at, id)
	// The first claim had a job, and nobody gives signs of life for it any more. The
	// second one has a job.
	const duration = "JobLeaseDuration = 12\n"
	idle, rest := p.request(id, w.job(1, "true", duration))
	running, _ := p.request(rest, w.job(2, "true", duration))
	w.done("the job of the idle claim", p.run(p.shadow(idle, w.job(1, "true", duration), shadowtest.Files{})), 20*time.Second)
	asked := time.Now()
	release := filepath.Join(w.dir, "submit", "release")
	s := p.shadow(running, w.job(2, "until test -e "+release+"; do sleep 0.1; done; echo done > made", duration), shadowtest.Files{})
	ended := p.run(s)
	w.says("slot1_2: Changing activity: Idle -> Busy", 20*time.Second)

	w.signal(syscall.SIGSTOP)
	timer := time.NewTimer(stopped)
	<-timer.C
	if took := time.Since(asked); took < lease {
		t.Fatalf("only %v have passed", took)
	}
	w.signal(syscall.SIGCONT)
	// A lease that did not count the time it was stopped would have 12 s left.
	took := w.says("slot1_1: Changing state and activity: Claimed/Idle -> Preempting/Killing", 8*time.Second)
	t.Logf("the claim without a job ended %v after everything went on", took.Round(time.Millisecond))
	w.must(os.WriteFile(release, nil, 0o644))
	w.done("the job that was stopped", ended, 20*time.Second)
	if _, err := os.Stat(filepath.Join(w.dir, "submit", "made")); err != nil {
		t.Errorf("its output: %v", err)
	}
	w.must(p.startd.Release(t.Context(), running))
	w.says("slot1_2: Changing state and activity: Claimed/Idle -> Preempting/Killing", 20*time.Second)
}
