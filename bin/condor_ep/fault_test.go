// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/execpoint/execpoint/lib/eventlog"
)

// breakage is a way in which an EXECUTE directory breaks and is mended.
type breakage struct {
	name      string
	says      string // in the reason
	root      int    // 1: needs root, -1: means nothing to root
	mount     bool   // EXECUTE is on a small file system of its own
	held      bool   // the job that meets it is held, others are requeued
	do, undo  func(execute string) error
	jobExtras string
}

var breakages = []breakage{
	{
		name: "gone", says: "no such file or directory",
		do:   func(dir string) error { return os.Rename(dir, dir+".away") },
		undo: func(dir string) error { return os.Rename(dir+".away", dir) },
	},
	{
		name: "a file", says: "not a directory",
		do: func(dir string) error {
			return errors.Join(os.Rename(dir, dir+".away"), os.WriteFile(dir, nil, 0o644))
		},
		undo: func(dir string) error { return errors.Join(os.Remove(dir), os.Rename(dir+".away", dir)) },
	},
	{
		name: "without rights", says: "permission denied", root: -1,
		do:   func(dir string) error { return os.Chmod(dir, 0) },
		undo: func(dir string) error { return os.Chmod(dir, 0o755) },
	},
	{
		name: "read-only", says: "read-only file system", root: 1,
		do:   func(dir string) error { return syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_RDONLY, "size=64k") },
		undo: func(dir string) error { return syscall.Unmount(dir, 0) },
	},
	{
		name: "full", says: "no space left on device", root: 1, mount: true, held: true,
		do:   fill,
		undo: func(dir string) error { return os.Remove(filepath.Join(dir, "filler")) },
		// More than what the job before leaves when its sandbox goes.
		jobExtras: "+Ballast = \"" + strings.Repeat("x", 100<<10) + "\"\n",
	},
}

// fill leaves no room.
func fill(dir string) error {
	f, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		return err
	}
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	if errors.Is(err, syscall.ENOSPC) {
		err = nil
	}
	return errors.Join(err, f.Close())
}

// TestExecuteBreaks breaks EXECUTE while a job runs. The next job meets it, no
// other one does: the slot says why it takes none, and goes on by itself when
// the directory is mended.
func TestExecuteBreaks(t *testing.T) {
	t.Parallel()
	for _, b := range breakages {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			switch isRoot := os.Geteuid() == 0; {
			case b.root > 0 && !isRoot:
				t.Skip("needs the right to mount a file system (run as root)")
			case b.root < 0 && isRoot:
				t.Skip("needs a user who is not root: no mode keeps root out")
			}
			b.run(t)
		})
	}
}

func (b breakage) run(t *testing.T) {
	p := newPlace(t)
	execute := filepath.Join(p.tmp, "vol")
	if b.mount {
		execute = p.volume(t, "1m")
	} else if err := os.Mkdir(execute, 0o755); err != nil {
		t.Fatal(err)
	}
	p.write(t, "ep.conf", "EXECUTE = "+execute+"\nNUM_CPUS = 1\n")
	p.write(t, "first.sh", "#!/bin/sh\n: > "+p.dir+"/running\nwhile [ ! -e "+p.dir+"/broken ]; do sleep 0.05; done\n")
	p.write(t, "next.sh", "#!/bin/sh\necho ran\n")
	p.write(t, "job.sub", small+"log = job.log\nexecutable = first.sh\nqueue\n"+
		"executable = next.sh\noutput = out.1\n"+b.jobExtras+"queue\noutput = out.2\nqueue\n")
	c, stdout, stderr := p.cmd(t, "run", "-config", "ep.conf", "job.sub")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = c.Wait(); close(ended) }()
	mended := false
	t.Cleanup(func() {
		_ = c.Process.Kill()
		<-ended
		if !mended {
			_ = b.undo(execute)
		}
	})
	waitFor(t, "the first job runs", func() bool { _, err := os.Stat(filepath.Join(p.dir, "running")); return err == nil })
	if err := b.do(execute); err != nil {
		t.Skipf("needs an EXECUTE that can be broken (%s): %v", b.name, err)
	}
	p.write(t, "broken", "")
	const refuses, takes = "the machine refuses jobs", "the machine takes jobs again"
	// The first refusal, and the first test that finds it as it was.
	waitFor(t, "the machine refuses jobs", func() bool { return strings.Count(p.log(), refuses) == 2 })
	status, explained, errText := p.ep(t, "explain", "slot1")
	if status != exitOK || !strings.Contains(explained, "because the machine has a fault") || !strings.Contains(explained, b.says) {
		t.Errorf("explain: status %d\n%s%s", status, explained, errText)
	}
	if log := p.log(); strings.Contains(log, takes) || !strings.Contains(log, b.says) {
		t.Errorf("the log:\n%s", log)
	}
	if err := b.undo(execute); err != nil {
		t.Fatal(err)
	}
	mended = true
	<-ended
	if want := map[bool]int{true: exitSomeFailed, false: exitOK}[b.held]; c.ProcessState.ExitCode() != want {
		t.Errorf("status %d, want %d\n%s%s", c.ProcessState.ExitCode(), want, stdout, stderr)
	}
	if told := stdout.String(); !strings.Contains(told, "no job is started for") || !strings.Contains(told, b.says) {
		t.Errorf("who waits is not told why:\n%s%s", told, stderr)
	}
	b.judge(t, p)
	if got := p.read(t, "out.2"); got != "ran\n" {
		t.Errorf("the last job wrote %q", got)
	}
	p.nothingLeft(t)
}

// judge looks at what the jobs' log says: only programs that ran are executed.
func (b breakage) judge(t *testing.T, p place) {
	t.Helper()
	count := map[int]map[eventlog.Code]int{}
	for _, r := range p.events(t, "job.log") {
		if count[r.Proc] == nil {
			count[r.Proc] = map[eventlog.Code]int{}
		}
		count[r.Proc][r.Event.Code()]++
	}
	want := map[int]map[eventlog.Code]int{
		1: {eventlog.CodeExecute: 1, eventlog.CodeEvicted: 1, eventlog.CodeTerminated: 1},
		2: {eventlog.CodeExecute: 1, eventlog.CodeTerminated: 1},
	}
	if b.held {
		want[1] = map[eventlog.Code]int{eventlog.CodeHeld: 1}
		if log := p.read(t, "job.log"); !strings.Contains(log, "Code 13 Subcode 28") {
			t.Errorf("not held for want of room:\n%s", log)
		}
	}
	for proc, codes := range want {
		for _, code := range []eventlog.Code{eventlog.CodeExecute, eventlog.CodeEvicted, eventlog.CodeHeld, eventlog.CodeTerminated} {
			if got := count[proc][code]; got != codes[code] {
				t.Errorf("job %d has event %03d %d times, want %d", proc, code, got, codes[code])
			}
		}
	}
}

// TestFewDescriptors runs many jobs at once on an Execution Point that may open
// few files: those for which there is no room wait, and none is begun in vain.
func TestFewDescriptors(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "ep.conf", "NUM_CPUS = 10\nMEMORY = 4096\n")
	p.write(t, "job.sub", "should_transfer_files = YES\nrequest_cpus = 1\nrequest_memory = 16\nrequest_disk = 10\n"+
		"executable = /bin/sleep\ntransfer_executable = false\narguments = 1\nlog = job.log\nqueue 10\n")
	c, stdout, stderr := p.cmd(t, "-c", `ulimit -n 48 && exec "$0" "$@"`, "self", "run", "-config", "ep.conf", "job.sub")
	self := c.Path
	c.Path, c.Args[0], c.Args[3] = "/bin/sh", "sh", self
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = c.Wait(); close(ended) }()
	t.Cleanup(func() { _ = c.Process.Kill(); <-ended })
	done := func() int {
		b, _ := os.ReadFile(filepath.Join(p.dir, "job.log"))
		return strings.Count(string(b), "(return value 0)")
	}
	waitFor(t, "some jobs are done, and others are kept waiting", func() bool {
		return done() >= 2 && strings.Count(p.log(), "fault=descriptors") >= 2
	})
	for range 2 {
		if err := c.Process.Signal(syscall.SIGINT); err != nil {
			t.Fatal(err)
		}
	}
	<-ended
	told := stdout.String()
	if strings.Contains(told, "too many open files") || !strings.Contains(told, "48 file descriptors are in use") {
		t.Errorf("a job was begun in vain, or nobody was told why others wait:\n%s%s", told, stderr)
	}
	p.nothingLeft(t)
}
