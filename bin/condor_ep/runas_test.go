// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestRootRunsAsTheOwner has root run a submit file in the directory of another
// user: the job is that user's, its files are moved and its log is written with
// that user's rights alone, and root's environment is not the job's. One in a
// directory of root's is told that it is root's.
func TestRootRunsAsTheOwner(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	who, err := user.Lookup("nobody")
	if err != nil {
		t.Skip("no user nobody")
	}
	uid, err := strconv.Atoi(who.Uid)
	if err != nil {
		t.Fatal(err)
	}
	gid, err := strconv.Atoi(who.Gid)
	if err != nil || gid == 0 {
		t.Skip("nobody has no group of its own")
	}
	// All above the directories of a test are root's alone.
	base, err := os.MkdirTemp("", "owner")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	p := place{dir: filepath.Join(base, "dir"), tmp: filepath.Join(base, "tmp")}
	for _, dir := range []string{p.dir, p.tmp} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	secret := filepath.Join(base, "secret")
	if err := os.WriteFile(secret, []byte("of root\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(base, 0o755); err != nil {
		t.Fatal(err)
	}
	p.write(t, "in.txt", "input\n")
	p.write(t, "job.sh", "#!/bin/sh\nid -un\ncat in.txt\necho \"[$SECRET]\" >made\nps -o user= -p $$ >&2\n")
	p.write(t, "job.sub", small+"executable = job.sh\ntransfer_input_files = in.txt\ngetenv = true\noutput = out\nerror = err\nlog = job.log\nqueue\n")
	p.write(t, "steal.sub", small+"executable = job.sh\ntransfer_input_files = "+secret+"\noutput = out2\nqueue\n")
	p.write(t, "log.sub", small+"executable = job.sh\ntransfer_input_files = in.txt\noutput = out3\nlog = link\nqueue\n")
	if err := os.Symlink(secret, filepath.Join(p.dir, "link")); err != nil {
		t.Fatal(err)
	}
	run := func(sub string) (status int, said string) {
		c, stdout, stderr := p.cmd(t, "run", sub)
		c.Env = append(c.Env, "SECRET=xyzzy")
		if err := c.Run(); err != nil && c.ProcessState == nil {
			t.Fatal(err)
		}
		return c.ProcessState.ExitCode(), stdout.String() + stderr.String()
	}

	if _, said := run("job.sub"); !strings.Contains(said, "warning: the jobs run as root, since "+p.dir+" is root's") {
		t.Errorf("of a directory of root's:\n%s", said)
	}
	for _, name := range []string{"out", "err", "made", "job.log"} {
		if err := os.Remove(filepath.Join(p.dir, name)); err != nil {
			t.Error(err)
		}
	}
	if out, err := exec.Command("chown", "-Rh", who.Uid+":"+who.Gid, p.dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	status, said := run("job.sub")
	if status != exitOK || !strings.Contains(said, "warning: the jobs run as nobody, whose directory "+p.dir+" is, not as root\n") {
		t.Fatalf("status %d\n%s", status, said)
	}
	if got := p.read(t, "out") + p.read(t, "made"); got != "nobody\ninput\n[]\n" {
		t.Errorf("the job says %q", got)
	}
	for _, name := range []string{"out", "err", "made", "job.log"} {
		info, err := os.Stat(filepath.Join(p.dir, name))
		if err != nil {
			t.Error(err)
			continue
		}
		if st := info.Sys().(*syscall.Stat_t); int(st.Uid) != uid {
			t.Errorf("%s is of the user %d", name, st.Uid)
		}
	}
	if status, said := run("steal.sub"); status == exitOK {
		t.Errorf("a file of root's was given to the job\n%s", said)
	}
	if _, said := run("log.sub"); !strings.Contains(said, "event log") {
		t.Errorf("the log was written\n%s", said)
	}
	if b, err := os.ReadFile(secret); err != nil || string(b) != "of root\n" {
		t.Errorf("root's file is %q, %v", b, err)
	}
	p.nothingLeft(t)
}
