// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/platform/linux/cgroup"
)

// TestVictimOfAFullMachine gives all jobs together less memory than one of them asks
// for. It has no limit of its own, so it goes back into the queue, the log says why,
// and it ends well once it needs less. An owner who wants all such jobs held has that.
//
// row: S0-073
func TestVictimOfAFullMachine(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		conf   string
		status int
		log    []string
	}{
		"goes":  {"", exitOK, []string{"004 (", "Worker node is out of memory", "Normal termination (return value 0)"}},
		"holds": {"STARTER_ALWAYS_HOLD_ON_OOM = True\n", exitSomeFailed, []string{"012 (", "the machine was out of memory", "Code 34 Subcode 102"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := "execpoint-test-victim-" + name
			limitMemory(t, base, 64<<20)
			p := newPlace(t)
			p.write(t, "ep.conf", "NUM_CPUS = 1\nMEMORY = 1000\nSTARTD_NAME = one\nCGROUP_MEMORY_LIMIT_POLICY = none\nBASE_CGROUP = "+base+"\n"+tt.conf)
			p.write(t, "job.sh", "#!/bin/sh\n[ -e "+p.dir+"/again ] || { : > "+p.dir+"/again; head -c 300000000 /dev/zero | tail -n 1 | wc -c; }\n")
			p.write(t, "job.sub", small+"executable = job.sh\nlog = job.log\nqueue\n")
			if status, stdout, stderr := p.ep(t, "run", "-config", "ep.conf", "job.sub"); status != tt.status {
				t.Errorf("status %d, want %d\n%s%s", status, tt.status, stdout, stderr)
			}
			log := p.read(t, "job.log")
			for _, want := range tt.log {
				if !strings.Contains(log, want) {
					t.Errorf("the log does not say %q:\n%s", want, log)
				}
			}
		})
	}
}

// limitMemory makes a base of control groups, in which all have so much memory
// together, or skips the test.
func limitMemory(t *testing.T, base string, bytes int) {
	t.Helper()
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Skipf("needs a Linux procfs: %v", err)
	}
	tree, err := cgroup.Open(cgroup.Options{Root: "/sys/fs/cgroup", Base: base, Self: own})
	if err != nil {
		t.Skipf("needs control groups that can be written: %v", err)
	}
	t.Cleanup(tree.RemoveBase)
	file := filepath.Join("/sys/fs/cgroup/memory", base, "memory.limit_in_bytes")
	if tree.Version() == 2 {
		file = filepath.Join("/sys/fs/cgroup", base, "memory.max")
	}
	if _, err := os.Stat(file); err != nil {
		t.Skipf("needs a memory controller: %v", err)
	}
	if err := os.WriteFile(file, fmt.Append(nil, bytes), 0o644); err != nil {
		t.Fatal(err)
	}
}
