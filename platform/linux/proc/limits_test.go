// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package proc

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/host"
)

// scenarioLimits lets several jobs, one after the other, tell the limits they were
// born with, and looks that the starter has none of them.
func scenarioLimits(args []string) (outcome, error) {
	s, err := starter(args)
	if err != nil {
		return outcome{}, err
	}
	before := ownLimits()
	var said strings.Builder
	for i := range 20 {
		// A limited one begins beside one that ends, whom the reaper waits for.
		other := shell("true")
		other.Marker, other.Env = "MARK=other", []string{"MARK=other", "PATH=/bin:/usr/bin"}
		beside, err := s.Spawn(other)
		if err != nil {
			return outcome{}, err
		}
		spec := shell("ulimit -Sv; ulimit -Hv; grep NoNewPrivs /proc/self/status; grep Cpus_allowed_list /proc/self/status; exit 5")
		space := int64(300<<20 + i<<20)
		spec.Limits = host.Limits{AddressSpace: &space, NoNewPrivileges: true, Group: host.GroupLimits{CPUs: []int{0, 4000}}}
		if os.Geteuid() == 0 && i%3 == 0 {
			spec.User = &host.Identity{UID: 65534, GID: 65533, Groups: []uint32{}}
		}
		spec.Bond = []host.Bond{host.Bound, host.Bond(0)}[i%2]
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
		if _, err := f.Close(); err != nil || f.Status().Code != 5 {
			return outcome{}, fmt.Errorf("%v, %w", f.Status(), err)
		}
		<-beside.Done()
		if _, err := beside.Close(); err != nil {
			return outcome{}, err
		}
		text, err := os.ReadFile(out.Name())
		if err != nil {
			return outcome{}, err
		}
		said.Write(text)
	}
	if after := ownLimits(); after != before {
		return outcome{}, fmt.Errorf("the starter itself was %s and is now %s", before, after)
	}
	return outcome{Text: said.String()}, nil
}

func ownLimits() string {
	var space unix.Rlimit
	_ = unix.Getrlimit(unix.RLIMIT_AS, &space)
	var set unix.CPUSet
	_ = unix.SchedGetaffinity(os.Getpid(), &set)
	free, _ := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	ids, _ := os.ReadFile("/proc/self/status")
	return fmt.Sprint(space, set.Count(), free, strings.Contains(string(ids), fmt.Sprintf("\nUid:\t%[1]d\t%[1]d\t%[1]d\t%[1]d\n", os.Getuid())))
}

// A job has the limits that its spec says from its first instruction on, and its
// starter none of them.
func TestLimits(t *testing.T) {
	t.Parallel()
	eachTracking(t, func(t *testing.T, groups string) {
		got := scenario[outcome](t, "limits", groups)
		var want strings.Builder
		for i := range 20 {
			kib := 300<<10 + i<<10
			fmt.Fprintf(&want, "%d\n%d\nNoNewPrivs:\t1\nCpus_allowed_list:\t0\n", kib, kib)
		}
		if got.Text != want.String() {
			t.Errorf("the jobs say\n%s\nwant\n%s", got.Text, want.String())
		}
	})
}

// No new privileges hold for the job alone: the next may have them.
func TestNoNewPrivilegesEnd(t *testing.T) {
	t.Parallel()
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, with := range []bool{true, false, true, false} {
		out, err := os.CreateTemp(t.TempDir(), "out")
		if err != nil {
			t.Fatal(err)
		}
		f, err := s.Spawn(host.SpawnSpec{Path: "/bin/sh", Args: []string{"sh", "-c", "grep NoNewPrivs /proc/self/status"}, Stdout: out, Limits: host.Limits{NoNewPrivileges: with}})
		if err != nil {
			t.Fatal(err)
		}
		<-f.Done()
		if _, err := f.Close(); err != nil {
			t.Error(err)
		}
		b, err := os.ReadFile(out.Name())
		if want := map[bool]string{true: "1", false: "0"}[with]; err != nil || !strings.HasSuffix(string(b), "\t"+want+"\n") {
			t.Errorf("with %v: %q, %v", with, b, err)
		}
	}
}

// What cannot be applied keeps the program from starting.
func TestLimitThatCannotBe(t *testing.T) {
	t.Parallel()
	s, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	file := tempFile(t, "ran")
	_, err = s.Spawn(host.SpawnSpec{Path: "/bin/sh", Args: []string{"sh", "-c", "echo > " + file}, Limits: host.Limits{Group: host.GroupLimits{CPUs: []int{1023}}}})
	if !errors.Is(err, host.ErrLimit) {
		t.Errorf("a processor that is not there: %v", err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the program ran")
	}
}

// What a family without a group is not kept from is said.
func TestLacks(t *testing.T) {
	t.Parallel()
	one := int64(1)
	got := lacking(host.GroupLimits{Memory: host.MemoryLimits{Hard: &one}, Processes: 1, Closed: []host.Device{{}}}, nil)
	if len(got) != 3 || !strings.Contains(got[0], "memory") || len(lacking(host.GroupLimits{CPUWeight: 100, CPUs: []int{0}}, nil)) != 0 {
		t.Errorf("it lacks %q", got)
	}
}
