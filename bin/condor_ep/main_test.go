// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/eventlog"
	"github.com/execpoint/execpoint/lib/local"
	"github.com/execpoint/execpoint/lib/run"
)

// beTool makes the test binary behave as condor_ep, so that real processes can
// be tested without building another binary.
const beTool = "EXECPOINT_TEST_BE_CONDOR_EP"

func TestMain(m *testing.M) {
	if os.Getenv(beTool) != "" {
		os.Exit(heard(os.Args[1:], os.Stdout, os.Stderr))
	}
	if os.Getenv(beChirper) != "" {
		if err := chirper(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// place is a private place with its own runs.
type place struct {
	dir string // the submit directory
	tmp string // TMPDIR of the runs
	// owner is whose the submit directory is, nil for who runs the test.
	owner *user.User
}

// newPlace makes a place. For root the submit directory is an ordinary user's, who
// may do there what who tests may do otherwise: no job runs as root.
func newPlace(t testing.TB) place {
	t.Helper()
	if os.Geteuid() != 0 {
		return place{dir: t.TempDir(), tmp: t.TempDir()}
	}
	p := place{dir: openDir(t, "submit"), tmp: openDir(t, "tmp"), owner: ordinary(t)}
	p.give(t)
	return p
}

// ordinary is an ordinary user whom every system has.
func ordinary(t testing.TB) *user.User {
	t.Helper()
	who, err := user.Lookup("nobody")
	if err != nil || who.Gid == "0" {
		t.Skipf("there is no ordinary user nobody: %v", err)
	}
	return who
}

// openDir is a directory through which every user may pass, unlike those of
// testing.T.
func openDir(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "execpoint-test-"+name+"-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// give makes all that is in the submit directory the submitter's.
func (p place) give(t testing.TB) {
	t.Helper()
	if p.owner == nil {
		return
	}
	uid, err1 := strconv.Atoi(p.owner.Uid)
	gid, err2 := strconv.Atoi(p.owner.Gid)
	err := filepath.WalkDir(p.dir, func(path string, _ fs.DirEntry, err error) error {
		if err == nil {
			err = os.Lchown(path, uid, gid)
		}
		if errors.Is(err, fs.ErrNotExist) { // a job removed it meanwhile
			return nil
		}
		return err
	})
	if err := errors.Join(err1, err2, err); err != nil {
		t.Fatal(err)
	}
}

func (p place) write(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	mode := os.FileMode(0o644)
	if strings.HasPrefix(text, "#!") {
		mode = 0o755
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

func (p place) read(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(p.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// cmd prepares condor_ep with its output caught.
func (p place) cmd(t testing.TB, args ...string) (c *exec.Cmd, stdout, stderr *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p.give(t)
	c = exec.Command(self, args...)
	c.Dir = p.dir
	c.Env = append(os.Environ(), beTool+"=1", "TMPDIR="+p.tmp, run.BaseVariable+"="+filepath.Join(p.tmp, "runs"))
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	c.Stdout, c.Stderr = stdout, stderr
	return c, stdout, stderr
}

// ep runs condor_ep and returns its exit status and output.
func (p place) ep(t testing.TB, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	c, out, errOut := p.cmd(t, args...)
	err := c.Run()
	var ended *exec.ExitError
	if err != nil && !errors.As(err, &ended) {
		t.Fatal(err)
	}
	return c.ProcessState.ExitCode(), usual(out.String()), errOut.String()
}

// busy matches what condor_ep run says of a machine that is busy, which it may be
// with other tests: that it waits, and who else uses it.
var busy = regexp.MustCompile(`(?m)^(?:waiting for |\{"detail":"[^\n]*","event":"waiting"\}` +
	`|(?:\{"detail":"|warning: )(?:\d+ more processes are called condor_|(?:a condor_startd|another condor_ep run) \(process )).*\n`)

// usual is what condor_ep prints without what only a busy machine has it say.
func usual(text string) string { return busy.ReplaceAllString(text, "") }

// left lists what a run left in its private place and fails if there is a run
// directory or a process of it.
func (p place) nothingLeft(t testing.TB) {
	t.Helper()
	records, err := filepath.Glob(filepath.Join(p.tmp, "runs", "run-*"))
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(p.tmp, "execpoint-*"))
	if err != nil {
		t.Fatal(err)
	}
	found := append(records, files...)
	if len(found) > 0 {
		t.Errorf("left behind: %v", found)
	}
	if procs := p.processes(t); len(procs) > 0 {
		t.Errorf("processes left behind: %v", procs)
	}
}

// processes lists the processes that have this place's TMPDIR in their
// environment or run below it: starters and jobs of its runs.
func (p place) processes(t testing.TB) []string {
	t.Helper()
	var found []string
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		env, err1 := os.ReadFile(d + "/environ")
		cwd, err2 := os.Readlink(d + "/cwd")
		if err1 != nil && err2 != nil {
			continue // ended meanwhile
		}
		if strings.Contains(string(env), p.tmp) || strings.HasPrefix(cwd, p.tmp) {
			cmdline, _ := os.ReadFile(d + "/cmdline")
			found = append(found, filepath.Base(d)+" "+strings.ReplaceAll(string(cmdline), "\x00", " "))
		}
	}
	return found
}

// waitFor polls until ok or the deadline; it is for real processes only.
func waitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(20 * time.Second)
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("timed out: %s", what)
		}
	}
}

func (p place) events(t testing.TB, name string) []eventlog.Record {
	t.Helper()
	f, err := os.Open(filepath.Join(p.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := eventlog.NewReader(f, eventlog.ReaderOptions{})
	var all []eventlog.Record
	for {
		rec, err := r.Next()
		if err == io.EOF {
			return all
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, rec)
	}
}

const small = "should_transfer_files = YES\nrequest_cpus = 1\nrequest_memory = 16\nrequest_disk = 1024\n"

func TestRunOneJob(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "in.txt", "input\n")
	p.write(t, "job.sh", "#!/bin/sh\ncat in.txt\necho \"$1|$2|$GREETING|$_CONDOR_SLOT|$OMP_NUM_THREADS\"\npwd >where\necho bad >&2\nexit 0\n")
	p.write(t, "job.sub", small+`executable = job.sh
arguments = "one 'two three'"
environment = "GREETING='good day'"
should_transfer_files = YES
transfer_input_files = in.txt
output = out.$(Process)
error = err
log = job.log
queue
`)
	status, stdout, stderr := p.ep(t, "run", "job.sub")
	if status != exitOK || stderr != "" {
		t.Fatalf("status %d\n%s%s", status, stdout, stderr)
	}
	if want := "output in " + filepath.Join(p.dir, "out.0"); !strings.Contains(stdout, want) {
		t.Errorf("the output's place is not told:\n%s", stdout)
	}
	if d := cmp.Diff("input\none|two three|good day|slot1_1|1\n", p.read(t, "out.0")); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff("bad\n", p.read(t, "err")); d != "" {
		t.Error(d)
	}
	if where := p.read(t, "where"); !strings.HasSuffix(where, "/scratch\n") {
		t.Errorf("the job ran in %s", where)
	}
	p.nothingLeft(t)
	var codes []eventlog.Code
	for _, r := range p.events(t, "job.log") {
		codes = append(codes, r.Event.Code())
	}
	text := fmt.Sprint(codes)
	for _, want := range []string{"SUBMIT FILE_TRANSFER FILE_TRANSFER EXECUTE", "FILE_TRANSFER FILE_TRANSFER JOB_TERMINATED"} {
		if !strings.Contains(text, want) {
			t.Errorf("event log has %s, want %s in it", text, want)
		}
	}
}

func TestRunStatuses(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, submit, conf string
		status             int
		want               []string // in what is printed
	}{
		{"a job fails", "executable = /bin/false\ntransfer_executable = false\nqueue\n", "", exitSomeFailed, []string{"1.0 done: exited with status 1", "1 with a status other than 0"}},
		{"a job dies on a signal", "executable = /bin/sh\ntransfer_executable = false\narguments = \"-c 'kill -9 $$'\"\nqueue\n", "", exitSomeFailed, []string{"died on signal 9"}},
		{"one executable is missing", "transfer_executable = false\nskip_filechecks = true\nexecutable = $(x)\nqueue x in (/no/such/file, /bin/true)\n", "", exitSomeFailed,
			[]string{"1.0 held", "/no/such/file", "(code 6 subcode 2)", "1.1 done: exited with status 0", "1 held"}},
		{"one is not executable", "transfer_executable = false\nexecutable = $(x)\nqueue x in (/etc/passwd, /bin/true)\n", "", exitSomeFailed,
			[]string{"1.0 held", "(code 6 subcode 13)", "1.1 done"}},
		{"far too much memory", "executable = /bin/true\ntransfer_executable = false\nrequest_memory = 9000000\nqueue\n", "", exitNever, []string{"1.0 can never run here", "RequestMemory 9000000 > ", "of the largest slot"}},
		{"one of two is too big", "executable = /bin/true\ntransfer_executable = false\nrequest_cpus = $(n)\nqueue n in (1, 5000)\n", "", exitNever, []string{"1.1 can never run here", "RequestCpus 5000", "1.0 done"}},
		{"the owner says no", "executable = /bin/true\ntransfer_executable = false\nqueue\n", "START = Owner == \"nobody-like-this\"\n", exitNever, []string{"can never run here", "START"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			text := small
			if strings.Contains(tt.submit, "request_memory") {
				text = "request_disk = 1024\n"
			}
			p.write(t, "job.sub", text+tt.submit)
			args := []string{"run", "job.sub"}
			if tt.conf != "" {
				p.write(t, "ep.conf", tt.conf)
				args = []string{"run", "-config", "ep.conf", "job.sub"}
			}
			status, stdout, stderr := p.ep(t, args...)
			if status != tt.status {
				t.Errorf("status %d, want %d", status, tt.status)
			}
			for _, w := range tt.want {
				if !strings.Contains(stdout+stderr, w) {
					t.Errorf("%q is missing", w)
				}
			}
			if t.Failed() {
				t.Logf("stdout:\n%sstderr:\n%s", stdout, stderr)
			}
			p.nothingLeft(t)
		})
	}
}

func TestBadInput(t *testing.T) {
	t.Parallel()
	const good = "executable = /bin/true\ntransfer_executable = false\nqueue\n"
	for _, tt := range []struct {
		name, submit, conf string
		args               []string
		want               string
	}{
		{"submit file", "executable = /bin/true\nrequest_cpus = banana (\nqueue\n", "", nil, "job.sub:2:"},
		{"no queue", "executable = /bin/true\n", "", nil, "job.sub:"},
		{"universe", "universe = grid\nexecutable = /bin/true\nqueue\n", "", nil, "job.sub:1:"},
		{"configuration", good, "START = True\nif maybe\nendif\n", nil, "ep.conf:2:"},
		{"expression", good, "START = (KeyboardIdle >\n", nil, "ep.conf:1:"},
		{"template", good, "use POLICY : Dektop\n", nil, "ep.conf:1:"},
		{"range", good, "POLLING_INTERVAL = soon\n", nil, "ep.conf:1:"},
		{"byte order mark", good, "\ufeffSTART = True\n", nil, "ep.conf:1:1: the file begins with a byte order mark, U+FEFF"},
		{"no file", good, "", []string{"run", "nosuch.sub"}, "nosuch.sub"},
		{"no arguments", good, "", []string{"run"}, "want one submit file"},
		{"unknown option", good, "", []string{"run", "-fast", "job.sub"}, "-fast"},
		{"unknown command", good, "", []string{"fly"}, "unknown command"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.write(t, "job.sub", tt.submit)
			args := tt.args
			if args == nil {
				args = []string{"run", "job.sub"}
				if tt.conf != "" {
					p.write(t, "ep.conf", tt.conf)
					args = []string{"run", "-config", "ep.conf", "job.sub"}
				}
			}
			status, stdout, stderr := p.ep(t, args...)
			if status != exitUsage || !strings.Contains(stderr, tt.want) || stdout != "" {
				t.Errorf("status %d, want %d with %q\nstdout:\n%sstderr:\n%s", status, exitUsage, tt.want, stdout, stderr)
			}
			p.nothingLeft(t)
		})
	}
}

func TestExecuteNotWritable(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "job.sub", small+"executable = /bin/true\ntransfer_executable = false\nlog = job.log\nqueue\n")
	p.write(t, "file", "not a directory\n")
	p.write(t, "ep.conf", "EXECUTE = $(CONFIG_ROOT)/file/execute\n")
	status, stdout, stderr := p.ep(t, "run", "-config", "ep.conf", "job.sub")
	if status != exitUsage || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "EXECUTE") || stdout != "" {
		t.Errorf("status %d\nstdout:\n%sstderr:\n%s", status, stdout, stderr)
	}
	if _, err := os.Stat(filepath.Join(p.dir, "job.log")); err == nil {
		t.Error("no job may be begun")
	}
	p.nothingLeft(t)
}

func TestJSONAndKeep(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "job.sub", small+"executable = /bin/sh\ntransfer_executable = false\narguments = \"-c 'echo hi; exit 4'\"\noutput = out\nqueue\n")
	status, stdout, stderr := p.ep(t, "run", "-json", "-keep", "job.sub")
	if status != exitSomeFailed {
		t.Fatalf("status %d: %s%s", status, stdout, stderr)
	}
	var events []string
	var last map[string]any
	for line := range strings.Lines(stdout) {
		last = nil
		if err := json.Unmarshal([]byte(line), &last); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		events = append(events, fmt.Sprint(last["event"]))
		if last["event"] == "completed" && last["exit_code"] != 4.0 {
			t.Errorf("%s", line)
		}
	}
	want := []string{"submitted", "started", "completed", "finished"}
	if os.Geteuid() == 0 {
		want = append([]string{"warning"}, want...) // whose jobs they are
	}
	if d := cmp.Diff(want, events); d != "" {
		t.Error(d)
	}
	kept, _ := last["kept"].(string)
	if _, err := os.Stat(filepath.Join(kept, "log", "StartLog")); err != nil || kept == "" {
		t.Errorf("-keep: %q: %v", kept, err)
	}
	if b, err := os.ReadFile(filepath.Join(kept, "config.snapshot")); err != nil || !strings.Contains(string(b), `"name":"START"`) {
		t.Errorf("-keep must keep the configuration: %v", err)
	}
	if found, _ := filepath.Glob(filepath.Join(kept, "execute", "dir_*", "scratch")); len(found) != 1 {
		t.Errorf("-keep must keep the sandbox, found %v", found)
	}
}

func TestExitStatus(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		res  run.Result
		want int
	}{
		{run.Result{Counts: local.Counts{Total: 2, Done: 2}}, exitOK},
		{run.Result{Counts: local.Counts{Total: 2, Done: 2, Failed: 1}}, exitSomeFailed},
		{run.Result{Counts: local.Counts{Total: 2, Done: 1, Held: 1}}, exitSomeFailed},
		{run.Result{Counts: local.Counts{Total: 2, Done: 1, Idle: 1}, Interrupted: true}, exitSomeFailed},
		{run.Result{Counts: local.Counts{Total: 2, Done: 1, Idle: 1, Impossible: 1}, Impossible: []local.Impossible{{}}}, exitNever},
	} {
		if got := exitStatus(tt.res); got != tt.want {
			t.Errorf("%+v: %d, want %d", tt.res, got, tt.want)
		}
	}
}

// A job that asks for a custom resource is told which assets it got, under the
// names the configuration chose.
//
// row: S0-038
func TestCustomResource(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "ep.conf", "MACHINE_RESOURCE_Bolts = b1 b2 b3\nENVIRONMENT_FOR_AssignedBolts = MYBOLTS\n")
	p.write(t, "job.sub", small+"executable = /bin/sh\ntransfer_executable = false\narguments = \"-c 'echo $MYBOLTS $_CONDOR_AssignedBolts; grep -i ^Bolts $_CONDOR_MACHINE_AD; grep -i ^RequestBolts $_CONDOR_JOB_AD'\"\noutput = out\nrequest_bolts = 2\nqueue\n")
	status, stdout, stderr := p.ep(t, "run", "-config", "ep.conf", "job.sub")
	if status != exitOK {
		t.Fatalf("status %d\n%s%s", status, stdout, stderr)
	}
	if d := cmp.Diff("b1,b2 b1,b2\nBolts = 2\nRequestbolts = 2\n", p.read(t, "out")); d != "" {
		t.Error(d)
	}
}
