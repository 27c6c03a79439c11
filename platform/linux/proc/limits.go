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
func limitStopped(pid int, bytes int64, user *host.Identity) error {
	n := rlimit(bytes)
	var own unix.Rlimit
	if err := unix.Prlimit(0, unix.RLIMIT_AS, nil, &own); err != nil {
		return os.NewSyscallError("prlimit", err)
	}
	n = min(n, own.Max)
	limit := func() error {
		return os.NewSyscallError("prlimit", unix.Prlimit(pid, unix.RLIMIT_AS, &unix.Rlimit{Cur: n, Max: n}, nil))
	}
	err := limit()
	if errors.Is(err, unix.EPERM) && user != nil {
		err = withRealUser(user, limit)
	}
	if err != nil {
		return err
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

// withRealUser calls f while the real user and group of the calling thread, and of no
// other, are u's. This is how root without CAP_SYS_RESOURCE, as containers have it,
// may limit a process of another. The rights of root stay: they follow the effective
// user.
func withRealUser(u *host.Identity, f func() error) error {
	set := func(number uintptr, real uint32) error {
		const same = ^uintptr(0)
		if _, _, errno := unix.RawSyscall(number, uintptr(real), same, same); errno != 0 {
			return os.NewSyscallError("setresuid", errno)
		}
		return nil
	}
	uid, gid := uint32(os.Getuid()), uint32(os.Getgid())
	err := errors.Join(set(unix.SYS_SETRESGID, u.GID), set(unix.SYS_SETRESUID, u.UID))
	if err == nil {
		err = f()
	}
	return errors.Join(err, set(unix.SYS_SETRESUID, uid), set(unix.SYS_SETRESGID, gid))
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
