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
)

// home is a directory of BOINC's and who the client is to run as.
type home struct {
	dir   string
	owner string // "" where the EP runs as who it is for
	uid   int
}

// newHome is reachable for the owner, which only root's is another.
func newHome(t *testing.T, owner string) home {
	t.Helper()
	h := home{uid: os.Geteuid()}
	dir, err := os.MkdirTemp("", "backfill-*")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	h.dir = dir
	if h.uid != 0 {
		return h
	}
	u, err := user.Lookup(owner)
	if err != nil {
		t.Skip(err)
	}
	uid, err1 := strconv.Atoi(u.Uid)
	gid, err2 := strconv.Atoi(u.Gid)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if err := os.Chown(dir, uid, gid); err != nil {
		t.Fatal(err)
	}
	h.owner, h.uid = owner, uid
	return h
}

// conf is the configuration of backfill, and of a sensor by which a test says
// what the slots shall do.
func (h home) conf(p place, t *testing.T, program, more string) string {
	p.write(t, "sensor.sh", "#!/bin/sh\ncat "+filepath.Join(p.dir, "values")+"\necho -\n")
	owner := ""
	if h.owner != "" {
		owner = "BOINC_Owner = " + h.owner + "\n"
	}
	return fmt.Sprintf(`NUM_CPUS = 2
NUM_SLOTS = 2
SLOT_TYPE_0_PARTITIONABLE = false
POLLING_INTERVAL = 1
UPDATE_INTERVAL = 1
RunBenchmarks = False
START = Ready =?= True
STARTD_CRON_JOBLIST = sensor
STARTD_CRON_sensor_EXECUTABLE = %s/sensor.sh
STARTD_CRON_sensor_PERIOD = 1s
ENABLE_BACKFILL = TRUE
BACKFILL_SYSTEM = BOINC
START_BACKFILL = True
EVICT_BACKFILL = Evict =?= True
BOINC_HOME = %s
BOINC_Executable = %s
BOINC_Universe = vanilla
BOINC_InitialDir = $(BOINC_HOME)
`, p.dir, h.dir, program) + owner + more
}

// showLog prints the daemon log of a test that failed.
func (p place) showLog(t *testing.T) {
	if t.Failed() {
		t.Log(p.log())
	}
}

func (p place) set(t *testing.T, text string) {
	t.Helper()
	next := p.write(t, "values.next", text)
	if err := os.Rename(next, filepath.Join(p.dir, "values")); err != nil {
		t.Fatal(err)
	}
}

// said reports whether the daemon log has the move so many times.
func (p place) said(times int, move string) func() bool {
	return func() bool { return strings.Count(p.log(), move) == times }
}

// clients are the processes of a run that execute program.
func (p place) clients(t *testing.T, program string) (pids []string) {
	t.Helper()
	for _, c := range p.processes(t) {
		pid, cmd, _ := strings.Cut(c, " ")
		if strings.HasPrefix(cmd, program+" ") {
			pids = append(pids, pid)
		}
	}
	return pids
}

func contains(path, text string) func() bool {
	return func() bool {
		b, _ := os.ReadFile(path)
		return strings.Contains(string(b), text)
	}
}

const einstein = `<account>
  <master_url>http://einstein.invalid/</master_url>
  <authenticator>aaaa1111bbbb2222cccc3333</authenticator>
</account>
`

// TestBackfillWithBOINC shares the real client between two slots. It gives way
// to a job of one of them, is started again for the other at once, serves both
// again after the job, and ends with the Execution Point.
//
// row: S0-197, S0-202, S3-031
func TestBackfillWithBOINC(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("boinc")
	if err != nil {
		t.Skip("install boinc-client")
	}
	p, h := newPlace(t), newHome(t, "boinc")
	accountFile := filepath.Join(h.dir, "account_einstein.invalid.xml")
	if err := os.WriteFile(accountFile, []byte(einstein), 0o644); err != nil {
		t.Fatal(err)
	}
	p.write(t, "ep.conf", h.conf(p, t, program, `START = Ready =?= True && SlotID == 1
BOINC_Arguments = "--redirectio --no_gui_rpc --no_info_fetch --suppress_net_info --skip_cpu_benchmarks --no_gpus"
BOINC_Environment = LANG=C;MARK=of backfill
`))
	p.set(t, "Ready = False\n")
	p.write(t, "job.sh", "#!/bin/sh\nwhile [ ! -e "+p.dir+"/finish ]; do sleep 0.1; done\n")
	p.write(t, "job.sub", small+"executable = job.sh\nlog = job.log\nqueue\nrequirements = TARGET.Never =?= True\nqueue\n")
	c, stdout, stderr := p.cmd(t, "run", "-config", "ep.conf", "job.sub")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Process.Kill() }()
	defer p.showLog(t)
	logged := func(times int, text string) func() bool { // by the client, in a log that it goes on with
		return func() bool {
			b, _ := os.ReadFile(filepath.Join(h.dir, "stdoutdae.txt"))
			return strings.Count(string(b), text) == times
		}
	}
	only := func(what string) string {
		t.Helper()
		pids := p.clients(t, program)
		if len(pids) != 1 {
			t.Fatalf("%s: %d clients: %v", what, len(pids), p.processes(t))
		}
		return pids[0]
	}
	waitFor(t, "slot1 is in backfill", p.said(1, "slot1: Changing activity: Idle -> Busy transition=26"))
	waitFor(t, "slot2 is in backfill", p.said(1, "slot2: Changing activity: Idle -> Busy transition=26"))
	waitFor(t, "the client works", logged(1, "Initialization completed"))
	first := only("for two slots")
	status, _ := os.ReadFile("/proc/" + first + "/status")
	environ, _ := os.ReadFile("/proc/" + first + "/environ")
	if want := fmt.Sprintf("\nUid:\t%d\t%d\t%d\t%d\n", h.uid, h.uid, h.uid, h.uid); !strings.Contains(string(status), want) {
		t.Errorf("it does not run as %q (%d):\n%s", h.owner, h.uid, status)
	}
	if !leadsTo("/proc/"+first+"/cwd", h.dir) || !strings.Contains(string(environ), "\x00MARK=of backfill\x00") {
		cwd, _ := os.Readlink("/proc/" + first + "/cwd")
		t.Errorf("it works in %s with %q", cwd, environ)
	}

	p.set(t, "Ready = True\n")
	waitFor(t, "the client is told to go", logged(1, "Received signal 15"))
	waitFor(t, "it goes", logged(1, "Exiting"))
	waitFor(t, "the job runs", contains(filepath.Join(p.dir, "job.log"), "\n001 ("))
	waitFor(t, "slot2 has a client again", logged(2, "Initialization completed"))
	if again := only("beside the job"); again == first {
		t.Errorf("the client %s is still there", first)
	}
	moves := []string{
		"slot1: Changing activity: Busy -> Killing transition=28", "slot1: Changing activity: Killing -> Idle transition=29",
		"slot1: Changing state: Backfill -> Claimed transition=31", "slot2: Changing activity: Busy -> Idle transition=27",
	}
	for _, move := range moves {
		if !p.said(1, move)() {
			t.Errorf("%q is not there once", move)
		}
	}

	p.set(t, "Ready = False\n")
	p.write(t, "finish", "")
	waitFor(t, "slot1 is in backfill again", p.said(2, "slot1: Changing activity: Idle -> Busy transition=26"))
	only("for both slots again")
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // the second job has not run
	if !logged(2, "Received signal 15")() || !logged(2, "Exiting")() || strings.Contains(stdout.String()+stderr.String(), "does not run") {
		t.Errorf("the second client did not end by itself\n%s%s", stdout, stderr)
	}
	b, err := os.ReadFile(accountFile)
	if err != nil || string(b) != einstein {
		t.Errorf("the account file is %q, %v", b, err)
	}
	p.nothingLeft(t)
}

// client is a backfill client that shows what it was given, leaves a daemon of
// its own behind and does not heed the soft kill.
const client = `#!/bin/sh
trap '' TERM
setsid sh -c 'trap "" TERM; while :; do sleep 1; done' </dev/null >/dev/null 2>&1 &
echo "id $(id -u) $(id -g)"
echo "in $(pwd)"
echo "got $* with $MARK"
touch "$TMPDIR/mine" && echo "scratch works"
echo "to stderr" >&2
while :; do sleep 1; done
`

// TestBackfillAsOwner runs a client for somebody else, whose files are that
// one's, and ends all that it started.
//
// row: S0-178, S0-200, S0-201, S3-031, S4-088
func TestBackfillAsOwner(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can run the client as somebody else")
	}
	p, h, execute := newPlace(t), newHome(t, "daemon"), newHome(t, "root")
	program := filepath.Join(h.dir, "client.sh")
	if err := os.WriteFile(program, []byte(client), 0o755); err != nil {
		t.Fatal(err)
	}
	p.write(t, "ep.conf", h.conf(p, t, program, "KILLING_TIMEOUT = 1\nEXECUTE = "+execute.dir+`
BOINC_Arguments = "one 'two three'"
BOINC_Environment = "MARK='a mark'"
BOINC_Output = $(BOINC_HOME)/out
BOINC_Error = $(BOINC_HOME)/err
`))
	p.set(t, "Ready = False\n")
	p.write(t, "job.sub", small+"executable = /bin/true\ntransfer_executable = false\nrequirements = TARGET.Never =?= True\nqueue\n")
	c, stdout, stderr := p.cmd(t, "run", "-config", "ep.conf", "job.sub")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Process.Kill() }()
	defer p.showLog(t)
	out := filepath.Join(h.dir, "out")
	waitFor(t, "the client is known", func() bool { return strings.Contains(p.log(), "backfill client runs pid=") })
	waitFor(t, "the client works", contains(out, "scratch works"))
	waitFor(t, "it complains", contains(filepath.Join(h.dir, "err"), "to stderr"))
	b, err := os.ReadFile(out)
	if want := fmt.Sprintf("id %d %d\nin %s\ngot one two three with a mark\nscratch works\n", h.uid, h.uid, h.dir); err != nil || string(b) != want {
		t.Errorf("it says %q, want %q, %v", b, want, err)
	}
	for _, name := range []string{"out", "err"} {
		var st syscall.Stat_t
		if err := syscall.Stat(filepath.Join(h.dir, name), &st); err != nil || int(st.Uid) != h.uid || st.Mode != syscall.S_IFREG|0o644 {
			t.Errorf("%s is of %d with %o, %v", name, st.Uid, st.Mode, err)
		}
	}

	// Its starter is killed: so is the client, and another one comes.
	pid, parent := h.find(t, program)
	if parent == 0 {
		t.Fatal("there is no client")
	}
	if err := syscall.Kill(parent, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "another one runs", func() bool { return strings.Count(p.log(), "backfill client runs pid=") == 2 })
	if syscall.Kill(pid, 0) == nil {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		t.Errorf("the client %d of the dead starter is still there:\n%s", pid, status)
	}

	// The configuration sends the output nowhere: then there is none.
	waitFor(t, "it works too", contains(out, "scratch works"))
	if err := os.Truncate(out, 0); err != nil {
		t.Fatal(err)
	}
	p.write(t, "ep.conf", h.conf(p, t, program, "KILLING_TIMEOUT = 1\nEXECUTE = "+execute.dir+"\n"))
	if err := c.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the configuration is read", func() bool { return strings.Contains(p.log(), "configuration taken over") })
	p.set(t, "Ready = False\nEvict = True\n")
	waitFor(t, "the client is killed", func() bool { return strings.Contains(p.log(), "backfill client has ended") })
	p.set(t, "Ready = False\n")
	waitFor(t, "a third one runs", func() bool { return strings.Count(p.log(), "backfill client runs pid=") == 3 })
	waitFor(t, "it has nowhere to write to", func() bool {
		pid, _ := h.find(t, program)
		return leadsTo(fmt.Sprintf("/proc/%d/fd/1", pid), os.DevNull) && leadsTo(fmt.Sprintf("/proc/%d/fd/2", pid), os.DevNull)
	})
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait()
	if b, err := os.ReadFile(out); err != nil || len(b) != 0 {
		t.Errorf("the output is %q, %v\n%s%s", b, err, stdout, stderr)
	}
	if left, err := os.ReadDir(execute.dir); err != nil || len(left) != 0 {
		t.Errorf("EXECUTE holds %v, %v", left, err)
	}
	p.nothingLeft(t)
	for _, proc := range procs(t, h.uid) {
		if strings.Contains(proc, program) || strings.Contains(proc, "while :; do sleep 1") {
			t.Errorf("left behind: %s", proc)
		}
	}
}

// TestBackfillIsNotFooled has the owner of the client's directory point its
// output at files of root. The client does not run, and why is told.
func TestBackfillIsNotFooled(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can be fooled")
	}
	for name, lay := range map[string]func(target, path string) error{"symbolic link": os.Symlink, "hard link": os.Link} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, h, roots := newPlace(t), newHome(t, "daemon"), newHome(t, "root")
			program := filepath.Join(h.dir, "client.sh")
			shadow := filepath.Join(roots.dir, "shadow")
			for path, text := range map[string]string{program: client, shadow: "secret\n"} {
				if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := lay(shadow, filepath.Join(h.dir, "out")); err != nil {
				t.Fatal(err)
			}
			p.write(t, "ep.conf", h.conf(p, t, program, "BOINC_Output = $(BOINC_HOME)/out\n"))
			p.set(t, "Ready = False\n")
			p.write(t, "job.sub", small+"executable = /bin/true\ntransfer_executable = false\nrequirements = TARGET.Never =?= True\nqueue\n")
			c, stdout, stderr := p.cmd(t, "run", "-config", "ep.conf", "job.sub")
			if err := c.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Process.Kill() }()
			defer p.showLog(t)
			defer p.showLog(t)
			waitFor(t, "the client is refused twice", func() bool { return strings.Count(p.log(), "Failed to open '"+h.dir+"/out' as standard output") >= 1 })
			if err := c.Process.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			_ = c.Wait()
			if said := stdout.String() + stderr.String(); !strings.Contains(said, "the backfill client does not run: ") {
				t.Errorf("nobody is told:\n%s", said)
			}
			if b, err := os.ReadFile(shadow); err != nil || string(b) != "secret\n" {
				t.Errorf("root's file is %q, %v", b, err)
			}
			p.nothingLeft(t)
		})
	}
}

// find returns the client that runs a script, and its starter.
func (h home) find(t *testing.T, script string) (pid, parent int) {
	t.Helper()
	for _, proc := range procs(t, h.uid) {
		first, cmd, _ := strings.Cut(proc, " ")
		if !strings.HasPrefix(cmd, "/bin/sh "+script+" ") {
			continue
		}
		status, _ := os.ReadFile("/proc/" + first + "/status")
		_, rest, _ := strings.Cut(string(status), "\nPPid:\t")
		word, _, _ := strings.Cut(rest, "\n")
		pid, _ = strconv.Atoi(first)
		parent, _ = strconv.Atoi(word)
		if pid < 2 || parent < 2 {
			continue // it is about to go
		}
		return pid, parent
	}
	return 0, 0
}

// leadsTo reports whether a link of /proc leads to path. What it reads as is of the
// mounts that the process sees, which has its own.
func leadsTo(link, path string) bool {
	is, err := os.Stat(link)
	if err != nil {
		return false
	}
	want, err := os.Stat(path)
	return err == nil && os.SameFile(is, want)
}

// procs lists the processes of a user.
func procs(t *testing.T, uid int) []string {
	t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, d := range dirs {
		var st syscall.Stat_t
		if syscall.Stat(d, &st) == nil && int(st.Uid) == uid {
			cmdline, _ := os.ReadFile(d + "/cmdline")
			found = append(found, filepath.Base(d)+" "+strings.ReplaceAll(string(cmdline), "\x00", " "))
		}
	}
	return found
}
