// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/platform/linux/lockfile"
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

	// A slot without its directory is broken; nothing is made in its place.
	for dir, why := range map[string]string{"job.sh": "Execute directory " + p.dir + "/job.sh is invalid", "gone": "SLOT1_EXECUTE: (errno=2) No such file or directory"} {
		p.write(t, "bad.conf", "SLOT1_EXECUTE = "+p.dir+"/"+dir+"\n")
		if status, stdout, stderr := p.ep(t, "run", "-config", "bad.conf", "job.sub"); status == exitOK || !strings.Contains(stdout+stderr, why) {
			t.Errorf("%s as a directory: status %d\n%s%s", dir, status, stdout, stderr)
		}
	}
	if _, err := os.Stat(filepath.Join(p.dir, "gone")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the missing directory: %v", err)
	}
}

// A run does not use the EXECUTE of a startd, and says whose it is. Runs share
// one, and keep a startd from it meanwhile.
func TestExecuteOfStartd(t *testing.T) {
	t.Parallel()
	p, execute := newPlace(t), openDir(t, "execute")
	file := filepath.Join(execute, ".execpoint.lock")
	p.write(t, "ep.conf", "EXECUTE = "+execute+"\n")
	p.write(t, "job.sub", small+"executable = /bin/true\ntransfer_executable = false\nqueue\n")
	startd, err := lockfile.Lock(file, host.Alone, host.Holder{
		Program: "condor_startd", Name: "slots@here", Machine: "here", Proc: host.ProcID{PID: os.Getpid(), Start: 5}, Since: time.Now(),
	})
	if err != nil {
		t.Fatal(err)
	}
	status, stdout, stderr := p.ep(t, "run", "-config", "ep.conf", "job.sub")
	for _, want := range []string{"EXECUTE", execute, `condor_startd "slots@here"`, fmt.Sprintf("%d@5", os.Getpid())} {
		if !strings.Contains(stderr, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if status != exitUsage || stdout != "" {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
	if err := startd.Close(); err != nil {
		t.Fatal(err)
	}

	end1, out1 := p.blocked(t)
	end2, out2 := p.blocked(t)
	if _, err := lockfile.Lock(file, host.Alone, host.Holder{Program: "condor_startd"}); !errs.Is(err, errs.Conflict) || !strings.Contains(err.Error(), "condor_ep run") {
		t.Errorf("a startd beside two runs: %v", err)
	}
	end1()
	end2()
	if out := out1() + out2(); strings.Count(out, "1 job: 1 done") != 2 {
		t.Error(out)
	}
	if left, err := os.ReadDir(execute); err != nil || len(left) > 0 {
		t.Errorf("left in EXECUTE: %v, %v", left, err)
	}
	p.nothingLeft(t)
}

// blocked begins a run whose job lasts until end is called; wait
// then returns what it said.
func (p place) blocked(t *testing.T) (end func(), wait func() string) {
	t.Helper()
	dir := openDir(t, "signs")
	if err := os.Chmod(dir, 0o777); err != nil { // the job may be another user's
		t.Fatal(err)
	}
	begun, over := filepath.Join(dir, "begun"), filepath.Join(dir, "over")
	p.write(t, "wait.sh", "#!/bin/sh\ntouch $1\nwhile [ ! -e $2 ]; do sleep 0.05; done\n")
	p.write(t, "wait.sub", small+"executable = wait.sh\narguments = "+begun+" "+over+"\nqueue\n")
	c, stdout, stderr := p.cmd(t, "run", "-config", "ep.conf", "wait.sub")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Process.Kill() })
	waitFor(t, "the job runs", func() bool { _, err := os.Stat(begun); return err == nil })
	end = func() {
		if err := os.WriteFile(over, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return end, func() string {
		_ = c.Wait()
		return stdout.String() + stderr.String()
	}
}
