// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// fails starts the daemon as condor_master does, and returns its exit status
// and what it said to standard error.
func (s *site) fails() (status int, stderr string) {
	s.t.Helper()
	cmd := s.command("-f")
	late := time.AfterFunc(30*time.Second, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	out, err := cmd.CombinedOutput()
	var ended *exec.ExitError
	if !errors.As(err, &ended) {
		s.t.Fatalf("%v, want an exit status\n%s", err, out)
	}
	return ended.ExitCode(), string(out)
}

// What is wrong at the start stands in the daemon's log, the end of which
// condor_master mails: whatever it is, and also if the configuration cannot be
// read to its end.
func TestFatalErrorsInTheLog(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, lines string
		want        []string // in one line each
	}{
		{"a value", "POLLING_INTERVAL = never\nNUM_CPUS = some\n", []string{"POLLING_INTERVAL", "NUM_CPUS"}},
		{"a line", "if maybe\nendif\n", []string{"condor_config:"}},
		{"of the log", "MAX_STARTD_LOG = much\n", []string{"MAX_STARTD_LOG"}},
		{"EXECUTE", "EXECUTE = /dev/null/x\n", []string{"EXECUTE"}},
		{"security", "SEC_DEFAULT_ENCRYPTION = XYZ\n", []string{"SEC_DEFAULT_ENCRYPTION"}},
		{"network", "NETWORK_INTERFACE = 192.0.2.7\n", []string{"NETWORK_INTERFACE"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t, tt.lines)
			status, stderr := s.fails()
			log := s.log()
			if status != 4 {
				t.Errorf("exit status %d, want 4", status)
			}
			for _, want := range tt.want {
				said := 0
				for line := range strings.Lines(log) {
					if strings.Contains(line, ` ERROR "`) && strings.Contains(line, want) {
						said++
					}
				}
				if said != 1 || !strings.Contains(stderr, want) {
					t.Errorf("%q stands in %d lines, want 1", want, said)
				}
			}
			if !strings.HasSuffix(log, " EXITING WITH STATUS 4\n") || !strings.Contains(log, "**** condor_startd (condor_STARTD) pid ") {
				t.Error("the log does not end with the exit status")
			}
			if t.Failed() {
				t.Logf("log:\n%sstderr:\n%s", log, stderr)
			}
		})
	}
}

// A startd that another one keeps from beginning says so in its own log.
func TestRefusalInTheLog(t *testing.T) {
	t.Parallel()
	first := newSite(t, "")
	cmd := first.running()
	second := newSite(t, "STARTD_NAME = second\nEXECUTE = "+first.path("execute")+"\n")
	status, _ := second.fails()
	if log := second.log(); status != 4 || !strings.Contains(log, ` ERROR "`) || !strings.Contains(log, fmt.Sprintf("%d@", cmd.Process.Pid)) {
		t.Errorf("status %d, log:\n%s", status, log)
	}
}

// Without a log that can be written the exit status is HTCondor's for that, and
// LOG says why. Nothing is made where a wrong configuration points.
func TestLogThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	s.must(os.Mkdir(s.path("log/StartLog"), 0o755))
	status, stderr := s.fails()
	if status != 44 || !strings.Contains(stderr, "STARTD_LOG") {
		t.Errorf("exit status %d, want 44: %s", status, stderr)
	}
	b, err := os.ReadFile(s.path("log/dprintf_failure.STARTD"))
	if err != nil || !strings.Contains(string(b), s.path("log/StartLog")) {
		t.Errorf("%q, %v", b, err)
	}

	s = newSite(t, "LOG = "+s.path("none/such")+"\nPOLLING_INTERVAL = never\n")
	if status, stderr := s.fails(); status != 4 || !strings.Contains(stderr, "POLLING_INTERVAL") {
		t.Errorf("exit status %d: %s", status, stderr)
	}
	if _, err := os.Stat(s.path("none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a directory was made: %v", err)
	}
}
