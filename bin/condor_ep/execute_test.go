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
)

// TestSlotExecute lets each slot make its sandboxes in a directory of its own.
func TestSlotExecute(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for n := 1; n <= 2; n++ {
		if err := os.Mkdir(filepath.Join(p.dir, fmt.Sprint("scratch", n)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	p.write(t, "ep.conf", "NUM_CPUS = 2\nNUM_SLOTS = 2\nSLOT_TYPE_0_PARTITIONABLE = false\nMEMORY = 512\n"+
		"SLOT1_EXECUTE = "+p.dir+"/scratch1\nSLOT2_EXECUTE = "+p.dir+"/scratch2\n")
	p.write(t, "job.sh", "#!/bin/sh\necho $_CONDOR_SLOT $PWD\nsleep 0.3\n")
	p.write(t, "job.sub", small+"executable = job.sh\noutput = out.$(Process)\nqueue 4\n")
	if status, stdout, stderr := p.ep(t, "run", "-config", "ep.conf", "job.sub"); status != exitOK {
		t.Fatalf("status %d\n%s%s", status, stdout, stderr)
	}
	seen := map[string]bool{}
	for i := range 4 {
		name, dir, _ := strings.Cut(strings.TrimSpace(p.read(t, fmt.Sprint("out.", i))), " ")
		seen[name] = true
		if want := filepath.Join(p.dir, "scratch"+strings.TrimPrefix(name, "slot")) + "/"; !strings.HasPrefix(dir, want) {
			t.Errorf("a job of %s ran in %s, want it below %s", name, dir, want)
		}
	}
	if len(seen) != 2 {
		t.Errorf("jobs ran in %v", seen)
	}
	if left, _ := filepath.Glob(filepath.Join(p.dir, "scratch*", "*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	p.nothingLeft(t)

	p.write(t, "bad.conf", "SLOT1_EXECUTE = "+p.dir+"/job.sh\n")
	if status, _, stderr := p.ep(t, "run", "-config", "bad.conf", "job.sub"); status == exitOK || !strings.Contains(stderr, "EXECUTE") {
		t.Errorf("a file as a directory: status %d, %s", status, stderr)
	}
}
