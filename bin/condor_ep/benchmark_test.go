// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestRunBenchmarks shows the whole way: the programs run while the slot is
// unclaimed, START sees their figures, and so does the job.
// row: S0-134, S0-135, S0-244, S1-012
func TestRunBenchmarks(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	libexec := t.TempDir()
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", libexec, "../condor_mips", "../condor_kflops").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	p.write(t, "ep.conf", "LIBEXEC = "+libexec+`
UPDATE_INTERVAL = 1
POLLING_INTERVAL = 1
RunBenchmarks = LastBenchmark == 0
START = Mips > 10 && KFlops > 10 && LastBenchmark > 0
`)
	p.write(t, "job.sh", "#!/bin/sh\ngrep -E '^(Mips|KFlops|LastBenchmark|Activity) ' $_CONDOR_MACHINE_AD | sort\n")
	p.write(t, "job.sub", small+"executable = job.sh\noutput = out\nqueue\n")
	status, stdout, stderr := p.ep(t, "run", "-keep", "-config", "ep.conf", "job.sub")
	if status != exitOK {
		t.Fatalf("status %d\n%s%s", status, stdout, stderr)
	}
	want := regexp.MustCompile(`^Activity = "\w+"\nKFlops = [1-9]\d+\nLastBenchmark = [1-9]\d{9}\nMips = [1-9]\d+\n$`)
	if got := p.read(t, "out"); !want.MatchString(got) {
		t.Errorf("the job saw\n%s", got)
	}
	logs, err := filepath.Glob(filepath.Join(p.tmp, "execpoint-run-*", "log", "StartLog"))
	if err != nil || len(logs) != 1 {
		t.Fatal(logs, err)
	}
	rel, err := filepath.Rel(p.dir, logs[0])
	if err != nil {
		t.Fatal(err)
	}
	log := p.read(t, rel)
	for _, move := range []string{"slot1: Changing activity: Idle -> Benchmarking transition=3", "slot1: Changing activity: Benchmarking -> Idle transition=4"} {
		if strings.Count(log, move) != 1 {
			t.Errorf("%q is not there once:\n%s", move, log)
		}
	}
}

// TestRunEndsBenchmarks shows that a benchmark which hangs holds nobody up and
// does not outlive the run.
func TestRunEndsBenchmarks(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	hang := p.write(t, "hang.sh", stubborn)
	p.write(t, "ep.conf", "UPDATE_INTERVAL = 1\nPOLLING_INTERVAL = 1\nBENCHMARKS_JOBLIST = hang\nBENCHMARKS_HANG_EXECUTABLE = "+hang+
		"\nBENCHMARKS_HANG_CWD = "+p.dir+"\n")
	p.write(t, "job.sh", "#!/bin/sh\nwhile [ ! -e "+p.dir+"/daemon.pid ]; do sleep 0.1; done\n")
	p.write(t, "job.sub", small+"executable = job.sh\nqueue\n")
	status, stdout, stderr := p.ep(t, "run", "-config", "ep.conf", "job.sub")
	if status != exitOK {
		t.Fatalf("status %d\n%s%s", status, stdout, stderr)
	}
	p.nothingLeft(t)
}
