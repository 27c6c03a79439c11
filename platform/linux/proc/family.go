// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package proc

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/platform/linux/cgroup"
)

// family implements host.Family.
type family struct {
	spawner  *Spawner
	main     host.ProcID
	signs          // of its processes
	bounds         // of what it may
	room     *room // nil if it sees what this process does
	pidfd    int
	floorKiB int64
	done     chan struct{}
	released chan struct{} // closed to let the family's thread go

	// op is held by whatever stops, kills or measures: one at a time.
	op     sync.Mutex
	closed bool
	frozen bool       // its group is
	left   int        // counted by Close
	final  host.Usage // set by Close

	mu     sync.Mutex
	status host.ExitStatus
	alone  bool // at its end the main process had no other of the family left
	booked
	peak host.Usage
}

// signs are by what its processes can be told from others.
type signs struct {
	marker string
	gid    uint32 // a group that no other process has, 0 for none
}

// bounds are what keeps it within its limits.
type bounds struct {
	group *cgroup.Group // nil without one
	lacks []string      // of its limits, set when it starts
}

// booked is what those of the family that have ended used.
type booked struct {
	user, sys time.Duration
	maxKiB    int64 // the largest single one
}

// Main implements host.Family.
func (f *family) Main() host.ProcID { return f.main }

// Grouped implements host.Family.
func (f *family) Grouped() bool { return f.group != nil }

// Done implements host.Family.
func (f *family) Done() <-chan struct{} { return f.done }

// Status implements host.Family.
func (f *family) Status() host.ExitStatus {
	select {
	case <-f.done:
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.status
	default:
		return host.ExitStatus{}
	}
}

func (f *family) ended() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// finish tells that the main process has ended. alone says that the kernel
// knows of no other child.
func (f *family) finish(alone bool) {
	f.mu.Lock()
	f.alone = alone
	f.mu.Unlock()
	close(f.done)
}

// book adds what an ended child has used, its own children included.
func (f *family) book(ru *unix.Rusage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.user += time.Duration(ru.Utime.Nano())
	f.sys += time.Duration(ru.Stime.Nano())
	f.maxKiB = max(f.maxKiB, int64(ru.Maxrss))
}

// Signal implements host.Family.
func (f *family) Signal(sig int) error {
	const op = "proc.Signal"
	if sig < 1 || sig > 64 {
		return errs.E(op, errs.Invalid, fmt.Sprint(sig), errors.New("no such signal"))
	}
	if f.ended() {
		return nil
	}
	// Close takes the descriptor away, and its number may then be another file's.
	f.mu.Lock()
	var err error
	held := f.pidfd >= 0
	if held {
		err = unix.PidfdSendSignal(f.pidfd, unix.Signal(sig), nil, 0)
	}
	f.mu.Unlock()
	if !held && !f.spawner.table.signal(f.main, unix.Signal(sig)) {
		err = unix.ESRCH
	}
	if err != nil && !errors.Is(err, unix.ESRCH) && !errors.Is(err, unix.EBADF) {
		return errs.E(op, errs.Broken, f.main.String(), err)
	}
	return nil
}

// members lists the living processes of the family by parentage and mark.
func (f *family) members() ([]Stat, error) {
	s := f.spawner
	if s.role != Starter {
		below, err := s.table.below(f.main.PID)
		if p := f.room.init(); p != nil {
			orphans, oerr := s.table.below(p.pid)
			below, err = append(below, orphans...), errors.Join(err, oerr)
		}
		if main, merr := s.table.stat(f.main.PID); merr == nil && main.Start == f.main.Start && !main.Dead() {
			return append(below, main), err
		}
		return nil, nil // what it left is not below it any more
	}
	all, err := s.table.below(s.self.PID)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	others := map[int]bool{}
	for pid, o := range s.families {
		if o != f {
			others[pid] = true
		}
	}
	for pid, p := range s.inits {
		if p.owner != f {
			others[pid] = true
		}
	}
	s.mu.Unlock()
	if len(others) == 0 {
		return f.withoutInit(all), nil
	}
	return f.apart(all, others), nil
}

// apart picks the family's own from all that is below this process, when other
// families are there too.
func (f *family) apart(all []Stat, others map[int]bool) []Stat {
	var own []Stat
	for _, st := range all {
		if st.Parent != f.spawner.self.PID || others[st.PID] {
			continue
		}
		if p := f.room.init(); p != nil && st.PID == p.pid {
			own = append(own, descendants(all, st.PID)...)
		} else if st.PID == f.main.PID || st.Session == f.main.PID || f.spawner.table.hasEnv(st.PID, f.marker) {
			own = append(own, st)
			own = append(own, descendants(all, st.PID)...)
		}
	}
	return own
}

// withoutInit leaves out the first process of the family's PID namespace.
func (f *family) withoutInit(all []Stat) []Stat {
	p := f.room.init()
	if p == nil {
		return all
	}
	return slices.DeleteFunc(all, func(st Stat) bool { return st.PID == p.pid })
}

// Unmarked implements host.Family.
func (f *family) Unmarked() ([]host.ProcID, error) {
	f.op.Lock()
	defer f.op.Unlock()
	if f.closed || f.group != nil || f.gid != 0 || f.marker == "" {
		return nil, nil
	}
	members, err := f.members()
	if err != nil {
		return nil, errs.E("proc.Unmarked", errs.Broken, f.main.String(), err)
	}
	var without []host.ProcID
	for _, m := range members {
		if m.id() != f.main && !f.spawner.table.hasEnv(m.PID, f.marker) {
			without = append(without, m.id())
		}
	}
	return without, nil
}

// Suspend implements host.Family.
func (f *family) Suspend() (int, error) {
	f.op.Lock()
	defer f.op.Unlock()
	if f.group != nil {
		f.frozen = true
		if _, err := f.group.Freeze(); err != nil {
			return 0, err
		}
		pids, err := f.group.Procs()
		return len(pids), err
	}
	stopped, err := f.stop()
	return len(stopped), err
}

// stopPatience bounds how long stop waits for processes to stand still. One in
// an uninterruptible system call stops when that returns.
const stopPatience = 100 * time.Millisecond

// stop sends SIGSTOP to all and looks again until all stand still and there is
// nobody new. A stopped process cannot fork, so this comes to an end unless
// they fork faster than we look.
func (f *family) stop() (map[int]host.ProcID, error) {
	stopped := map[int]host.ProcID{}
	deadline := time.Now().Add(stopPatience)
	for wait := 50 * time.Microsecond; ; wait *= 2 {
		members, err := f.members()
		if err != nil {
			return stopped, errs.E("proc.Suspend", errs.Broken, f.main.String(), err)
		}
		news, moving := 0, 0
		for _, m := range members {
			if id, ok := stopped[m.PID]; !ok || id != m.id() {
				if f.spawner.table.signal(m.id(), unix.SIGSTOP) {
					stopped[m.PID] = m.id()
					news++
				}
			} else if m.State != 'T' && m.State != 't' {
				moving++
			}
		}
		if news == 0 && moving == 0 {
			return stopped, nil
		}
		if time.Now().After(deadline) {
			if news == 0 { // they will stop when they can
				return stopped, nil
			}
			return stopped, errs.E("proc.Suspend", errs.Transient, f.main.String(), errors.New("processes appear faster than they can be stopped"))
		}
		time.Sleep(wait) // the kernel does not tell when a grandchild has stopped
	}
}

// Continue implements host.Family.
func (f *family) Continue() error {
	f.op.Lock()
	defer f.op.Unlock()
	if f.group != nil {
		err := f.group.Thaw()
		f.frozen = err != nil
		return err
	}
	members, err := f.members()
	if err != nil {
		return errs.E("proc.Continue", errs.Broken, f.main.String(), err)
	}
	// children before parents, so that none sees a sibling still stopped
	for i := len(members) - 1; i >= 0; i-- {
		f.spawner.table.signal(members[i].id(), unix.SIGCONT)
	}
	return nil
}

// Limit implements host.Family.
func (f *family) Limit(l host.GroupLimits) error {
	f.op.Lock()
	defer f.op.Unlock()
	switch {
	case f.closed:
		return errs.E("proc.Limit", errs.Conflict, f.main.String(), errors.New("the family is over"))
	case f.group == nil:
		return errs.E("proc.Limit", errs.Unsupported, f.main.String(), errors.New("the family has no control group"))
	}
	var err error
	if l.CPUs, err = usableCPUs(l.CPUs); err != nil {
		return errs.E("proc.Limit", errs.Broken, f.main.String(), err)
	}
	return f.group.Apply(cgroup.Limits{GroupLimits: l})
}

// Lacks implements host.Family.
func (f *family) Lacks() []string { return f.lacks }

// Kill implements host.Family.
func (f *family) Kill() (int, error) {
	f.op.Lock()
	defer f.op.Unlock()
	return f.killAll()
}

// Close implements host.Family.
func (f *family) Close() (int, error) {
	f.op.Lock()
	defer f.op.Unlock()
	if f.closed {
		return f.left, nil
	}
	wasAlive := !f.ended()
	var all error
	if !f.spotless() {
		n, err := f.killAll()
		if wasAlive && n > 0 {
			n-- // the main process is none of the leftovers
		}
		f.left, all = n, err
	}
	usage, err := f.lastUsage()
	f.final = usage
	all = errors.Join(all, err)
	if f.group != nil {
		all = errors.Join(all, f.group.Remove())
	}
	f.closed = true
	f.mu.Lock()
	if f.pidfd >= 0 {
		unix.Close(f.pidfd)
		f.pidfd = -1
	}
	f.mu.Unlock()
	f.spawner.mu.Lock()
	if f.spawner.families[f.main.PID] == f { // the pid may be another's by now
		delete(f.spawner.families, f.main.PID)
	}
	f.spawner.mu.Unlock()
	close(f.released)
	return f.left, all
}

// Alone implements host.Family.
func (f *family) Alone() bool { return f.spotless() }

// spotless reports whether it is proven that nothing of the family is left.
func (f *family) spotless() bool {
	if !f.ended() || !f.room.init().over() {
		return false
	}
	if f.spawner.role != Starter {
		return true // what is below a dead starter has moved away from it
	}
	f.mu.Lock()
	alone := f.alone
	f.mu.Unlock()
	return alone || f.spawner.noChildren()
}
