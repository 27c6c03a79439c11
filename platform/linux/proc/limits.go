// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package proc

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/platform/linux/cgroup"
)

// marksThread reports whether a thread that starts spec cannot be used for anything
// else afterwards.
func marksThread(spec host.SpawnSpec) bool { return spec.Limits.NoNewPrivileges }

// limitThread sets what the calling thread, which is for one child alone, hands down
// and cannot get rid of.
func limitThread(l host.Limits) error {
	if l.NoNewPrivileges {
		return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	}
	return nil
}

// usableCPUs are those of cpus that this process may use itself. The list of a
// configuration may name others, which HTCondor's starter passes over too; with none
// left there is no limit that could be applied.
func usableCPUs(cpus []int) ([]int, error) {
	if len(cpus) == 0 {
		return nil, nil
	}
	var own unix.CPUSet
	if err := unix.SchedGetaffinity(os.Getpid(), &own); err != nil {
		return nil, os.NewSyscallError("sched_getaffinity", err)
	}
	var usable []int
	for _, n := range cpus {
		if own.IsSet(n) {
			usable = append(usable, n)
		}
	}
	if len(usable) == 0 {
		return nil, fmt.Errorf("none of the processors %v can be used here", cpus)
	}
	return usable, nil
}

// pin has the calling thread, and what it starts, on cpus alone until free is called.
// None are all. It is for a family that no cpuset keeps there.
func pin(cpus []int) (free func(), err error) {
	free = func() {}
	cpus, err = usableCPUs(cpus)
	if err != nil || len(cpus) == 0 {
		return free, err
	}
	var old, set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &old); err != nil {
		return free, os.NewSyscallError("sched_getaffinity", err)
	}
	for _, n := range cpus {
		set.Set(n)
	}
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return free, os.NewSyscallError("sched_setaffinity", err)
	}
	return func() { _ = unix.SchedSetaffinity(0, &old) }, nil
}

// stopPatienceOfExec bounds how long a process may take from having executed its
// program to the stop before the first instruction of it.
const stopPatienceOfExec = 5 * time.Second

// limitStopped sets the largest address space of a child of this thread that was
// started with PTRACE_TRACEME, and lets it go. Such a child has executed its program
// and stops before the first instruction of it. The limit cannot be handed down as
// others are: what would be limited meanwhile is this process, which needs more
// address space than most jobs, and ends where it gets none.
//
// The reaper may take the news of the stop. So the stop is asked for by letting the
// child go, which is refused until it stands still.
func limitStopped(pid int, bytes int64) error {
	n := rlimit(bytes)
	var old unix.Rlimit
	err := unix.Prlimit(pid, unix.RLIMIT_AS, nil, &old)
	if err == nil {
		n = min(n, old.Max)
		err = unix.Prlimit(pid, unix.RLIMIT_AS, &unix.Rlimit{Cur: n, Max: n}, nil)
	}
	if err != nil {
		return os.NewSyscallError("prlimit", err)
	}
	deadline := time.Now().Add(stopPatienceOfExec)
	for wait := 10 * time.Microsecond; ; wait = min(2*wait, time.Millisecond) {
		switch err := syscall.PtraceDetach(pid); {
		case err == nil:
			return nil
		case !errors.Is(err, unix.ESRCH) || time.Now().After(deadline):
			return os.NewSyscallError("ptrace", err)
		}
		time.Sleep(wait)
	}
}

// lacking says what of the limits of a family in group, nil for none, this machine
// does not have.
func lacking(l host.GroupLimits, group *cgroup.Group) []string {
	if group != nil {
		return group.Lacks()
	}
	var all []string
	m := l.Memory
	if m.Hard != nil || m.Soft != nil || m.Swap != nil {
		all = append(all, "its memory is not limited: there is no control group for it")
	}
	if l.Processes > 0 {
		all = append(all, "the number of its processes is not limited: there is no control group for it")
	}
	if len(l.Closed) > 0 {
		all = append(all, "devices that are not its own are open to it: there is no control group for it")
	}
	return all
}
