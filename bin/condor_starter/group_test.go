// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/platform/linux/cgroup"
)

const testBase = "execpoint-test-starter"

// needsGroups skips where control groups cannot be made, and tells the version
// that is used.
func needsGroups(t *testing.T) int {
	t.Helper()
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Skipf("needs a Linux procfs: %v", err)
	}
	tree, err := cgroup.Open(cgroup.Options{Root: "/sys/fs/cgroup", Base: testBase, Self: own})
	if err != nil {
		t.Skipf("needs control groups that can be written: %v", err)
	}
	t.Cleanup(tree.RemoveBase)
	return tree.Version()
}

// The job runs in <BASE_CGROUP>/<EXECUTE>_<slot> of every hierarchy that is
// used, with 100 shares for each core, and the group is gone afterwards.
//
// row: S0-067, S0-068, S0-081
func TestControlGroup(t *testing.T) {
	version := needsGroups(t)
	s := newStage(t)
	s.configure("BASE_CGROUP = " + testBase + "\n")
	s.plan.Cpus = 3
	s.sh(`cat /proc/self/cgroup; for c in cpu cpu,cpuacct .; do cat /sys/fs/cgroup/$c$(sed -n "s/^[0-9]*:[a-z,]*\bcpu\b[a-z,]*://p;s/^0:://p" /proc/self/cgroup | head -1)/cpu.shares 2>/dev/null && break; done`)
	got := s.run()
	if !got.record.Status.Success() && version == 1 {
		t.Fatalf("%+v", got.record)
	}
	leaf := "/" + testBase + "/" + strings.ReplaceAll(s.execute, "/", "_") + "_slot1_1@node1.example.org"
	out := s.read("out")
	in := map[string]bool{}
	for line := range strings.Lines(out) {
		if parts := strings.SplitN(strings.TrimSpace(line), ":", 3); len(parts) == 3 && (parts[2] == leaf || version == 2 && filepath.Dir(parts[2]) == leaf) {
			for c := range strings.SplitSeq(parts[1], ",") {
				in[c] = true
			}
		}
	}
	want := []string{""}
	if version == 1 {
		want = []string{"memory", "cpu", "cpuacct", "freezer"}
	}
	for _, c := range want {
		if _, err := os.Stat(filepath.Join("/sys/fs/cgroup", c)); err == nil && !in[c] {
			t.Errorf("controller %q: the job is not in %s:\n%s", c, leaf, out)
		}
	}
	if version == 1 && !strings.HasSuffix(out, "\n300\n") {
		t.Errorf("cpu.shares of a slot of 3 cores:\n%s", out)
	}
	for _, c := range append(want, "unified") {
		if _, err := os.Stat(filepath.Join("/sys/fs/cgroup", c, leaf)); err == nil {
			t.Errorf("the group is still there in %q", c)
		}
	}
}

// row: S0-069
func TestNoControlGroup(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	s.configure("BASE_CGROUP = \n")
	got := s.sh("cat /proc/self/cgroup").run()
	if out := s.read("out"); !got.record.Status.Success() || strings.Contains(out, "slot1_1@") {
		t.Errorf("%+v\n%s", got.record, out)
	}
}

func TestReniced(t *testing.T) {
	t.Parallel()
	s := newStage(t).set("Prio", "40")
	s.configure("JOB_RENICE_INCREMENT = Prio / 2\n")
	s.sh("cut -d' ' -f19 /proc/$$/stat; cat /proc/$$/oom_score_adj").run()
	if out := s.read("out"); out != "19\n800\n" {
		t.Errorf("niceness and memory score are %q", out)
	}
}
