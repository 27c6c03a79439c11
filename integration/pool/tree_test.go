// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// process is one of /proc.
type process struct {
	parent int
	args   []string
	name   string // of its program
}

// processes are all that there are.
func processes(tb testing.TB) map[int]process {
	tb.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		tb.Fatal(err)
	}
	all := make(map[int]process)
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err1 := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		args, err2 := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		_, rest, ok := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(rest); err1 == nil && err2 == nil && ok && len(fields) > 1 {
			p := process{args: strings.Split(strings.TrimRight(string(args), "\x00"), "\x00")}
			p.parent, _ = strconv.Atoi(fields[1])
			p.name = filepath.Base(p.args[0])
			all[pid] = p
		}
	}
	return all
}

// checkTree says what is wrong with the processes of a pool that runs so many
// jobs, all with that one argument: condor_master has one condor_startd, each job is the child of
// a condor_starter of its own, and those are the startd's.
func checkTree(tb testing.TB, argument string, jobs int) error {
	tb.Helper()
	all := processes(tb)
	starters, startds := make(map[int]bool), make(map[int]bool)
	for pid, p := range all {
		if len(p.args) != 2 || p.args[1] != argument {
			continue
		}
		if name := all[p.parent].name; name != "condor_starter" {
			return fmt.Errorf("the parent of the job %d is %q", pid, name)
		}
		if starters[p.parent] {
			return fmt.Errorf("the starter %d has two jobs", p.parent)
		}
		starters[p.parent] = true
		startd := all[p.parent].parent
		if name := all[startd].name; name != "condor_startd" {
			return fmt.Errorf("the parent of the starter %d is %q", p.parent, name)
		}
		startds[startd] = true
	}
	if len(starters) < jobs || len(startds) != 1 {
		return fmt.Errorf("%d starters of %d startds run %d jobs", len(starters), len(startds), jobs)
	}
	for startd := range startds {
		master := all[startd].parent
		if name := all[master].name; name != "condor_master" {
			return fmt.Errorf("the parent of the startd is %q", name)
		}
		for pid, p := range all {
			if p.parent == master && p.name == "condor_startd" && pid != startd {
				return fmt.Errorf("condor_master has a second condor_startd, %d", pid)
			}
		}
	}
	return nil
}
