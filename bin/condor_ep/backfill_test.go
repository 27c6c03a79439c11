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

// TestBackfillWithBOINC shares the real client between two slots, gives way to
// jobs, comes back after them and ends with the Execution Point.
//
// row: S0-197, S0-202, S3-030
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
	p.write(t, "ep.conf", h.conf(p, t, program, `START_BACKFILL = $(StateTimer) > 3
BOINC_Arguments = "--no_gui_rpc --no_info_fetch --suppress_net_info --skip_cpu_benchmarks --no_gpus"
BOINC_Environment = LANG=C;MARK=of backfill
BOINC_Output = $(BOINC_HOME)/boinc.out
BOINC_Error = $(BOINC_HOME)/boinc.err
`))
	p.set(t, "Ready = False\n")
	p.write(t, "job.sh", "#!/bin/sh\necho $$ >daemon.pid\nwhile [ ! -e "+p.dir+"/finish ]; do sleep 0.1; done\n")
	p.write(t, "job.sub", small+"executable = job.sh\nlog = job.log\nqueue 2\nrequirements = TARGET.Never =?= True\nqueue\n")
	c, stdout, stderr := p.cmd(t, "run", "-config", "ep.conf", "job.sub")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Process.Kill() }()
	out := filepath.Join(h.dir, "boinc.out")
	waitFor(t, "both slots are in backfill", func() bool {
		return p.said(1, "slot1: Changing activity: Idle -> Busy transition=26")() && p.said(1, "slot2: Changing activity: Idle -> Busy transition=26")()
	})
	waitFor(t, "the client works", contains(out, "Initialization completed"))
	pids := p.clients(t, program)
	if len(pids) != 1 {
		t.Fatalf("%d clients for two slots: %v", len(pids), p.processes(t))
	}
	status, _ := os.ReadFile("/proc/" + pids[0] + "/status")
	environ, _ := os.ReadFile("/proc/" + pids[0] + "/environ")
	cwd, _ := os.Readlink("/proc/" + pids[0] + "/cwd")
	if want := fmt.Sprintf("\nUid:\t%d\t%d\t%d\t%d\n", h.uid, h.uid, h.uid, h.uid); !strings.Contains(string(status), want) {
		t.Errorf("it does not run as %q (%d):\n%s", h.owner, h.uid, status)
	}
	if cwd != h.dir || !strings.Contains(string(environ), "\x00MARK=of backfill\x00") {
		t.Errorf("it works in %s with %q", cwd, environ)
	}

	p.set(t, "Ready = True\n")
	waitFor(t, "the client is told to go", contains(out, "Received signal 15"))
	waitFor(t, "it goes", contains(out, "Exiting"))
	waitFor(t, "both jobs run", func() bool {
		b, _ := os.ReadFile(filepath.Join(p.dir, "job.log"))
		return strings.Count(string(b), "\n001 (") == 2
	})
	if pids := p.clients(t, program); len(pids) != 0 {
		t.Errorf("clients beside the jobs: %v", pids)
	}
	for _, move := range []string{"Killing transition=28", "Idle transition=29", "transition=31"} {
		if n := strings.Count(p.log(), move); n != 2 {
			t.Errorf("%q %d times:\n%s", move, n, p.log())
		}
	}

	p.set(t, "Ready = False\n")
	p.write(t, "finish", "")
	waitFor(t, "the slots are in backfill again", p.said(4, "Changing activity: Idle -> Busy transition=26"))
	waitFor(t, "the client works again", contains(out, "Initialization completed"))
	if err := c.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // the third job has not run
	if !contains(out, "Received signal 15")() || !contains(out, "Exiting")() || strings.Contains(stdout.String()+stderr.String(), "does not run") {
		t.Errorf("the second client did not end by itself\n%s%s", stdout, stderr)
	}
	b, err := os.ReadFile(accountFile)
	if err != nil || string(b) != einstein {
		t.Errorf("the account file is %q, %v", b, err)
	}
	p.nothingLeft(t)
}
