// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/platform/linux/bound"
)

// running starts the daemon of s and waits until it serves.
func (s *site) running() *exec.Cmd {
	s.t.Helper()
	cmd := s.command("-f")
	s.must(bound.Start(cmd))
	s.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	s.serves(cmd)
	return cmd
}

// serves waits until the daemon has written its address.
func (s *site) serves(cmd *exec.Cmd) {
	s.t.Helper()
	eventually(s.t, "the daemon serves", func() error {
		b, err := os.ReadFile(s.path("log/.startd_address"))
		if err == nil && len(b) == 0 {
			err = errors.New("empty")
		}
		if err == nil && !strings.Contains(s.log(), fmt.Sprintf("** PID = %d ", cmd.Process.Pid)) {
			err = errors.New("the address of another one")
		}
		return err
	})
}

func (s *site) log() string {
	b, _ := os.ReadFile(s.path("log/StartLog"))
	return string(b)
}

// The second startd in one EXECUTE, with one log or of one name, refuses and
// says who is there; the first goes on.
func TestSecondStartdRefuses(t *testing.T) {
	t.Parallel()
	for knob, lines := range map[string]string{
		"EXECUTE":     "EXECUTE = %s/execute\n",
		"STARTD_LOG":  "STARTD_LOG = %s/log/StartLog\n",
		"STARTD_NAME": "LOCK = %s/lock\nSTARTD_NAME = here\n",
	} {
		t.Run(knob, func(t *testing.T) {
			t.Parallel()
			first := newSite(t, "")
			cmd := first.running()
			second := newSite(t, "STARTD_NAME = second\n"+fmt.Sprintf(lines, first.dir))
			began := time.Now()
			other := second.command("-t")
			late := time.AfterFunc(30*time.Second, func() { _ = other.Process.Kill() })
			defer late.Stop()
			out, err := other.CombinedOutput()
			var status *exec.ExitError
			if !errors.As(err, &status) || status.ExitCode() != 4 {
				t.Fatalf("%v after %v, want exit status 4\n%s", err, time.Since(began), out)
			}
			for _, want := range []string{knob, `condor_startd "here`, fmt.Sprintf("%d@", cmd.Process.Pid), "another " + knob} {
				if !bytes.Contains(out, []byte(want)) {
					t.Errorf("it does not say %q:\n%s", want, out)
				}
			}
			if err := cmd.Process.Signal(syscall.Signal(0)); err != nil {
				t.Errorf("the first: %v", err)
			}
		})
	}
}

// Two startds beside one another with directories of their own, or with
// different logs in one LOG, are none of each other's business.
func TestStartdsSideBySide(t *testing.T) {
	t.Parallel()
	first := newSite(t, "")
	first.running()
	second := newSite(t, "STARTD_NAME = second\nLOG = "+first.dir+"/log\nSTARTD_LOG = $(LOG)/StartLog.second\nLOCK = $(LOG)\n"+
		"STARTD_ADDRESS_FILE = "+first.dir+"/log/.second_address\n")
	cmd := second.command("-f")
	second.must(bound.Start(cmd))
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	eventually(t, "the second serves", func() error {
		_, err := os.Stat(first.path("log/.second_address"))
		return err
	})
}

// Slots may share a directory, and be given it by other names.
func TestOneDirectoryOfSeveralNames(t *testing.T) {
	t.Parallel()
	s := newSite(t, "SLOT_TYPE_1 = cpus=1 mem=100\nNUM_SLOTS_TYPE_1 = 4\nSLOT_TYPE_1_PARTITIONABLE = False\n"+
		"SLOT1_EXECUTE = $(EXECUTE)/\nSLOT2_EXECUTE = $(LOCAL_DIR)/link\nSLOT3_EXECUTE = $(LOCAL_DIR)/other\nSLOT4_EXECUTE = $(LOCAL_DIR)/./other\n")
	s.must(os.Symlink("execute", s.path("link")))
	s.must(os.Mkdir(s.path("other"), 0o755))
	s.running()
	for _, dir := range []string{"execute", "other"} {
		if _, err := os.Stat(s.path(dir + "/.execpoint.lock")); err != nil {
			t.Errorf("not locked: %v", err)
		}
	}
	if log := s.log(); strings.Contains(log, "waiting for who uses it now") || strings.Contains(log, "cannot be locked") {
		t.Errorf("it keeps itself out:\n%s", log)
	}
}

// A startd that was killed keeps nobody out, though a program that it started
// lives on; one that is just ending is waited for.
func TestStartdAfterAnother(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mark, program := filepath.Join(dir, "pid"), filepath.Join(dir, "lasts")
	s := newSite(t, "STARTD_CRON_JOBLIST = LASTS\nSTARTD_CRON_LASTS_EXECUTABLE = "+program+"\nSTARTD_CRON_LASTS_PERIOD = 1h\n")
	s.must(os.WriteFile(program, []byte("#!/bin/sh\nsetsid sleep 1000 &\necho $! > "+mark+".new\nmv "+mark+".new "+mark+"\nwait\n"), 0o755))
	cmd := s.running()
	child := 0
	eventually(t, "its program runs", func() error {
		b, err := os.ReadFile(mark)
		if err == nil {
			_, err = fmt.Sscan(string(b), &child)
		}
		return err
	})
	t.Cleanup(func() { _ = syscall.Kill(child, syscall.SIGKILL) })
	s.must(cmd.Process.Kill())
	_ = cmd.Wait()
	if err := syscall.Kill(child, 0); err != nil {
		t.Fatalf("its program ended as well, the test shows nothing: %v", err)
	}
	second := s.running()
	if strings.Contains(s.log(), "waiting for who uses it now") {
		t.Errorf("it waited for one that was killed:\n%s", s.log())
	}

	// The next one is started while this one ends.
	s.must(second.Process.Signal(syscall.SIGTERM))
	third := s.command("-f")
	s.must(bound.Start(third))
	t.Cleanup(func() {
		_ = third.Process.Kill()
		_ = third.Wait()
	})
	if err := second.Wait(); err != nil {
		t.Errorf("the second: %v", err)
	}
	s.serves(third)
	s.must(third.Process.Signal(syscall.SIGTERM))
	if err := third.Wait(); err != nil {
		t.Errorf("the third: %v\n%s", err, s.log())
	}
	if left, err := os.ReadDir(s.path("execute")); err != nil || len(left) > 0 {
		t.Errorf("left in EXECUTE: %v, %v", left, err)
	}
}

// Where EXECUTE cannot be locked the startd begins, and says that it does not
// notice others.
func TestExecuteWithoutLock(t *testing.T) {
	t.Parallel()
	s := newSite(t, "")
	s.must(os.Mkdir(s.path("execute/.execpoint.lock"), 0o755))
	s.running()
	if log := s.log(); !strings.Contains(log, "cannot be locked") || !strings.Contains(log, s.path("execute")) {
		t.Errorf("the log does not say so:\n%s", log)
	}
}
