// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/execpoint/execpoint/lib/run"
)

// A submit file is read from standard input where it is called -, as condor_submit
// reads it; names in it count from the working directory, whose owner's the jobs are.
func TestSubmitFromStandardInput(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text   string
		status int
		want   []string
	}{
		{small + "executable = job.sh\noutput = out\nqueue 2\n", exitOK, []string{": 2 jobs from <stdin>\n", "2 jobs: 2 done"}},
		{"executable = job.sh\nrequest_cpus = banana (\nqueue\n", exitUsage, []string{"condor_ep run: <stdin>:2:"}},
		{"", exitUsage, []string{"condor_ep run: <stdin>:"}},
	} {
		p := newPlace(t)
		p.write(t, "job.sh", "#!/bin/sh\nid -un\n")
		c, stdout, stderr := p.cmd(t, "run", "-")
		c.Stdin = strings.NewReader(tt.text)
		_ = c.Run() // the status says it
		said := stdout.String() + stderr.String()
		for _, want := range tt.want {
			if !strings.Contains(said, want) || c.ProcessState.ExitCode() != tt.status {
				t.Errorf("status %d, want %d with %q:\n%s", c.ProcessState.ExitCode(), tt.status, want, said)
			}
		}
		if p.owner != nil && tt.status == exitOK && p.read(t, "out") != p.owner.Username+"\n" {
			t.Errorf("the jobs ran as %q", p.read(t, "out"))
		}
		p.nothingLeft(t)
	}
}

// Root's standard input in a directory where others write is nobody's, as a file is.
func TestStandardInputInAnOpenDirectory(t *testing.T) {
	t.Parallel()
	s := newRootStage(t)
	if err := os.Chmod(s.dir, os.ModeSticky|0o777); err != nil {
		t.Fatal(err)
	}
	c, stdout, _ := s.cmd(t, "run", "-")
	c.Stdin = strings.NewReader(small + "executable = /bin/true\ntransfer_executable = false\nqueue\n")
	err := c.Run()
	want := "warning: the jobs run as nobody, not as root, and their files are moved as nobody: others than root may change " + s.dir + "\n"
	if err != nil || strings.Count(stdout.String(), want) != 1 {
		t.Errorf("%v, want %q\n%s", err, want, stdout)
	}
	s.untouched(t)
}

// A TMPDIR that is of no use is named, with what would be right.
func TestUnusableTMPDIR(t *testing.T) {
	t.Parallel()
	for _, at := range []string{"nosuch", "file"} {
		for _, records := range []bool{true, false} {
			if !records && os.Geteuid() == 0 {
				continue // root's are in /run
			}
			p := newPlace(t)
			p.write(t, "job.sub", small+"executable = /bin/true\ntransfer_executable = false\nqueue\n")
			p.write(t, "file", "")
			tmp := filepath.Join(p.dir, at)
			c, stdout, stderr := p.cmd(t, "run", "job.sub")
			c.Env = append(c.Env, "TMPDIR="+tmp)
			if !records {
				tmp = filepath.Join(p.dir, "file") // below which nothing can be made
				c.Env = append(c.Env, "TMPDIR="+tmp, run.BaseVariable+"=", "XDG_RUNTIME_DIR=")
			}
			_ = c.Run() // the status says it
			said := stderr.String()
			if c.ProcessState.ExitCode() != exitUsage || stdout.Len() > 0 || !strings.Contains(said, "condor_ep run: TMPDIR: the directory of a run cannot be made in "+tmp+": ") ||
				!strings.Contains(said, "let TMPDIR name a directory") {
				t.Errorf("%s: status %d\n%s%s", at, c.ProcessState.ExitCode(), stdout, said)
			}
			p.nothingLeft(t)
		}
	}
}

// Where the one whose jobs they are may not write what the jobs leave is found before
// they run.
func TestResultsThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	const job = "executable = /bin/true\ntransfer_executable = false\n"
	for _, tt := range []struct{ line, want string }{
		{"output = closed/out\n", "job.sub:3:10: output: it cannot be made in DIR/closed: permission denied (value \"DIR/closed/out\", expected a file that "},
		{"error = closed/err.$(Process)\n", "job.sub:3:9: error: it cannot be made in DIR/closed: permission denied"},
		{"log = closed/log\n", "job.sub:3:7: log: it cannot be made in DIR/closed: permission denied"},
		{"output = old\n", "job.sub:3:10: output: it cannot be written: permission denied"},
		{"output = gone/out\n", "job.sub:3:10: output: there is no such directory"},
		{"output = closed/out\nskip_filechecks = true\n", ""},
		{"output = new\nerror = /dev/null\nlog = log\n", ""},
	} {
		p := newPlace(t)
		if os.Geteuid() != 0 && strings.Contains(tt.line, "skip_filechecks") {
			tt.line = "skip_filechecks = true\n"
		}
		old := p.write(t, "old", "")
		closed := filepath.Join(p.dir, "closed")
		if err := os.Mkdir(closed, 0o555); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(old, 0o444); err != nil {
			t.Fatal(err)
		}
		p.write(t, "job.sub", job+tt.line+"queue\n")
		status, stdout, stderr := p.ep(t, "run", "job.sub")
		want := strings.ReplaceAll(tt.want, "DIR", p.dir)
		if refused := status == exitUsage && stdout == "" && strings.Contains(stderr, want); refused != (want != "") {
			t.Errorf("%q: status %d, want %q\n%s%s", tt.line, status, want, stdout, stderr)
		}
		p.nothingLeft(t)
	}
}

// A word that was written wrongly is found at submit, with its place and what was
// meant, and is not hidden by what follows from it.
func TestMisspeltSubmitFile(t *testing.T) {
	t.Parallel()
	const job = "executable = /bin/true\ntransfer_executable = false\n"
	for _, tt := range []struct {
		text string
		want []string // all that is said
	}{
		{job + "request_memory = lots\nqueue\n", []string{`job.sub:3:18: request_memory: this is no amount, and neither the job nor a slot has an attribute of that name ` +
			`(value "lots", expected a number of MiB, or one with K, M, G or T behind it)`}},
		{job + "request_memory = 4 gigs\nqueue\n", []string{`job.sub:3:20: request_memory: this is no amount, and no expression: 1:3: expected an operator or the end of the expression, found "gigs" ` +
			`(value "4 gigs", expected a number of MiB, or one with K, M, G or T behind it)`}},
		{job + "request_memroy = 32M\nqueue\n", []string{`job.sub:3:18: request_memroy: request_memroy asks for a resource of its own, of which this is no number (value "32M", expected request_memory, perhaps)`}},
		{"executabel = /bin/true\nqueue\n", []string{`job.sub:1:1: warning: this line is not used; is it a typo? (value "executabel = /bin/true", expected executable)`,
			`job.sub:2:1: queue: there is no executable to run (expected executable = FILE before it)`}},
		{"executabel = /bin/true\nquue\n", []string{`job.sub:1:1: warning: this line is not used; is it a typo? (value "executabel = /bin/true", expected executable)`,
			`job.sub:2:1: this line is no submit command (value "quue", expected queue (is quue a typo?))`}},
		{"mine = x\nqueue\n", []string{`job.sub:2:1: queue: there is no executable to run (expected executable = FILE before it)`}},
	} {
		p := newPlace(t)
		p.write(t, "job.sub", tt.text)
		status, stdout, stderr := p.ep(t, "run", "job.sub")
		if want := "condor_ep run: " + strings.Join(tt.want, "\ncondor_ep run: ") + "\n"; status != exitUsage || stdout != "" || stderr != want {
			t.Errorf("%q: status %d\n%sgot  %swant %s", tt.text, status, stdout, stderr, want)
		}
		p.nothingLeft(t)
	}
}

// A job that the owner's policy keeps waiting is told of after some seconds, with the
// reason, once, and many as one. One that waits for another to end is not.
func TestLongWaitIsTold(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "ep.conf", "POLLING_INTERVAL = 1\nNUM_CPUS = 1\nSTART = TARGET.Kept =!= True || KeyboardIdle > 100000000\n")
	p.write(t, "job.sub", small+"executable = /bin/sleep\ntransfer_executable = false\narguments = 9\nqueue 2\n+Kept = true\nqueue 3\n")
	w := p.watch(t, "run", "-config", "ep.conf", "job.sub")
	w.says(t, ".2 and 2 other jobs wait: START would be TRUE if ")
	w.says(t, ".1 done")
	w.signal(t, syscall.SIGINT)
	<-w.ended
	out := w.printed(t)
	if strings.Count(out, "; condor_ep explain ") != 1 || !strings.Contains(out, ", (2) KeyboardIdle > 100000000; it is ") {
		t.Errorf("want one line of three jobs in\n%s", out)
	}
	p.nothingLeft(t)
}
