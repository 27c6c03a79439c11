// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package proc

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/platform/linux/cgroup"
)

func signalIgnore(sig syscall.Signal) { signal.Ignore(sig) }

// outcome is what a scenario tells the test.
type outcome struct {
	Status    host.ExitStatus
	Usage     host.Usage
	Mid       host.Usage
	Leftovers int
	Killed    int
	Suspended int
	PID       int
	Grouped   bool
	Group     string
	Alive     bool
	Text      string
	Errno     int
	Gone      time.Duration // from the order to end until nothing is left
}

func scenarios() map[string]func([]string) (outcome, error) {
	return map[string]func([]string) (outcome, error){
		"run": scenarioRun, "errno": scenarioErrno, "suspend": scenarioSuspend, "kill": scenarioKill,
		"bound": scenarioBound, "measure": scenarioMeasure, "props": scenarioProps, "beside": scenarioBeside, "limits": scenarioLimits, "look": scenarioLook,
		"space": scenarioSpace, "bomb": scenarioBomb, "spacebeside": scenarioSpaceBeside, "stay": scenarioStay, "spaceself": scenarioSpaceSelf,
		"looks": scenarioLooks, "avalanche": scenarioAvalanche,
	}
}

// starter makes a spawner that owns its process. args[0] is "none", "1" or "2"
// for the control groups.
func starter(args []string) (*Spawner, error) {
	o := Options{Role: Starter}
	if args[0] != "none" {
		tree, err := testTree(map[string]int{"1": 1, "2": 2}[args[0]])
		if err != nil {
			return nil, err
		}
		o.Groups = tree
	}
	return New(o)
}

func testTree(version int) (*cgroup.Tree, error) {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil, err
	}
	return cgroup.Open(cgroup.Options{Root: "/sys/fs/cgroup", Base: "execpoint-test-proc", Self: own, Version: version})
}

func groupName() string { return fmt.Sprintf("proc_test_%d", os.Getpid()) }

// scenarioRun runs args[1] ("sh:…" or a job of this binary) to its end.
func scenarioRun(args []string) (outcome, error) {
	s, err := starter(args)
	if err != nil {
		return outcome{}, err
	}
	spec := specOf(args[1])
	if s.groups != nil {
		spec.Group, spec.Limits.Group.CPUWeight = groupName(), 300
	}
	out, err := os.CreateTemp("", "proc")
	if err != nil {
		return outcome{}, err
	}
	defer os.Remove(out.Name())
	spec.Stdout = out
	f, err := s.Spawn(spec)
	if err != nil {
		return outcome{}, err
	}
	<-f.Done()
	left, err := f.Close()
	if err != nil {
		return outcome{}, err
	}
	u, err := f.Usage()
	if err != nil {
		return outcome{}, err
	}
	text, err := os.ReadFile(out.Name())
	return outcome{Status: f.Status(), Usage: u, Leftovers: left, PID: f.Main().PID, Grouped: f.Grouped(), Text: string(text)}, err
}

func specOf(what string) host.SpawnSpec {
	if len(what) > 3 && what[:3] == "sh:" {
		return shell(what[3:])
	}
	return self(what)
}

func scenarioErrno(args []string) (outcome, error) {
	s, err := starter(args)
	if err != nil {
		return outcome{}, err
	}
	spec := host.SpawnSpec{Path: args[1], Args: []string{args[1]}, Bond: host.Bound}
	if s.groups != nil {
		spec.Group = groupName()
	}
	_, err = s.Spawn(spec)
	var errno syscall.Errno
	errors.As(err, &errno)
	return outcome{Errno: int(errno)}, nil
}

// scenarioSuspend suspends a counting shell, looks twice, and lets it go on.
func scenarioSuspend(args []string) (outcome, error) {
	s, err := starter(args)
	if err != nil {
		return outcome{}, err
	}
	file := args[1]
	spec := shell("while :; do echo x >> " + file + "; done & while :; do echo y >> " + file + "; done")
	if s.groups != nil {
		spec.Group = groupName()
	}
	f, err := s.Spawn(spec)
	if err != nil {
		return outcome{}, err
	}
	defer f.Close()
	size := func() int64 {
		st, err := os.Stat(file)
		if err != nil {
			return 0
		}
		return st.Size()
	}
	grows := func(from int64) bool {
		for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); {
			if size() > from {
				return true
			}
			unix.Nanosleep(&unix.Timespec{Nsec: 1e6}, nil)
		}
		return false
	}
	if !grows(0) {
		return outcome{}, errors.New("the job never wrote")
	}
	n, err := f.Suspend()
	if err != nil {
		return outcome{}, err
	}
	at := size()
	unix.Nanosleep(&unix.Timespec{Nsec: 5e7}, nil)
	if after := size(); after != at {
		return outcome{}, fmt.Errorf("a suspended job wrote %d bytes", after-at)
	}
	if err := f.Continue(); err != nil {
		return outcome{}, err
	}
	if !grows(at) {
		return outcome{}, errors.New("the job did not go on")
	}
	if _, err := f.Suspend(); err != nil {
		return outcome{}, err
	}
	left, err := f.Close() // a suspended family dies as well
	if err != nil {
		return outcome{}, err
	}
	<-f.Done()
	return outcome{Suspended: n, Leftovers: left, Status: f.Status(), Alive: running(f.Main().PID), Grouped: f.Grouped()}, nil
}

// scenarioKill kills a family while its main process lives.
func scenarioKill(args []string) (outcome, error) {
	s, err := starter(args)
	if err != nil {
		return outcome{}, err
	}
	spec := specOf(args[1])
	if s.groups != nil {
		spec.Group = groupName()
	}
	f, err := s.Spawn(spec)
	if err != nil {
		return outcome{}, err
	}
	defer f.Close()
	if waitFor(args[2]) == 0 {
		return outcome{}, errors.New("the job never announced itself")
	}
	n, err := f.Kill()
	if err != nil {
		return outcome{}, err
	}
	<-f.Done()
	left, err := f.Close()
	return outcome{Killed: n, Leftovers: left, Status: f.Status()}, err
}

// scenarioBound starts a bound job and waits to be killed.
func scenarioBound(args []string) (outcome, error) {
	s, err := starter(args)
	if err != nil {
		return outcome{}, err
	}
	if _, err := s.Spawn(self("stay:" + args[1])); err != nil {
		return outcome{}, err
	}
	forever()
	return outcome{}, nil
}

// scenarioMeasure reads usage while two children work and after the end.
func scenarioMeasure(args []string) (outcome, error) {
	s, err := starter(args)
	if err != nil {
		return outcome{}, err
	}
	spec := shell("i=0; (while [ $i -lt 300000 ]; do i=$((i+1)); done) & while [ $i -lt 300000 ]; do i=$((i+1)); done; wait; : > " + args[1] + "; read x")
	r, w, err := os.Pipe()
	if err != nil {
		return outcome{}, err
	}
	spec.Stdin = r
	if s.groups != nil {
		spec.Group = groupName()
	}
	f, err := s.Spawn(spec)
	if err != nil {
		return outcome{}, err
	}
	defer f.Close()
	for deadline := time.Now().Add(60 * time.Second); ; unix.Nanosleep(&unix.Timespec{Nsec: 1e6}, nil) {
		if _, err := os.Stat(args[1]); err == nil {
			break
		}
		if time.Now().After(deadline) {
			return outcome{}, errors.New("the job never got through")
		}
	}
	mid, err := f.Usage()
	if err != nil {
		return outcome{}, err
	}
	w.Close()
	<-f.Done()
	if _, err := f.Close(); err != nil {
		return outcome{}, err
	}
	u, err := f.Usage()
	return outcome{Mid: mid, Usage: u, Status: f.Status()}, err
}

// eachTracking runs a test without groups and with each version that this
// machine lets us make.
func eachTracking(t *testing.T, test func(t *testing.T, groups string)) {
	for _, groups := range []string{"none", "1", "2"} {
		t.Run("groups="+groups, func(t *testing.T) {
			t.Parallel()
			if groups != "none" {
				if _, err := testTree(map[string]int{"1": 1, "2": 2}[groups]); err != nil {
					t.Skipf("needs control groups that can be written: %v", err)
				}
			}
			test(t, groups)
		})
	}
}

// scenarioProps lets a job tell what it was born with, and then looks what
// became of the starter itself.
func scenarioProps(args []string) (outcome, error) {
	signal.Ignore(unix.SIGHUP) // as under nohup
	s, err := starter(args)
	if err != nil {
		return outcome{}, err
	}
	before := ownProps()
	spec := shell("cat /proc/$$/oom_score_adj; cut -d' ' -f19 /proc/$$/stat; ulimit -Sc; ulimit -Hc; ulimit -Ss; grep SigIgn /proc/$$/status")
	core, stack, score := int64(4096*512), int64(1<<20), 800
	spec.Nice, spec.Limits = 7, host.Limits{Core: &core, Stack: &stack, OOMScore: &score}
	if s.groups != nil {
		spec.Group = groupName()
	}
	out, err := os.CreateTemp("", "proc")
	if err != nil {
		return outcome{}, err
	}
	defer os.Remove(out.Name())
	spec.Stdout = out
	f, err := s.Spawn(spec)
	if err != nil {
		return outcome{}, err
	}
	<-f.Done()
	if _, err := f.Close(); err != nil {
		return outcome{}, err
	}
	text, err := os.ReadFile(out.Name())
	if after := ownProps(); after != before {
		return outcome{}, fmt.Errorf("the starter itself was %s and is now %s", before, after)
	}
	return outcome{Text: string(text)}, err
}

// ownProps is what the starter must not have lost to its job.
func ownProps() string {
	score, _ := os.ReadFile("/proc/self/oom_score_adj")
	var core, stack unix.Rlimit
	_ = unix.Getrlimit(unix.RLIMIT_CORE, &core)
	_ = unix.Getrlimit(unix.RLIMIT_STACK, &stack)
	return fmt.Sprintf("oom %s core %d stack %d", strings.TrimSpace(string(score)), core.Cur, stack.Cur)
}
