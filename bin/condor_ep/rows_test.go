// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/eventlog"
	"github.com/execpoint/execpoint/platform/linux/cgroup"
)

// Rows of the documents that are proven by what condor_ep does.

// played plays a scenario and returns "SECONDS SLOT STATE/ACTIVITY" of each move.
func played(t *testing.T, path string) []string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	if status := tool([]string{"simulate", "-json", path}, &stdout, &stderr); status != exitOK {
		t.Fatalf("%s: %d %s", path, status, &stderr)
	}
	var r struct {
		Transitions []struct {
			T        float64
			Slot, To string
		}
	}
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range r.Transitions {
		out = append(out, fmt.Sprintf("%v %s %s", m.T, m.Slot, m.To))
	}
	return out
}

// What the 6.8 manual knew of states and activities is still produced, by the
// policies of the examples; Matched needs a negotiator, which these have none
// of. Vacating is the time that a job has to end by itself: no slot is in it
// for longer than that.
func TestOldStates(t *testing.T) {
	t.Parallel()
	scenarios, err := filepath.Glob(policies + "/*.scn")
	if err != nil || len(scenarios) < 10 {
		t.Fatal(scenarios, err)
	}
	met := map[string]bool{}
	for _, path := range scenarios {
		for _, m := range played(t, path) {
			met[strings.Fields(m)[2]] = true
		}
	}
	p := newPlace(t)
	path := p.write(t, "leave.scn", "start 2026-03-02 08:00\nend 2h\nmachine cpus=1 memory=2048\nconfig\n    NUM_SLOTS = 1\n    SLOT_TYPE_0_PARTITIONABLE = False\n"+
		"    RunBenchmarks = False\n    MachineMaxVacateTime = 60\n    START = true\njob j runs=1h soft=20s\njob k runs=1h soft=never\nat 0s submit j\nat 10m vacate slot1\nat 10m10s remove j\nat 20m submit k\nat 30m vacate slot1\nat 30m remove k\n")
	leave := played(t, path)
	for _, want := range []string{"600 slot1 Preempting/Vacating", "620.1 slot1 Owner/Idle", "1800 slot1 Preempting/Vacating", "1861.1 slot1 Owner/Idle"} {
		if !slices.Contains(leave, want) {
			t.Errorf("no %q in %q", want, leave)
		}
	}
	for _, m := range leave {
		met[strings.Fields(m)[2]] = true
	}
	for _, want := range strings.Fields("Owner/Idle Unclaimed/Idle Unclaimed/Benchmarking Claimed/Idle Claimed/Busy Claimed/Suspended Claimed/Retiring Preempting/Vacating Preempting/Killing Backfill/Idle Backfill/Busy Backfill/Killing") {
		if !met[want] {
			t.Errorf("no slot is ever %s, of %v", want, slices.Sorted(maps.Keys(met)))
		}
	}
}

// A slot of a run is in each state and activity that the 6.8 manual knows of,
// but Matched, which needs a negotiator (integration/pool). Vacating is the time
// in which a job ends by itself: the first run of this one says so and goes, the
// second does not and is killed.
//
// row: S1-001
func TestOldStatesOfARun(t *testing.T) {
	t.Parallel()
	p, h := newPlace(t), newHome(t, "daemon")
	client := filepath.Join(h.dir, "client.sh")
	if err := os.WriteFile(client, []byte("#!/bin/sh\nwhile :; do sleep 1; done\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	bye := filepath.Join(p.dir, "bye")
	p.write(t, "b.sh", "#!/bin/sh\necho Mips = 77\necho KFlops = 88\n")
	p.write(t, "job.sh", "#!/bin/sh\nif [ -e "+bye+" ]; then "+strings.TrimPrefix(stubborn, "#!/bin/sh\n")+"fi\ntrap 'touch "+bye+"; exit 0' TERM\nwhile :; do sleep 0.1; done\n")
	p.write(t, "job.sub", small+"executable = job.sh\nqueue\n")
	p.write(t, "ep.conf", strings.Replace(h.conf(p, t, client, ""), "START_BACKFILL = True\n", "", 1)+`NUM_SLOTS = 1
NUM_CPUS = 1
BENCHMARKS_JOBLIST = b
BENCHMARKS_b_EXECUTABLE = `+p.dir+`/b.sh
RunBenchmarks = LastBenchmark == 0
IS_OWNER = Mine =?= True
START_BACKFILL = Back =?= True
WANT_SUSPEND = Pre =!= True
SUSPEND = Sus =?= True
CONTINUE = Sus =!= True
PREEMPT = Pre =?= True
MAXJOBRETIREMENTTIME = 2
MachineMaxVacateTime = 600
WANT_VACATE = True
KILL = Kil =?= True
KILLING_TIMEOUT = 5
`)
	p.set(t, "Ready = False\n")
	pr, _ := p.start(t, 0, "run", "-config", "ep.conf", "job.sub")
	defer p.showLog(t)
	told := 0
	goes := func(values string, moves ...string) {
		t.Helper()
		p.set(t, values+"Some = 1\n")
		for _, m := range moves {
			waitFor(t, m, func() bool {
				log := p.log()
				i := strings.Index(log[min(told, len(log)):], m+" transition=")
				if i >= 0 {
					told += i + 1
				}
				return i >= 0
			})
		}
	}
	goes("Ready = False\n", "Idle -> Benchmarking", "Benchmarking -> Idle")
	goes("Mine = True\n", "Unclaimed -> Owner")
	goes("Back = True\n", "Owner -> Unclaimed", "Unclaimed -> Backfill", "Idle -> Busy")
	goes("Evict = True\n", "Busy -> Killing", "Killing -> Idle", "Backfill -> Owner", "Owner -> Unclaimed")
	goes("Ready = True\n", "Unclaimed -> Claimed", "Idle -> Busy")
	goes("Ready = True\nSus = True\n", "Busy -> Suspended")
	goes("Ready = True\n", "Suspended -> Busy")
	goes("Ready = True\nPre = True\n", "Busy -> Retiring", "Claimed/Retiring -> Preempting/Vacating", "Preempting/Vacating -> Owner/Idle")
	if _, err := os.Stat(bye); err != nil || strings.Contains(p.log(), "Preempting/Killing") {
		t.Errorf("the job was not left to end by itself: %v", err)
	}
	goes("Ready = True\n", "Unclaimed -> Claimed", "Idle -> Busy")
	goes("Ready = True\nPre = True\n", "Busy -> Retiring", "Claimed/Retiring -> Preempting/Vacating")
	goes("Ready = False\nPre = True\nKil = True\n", "Vacating -> Killing", "Preempting/Killing -> Owner/Idle")
	pr.interrupt(t, p, 1)
	<-pr.ended
	p.nothingLeft(t)
}

// A drain that is cancelled gives back the slots that are drained already, and
// those that wait for the others.
func TestEndsOfADrain(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	path := p.write(t, "drain.scn", "start 2026-03-02 08:00\nend 4h\nmachine cpus=2 memory=2048\nconfig\n    NUM_SLOTS = 2\n    SLOT_TYPE_0_PARTITIONABLE = False\n"+
		"    RunBenchmarks = False\n    MAXJOBRETIREMENTTIME = 7200\n    START = SlotID == 1\njob j runs=1h\nat 0s submit j\nat 10m drain\nat 20m drain cancel\nat 2h drain\nat 3h drain cancel\n")
	got := played(t, path)
	for _, want := range []string{
		"600 slot1 Claimed/Retiring", "600 slot2 Drained/Retiring", "1200 slot1 Claimed/Busy", "1200 slot2 Owner/Idle", // 35
		"7200 slot1 Drained/Idle", "7200 slot2 Drained/Idle", "10800 slot1 Owner/Idle", "10800 slot2 Owner/Idle", // 34
	} {
		if !slices.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
}

// The same in a run: slot2 waits, drained, for the job of slot1.
//
// row: S0-185
func TestEndsOfADrainOfARun(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	pr, output := p.running(t, "NUM_CPUS = 2\nNUM_SLOTS = 2\nSLOT_TYPE_0_PARTITIONABLE = False\nRunBenchmarks = False\nMAXJOBRETIREMENTTIME = 3600\nSTART = SlotID == 1\n")
	p.accepted(t, "request id 1", "drain")
	waitFor(t, "slot2 is to be drained", p.said(1, "slot2: Changing state and activity: Unclaimed/Idle -> Drained/Retiring transition=37"))
	p.accepted(t, "cancelled the draining", "drain", "-cancel")
	waitFor(t, "slot2 is back", p.said(1, "slot2: Changing state and activity: Drained/Retiring -> Owner/Idle transition=35"))
	p.accepted(t, "request id 2", "drain", "-fast")
	waitFor(t, "slot1 is drained", p.said(1, "slot1: Changing activity: Retiring -> Idle transition=33"))
	p.accepted(t, "cancelled the draining", "drain", "-cancel")
	waitFor(t, "slot1 is back", p.said(1, "slot1: Changing state: Drained -> Owner transition=34"))
	pr.interrupt(t, p, 2)
	output()
	p.nothingLeft(t)
}

// The desktop policy of the manual promises time to jobs of dedicated machines
// and none to those of desktops.
func TestDesktopRetirement(t *testing.T) {
	t.Parallel()
	conf, err := os.ReadFile(policies + "/desktop-or-not.conf")
	if err != nil {
		t.Fatal(err)
	}
	p := newPlace(t)
	text := strings.Replace(string(conf), "(IsDesktop =!= True) * 0", "(IsDesktop =!= True) * 3600", 1)
	for desktop, want := range map[string]string{"False": "4860 slot1 Preempting/Vacating", "True": "3000 slot1 Preempting/Vacating"} {
		p.write(t, "ep.conf", text+"IsDesktop = "+desktop+"\nMachineMaxVacateTime = 0\nNUM_SLOTS = 1\nSLOT_TYPE_0_PARTITIONABLE = False\nRunBenchmarks = False\n")
		got := played(t, p.write(t, "desktop.scn", "start 2026-03-02 08:00\nend 2h\nmachine cpus=1 memory=2048\nconfig ep.conf\njob j runs=3h\nat 20m submit j\nat 50m vacate slot1\n"))
		if !slices.Contains(got, "3000 slot1 Claimed/Retiring") || !slices.Contains(got, want) {
			t.Errorf("IsDesktop = %s: no %q in %q", desktop, want, got)
		}
	}
}

// The same policy in a run: somebody types at a desktop, which suspends its job
// and not that of a machine that is none; and both are to give up their jobs,
// for which the other has time.
//
// row: S0-211, S0-212, S1-064
func TestDesktopOfARun(t *testing.T) {
	t.Parallel()
	conf, err := os.ReadFile(policies + "/desktop-or-not.conf")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(conf), "(IsDesktop =!= True) * 0", "(IsDesktop =!= True) * 3600", 1)
	text = strings.Replace(text, "($(ActivityTimer) > 300)", "($(ActivityTimer) > 3)", 1) // five minutes are long for a test
	for _, desktop := range []bool{true, false} {
		t.Run(fmt.Sprint(desktop), func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.set(t, "KeyboardIdle = 10000\n")
			p.write(t, "sensor.sh", "#!/bin/sh\ncat values\necho -\necho $(cat values) >seen\n")
			pr, output := p.running(t, text+fmt.Sprintf("IsDesktop = %v\n", desktop)+`NUM_SLOTS = 1
SLOT_TYPE_0_PARTITIONABLE = False
RunBenchmarks = False
UPDATE_INTERVAL = 1
STARTD_DEBUG = D_FULLDEBUG
BackgroundLoad = 1000
HighLoad = 2000
STARTD_CRON_JOBLIST = sensor
STARTD_CRON_sensor_EXECUTABLE = `+p.dir+`/sensor.sh
STARTD_CRON_sensor_PERIOD = 1s
STARTD_CRON_sensor_CWD = `+p.dir+`
`)
			defer p.showLog(t)
			const suspended, leaves = "slot1: Changing activity: Busy -> Suspended", "Claimed/Retiring -> Preempting/"
			looks := 0 // at the slot, until the sensor has told something new
			types := func(values string) {
				p.set(t, values)
				waitFor(t, values, contains(filepath.Join(p.dir, "seen"), strings.TrimSpace(values)))
				looks = strings.Count(p.log(), "slot1: state ")
			}
			types("KeyboardIdle = 3\n")
			if desktop {
				waitFor(t, "the job is suspended", p.said(1, suspended))
				types("KeyboardIdle = 10000\n")
				waitFor(t, "it goes on", p.said(1, "slot1: Changing activity: Suspended -> Busy"))
			}
			p.accepted(t, "slot1", "vacate", "slot1")
			waitFor(t, "the slot is to be left", func() bool { return strings.Contains(p.log(), "-> Retiring") })
			if desktop {
				waitFor(t, "the job has no time", p.said(1, leaves))
			} else {
				waitFor(t, "the slot is looked at", func() bool { return strings.Count(p.log(), "slot1: state ") > looks+3 })
				if !p.said(0, leaves)() || !p.said(0, suspended)() {
					t.Error("the job has no time, or was suspended")
				}
			}
			pr.interrupt(t, p, 2)
			output()
			p.nothingLeft(t)
		})
	}
}

// row: S0-295
func TestWeightOfSlots(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for weight, want := range map[string]bool{
		"Cpus": false, "Cpus + Memory / 4096": false, "ifThenElse(Disk > 1000, 2 * Cpus, Cpus)": false,
		"KFlops / 1000": true, "Cpus + TotalGPUs": true, "MY.Mips": true,
	} {
		for _, knob := range []string{"SLOT_WEIGHT", "SLOT_TYPE_1_SLOT_WEIGHT"} {
			p.write(t, "ep.conf", "START = True\nSLOT_TYPE_1 = 100%\nNUM_SLOTS_TYPE_1 = 1\n"+knob+" = "+weight+"\n")
			_, stdout, stderr := p.ep(t, "check", "ep.conf")
			if got := strings.Contains(stdout, "ep.conf:4:") && strings.Contains(stdout, "Cpus, Memory"); got != want {
				t.Errorf("%s = %s is found: %v, want %v\n%s%s", knob, weight, got, want, stdout, stderr)
			}
		}
	}
}

// A starter that obeys nothing any more is killed with its job when
// KILLING_TIMEOUT is over, and not before: 7 seconds are no default of another knob.
//
// row: S4-021
func TestKillingTimeoutOfARun(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	second := filepath.Join(p.dir, "second")
	p.write(t, "job.sh", "#!/bin/sh\nif [ -e "+second+" ]; then exit 0; fi\ntouch "+second+"\n"+strings.TrimPrefix(stubborn, "#!/bin/sh\n"))
	p.write(t, "job.sub", small+"executable = job.sh\nqueue\n")
	p.write(t, "ep.conf", "NUM_CPUS = 1\nKILLING_TIMEOUT = 7\n")
	pr, output := p.start(t, 1, "run", "-config", "ep.conf", "job.sub")
	found, err := filepath.Glob(filepath.Join(p.tmp, "execpoint-run-*", "execute", "dir_*"))
	if err != nil || len(found) != 1 {
		t.Fatal(found, err)
	}
	starter, err := strconv.Atoi(strings.TrimPrefix(filepath.Base(found[0]), "dir_"))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(starter, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	p.accepted(t, "slot1_1", "vacate", "-fast", "slot1_1")
	waitFor(t, "the starter is killed", func() bool { return syscall.Kill(starter, 0) != nil })
	if took := time.Since(began); took < 7*time.Second || took > 15*time.Second {
		t.Errorf("the starter was killed after %v, want 7 s", took)
	}
	stdout, stderr := output() // the job runs again, and ends
	if pr.status != exitOK || !strings.Contains(stdout, "1 job: 1 done") {
		t.Errorf("status %d\n%s%s", pr.status, stdout, stderr)
	}
	p.nothingLeft(t)
}

// The load of a slot is that of all its job's processes, with and without a control
// group: the job itself sleeps, and what it left behind in a session of its own is busy.
// TotalCondorLoadAvg is the sum over the slots: one of two alike gives its job up as soon
// as it is clearly more than that of one.
//
// row: S2-030
func TestLoadOfOrphans(t *testing.T) {
	t.Parallel()
	for _, more := range []string{"", "BASE_CGROUP =\n"} {
		p := newPlace(t)
		p.write(t, "busy.sh", "#!/bin/sh\n(setsid sh -c 'echo $$ >daemon.pid; while :; do :; done' >/dev/null 2>&1 &)\nexec sleep 300\n")
		p.write(t, "job.sub", small+"executable = busy.sh\nqueue 2\n")
		p.write(t, "ep.conf", "NUM_CPUS = 2\nNUM_SLOTS = 2\nSLOT_TYPE_0_PARTITIONABLE = False\nPOLLING_INTERVAL = 1\nUPDATE_INTERVAL = 1\nSTARTER_UPDATE_INTERVAL = 1\nSTARTER_INITIAL_UPDATE_INTERVAL = 1\nRunBenchmarks = False\n"+
			more+"PREEMPT = SlotID == 2 && CondorLoadAvg > 0.1 && TotalCondorLoadAvg > 1.5 * CondorLoadAvg\n")
		pr, _ := p.start(t, 2, "run", "-config", "ep.conf", "job.sub")
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		late := time.After(time.Minute) // a load average is slow
		for !strings.Contains(p.log(), "slot2: Changing activity: Busy -> Retiring") {
			select {
			case <-tick.C:
			case <-late:
				t.Fatalf("%q: the machine's load is not that of both jobs", more)
			}
		}
		if strings.Contains(p.log(), "slot1: Changing activity: Busy") {
			t.Errorf("%q: the job of the other slot does not stay:\n%s", more, p.log())
		}
		pr.interrupt(t, p, 2)
		<-pr.ended
		p.nothingLeft(t)
	}
}

// Each job has a control group of its own below BASE_CGROUP, with the name of
// EXECUTE and of the slot.
//
// row: S0-067
func TestGroupOfAJob(t *testing.T) {
	t.Parallel()
	const base = "execpoint-test-run"
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Skipf("needs a Linux procfs: %v", err)
	}
	tree, err := cgroup.Open(cgroup.Options{Root: "/sys/fs/cgroup", Base: base, Self: own})
	if err != nil {
		t.Skipf("needs control groups that can be written: %v", err)
	}
	defer tree.RemoveBase()
	p := newPlace(t)
	execute, err := filepath.EvalSymlinks(p.tmp)
	if err != nil {
		t.Fatal(err)
	}
	execute = filepath.Join(execute, "ex")
	if err := os.Mkdir(execute, 0o755); err != nil {
		t.Fatal(err)
	}
	p.write(t, "ep.conf", "NUM_CPUS = 2\nNUM_SLOTS = 2\nSLOT_TYPE_0_PARTITIONABLE = False\nSTARTD_NAME = one\nBASE_CGROUP = "+base+"\nEXECUTE = "+execute+"\n")
	p.write(t, "job.sh", "#!/bin/sh\necho $_CONDOR_SLOT\ncat /proc/self/cgroup\n")
	p.write(t, "job.sub", small+"executable = job.sh\noutput = out.$(Process)\nqueue 2\n")
	if status, stdout, stderr := p.ep(t, "run", "-config", "ep.conf", "job.sub"); status != exitOK {
		t.Fatalf("status %d\n%s%s", status, stdout, stderr)
	}
	for _, name := range []string{"out.0", "out.1"} {
		slot, groups, _ := strings.Cut(p.read(t, name), "\n")
		want := "/" + base + "/" + strings.ReplaceAll(execute, "/", "_") + "_" + slot + "@one"
		if !strings.HasPrefix(slot, "slot") || !strings.Contains(groups, want) {
			t.Errorf("the job in %q is not in %s:\n%s", slot, want, groups)
		}
	}
}

// TestLimitThatFails has the control group of a slot held by a process that an
// earlier job may have left: the job does not start without its limits, the slot
// says why, and it starts when the group is free.
func TestLimitThatFails(t *testing.T) {
	t.Parallel()
	const base = "execpoint-test-limit"
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		t.Skipf("needs a Linux procfs: %v", err)
	}
	tree, err := cgroup.Open(cgroup.Options{Root: "/sys/fs/cgroup", Base: base, Self: own})
	if err != nil {
		t.Skipf("needs control groups that can be written: %v", err)
	}
	t.Cleanup(tree.RemoveBase)
	p := newPlace(t)
	execute, err := filepath.EvalSymlinks(p.tmp)
	if err != nil {
		t.Fatal(err)
	}
	execute = filepath.Join(execute, "ex")
	if err := os.Mkdir(execute, 0o755); err != nil {
		t.Fatal(err)
	}
	group, err := tree.Create(strings.ReplaceAll(execute, "/", "_") + "_slot1@one@here")
	if err != nil {
		t.Fatal(err)
	}
	stays := exec.Command("/bin/sleep", "600")
	if err := stays.Start(); err != nil {
		t.Fatal(err)
	}
	leave := sync.OnceFunc(func() { _ = stays.Process.Kill(); _ = stays.Wait() })
	t.Cleanup(func() { leave(); _ = group.Remove() })
	for _, controller := range []string{"cpu", "memory", "freezer"} {
		if dir := group.Dir(controller); dir != "" {
			if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(stays.Process.Pid)), 0o644); err != nil {
				t.Skipf("needs groups that a process can be moved to: %v", err)
			}
		}
	}
	p.write(t, "ep.conf", "NUM_CPUS = 1\nNUM_SLOTS = 1\nSLOT_TYPE_0_PARTITIONABLE = False\nSTARTD_NAME = one@here\nBASE_CGROUP = "+base+"\nEXECUTE = "+execute+"\n")
	p.write(t, "job.sh", "#!/bin/sh\ncat /proc/self/cgroup\n")
	p.write(t, "job.sub", small+"executable = job.sh\noutput = out\nlog = job.log\nqueue\n")
	pr, _ := p.start(t, 0, "run", "-config", "ep.conf", "job.sub")
	const why = "a limit of the process cannot be applied"
	waitFor(t, "the machine refuses jobs", func() bool { return strings.Contains(p.log(), "the machine refuses jobs") })
	if _, explained, errText := p.ep(t, "explain", "slot1"); !strings.Contains(explained, why) {
		t.Errorf("explain does not say %q\n%s%s", why, explained, errText)
	}
	for _, r := range p.events(t, "job.log") {
		if r.Event.Code() == eventlog.CodeTerminated {
			t.Error("the job ran without its limits")
		}
	}
	leave()
	<-pr.ended
	if out := p.read(t, "out"); !strings.Contains(out, "/"+base+"/") {
		t.Errorf("the job is not in its group\n%s", out)
	}
	p.nothingLeft(t)
}
