// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/eventlog"
	"github.com/execpoint/execpoint/lib/observe"
)

// stubborn is a job that leaves a daemon of its own behind and ignores the
// soft kill.
const stubborn = `#!/bin/sh
trap '' TERM
(setsid sh -c 'trap "" TERM; echo $$ >daemon.pid; while :; do sleep 1; done' &)
echo ready
while :; do sleep 1; done
`

// start runs condor_ep in the background and waits until its jobs run.
func (p place) start(t *testing.T, jobs int, args ...string) (*process, func() (stdout, stderr string)) {
	t.Helper()
	c, out, errOut := p.cmd(t, args...)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	pr := &process{pid: c.Process.Pid, ended: ended}
	go func() {
		_ = c.Wait()
		pr.status = c.ProcessState.ExitCode()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		<-ended
	})
	waitFor(t, "the jobs run", func() bool {
		found, _ := filepath.Glob(filepath.Join(p.tmp, "execpoint-run-*", "execute", "dir_*", "scratch", "daemon.pid"))
		return len(found) == jobs
	})
	return pr, func() (string, string) { <-ended; return out.String(), errOut.String() }
}

type process struct {
	pid    int
	ended  chan struct{}
	status int
}

func (pr *process) signal(t *testing.T, s syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pr.pid, s); err != nil {
		t.Fatal(err)
	}
}

// interrupt presses Ctrl-C so many times, each time after the last was heard:
// two signals at once are one.
func (pr *process) interrupt(t *testing.T, p place, times int) {
	t.Helper()
	for i := range times {
		pr.signal(t, syscall.SIGINT)
		waitFor(t, "the interrupt is heard", func() bool {
			select {
			case <-pr.ended:
				return true
			default:
			}
			return strings.Count(p.log(), "shutting down") > i
		})
	}
}

// log returns the daemon log of the run that goes on.
func (p place) log() string {
	found, _ := filepath.Glob(filepath.Join(p.tmp, "execpoint-run-*", "log", "StartLog"))
	if len(found) != 1 {
		return ""
	}
	b, _ := os.ReadFile(found[0])
	return string(b)
}

func TestKillNine(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "job.sh", stubborn)
	p.write(t, "job.sub", small+"executable = job.sh\nqueue 2\n")
	pr, output := p.start(t, 2, "run", "job.sub")
	pr.signal(t, syscall.SIGKILL)
	output()
	waitFor(t, "no process of the killed run is left", func() bool { return len(p.processes(t)) == 0 })

	// The next run clears what is left on disk.
	p.write(t, "true.sub", small+"executable = /bin/true\ntransfer_executable = false\nqueue\n")
	status, stdout, stderr := p.ep(t, "run", "true.sub")
	if status != exitOK {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
	p.nothingLeft(t)
}

func TestInterrupt(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		job     string
		signals int
		output  string // what the job says in the end
	}{
		{"once: the job may leave by itself", "#!/bin/sh\ntrap 'echo leaving >>trace; exit 0' TERM\necho $$ >daemon.pid\nwhile :; do sleep 0.1; done\n", 1, ""},
		{"twice: it is killed", stubborn, 2, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.write(t, "job.sh", tt.job)
			p.write(t, "job.sub", small+"executable = job.sh\nlog = job.log\nqueue\n")
			pr, output := p.start(t, 1, "run", "job.sub")
			pr.interrupt(t, p, tt.signals)
			stdout, stderr := output()
			if pr.status != exitSomeFailed || !strings.Contains(stdout, "1 not finished") {
				t.Errorf("status %d\n%s%s", pr.status, stdout, stderr)
			}
			all := p.events(t, "job.log")
			ev, ok := all[len(all)-1].Event.(eventlog.Evicted)
			if !ok || ev.ReasonCode != 1013 {
				t.Errorf("the job must be logged as evicted by the shutdown, got %+v", all[len(all)-1].Event)
			}
			p.nothingLeft(t)
		})
	}
}

// A job whose program has ended and whose output is on its way is no job to kill: it
// completes while everything shuts down fast.
func TestInterruptSparesOutput(t *testing.T) {
	t.Parallel()
	const size = 24 << 20
	p := newPlace(t)
	p.write(t, "job.sh", "#!/bin/sh\necho $$ >daemon.pid\nhead -c 25165824 /dev/zero\n")
	p.write(t, "job.sub", small+"executable = job.sh\noutput = out\nlog = job.log\nqueue\n")
	if err := syscall.Mkfifo(filepath.Join(p.dir, "out"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := os.OpenFile(filepath.Join(p.dir, "out"), os.O_RDWR, 0) // which waits for nobody
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	pr, output := p.start(t, 1, "run", "job.sub")
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	pr.interrupt(t, p, 2)
	if n, err := io.CopyN(io.Discard, out, size-1); err != nil {
		t.Errorf("%d bytes arrived: %v", n+1, err)
	}
	stdout, stderr := output()
	all := p.events(t, "job.log")
	if _, ok := all[len(all)-1].Event.(eventlog.Terminated); !ok {
		t.Errorf("the last event is %+v\n%s%s", all[len(all)-1].Event, stdout, stderr)
	}
	p.nothingLeft(t)
}

func TestStarterKilled(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "job.sh", "#!/bin/sh\nif [ -e "+filepath.Join(p.dir, "second")+" ]; then exit 0; fi\ntouch "+filepath.Join(p.dir, "second")+"\n"+strings.TrimPrefix(stubborn, "#!/bin/sh\n"))
	p.write(t, "job.sub", small+"executable = job.sh\nlog = job.log\nqueue\n")
	pr, output := p.start(t, 1, "run", "job.sub")
	found, err := filepath.Glob(filepath.Join(p.tmp, "execpoint-run-*", "execute", "dir_*"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	var pid int
	if _, err := fmt.Sscanf(filepath.Base(found[0]), "dir_%d", &pid); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	stdout, stderr := output()
	if pr.status != exitOK || !strings.Contains(stdout, "evicted") || !strings.Contains(stdout, "1 job: 1 done") {
		t.Errorf("a job whose starter dies must be run again: status %d\n%s%s", pr.status, stdout, stderr)
	}
	p.nothingLeft(t)
}

func TestStatusAndExplain(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	if status, stdout, stderr := p.ep(t, "status"); status != exitSomeFailed || stdout != "" || !strings.Contains(stderr, "no Execution Point") {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
	p.write(t, "job.sh", stubborn)
	p.write(t, "job.sub", small+"executable = job.sh\nqueue\n")
	p.write(t, "ep.conf", "START = Owner =!= \"mallory\"\nPREEMPT = KeyboardIdle < -1\n")
	pr, output := p.start(t, 1, "run", "-config", "ep.conf", "job.sub")

	status, stdout, stderr := p.ep(t, "status")
	if status != exitOK {
		t.Fatalf("status %d: %s", status, stderr)
	}
	for _, want := range []string{"slot1 ", "Partitionable", "slot1_1", "Dynamic", "Claimed", "Busy", "1.0"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("status lacks %q:\n%s", want, stdout)
		}
	}
	if !strings.Contains(stdout, ", condor_ep run, pid ") {
		t.Errorf("what runs is not said:\n%s", stdout)
	}
	_, stdout, _ = p.ep(t, "status", "-json")
	var st observe.Status
	if err := json.Unmarshal([]byte(stdout), &st); err != nil {
		t.Fatalf("%s: %v", stdout, err)
	}
	if st.PID != pr.pid || st.Program != "condor_ep run" || len(st.Slots) != 2 || st.Jobs == nil || st.Jobs.Running != 1 {
		t.Errorf("%+v", st)
	}
	for _, subject := range []string{"slot1_1", "1.0"} {
		status, stdout, stderr = p.ep(t, "explain", subject)
		if status != exitOK {
			t.Errorf("explain %s: status %d: %s", subject, status, stderr)
		}
		for _, want := range []string{"slot1_1 is Claimed/Busy", "came from Claimed/Idle", "(transition 11)", "PREEMPT", "KeyboardIdle", "ep.conf:2"} {
			if !strings.Contains(stdout, want) {
				t.Errorf("explain %s lacks %q:\n%s", subject, want, stdout)
			}
		}
	}
	status, _, stderr = p.ep(t, "explain", "slot7")
	if status != exitSomeFailed || !strings.Contains(stderr, "slot7") {
		t.Errorf("status %d: %s", status, stderr)
	}
	pr.interrupt(t, p, 2)
	output()
	p.nothingLeft(t)
}

// volume mounts a small file system below the place.
func (p place) volume(t *testing.T, size string) string {
	t.Helper()
	vol := filepath.Join(p.tmp, "vol")
	if err := os.Mkdir(vol, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", vol, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("needs the right to mount a small tmpfs (run as root): %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(vol, 0); err != nil {
			t.Error(err)
		}
	})
	return vol
}

// An EXECUTE without room is told before any job starts.
func TestExecuteFull(t *testing.T) {
	p := newPlace(t)
	vol := p.volume(t, "64k")
	f, err := os.Create(filepath.Join(vol, "big"))
	if err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = f.Write(make([]byte, 4096))
	}
	f.Close()
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	p.write(t, "job.sub", small+"executable = /bin/true\ntransfer_executable = false\nlog = job.log\nqueue\n")
	p.write(t, "ep.conf", "EXECUTE = "+vol+"\n")
	status, stdout, stderr := p.ep(t, "run", "-config", "ep.conf", "job.sub")
	if status != exitUsage || strings.Count(stderr, "\n") != 1 || !strings.Contains(stderr, "EXECUTE") || !strings.Contains(stderr, "no space left") || stdout != "" {
		t.Errorf("status %d\nstdout:\n%sstderr:\n%s", status, stdout, stderr)
	}
	if _, err := os.Stat(filepath.Join(p.dir, "job.log")); err == nil {
		t.Error("no job may be begun")
	}
	p.nothingLeft(t)
}

// A job that fills the file system under EXECUTE fails or is held by itself.
func TestDiskFull(t *testing.T) {
	p := newPlace(t)
	vol := p.volume(t, "8m")
	p.write(t, "fill.sh", "#!/bin/sh\nif [ \"$1\" = fill ]; then dd if=/dev/zero of=big bs=1M count=64 2>/dev/null; code=$?; rm -f big; exit $code; fi\nexit 0\n")
	p.write(t, "job.sub", "should_transfer_files = YES\nrequest_cpus = 1\nrequest_memory = 16\nrequest_disk = 100\nexecutable = fill.sh\narguments = $(what)\nlog = job.log\nqueue what in (fill, easy, easy)\n")
	p.write(t, "ep.conf", "EXECUTE = "+vol+"\nNUM_CPUS = 1\n")
	status, stdout, stderr := p.ep(t, "run", "-config", "ep.conf", "job.sub")
	if status != exitSomeFailed {
		t.Errorf("status %d", status)
	}
	for _, want := range []string{"1.1 done: exited with status 0", "1.2 done: exited with status 0"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the job that fills the disk takes the others down: no %q", want)
		}
	}
	if !strings.Contains(stdout, "1.0 done: exited with status 1") && !strings.Contains(stdout, "1.0 held") {
		t.Error("the job that fills the disk is not told as failed")
	}
	if t.Failed() {
		t.Logf("%s%s", stdout, stderr)
	}
	if left, _ := os.ReadDir(vol); len(left) > 0 {
		t.Errorf("left in EXECUTE: %v", left)
	}
	p.nothingLeft(t)
}

// copyExamples puts a copy of the examples into the place, so that tests do
// not write into the repository.
func (p place) copyExamples(t *testing.T) {
	t.Helper()
	root := filepath.Join(p.dir, "examples")
	if err := os.CopyFS(root, os.DirFS("../../examples")); err != nil {
		t.Fatal(err)
	}
	// What somebody's own run has left there is no part of the examples.
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		switch ext := filepath.Ext(path); {
		case ext == ".log", ext == ".out", ext == ".err", ext == ".count", d.Name() == "total.txt", d.Name() == "keyboard":
			return os.Remove(path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestExampleHello(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.copyExamples(t)
	status, stdout, stderr := p.ep(t, "run", "examples/hello.sub")
	if status != exitOK || !strings.Contains(stdout, "output in "+filepath.Join(p.dir, "examples", "hello.out")) {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
	if out := p.read(t, "examples/hello.out"); !strings.Contains(out, "slot1_1") {
		t.Errorf("hello.out: %q", out)
	}
	p.nothingLeft(t)
}

// moves reads the transitions of a slot from the daemon log.
func moves(log, slotName string) []string {
	var out []string
	for line := range strings.Lines(log) {
		_, rest, ok := strings.Cut(line, " "+slotName+": Changing ")
		if !ok {
			continue
		}
		what, _, _ := strings.Cut(rest, " why=")
		out = append(out, what)
	}
	return out
}

// TestExampleDesktop lets the policy of examples/desktop meet a real job and a
// stand-in for the keyboard: a file that is touched.
//
// row: S0-156, S0-157, S0-158, S0-160
func TestExampleDesktop(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes half a minute of real time; run without -short")
	}
	p := newPlace(t)
	p.copyExamples(t)
	keyboard := filepath.Join(p.dir, "examples", "desktop", "keyboard")
	press := func() {
		now := time.Now()
		if err := os.Chtimes(keyboard, now, now); err != nil {
			t.Error(err)
		}
	}
	p.write(t, "examples/desktop/keyboard", "")
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(keyboard, old, old); err != nil {
		t.Fatal(err)
	}
	c, out, errOut := p.cmd(t, "run", "-keep", "-config", "examples/desktop/desktop.conf", "examples/desktop/work.sub")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	says := func(what string) func() bool {
		return func() bool { return strings.Contains(p.log(), what) }
	}
	waitFor(t, "the job runs", says("Idle -> Busy"))
	press()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("%s\n%s%s", p.log(), out, errOut)
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	})
	waitFor(t, "the job is suspended", says("Busy -> Suspended"))
	waitFor(t, "the job continues", says("Suspended -> Busy"))
	typing := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				press()
			case <-typing:
				return
			}
		}
	}()
	waitFor(t, "the job is preempted", says("Claimed/Retiring -> Preempting/Vacating"))
	close(typing)
	<-stopped
	if err := c.Wait(); err != nil {
		t.Errorf("the job must run again when the owner is gone: %v\n%s%s", err, out, errOut)
	}
	all := moves(p.log(), "slot1_1")
	want := []string{
		"state: Owner -> Claimed transition=5",
		"activity: Idle -> Busy transition=11",
		"activity: Busy -> Suspended transition=14",
		"activity: Suspended -> Busy transition=15",
		"activity: Busy -> Suspended transition=14",
		"activity: Suspended -> Retiring transition=16",
		"state and activity: Claimed/Retiring -> Preempting/Vacating transition=18",
	}
	if len(all) < len(want) {
		t.Fatalf("only %q", all)
	}
	if d := cmp.Diff(want, all[:len(want)]); d != "" {
		t.Error(d)
	}
	var codes []eventlog.Code
	for _, r := range p.events(t, "examples/desktop/work.log") {
		switch r.Event.Code() {
		case eventlog.CodeFileTransfer, eventlog.CodeImageSize:
		default:
			codes = append(codes, r.Event.Code())
		}
	}
	wantCodes := []eventlog.Code{
		eventlog.CodeSubmit, eventlog.CodeExecute, eventlog.CodeSuspended, eventlog.CodeUnsuspended, eventlog.CodeSuspended,
		eventlog.CodeUnsuspended, eventlog.CodeEvicted, eventlog.CodeExecute, eventlog.CodeTerminated,
	}
	if d := cmp.Diff(wantCodes, codes); d != "" {
		t.Error(d)
	}
}

// TestExampleSum runs the forty jobs and the step that adds them up.
//
// row: S0-044
func TestExampleSum(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.copyExamples(t)
	status, stdout, stderr := p.ep(t, "run", "examples/sum/sum.sub")
	if status != exitOK || !strings.Contains(stdout, "40 jobs: 40 done in") {
		t.Fatalf("status %d\n%s%s", status, stdout, stderr)
	}
	p.nothingLeft(t)
	if status, stdout, stderr = p.ep(t, "run", "examples/sum/combine.sub"); status != exitOK {
		t.Fatalf("status %d\n%s%s", status, stdout, stderr)
	}
	if total := p.read(t, "examples/sum/total.txt"); !strings.Contains(total, "148933 primes up to 2000000") {
		t.Errorf("total: %q", total)
	}
	p.nothingLeft(t)

	// Every job has the same life in the log, and the slots are numbered as
	// they are carved.
	lives := make(map[int][]eventlog.Code)
	slots := make(map[string]bool)
	for _, r := range p.events(t, "examples/sum/sum.log") {
		if r.Event.Code() != eventlog.CodeImageSize { // only if the job has grown
			lives[r.Proc] = append(lives[r.Proc], r.Event.Code())
		}
		if e, ok := r.Event.(eventlog.Execute); ok {
			name, _, _ := strings.Cut(e.SlotName, "@")
			slots[name] = true
		}
	}
	if len(lives) != 40 || !slots["slot1_1"] {
		t.Errorf("%d jobs in the log, slots %v", len(lives), slots)
	}
	want := []eventlog.Code{
		eventlog.CodeSubmit, eventlog.CodeFileTransfer, eventlog.CodeFileTransfer, eventlog.CodeExecute,
		eventlog.CodeFileTransfer, eventlog.CodeFileTransfer, eventlog.CodeTerminated,
	}
	for proc, life := range lives {
		if d := cmp.Diff(want, life); d != "" {
			t.Errorf("job %d: %s", proc, d)
		}
	}
}

// TestAlwaysRun runs a job under the documents' policy that evicts nothing and
// gives jobs the lowest priority.
//
// row: S0-096
func TestAlwaysRun(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "ep.conf", "START = True\nSUSPEND = False\nPREEMPT = False\nKILL = False\nJOB_RENICE_INCREMENT = 19\nPOLLING_INTERVAL = 1\nCONSOLE_DEVICES = $(CONFIG_ROOT)/keyboard\nSLOTS_CONNECTED_TO_CONSOLE = 9\n")
	p.write(t, "keyboard", "") // a key was pressed just now
	p.write(t, "job.sh", "#!/bin/sh\nsleep 3\nexec awk '{print $19}' /proc/self/stat\n")
	p.write(t, "job.sub", small+"executable = job.sh\noutput = out\nlog = job.log\nqueue\n")
	status, stdout, stderr := p.ep(t, "run", "-config", "ep.conf", "job.sub")
	if status != exitOK {
		t.Fatalf("status %d\n%s%s", status, stdout, stderr)
	}
	if got := p.read(t, "out"); got != "19\n" {
		t.Errorf("the job runs at nice %q", got)
	}
	for _, r := range p.events(t, "job.log") {
		switch r.Event.Code() {
		case eventlog.CodeEvicted, eventlog.CodeSuspended:
			t.Errorf("the job was disturbed: %+v", r.Event)
		}
	}
}

// TestProcessTree looks at who is whose child while a job runs.
func TestProcessTree(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "job.sub", small+"executable = /bin/sh\ntransfer_executable = false\narguments = \"-c 'echo $PPID $CONDOR_STARTER_PID'\"\noutput = out\nqueue\n")
	if status, stdout, stderr := p.ep(t, "run", "job.sub"); status != exitOK {
		t.Fatalf("status %d\n%s%s", status, stdout, stderr)
	}
	var parent, starter int
	if _, err := fmt.Sscan(p.read(t, "out"), &parent, &starter); err != nil || parent != starter || parent == 0 {
		t.Errorf("the job's parent is %d, its starter %d: %v", parent, starter, err)
	}
}

// A job that waits is explained by what the slots and the job say.
func TestExplainWaitingJob(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "ep.conf", "# comes on line 2\nSTART = KeyboardIdle > 100000000\n")
	p.write(t, "job.sub", small+"executable = /bin/true\ntransfer_executable = false\nqueue\n")
	c, out, errOut := p.cmd(t, "run", "-config", "ep.conf", "job.sub")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = c.Process.Signal(os.Interrupt)
		if err := c.Wait(); err == nil {
			t.Error("the job cannot have run")
		}
		if !strings.Contains(out.String(), "1 not finished") || errOut.Len() > 0 {
			t.Errorf("%s%s", out, errOut)
		}
		p.nothingLeft(t)
	}()
	var said string
	waitFor(t, "the job is explained", func() bool {
		var status int
		status, said, _ = p.ep(t, "explain", "1.0")
		return status == exitOK
	})
	for _, want := range []string{"job 1.0 is idle", "no slot takes the job now", "START would be TRUE if KeyboardIdle > 100000000; it is ", "ep.conf:2]"} {
		if !strings.Contains(said, want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
}

// A job whose lease its user means to have no end runs like any other.
func TestLeaseWithoutEnd(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.write(t, "job.sub", small+"executable = /bin/sleep\ntransfer_executable = false\narguments = 2\n+JobLeaseDuration = 9999999999\nperiodic_hold = NumJobStarts > 1\nlog = job.log\nqueue\n")
	status, stdout, stderr := p.ep(t, "run", "job.sub")
	if log := p.read(t, "job.log"); status != exitOK || strings.Count(log, "Job executing on host") != 1 || strings.Contains(log, "evicted") {
		t.Errorf("status %d\n%s%s%s", status, stdout, stderr, log)
	}
	p.nothingLeft(t)
}
