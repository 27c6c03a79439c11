// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// rootStage is a place of root's with a secret beside it. All above it is root's
// alone but for /tmp.
type rootStage struct {
	place
	base, secret string
}

const secretText = "of root\n"

func newRootStage(t *testing.T) rootStage {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	base := openDir(t, "root")
	s := rootStage{base: base, secret: filepath.Join(base, "secret"), place: place{dir: filepath.Join(base, "dir"), tmp: filepath.Join(base, "tmp")}}
	for _, dir := range []string{s.dir, s.tmp} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(s.secret, []byte(secretText), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// run runs a submit file with something secret in root's environment.
func (s rootStage) run(t *testing.T, args ...string) (status int, said string) {
	t.Helper()
	c, stdout, stderr := s.cmd(t, append([]string{"run"}, args...)...)
	c.Env = append(c.Env, "SECRET=xyzzy")
	if err := c.Run(); err != nil && c.ProcessState == nil {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), stdout.String() + stderr.String()
}

// untouched looks that the secret is as it was and in no file of the submit
// directory.
func (s rootStage) untouched(t *testing.T) {
	t.Helper()
	if b, err := os.ReadFile(s.secret); err != nil || string(b) != secretText {
		t.Errorf("root's file is %q, %v", b, err)
	}
	if left, err := filepath.Glob(filepath.Join(s.base, "*")); err != nil || len(left) != 3 {
		t.Errorf("beside it are %q, %v", left, err)
	}
	err := filepath.WalkDir(s.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), secretText) {
			t.Errorf("the secret is in %s", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// uidOf is whose a file is.
func uidOf(t *testing.T, path string) string {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Error(err)
		return ""
	}
	return strconv.FormatUint(uint64(info.Sys().(*syscall.Stat_t).Uid), 10)
}

// TestRootRunsAsNobody has root run jobs from a directory of root's own. They are
// nobody's, or those of whom the configuration names for such jobs; their input is
// read and their output and log are written as root, whose files they are.
func TestRootRunsAsNobody(t *testing.T) {
	t.Parallel()
	s := newRootStage(t)
	ordinary(t)
	if err := os.Chmod(s.dir, 0o700); err != nil { // no other user gets in
		t.Fatal(err)
	}
	s.write(t, "in.txt", "input\n")
	if err := os.Chmod(filepath.Join(s.dir, "in.txt"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.write(t, "job.sh", "#!/bin/sh\nid -un\nid -Gn | grep -w root\ncat in.txt\nwhoami >made\nchmod 666 made\nid -un >&2\nstat -c %U . in.txt\necho rm >job.sh\n")
	const job = "request_cpus = 1\nrequest_memory = 16\nrequest_disk = 1024\nexecutable = job.sh\ntransfer_input_files = in.txt\noutput = out\nerror = err\nlog = job.log\n"
	s.write(t, "job.sub", job+"queue\n")
	script := s.read(t, "job.sh")
	for _, tt := range []struct{ name, lines, conf, user, told string }{
		{"as it is", "", "", "nobody", "nobody"},
		{"files that are moved", "should_transfer_files = YES\n", "", "nobody", "nobody"},
		{"one that wants to be root", "run_as_owner = true\n+Owner = \"root\"\n+OsUser = \"root\"\n", "UID_DOMAIN = x\n", "nobody", "nobody"},
		{"root in the configuration", "", "NOBODY_SLOT_USER = root\nSTARTER_ALLOW_RUNAS_OWNER = true\nSLOT1_USER = root\n", "nobody", "the users of SLOT<N>_USER and NOBODY_SLOT_USER"},
		{"a user for all", "", "NOBODY_SLOT_USER = games\n", "games", "games"},
		{"a user of the slot", "", "NOBODY_SLOT_USER = root\nSLOT1_USER = games\n", "games", "the users of SLOT<N>_USER and NOBODY_SLOT_USER"},
		{"the slot's own user alone", "", "DEDICATED_EXECUTE_ACCOUNT_REGEXP = games\nSLOT1_1_USER = games\n", "games", "the users of SLOT<N>_USER and NOBODY_SLOT_USER"},
	} {
		for _, name := range []string{"out", "err", "made", "job.log"} {
			if err := os.Remove(filepath.Join(s.dir, name)); err != nil && tt.name != "as it is" {
				t.Error(err)
			}
		}
		s.write(t, "job.sub", job+tt.lines+"queue\n")
		s.write(t, "ep.conf", tt.conf)
		status, said := s.run(t, "-config", "ep.conf", "job.sub")
		line := "warning: the jobs run as " + tt.told + ", not as root, whose directory " + s.dir + " is; in a directory of another user they run as that user\n"
		if status != exitOK || strings.Count(said, "not as root") != 1 || !strings.Contains(said, line) {
			t.Errorf("%s: status %d\n%s", tt.name, status, said)
			continue
		}
		if got, want := s.read(t, "out")+s.read(t, "err")+s.read(t, "made"), strings.ReplaceAll("U\ninput\nU\nU\nU\nU\n", "U", tt.user); got != want {
			t.Errorf("%s: the job says %q, want %q", tt.name, got, want)
		}
		for _, name := range []string{"out", "err", "made", "job.log"} {
			if uid := uidOf(t, filepath.Join(s.dir, name)); uid != "0" {
				t.Errorf("%s: %s is of the user %s", tt.name, name, uid)
			}
		}
		if info, err := os.Stat(filepath.Join(s.dir, "made")); err != nil || info.Mode().Perm() != 0o644 {
			t.Errorf("%s: a file of root's that the job opened to all has the mode %v, %v", tt.name, info.Mode(), err)
		}
		if got := s.read(t, "job.sh"); got != script {
			t.Errorf("%s: root's program is now %q", tt.name, got)
		}
	}
	s.write(t, "ep.conf", "NOBODY_SLOT_USER = no-such-user\n")
	if status, said := s.run(t, "-config", "ep.conf", "job.sub"); status != exitUsage || strings.Count(said, "\n") != 1 ||
		!strings.Contains(said, "no-such-user") || !strings.Contains(said, "put the submit file into a directory of an ordinary user") {
		t.Errorf("status %d\n%s", status, said)
	}
	s.write(t, "stays.sub", small+"executable = /bin/true\ntransfer_executable = false\nshould_transfer_files = NO\noutput = out\nqueue\n")
	if status, said := s.run(t, "stays.sub"); status != exitSomeFailed || !strings.Contains(said, "Cannot access initial working directory") {
		t.Errorf("a job that stays where nobody can be: status %d\n%s", status, said)
	}
	s.nothingLeft(t)
}

// TestRootsClosedTemporaries has nobody's jobs kept from their directory by what is
// above it: that is said before anything starts, with what helps.
func TestRootsClosedTemporaries(t *testing.T) {
	t.Parallel()
	s := newRootStage(t)
	ordinary(t)
	s.write(t, "job.sub", small+"executable = /bin/true\ntransfer_executable = false\nlog = job.log\nqueue\n")
	if err := os.Chmod(s.tmp, 0o700); err != nil {
		t.Fatal(err)
	}
	status, said := s.run(t, "job.sub")
	if status != exitUsage || !strings.Contains(said, "nobody cannot work in EXECUTE") || !strings.Contains(said, "let TMPDIR or EXECUTE name a directory that all may pass through") {
		t.Errorf("status %d\n%s", status, said)
	}
	if _, err := os.Stat(filepath.Join(s.dir, "job.log")); err == nil {
		t.Error("no job may be begun")
	}
	s.nothingLeft(t)
}

// TestJobOfRootReachesNothing has jobs of root's directory try to make root read or
// write what is not theirs. None of it is: it is held, or just not there.
func TestJobOfRootReachesNothing(t *testing.T) {
	t.Parallel()
	s := newRootStage(t)
	ordinary(t)
	drop := filepath.Join(s.dir, "drop") // where others may write, too
	for _, name := range []string{drop, filepath.Join(s.dir, "own")} {
		if err := os.Mkdir(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(drop, 0o777); err != nil {
		t.Fatal(err)
	}
	s.write(t, "own/kept", "before\n")
	for name, to := range map[string]string{"drop/link": s.secret, "drop/up": s.base, "drop/new": filepath.Join(s.base, "new"), "to-own": "own/kept", "to-drop": "drop/link"} {
		if err := os.Symlink(to, filepath.Join(s.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, tt := range []struct {
		name, script, lines string
		held                string // part of the reason, "" for a job that ends well
	}{
		{"a link for output", "ln -s " + s.secret + " out", "transfer_output_files = out", "out"},
		{"a link for what is new", "ln -s " + s.secret + " new; echo x >other", "", ""},
		{"a link for a directory", "mkdir d; ln -s " + s.secret + " d/f; ln -s " + s.base + " d/sub", "transfer_output_files = d", ""},
		{"a directory that is a link", "mkdir d; rmdir d; ln -s " + s.base + " d", "transfer_output_files = d/secret", "d/secret"},
		{"a link for standard output", "rm -f _condor_stdout; ln -s " + s.secret + " _condor_stdout", "output = out", "_condor_stdout"},
		{"a directory for standard output", "rm -f _condor_stdout; mkdir _condor_stdout", "output = out", "_condor_stdout"},
		{"through proc", "true", "transfer_output_files = /proc/self/root" + s.secret, "not in the scratch directory"},
		{"a link through proc", "ln -s /proc/self/root d", "transfer_output_files = d" + s.secret, "secret"},
		{"a link to a descriptor", "ln -s /proc/self/fd/0 d", "transfer_output_files = d", "d"},
		{"upwards", "true", "transfer_output_files = ../../../../../.." + s.secret, "not in the scratch directory"},
		{"a pipe", "mkfifo p", "transfer_output_files = p", "not a plain file"},
		{"a pipe for standard output", "rm -f _condor_stdout; mkfifo _condor_stdout", "output = out", "not a plain file"},
		{"its ads", "rm -f .job.ad; ln -s " + s.secret + " .job.ad", "transfer_output_files = .job.ad", ".job.ad"},

		{"a link where others write, for standard output", "echo x", "output = drop/link", "drop/link"},
		{"one to what is not there", "echo x", "output = drop/new", ""},
		{"a directory of a link there", "echo x", "output = drop/up/new", "drop/up/new"},
		{"a link there, by a new name", "echo x >o", "transfer_output_files = o\ntransfer_output_remaps = \"o = drop/link\"", "drop/link"},
		{"root's link to there", "echo x", "output = to-drop", "to-drop"},
		{"a link there, for input", "cat link >o", "transfer_input_files = drop/link", "drop/link"},
		{"a directory there, for input", "cat drop/link >o", "transfer_input_files = drop", "drop/link"},
		{"a link there, for standard input", "cat >o", "input = drop/link", "drop/link"},
		{"a link there, for the log", "true", "log = drop/link", ""},
		{"a file there", "echo x", "output = drop/file", ""},
		{"root's link to root's file", "echo x", "output = to-own", ""},
	} {
		s.write(t, "job.sh", "#!/bin/sh\n"+tt.script+"\n")
		s.write(t, "job.sub", small+"skip_filechecks = true\nexecutable = job.sh\n"+tt.lines+"\nqueue\n")
		status, said := s.run(t, "job.sub")
		switch {
		case tt.held == "" && status != exitOK:
			t.Errorf("%s: status %d\n%s", tt.name, status, said)
		case tt.held != "" && (status != exitSomeFailed || !strings.Contains(said, "1.0 held") && !strings.Contains(said, ".0 held") || !strings.Contains(said, tt.held)):
			t.Errorf("%s: status %d, want it held for %s\n%s", tt.name, status, tt.held, said)
		}
		s.untouched(t)
		if t.Failed() {
			t.Fatalf("after %s", tt.name)
		}
	}
	if uid := uidOf(t, filepath.Join(drop, "file")); uid == "0" {
		t.Error("root made a file where others write")
	}
	if got := s.read(t, "own/kept"); got != "x\n" || uidOf(t, filepath.Join(s.dir, "own/kept")) != "0" {
		t.Errorf("root's own link leads to %q", got)
	}
	s.nothingLeft(t)
}

// TestSecondNameOfRootsFile puts a second name of root's file into the job's
// directory, as its user could where the kernel does not keep hard links from it.
func TestSecondNameOfRootsFile(t *testing.T) {
	t.Parallel()
	s := newRootStage(t)
	ordinary(t)
	s.write(t, "job.sh", "#!/bin/sh\npwd >&2\nwhile ! test -e hard; do sleep 0.02; done\n")
	s.write(t, "job.sub", small+"executable = job.sh\ntransfer_output_files = hard\nqueue\n")
	c, stdout, stderr := s.cmd(t, "run", "job.sub")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the job's directory", func() bool {
		found, err := filepath.Glob(filepath.Join(s.tmp, "execpoint-*", "execute", "dir_*", "scratch"))
		return err == nil && len(found) == 1 && os.Link(s.secret, filepath.Join(found[0], "hard")) == nil
	})
	_ = c.Wait()
	if c.ProcessState.ExitCode() != exitSomeFailed || !strings.Contains(strings.ToLower(stdout.String()), "permission denied") {
		t.Errorf("status %d\n%s%s", c.ProcessState.ExitCode(), stdout, stderr)
	}
	s.untouched(t)
	s.nothingLeft(t)
}

// TestRootInAnOpenDirectory runs a submit file that lies where others write: it is
// no word of root's, and nothing is done with root's rights.
func TestRootInAnOpenDirectory(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		mode os.FileMode
		uid  int // whose the submit file is
	}{{"as /tmp", 0o777 | os.ModeSticky, 0}, {"open to all", 0o777, 0}, {"a file of another user", 0o755, 1}} {
		s := newRootStage(t)
		who := ordinary(t)
		s.write(t, "job.sh", "#!/bin/sh\nid -un\n")
		// What cannot be written is found at submit; here it is what happens then.
		s.write(t, "job.sub", small+"skip_filechecks = true\nexecutable = job.sh\noutput = out\nlog = job.log\nqueue\n")
		s.write(t, "steal.sub", small+"skip_filechecks = true\nexecutable = job.sh\ntransfer_input_files = "+s.secret+"\nqueue\n")
		for _, name := range []string{"job.sub", "steal.sub"} {
			if err := os.Chown(filepath.Join(s.dir, name), tt.uid, 0); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.Chmod(s.dir, tt.mode); err != nil {
			t.Fatal(err)
		}
		want := "warning: the jobs run as nobody, not as root, and their files are moved as nobody: others than root may change " + filepath.Join(s.dir, "job.sub") + "\n"
		status, said := s.run(t, "job.sub")
		if strings.Count(said, want) != 1 {
			t.Errorf("%s: status %d, want %q\n%s", tt.name, status, want, said)
		}
		if tt.mode.Perm() == 0o777 && (status != exitOK || s.read(t, "out") != "nobody\n" || uidOf(t, filepath.Join(s.dir, "out")) != who.Uid || uidOf(t, filepath.Join(s.dir, "job.log")) != who.Uid) {
			t.Errorf("%s: status %d\n%s", tt.name, status, said)
		}
		if status, said := s.run(t, "steal.sub"); status == exitOK {
			t.Errorf("%s: a file of root's was given to the job\n%s", tt.name, said)
		}
		s.untouched(t)
		s.nothingLeft(t)
	}
}

// TestRootDeclinesTheOwner runs a job that does not want to be its owner's, or may
// not: its files are moved with the owner's rights all the same.
func TestRootDeclinesTheOwner(t *testing.T) {
	t.Parallel()
	s := newRootStage(t)
	s.owner = ordinary(t)
	s.give(t)
	s.write(t, "in.txt", "input\n")
	s.write(t, "job.sh", "#!/bin/sh\nid -un\ncat in.txt\n")
	if err := os.Chmod(filepath.Join(s.dir, "in.txt"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.write(t, "games.conf", "NOBODY_SLOT_USER = games\n")
	s.write(t, "not.conf", "NOBODY_SLOT_USER = games\nSTARTER_ALLOW_RUNAS_OWNER = false\n")
	const job = "request_memory = 16\nrequest_disk = 1024\nexecutable = job.sh\ntransfer_input_files = in.txt\noutput = out\n"
	s.write(t, "not.sub", job+"queue\n")
	s.write(t, "games.sub", job+"run_as_owner = false\nqueue\n")
	s.write(t, "steal.sub", job+"run_as_owner = false\ntransfer_input_files = "+s.secret+"\nskip_filechecks = true\nqueue\n")
	for _, name := range []string{"not", "games"} {
		status, said := s.run(t, "-config", name+".conf", name+".sub")
		if want := "warning: the jobs run as games, not as root, and their files are moved as nobody, whose directory " + s.dir + " is\n"; status != exitOK || !strings.Contains(said, want) {
			t.Errorf("%s: status %d, want %q\n%s", name, status, want, said)
			continue
		}
		if got := s.read(t, "out"); got != "games\ninput\n" || uidOf(t, filepath.Join(s.dir, "out")) != s.owner.Uid {
			t.Errorf("%s: the job says %q", name, got)
		}
		if err := os.Remove(filepath.Join(s.dir, "out")); err != nil {
			t.Error(err)
		}
	}
	if status, said := s.run(t, "-config", "games.conf", "steal.sub"); status == exitOK {
		t.Errorf("a file of root's was given to the job\n%s", said)
	}
	s.untouched(t)
	s.nothingLeft(t)
}

// TestRootRunsAsTheOwner has root run a submit file in the directory of another
// user: the job is that user's, its files are moved and its log is written with
// that user's rights alone, and root's environment is not the job's.
func TestRootRunsAsTheOwner(t *testing.T) {
	t.Parallel()
	s := newRootStage(t)
	s.owner = ordinary(t)
	s.give(t)
	s.write(t, "in.txt", "input\n")
	s.write(t, "job.sh", "#!/bin/sh\nid -un\ncat in.txt\necho \"[$SECRET]\" >made\nps -o user= -p $$ >&2\n")
	s.write(t, "job.sub", small+"executable = job.sh\ntransfer_input_files = in.txt\ngetenv = true\noutput = out\nerror = err\nlog = job.log\nqueue\n")
	s.write(t, "steal.sub", small+"executable = job.sh\ntransfer_input_files = "+s.secret+"\noutput = out2\nqueue\n")
	s.write(t, "log.sub", small+"skip_filechecks = true\nexecutable = job.sh\ntransfer_input_files = in.txt\noutput = out3\nlog = link\nqueue\n")
	if err := os.Symlink(s.secret, filepath.Join(s.dir, "link")); err != nil {
		t.Fatal(err)
	}
	status, said := s.run(t, "job.sub")
	if status != exitOK || !strings.Contains(said, "warning: the jobs run as nobody, whose directory "+s.dir+" is, not as root\n") {
		t.Fatalf("status %d\n%s", status, said)
	}
	if got := s.read(t, "out") + s.read(t, "made"); got != "nobody\ninput\n[]\n" {
		t.Errorf("the job says %q", got)
	}
	for _, name := range []string{"out", "err", "made", "job.log"} {
		if uid := uidOf(t, filepath.Join(s.dir, name)); uid != s.owner.Uid {
			t.Errorf("%s is of the user %s", name, uid)
		}
	}
	if status, said := s.run(t, "steal.sub"); status == exitOK {
		t.Errorf("a file of root's was given to the job\n%s", said)
	}
	if _, said := s.run(t, "log.sub"); !strings.Contains(said, "event log") {
		t.Errorf("the log was written\n%s", said)
	}
	s.untouched(t)
	s.nothingLeft(t)
}
