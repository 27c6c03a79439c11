// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
)

// The log says once by what the processes of jobs are kept together and what that
// misses, and again only when a configuration changes it.
//
// row: S0-071
func TestTrackingIsTold(t *testing.T) {
	t.Parallel()
	l := newSite(t, "BASE_CGROUP =\n").live()
	first, err := os.ReadFile(l.path("condor_config"))
	l.must(err)
	told := func() []string {
		var all []string
		for line := range strings.Lines(l.log()) {
			if strings.Contains(line, "how the processes of jobs are kept together") {
				all = append(all, line)
			}
		}
		return all
	}
	want := func(lines string, n int, parts ...string) {
		t.Helper()
		taken := strings.Count(l.log(), "configuration taken over")
		if lines != "" {
			l.must(os.WriteFile(l.path("condor_config"), append(first[:len(first):len(first)], lines...), 0o644))
			l.must(l.cmd.Process.Signal(syscall.SIGHUP))
			eventually(t, "the configuration is taken over", func() error {
				if strings.Count(l.log(), "configuration taken over") == taken {
					return errors.New(l.log())
				}
				return nil
			})
		}
		got := told()
		if len(got) != n {
			t.Fatalf("%q: told %d times, want %d:\n%s", lines, len(got), n, l.log())
		}
		for _, p := range parts {
			if !strings.Contains(got[n-1], p) {
				t.Errorf("%q: no %q in %s", lines, p, got[n-1])
			}
		}
	}
	want("", 1, "parentage, session and a mark in the environment", "if its starter is killed", "BASE_CGROUP is empty")
	want("STARTD_ATTRS = Hall\nHall = \"north\"\n", 1)
	if os.Geteuid() != 0 {
		l.end()
		return
	}
	want("DEDICATED_EXECUTE_ACCOUNT_REGEXP = slot[0-9]+\n", 2, "the account, where it is dedicated")
	want("DEDICATED_EXECUTE_ACCOUNT_REGEXP = slot[0-9]+\nHall = \"north\"\n", 2)
	l.end()
}
