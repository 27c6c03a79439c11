// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package proc

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/platform/linux/cgroup"
	"github.com/execpoint/execpoint/platform/linux/space"
)

// Spawn implements host.Spawner.
func (s *Spawner) Spawn(spec host.SpawnSpec) (host.Family, error) {
	if spec.Bond != host.Bound && spec.Nice <= 0 && !marksThread(spec) && !wantsRoom(spec) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		f, err := s.spawn(spec)
		if err != nil {
			return nil, err
		}
		if s.takeReaping() {
			go s.reap()
		}
		return f, nil
	}
	// A bound child dies with the thread that started it, a thread that was made
	// nicer cannot become less nice, one without new privileges stays so, and one that
	// has left the namespaces of the process is good for nothing else: such a child gets
	// a thread of its own, which lives until the family is closed.
	type result struct {
		family *family
		err    error
	}
	started := make(chan result, 1)
	start := func() {
		var f *family
		var err error
		if spec.Nice > 0 {
			err = unix.Setpriority(unix.PRIO_PROCESS, 0, niceness()+min(spec.Nice, 19))
		}
		if err != nil {
			err = failed(spec, unlimited(os.NewSyscallError("setpriority", err)))
		} else if err = limitThread(spec.Limits); err != nil {
			err = failed(spec, unlimited(err))
		} else {
			f, err = s.spawn(spec)
		}
		started <- result{f, err}
		if err != nil {
			return
		}
		if s.takeReaping() { // a thread is here already
			s.reap()
		}
		<-f.released
	}
	go func() {
		lockThread()
		if wantsRoom(spec) {
			offMain(start)
		} else {
			start()
		}
	}()
	r := <-started
	if r.err != nil {
		return nil, r.err
	}
	return r.family, nil
}

// lockThread keeps the calling goroutine on its thread for good: the thread ends with it.
func lockThread() { runtime.LockOSThread() }

// niceness returns that of the calling thread, -20 … 19.
func niceness() int {
	raw, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil {
		return 0
	}
	return 20 - raw // the system call counts 40 … 1
}

// spawn starts spec from the calling thread, to which the goroutine is locked.
func (s *Spawner) spawn(spec host.SpawnSpec) (*family, error) {
	f := &family{spawner: s, signs: signs{spec.Marker, spec.TrackGID}, done: make(chan struct{}), released: make(chan struct{}), pidfd: -1}
	if spec.Beside != nil {
		if err := s.forkBeside(spec, f); err != nil {
			return nil, failed(spec, err)
		}
		return f, nil
	}
	if wantsRoom(spec) {
		if err := s.furnish(spec, f); err != nil {
			s.abandon(f)
			return nil, failed(spec, unlimited(err))
		}
	}
	if spec.Group != "" && s.groups != nil {
		if err := s.makeGroup(spec, f); err != nil {
			s.abandon(f)
			return nil, failed(spec, unlimited(err))
		}
	}
	err := s.fork(spec, f, f.group)
	if err != nil && f.group != nil {
		without := takesNone(f.group, err)
		rerr := f.group.Remove()
		f.group = nil
		if without {
			err = s.fork(spec, f, nil)
		} else {
			err = errors.Join(err, rerr)
		}
	}
	if err != nil {
		s.abandon(f)
		return nil, failed(spec, err)
	}
	f.lacks = lacking(spec.Limits.Group, f.group)
	return f, nil
}

// makeGroup makes the group of a family, with its limits. A family for which none can
// be made goes without. One whose limits are refused is an error: it would take what
// was promised to others.
func (s *Spawner) makeGroup(spec host.SpawnSpec, f *family) error {
	limits := cgroup.Limits{GroupLimits: spec.Limits.Group, OOMTogether: true}
	g, err := s.groups.CreateFor(spec.Group, limits)
	if err != nil {
		if cannot(err) {
			return nil
		}
		return err
	}
	if limits.CPUs, err = usableCPUs(limits.CPUs); err == nil {
		err = g.Apply(limits)
	}
	if err == nil && spec.User != nil && spec.User.UID != uint32(os.Geteuid()) {
		err = g.Give(spec.User.UID, spec.User.GID)
	}
	if err != nil {
		return errors.Join(err, g.Remove())
	}
	f.group = g
	return nil
}

// abandon ends the PID namespace of a family whose main process was never started.
func (s *Spawner) abandon(f *family) {
	if p := f.room.init(); p != nil {
		p.kill(s)
		<-p.done
	}
}

// unlimited says that a limit of the spec could not be applied.
func unlimited(err error) error { return fmt.Errorf("%w: %w", host.ErrLimit, err) }

// cannot reports whether err says that this process may not do something with
// groups, or that the kernel does not know how. That is so for every job of the
// machine, and they go without, as where there are no groups. Any other error is
// one of this group.
func cannot(err error) bool {
	for _, n := range [...]unix.Errno{unix.EPERM, unix.EACCES, unix.EROFS, unix.ENOSYS, unix.EOPNOTSUPP} {
		if errors.Is(err, n) {
			return true
		}
	}
	return false
}

// takesNone reports whether err, with which a process could not be started in g, says
// that none can be: then all jobs of the machine go without. A program that may not be
// executed fails with the same numbers, and its user may change that before a second
// try, which would then run without limits. So where the number does not tell, a
// program that cannot be there is tried in the group.
func takesNone(g *cgroup.Group, err error) bool {
	switch {
	case !cannot(err) && !errors.Is(err, unix.EINVAL):
		return false
	case errors.Is(err, host.ErrLimit):
		return true // it came to no program
	case g.Version() == 1:
		return false // the thread was in the group already
	}
	dir, err := g.OpenDir()
	if err != nil {
		return true
	}
	defer dir.Close()
	_, err = syscall.ForkExec("/dev/null/none", []string{"none"}, &syscall.ProcAttr{Sys: &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(dir.Fd())}})
	return !errors.Is(err, unix.ENOTDIR) && !errors.Is(err, unix.ENOENT)
}

// failed says what kept a process from being started.
func failed(spec host.SpawnSpec, err error) error {
	kind := errs.Broken
	switch {
	case errors.Is(err, host.ErrLimit):
	case errs.Is(err, errs.Conflict):
		kind = errs.Conflict
	case errors.Is(err, unix.ENOENT):
		kind = errs.NotFound
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		kind = errs.Denied
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.ENOMEM), errors.Is(err, unix.ETXTBSY):
		kind = errs.Transient
	}
	return errs.E("proc.Spawn", kind, spec.Path, err)
}

// forkBeside starts a process in the group and the space of another family, which meanwhile is
// neither stopped nor closed: who enters a frozen group stands still himself.
func (s *Spawner) forkBeside(spec host.SpawnSpec, f *family) error {
	other, ok := spec.Beside.(*family)
	if !ok || other.spawner != s {
		return errs.E("proc.Beside", errs.Conflict, spec.Path, errors.New("the other family is not of this spawner"))
	}
	other.op.Lock()
	defer other.op.Unlock()
	if other.closed || other.frozen {
		return errs.E("proc.Beside", errs.Conflict, spec.Path, errors.New("the other family is over or suspended"))
	}
	if r := other.room; r != nil {
		if err := space.Join(r.space, r.thread); err != nil {
			return unlimited(err)
		}
		f.room = &room{space: r.space, thread: unix.Gettid()}
	}
	return s.fork(spec, f, other.group)
}

// fork starts the process in a group, nil for none, and enters it among the
// families.
func (s *Spawner) fork(spec host.SpawnSpec, f *family, group *cgroup.Group) error {
	files, closeFiles, err := standardFiles(spec)
	if err != nil {
		return err
	}
	defer closeFiles()
	attr := &syscall.ProcAttr{
		Dir: spec.Dir, Env: spec.Env, Files: files,
		Sys: &syscall.SysProcAttr{Setsid: true, PidFD: &f.pidfd, Chroot: f.room.root()},
	}
	if spec.OwnMounts {
		attr.Sys.Cloneflags |= syscall.CLONE_NEWNS
	}
	if spec.OwnUsers {
		space.Users(attr.Sys)
	} else if s.lent {
		if err := space.Unlend(); err != nil { // this thread; the next that needs rights is lent them anew
			return err
		}
	}
	if u := spec.User; u != nil {
		groups := u.Groups
		if spec.TrackGID != 0 {
			groups = append(slices.Clip(groups), spec.TrackGID)
		}
		attr.Sys.Credential = &syscall.Credential{Uid: u.UID, Gid: u.GID, Groups: groups}
	} else if spec.TrackGID != 0 {
		return unlimited(errs.E("proc.Spawn", errs.Unsupported, spec.Path, errors.New("who runs as its starter gets no group to be told by")))
	}
	// In a PID namespace of its own a process does not see its parent, and the syscall
	// package would take that for dead. There it dies with the namespace's first
	// process, which dies with the thread that started both.
	if spec.Bond == host.Bound && !f.room.numbered() {
		attr.Sys.Pdeathsig = syscall.SIGKILL
	}
	if group != nil && group.Version() == 2 {
		dir, err := group.OpenDir()
		if err != nil {
			return unlimited(err)
		}
		defer dir.Close()
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, int(dir.Fd())
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if group != nil && group.Version() == 1 {
		if err := group.Enter(); err != nil {
			return unlimited(err)
		}
	}
	var pid int
	var undo func()
	f.room.apart(func() { undo, err = inherit(s.table.root, spec) })
	if err == nil && (group == nil || !group.Has("cpuset")) {
		var free func()
		free, err = pin(spec.Limits.Group.CPUs) // of this thread
		defer free()
	}
	attr.Sys.Ptrace = spec.Limits.AddressSpace != nil
	if err != nil {
		err = unlimited(err)
	} else if pid, err = syscall.ForkExec(spec.Path, spec.Args, attr); group != nil && (errors.Is(err, unix.EBUSY) || errors.Is(err, unix.ENODEV)) {
		err = unlimited(err) // of the group: no program is refused so
	}
	f.room.apart(undo)
	if err == nil && attr.Sys.Ptrace {
		if err = limitStopped(pid, *spec.Limits.AddressSpace, spec.User); err != nil {
			_ = unix.Kill(pid, unix.SIGKILL)
			_, _ = unix.Wait4(pid, nil, 0, nil)
			err = unlimited(err)
		}
	}
	if group != nil && group.Version() == 1 {
		// A thread that cannot go back stays in the job's group and is killed
		// with it: then the job cannot be run there at all.
		if lerr := group.Leave(); lerr != nil && err == nil {
			_ = unix.Kill(pid, unix.SIGKILL)
			_, _ = unix.Wait4(pid, nil, 0, nil)
			err = unlimited(lerr)
		}
	}
	if err != nil {
		if f.pidfd >= 0 {
			unix.Close(f.pidfd)
			f.pidfd = -1
		}
		return err
	}
	// Nobody has waited for it yet, so it is there, a zombie at the least.
	var st Stat
	f.room.apart(func() { st, err = s.table.stat(pid) })
	f.main = host.ProcID{PID: pid, Start: st.Start}
	if err != nil {
		f.main = host.ProcID{PID: pid}
	}
	s.floorKiB = max(s.floorKiB, ownPeak())
	f.floorKiB = s.floorKiB
	s.families[pid] = f
	if s.role == Starter {
		s.none = false
	} else {
		go s.await(f)
	}
	return nil
}

func standardFiles(spec host.SpawnSpec) (fds []uintptr, closeAll func(), err error) {
	fds = make([]uintptr, 3)
	closeAll = func() {}
	null := -1
	for i, file := range []*os.File{spec.Stdin, spec.Stdout, spec.Stderr} {
		if file != nil {
			fds[i] = file.Fd()
			continue
		}
		if null < 0 {
			if null, err = unix.Open(os.DevNull, unix.O_RDWR|unix.O_CLOEXEC, 0); err != nil {
				return nil, closeAll, err
			}
			closeAll = func() { unix.Close(null) }
		}
		fds[i] = uintptr(null)
	}
	return fds, closeAll, nil
}

// inherit sets what a child takes over from its parent and returns what sets
// it back, with an error too. A limit above the hard one is cut there, and a score
// that may not be set stays as it is.
func inherit(root string, spec host.SpawnSpec) (undo func(), all error) {
	var undos []func()
	limit := func(which int, soft, hard uint64) {
		var old unix.Rlimit
		if err := unix.Prlimit(0, which, nil, &old); err != nil {
			all = errors.Join(all, os.NewSyscallError("prlimit", err))
			return
		}
		want := unix.Rlimit{Cur: min(soft, old.Max), Max: min(hard, old.Max)}
		if want == old {
			return
		}
		if err := unix.Prlimit(0, which, &want, nil); err != nil {
			all = errors.Join(all, os.NewSyscallError("prlimit", err))
			return
		}
		undos = append(undos, func() {
			if unix.Prlimit(0, which, &old, nil) != nil { // the hard limit needs a right to come back
				_ = unix.Prlimit(0, which, &unix.Rlimit{Cur: min(old.Cur, want.Max), Max: want.Max}, nil)
			}
		})
	}
	if spec.Limits.Core != nil {
		n := rlimit(*spec.Limits.Core)
		limit(unix.RLIMIT_CORE, n, n)
	}
	if spec.Limits.Stack != nil {
		limit(unix.RLIMIT_STACK, rlimit(*spec.Limits.Stack), unix.RLIM_INFINITY)
	}
	if spec.Limits.OOMScore != nil {
		if undo := oomScore(root, *spec.Limits.OOMScore); undo != nil {
			undos = append(undos, undo)
		}
	}
	return func() {
		for _, u := range undos {
			u()
		}
	}, all
}

func rlimit(n int64) uint64 {
	if n < 0 {
		return unix.RLIM_INFINITY
	}
	return uint64(n)
}

// oomScore sets our own score, which a child is born with. A score may be
// raised by anybody and may be lowered again to where it was.
func oomScore(root string, score int) (undo func()) {
	fd, err := unix.Open(root+"/self/oom_score_adj", unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	var buf [16]byte
	n, err := unix.Pread(fd, buf[:], 0)
	old := strings.TrimSpace(string(buf[:max(n, 0)]))
	if err == nil {
		_, err = unix.Pwrite(fd, []byte(strconv.Itoa(score)), 0)
	}
	if err != nil {
		unix.Close(fd)
		return nil
	}
	return func() {
		_, _ = unix.Pwrite(fd, []byte(old), 0)
		unix.Close(fd)
	}
}

// ownPeak is the largest resident size of this process in KiB.
func ownPeak() int64 {
	var ru unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &ru) != nil {
		return 0
	}
	return int64(ru.Maxrss)
}
