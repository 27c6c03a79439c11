// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package proc

import (
	"cmp"
	"errors"
	"maps"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// killPatience bounds how long Kill goes on. A process in uninterruptible
// sleep dies when its system call returns, not before.
const killPatience = 10 * time.Second

// killAll kills the group and the tree, again until nobody is left: what was
// sent SIGKILL is waited for, since a process that still has to be scheduled to
// die is seen alive by who looks then. Called with op held.
func (f *family) killAll() (int, error) {
	deadline := time.Now().Add(killPatience)
	killed := map[host.ProcID]bool{}
	byGroup := 0
	defer first()()
	if p := f.room.init(); !p.over() {
		// The kernel kills all of a namespace with its first process, however fast they
		// fork, once that has a processor: thousands that fork leave it none for long.
		// With a group all of them are dying before. Those of a group that stands still
		// die when it goes on, below.
		if f.group != nil {
			byGroup, _ = f.group.Kill() // below it is asked again
		} else {
			members, _ := f.members() // for the count alone
			for _, m := range members {
				killed[m.id()] = true
			}
		}
		p.kill(f.spawner)
	}
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		progress := f.spawner.progress()
		dying := f.spawner.dying(killed)
		empty := f.room.init().over()
		if f.spotless() && dying == 0 && empty {
			return max(len(killed), byGroup), nil
		}
		inGroup := 0
		if f.group != nil {
			n, err := f.group.Kill()
			if err != nil && time.Now().After(deadline) {
				return max(len(killed), byGroup), errors.Join(err, f.undying(killed))
			}
			byGroup, inGroup = max(byGroup, n), n
		}
		left, err := f.killTree(killed)
		if err == nil && left == 0 && dying == 0 && empty && f.spawner.role != Starter {
			return max(len(killed), byGroup), nil
		}
		if err == nil && left == 0 && inGroup == 0 && empty && f.othersOpen() {
			return max(len(killed), byGroup), nil
		}
		if now := time.Now(); now.After(deadline) {
			if err == nil {
				err = f.undying(killed)
			}
			// On a machine that is very busy the last may have died since they were looked
			// at, and only their end is still to be seen.
			var undying *host.Undying
			if !errors.As(err, &undying) || len(undying.Procs) > 0 || now.After(deadline.Add(killPatience)) {
				return len(killed), errs.E("proc.Kill", errs.Transient, f.main.String(), err)
			}
		}
		timer := time.NewTimer(wait)
		select {
		case <-progress:
		case <-timer.C:
		}
		timer.Stop()
	}
}

// first has this goroutine come before all others that want a processor, where it may,
// until it calls what it is given: who kills one after the other has to be faster than
// thousands that fork. Niceness is no help, for where the kernel shares processors out to
// sessions (sched_autogroup) each of those can have a session of its own.
func first() (over func()) {
	runtime.LockOSThread()
	was, err := unix.SchedGetAttr(0, 0)
	if err != nil || urgent(0) != nil {
		return runtime.UnlockOSThread
	}
	return func() {
		if unix.SchedSetAttr(0, was, 0) == nil {
			runtime.UnlockOSThread() // else the thread ends with the goroutine
		}
	}
}

// urgent has a thread come before all that are not real-time. What it starts does not.
func urgent(tid int) error {
	return unix.SchedSetAttr(tid, &unix.SchedAttr{
		Size: unix.SizeofSchedAttr, Policy: unix.SCHED_RR, Flags: unix.SCHED_FLAG_RESET_ON_FORK, Priority: 1,
	}, 0)
}

// undying names what of the family lives on.
func (f *family) undying(killed map[host.ProcID]bool) error {
	living := map[host.ProcID]bool{}
	members, _ := f.members() // the others count
	for _, m := range members {
		living[m.id()] = true
	}
	if f.group != nil {
		pids, _ := f.group.Procs()
		for _, pid := range pids {
			if st, err := f.spawner.table.stat(pid); err == nil {
				living[st.id()] = true
			}
		}
	}
	for id := range killed {
		if f.spawner.table.alive(id) {
			living[id] = true
		}
	}
	return undying(living)
}

// undying is an error that names them, in order.
func undying(living map[host.ProcID]bool) error {
	procs := slices.Collect(maps.Keys(living))
	slices.SortFunc(procs, func(a, b host.ProcID) int { return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.Start, b.Start)) })
	return &host.Undying{Procs: procs}
}

// killTree kills the tree, and returns how many were there. Who has been sent SIGKILL
// forks no more, and what a starter's job has forked before becomes the starter's. Others
// lose what has lost its parent: they stop the tree first, so that it cannot grow. To wait
// until thousands have stopped takes longer than to kill them.
func (f *family) killTree(killed map[host.ProcID]bool) (int, error) {
	members, err := f.members()
	if err != nil || len(members) == 0 {
		return 0, err
	}
	if len(members) > 1 && f.spawner.role != Starter {
		// what appears faster than it can be stopped is met again next time
		stopped, _ := f.stop()
		for _, id := range stopped {
			if f.spawner.table.signal(id, unix.SIGKILL) {
				killed[id] = true
			}
		}
	}
	for _, m := range members {
		if f.spawner.table.signal(m.id(), unix.SIGKILL) {
			killed[m.id()] = true
		}
	}
	return len(members), nil
}

// othersOpen reports whether this process has families besides f, whose
// children would keep it from ever having none.
func (f *family) othersOpen() bool {
	f.spawner.mu.Lock()
	defer f.spawner.mu.Unlock()
	for _, o := range f.spawner.families {
		if o != f {
			return true
		}
	}
	return false
}
