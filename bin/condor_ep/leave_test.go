// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/eventlog"
)

// watch runs condor_ep in the background. What it prints can be read while it
// runs.
type watch struct {
	*process
	file string
}

func (p place) watch(t *testing.T, args ...string) *watch {
	t.Helper()
	c, _, _ := p.cmd(t, args...)
	return p.watched(t, c)
}

func (p place) watched(t *testing.T, c *exec.Cmd) *watch {
	t.Helper()
	f, err := os.CreateTemp(p.tmp, "printed-")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c.Stdout, c.Stderr = f, f
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	w := &watch{process: &process{pid: c.Process.Pid, ended: ended}, file: f.Name()}
	go func() {
		_ = c.Wait()
		w.status = c.ProcessState.ExitCode()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = c.Process.Kill()
		<-ended
	})
	return w
}

// printed is what condor_ep has printed so far.
func (w *watch) printed(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile(w.file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// says waits until something was printed. Nothing else may be waited for.
func (w *watch) says(t *testing.T, want string) {
	t.Helper()
	waitFor(t, fmt.Sprintf("it says %q", want), func() bool {
		if strings.Contains(w.printed(t), want) {
			return true
		}
		select {
		case <-w.ended:
			if !strings.Contains(w.printed(t), want) {
				t.Fatalf("it has ended and did not say %q:\n%s", want, w.printed(t))
			}
		default:
		}
		return false
	})
}

// running waits until the program of a job runs and has written daemon.pid.
func (w *watch) running(t *testing.T, p place) {
	t.Helper()
	waitFor(t, "the job runs", func() bool {
		found, _ := filepath.Glob(filepath.Join(p.tmp, "execpoint-run-*", "execute", "dir_*", "scratch", "daemon.pid"))
		return len(found) == 1
	})
}

// TestInterruptSays tells at once what Ctrl-C does, while the job goes on, and what
// a second one would do; and why the job left in the words of who pressed it.
func TestInterruptSays(t *testing.T) {
	t.Parallel()
	const long = "#!/bin/sh\ntrap '' TERM\necho $$ >daemon.pid\nwhile :; do sleep 0.1; done\n"
	for _, tt := range []struct {
		name, conf, first, second string
		args                      []string
	}{
		{
			"vacate time", "MachineMaxVacateTime = 77\n", "told to end: no other job begins, 1 job is asked to end and has time for it, at most 77 s; a second Ctrl-C (or SIGTERM) kills what still runs\n",
			"told to end at once: 1 job is killed\n", nil,
		},
		{
			"retirement", "MAXJOBRETIREMENTTIME = 100000000\n", "told to end: no other job begins, 1 job may go on for the time of MAXJOBRETIREMENTTIME and is then asked to end, at most 30 min 0 s; a second",
			"told to end at once: 1 job is killed\n", nil,
		},
		{
			"JSON", "MachineMaxVacateTime = 77\n", `"event":"ending","manner":"graceful","running":1,"seconds":77,"sending":0}`,
			`"event":"ending","manner":"fast","running":1,"seconds":30,"sending":0}`, []string{"-json"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.write(t, "ep.conf", tt.conf)
			p.write(t, "job.sh", long)
			p.write(t, "job.sub", small+"executable = job.sh\nlog = job.log\nqueue\n")
			w := p.watch(t, append(append([]string{"run", "-config", "ep.conf"}, tt.args...), "job.sub")...)
			w.running(t, p)
			w.signal(t, syscall.SIGINT)
			w.says(t, tt.first)
			select {
			case <-w.ended:
				t.Fatalf("the job has its vacate time:\n%s", w.printed(t))
			default:
			}
			w.signal(t, syscall.SIGINT)
			w.says(t, tt.second)
			<-w.ended
			const why = "condor_ep run was told to end"
			if out := w.printed(t); !strings.Contains(out, why) || strings.Contains(out, "Startd") || w.status != exitSomeFailed {
				t.Errorf("status %d, want %q in\n%s", w.status, why, out)
			}
			all := p.events(t, "job.log")
			if ev, ok := all[len(all)-1].Event.(eventlog.Evicted); !ok || ev.ReasonCode != 1013 || ev.Reason != why {
				t.Errorf("the last event is %+v", all[len(all)-1].Event)
			}
			p.nothingLeft(t)
		})
	}
}

// stalled is a program that says nothing until the test lets it.
func (p place) stalled(t *testing.T, name string) (path string, release func()) {
	t.Helper()
	fifo := filepath.Join(p.dir, name+".fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(fifo, os.O_RDWR, 0) // which waits for nobody
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	path = p.write(t, name, "#!/bin/sh\nread line <"+fifo+"\n")
	return path, func() {
		if _, err := f.WriteString("go\n"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestWaiting says what is waited for while it is: before the first line of the
// run, and behind it.
func TestWaiting(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, conf, says string
		args             []string
	}{
		{"a command of the configuration", "include command : %s\n", "waiting for the command %s of the configuration\n", nil},
		{"an inventory", "MACHINE_RESOURCE_INVENTORY_Bolts = %s\n", "waiting for the programs that say what the machine has (MACHINE_RESOURCE_INVENTORY_<name>, condor_gpu_discovery)\n", nil},
		{"JSON", "include command : %s\n", `{"detail":"the command %s of the configuration","event":"waiting"}` + "\n", []string{"-json"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			path, release := p.stalled(t, "slow")
			p.write(t, "ep.conf", fmt.Sprintf(tt.conf, path))
			p.write(t, "job.sub", small+"executable = /bin/true\ntransfer_executable = false\nqueue\n")
			w := p.watch(t, append(append([]string{"run", "-config", "ep.conf"}, tt.args...), "job.sub")...)
			w.says(t, strings.ReplaceAll(tt.says, "%s", path))
			for range 2 { // the configuration is read twice
				release()
			}
			<-w.ended
			if out := w.printed(t); w.status != exitOK || !strings.Contains(out, "1.0") {
				t.Errorf("status %d\n%s", w.status, out)
			}
		})
	}
}

// TestFirstLine has the first line of output within a second, when nothing is
// there to wait for, and when something is.
func TestFirstLine(t *testing.T) {
	for _, slow := range []bool{false, true} {
		p := newPlace(t)
		p.write(t, "ep.conf", "")
		if slow {
			path, _ := p.stalled(t, "slow")
			p.write(t, "ep.conf", "include command : "+path+"\n")
		}
		p.write(t, "job.sub", small+"executable = /bin/true\ntransfer_executable = false\nqueue\n")
		best := time.Hour
		for range 5 { // the machine may be busy
			began := time.Now()
			w := p.watch(t, "run", "-config", "ep.conf", "job.sub")
			w.says(t, "\n")
			best = min(best, time.Since(began))
			w.signal(t, syscall.SIGKILL)
			<-w.ended
		}
		if best > time.Second {
			t.Errorf("slow %v: the first line comes after %v", slow, best)
		}
	}
}

// TestInterruptStart breaks the start off: nothing has begun, nothing is left.
func TestInterruptStart(t *testing.T) {
	t.Parallel()
	for name, conf := range map[string]string{"configuration": "include command : %s\n", "inventory": "MACHINE_RESOURCE_INVENTORY_Bolts = %s\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			path, _ := p.stalled(t, "slow")
			p.write(t, "ep.conf", fmt.Sprintf(conf, path))
			p.write(t, "job.sub", small+"executable = /bin/true\ntransfer_executable = false\nlog = job.log\nqueue\n")
			w := p.watch(t, "run", "-config", "ep.conf", "job.sub")
			w.says(t, "waiting for")
			w.signal(t, syscall.SIGINT)
			<-w.ended
			if out := w.printed(t); w.status != exitSomeFailed || !strings.HasSuffix(out, "told to end: no job has begun; a second Ctrl-C (or SIGTERM) waits for nothing\n") {
				t.Errorf("status %d\n%s", w.status, out)
			}
			if _, err := os.Stat(filepath.Join(p.dir, "job.log")); err == nil {
				t.Error("a job was begun")
			}
			p.nothingLeft(t)
		})
	}
}

// TestInterruptHopeless ends a start that waits for what nothing can end: at the
// second Ctrl-C at once, and after one soon.
func TestInterruptHopeless(t *testing.T) {
	t.Parallel()
	for _, signals := range []int{1, 2} {
		p := newPlace(t)
		if err := syscall.Mkfifo(filepath.Join(p.dir, "ep.conf"), 0o600); err != nil {
			t.Fatal(err)
		}
		p.write(t, "job.sub", small+"executable = /bin/true\ntransfer_executable = false\nqueue\n")
		w := p.watch(t, "run", "-config", "ep.conf", "job.sub")
		w.says(t, "waiting for the configuration\n")
		began := time.Now()
		for range signals {
			w.signal(t, syscall.SIGTERM)
			w.says(t, "told to end: no job has begun")
		}
		select {
		case <-w.ended:
		case <-time.After(10 * giveUp): // the machine may be busy
			t.Fatalf("%d signals: it still waits:\n%s", signals, w.printed(t))
		}
		if took := time.Since(began); w.status != exitSomeFailed || (took < giveUp) != (signals == 2) {
			t.Errorf("%d signals: status %d after %v\n%s", signals, w.status, took, w.printed(t))
		}
		p.nothingLeft(t)
	}
}

// stranger is a place of another user, whose name is returned, and how to become
// that user. Who is not root cannot, and has a second place.
func stranger(t *testing.T) (p place, name string, as *syscall.SysProcAttr) {
	t.Helper()
	// All above the directories of a test are one user's alone.
	base, err := os.MkdirTemp("", "stranger")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	if err := os.Chmod(base, 0o755); err != nil {
		t.Fatal(err)
	}
	p = place{dir: filepath.Join(base, "dir"), tmp: filepath.Join(base, "tmp")}
	who, err := user.Current()
	if os.Geteuid() == 0 {
		who, err = user.Lookup("nobody")
	}
	if err != nil {
		t.Skip(err)
	}
	uid, err1 := strconv.Atoi(who.Uid)
	gid, err2 := strconv.Atoi(who.Gid)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	for _, dir := range []string{p.dir, p.tmp} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatal(err)
		}
	}
	if os.Geteuid() == 0 {
		as = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}
	return p, who.Username, as
}

// called is a program under a name of its own.
func (p place) called(t *testing.T, program, name string) string {
	t.Helper()
	path := filepath.Join(p.dir, name)
	text, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	syscall.ForkLock.RLock() // no child may hold it open for writing
	defer syscall.ForkLock.RUnlock()
	if err := os.WriteFile(path, text, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestStrangersBeside tells of a run of another user, which is not among this
// user's records, and of a condor_startd, each in one line.
func TestStrangersBeside(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	other, who, as := stranger(t)
	other.write(t, "job.sh", "#!/bin/sh\necho $$ >daemon.pid\nsleep 600\n")
	other.write(t, "job.sub", small+"executable = job.sh\nqueue\n")
	c, _, _ := other.cmd(t, "run", "job.sub")
	c.Path, c.SysProcAttr = other.called(t, c.Path, "condor_ep"), as
	c.Args[0] = "\x1b[31mcondor_ep"
	w := other.watched(t, c)
	w.running(t, other)

	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	daemon := exec.Command(other.called(t, sh, "condor_startd"), "-c", "echo ready; read line; exit 0")
	daemon.SysProcAttr = as
	in, err1 := daemon.StdinPipe()
	out, err2 := daemon.StdoutPipe()
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	p.write(t, "job.sub", small+"executable = /bin/true\ntransfer_executable = false\nqueue\n")
	run, both, _ := p.cmd(t, "run", "job.sub")
	run.Stderr = both
	if err := run.Run(); err != nil {
		t.Errorf("%v\n%s", err, both)
	}
	stdout := both.String()
	for want, more := range map[string]string{
		fmt.Sprintf("warning: another condor_ep run (process %d of %s) uses this machine, too; ", w.pid, who):        " more processes are called condor_ep run",
		fmt.Sprintf("warning: a condor_startd (process %d of %s) uses this machine, too; ", daemon.Process.Pid, who): " more processes are called condor_startd",
	} {
		// Other tests have such processes, too, and only a few are named.
		if n := strings.Count(stdout, want); n != 1 && !strings.Contains(stdout, more) {
			t.Errorf("%q is said %d times in\n%s", want, n, stdout)
		}
	}
	if strings.Contains(stdout, "\x1b") {
		t.Errorf("%q", stdout)
	}
	w.interrupt(t, other, 1)
	<-w.ended
	in.Close()
	if err := daemon.Wait(); err != nil {
		t.Error(err)
	}
	other.nothingLeft(t)
	again, out2, _ := p.cmd(t, "run", "-json", "job.sub")
	if err := again.Run(); err != nil || strings.Contains(out2.String(), fmt.Sprintf("process %d ", w.pid)) || strings.Contains(out2.String(), fmt.Sprintf("process %d ", daemon.Process.Pid)) {
		t.Errorf("they have ended: %v\n%s", err, out2)
	}
}
