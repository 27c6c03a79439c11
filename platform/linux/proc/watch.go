// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package proc

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/host"
)

// takeReaping reports whether the caller has to run the reaper.
func (s *Spawner) takeReaping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.role != Starter || s.reaping || s.none {
		return false
	}
	s.reaping = true
	return true
}

// reap waits for every child of the process, those that lost their parent
// included, until there is none. It is the only one that waits. It ends when
// no child is left and is started again with the next child.
func (s *Spawner) reap() {
	var ended *family // its main process was seen, the question whether others are left is open
	for {
		var ws unix.WaitStatus
		var ru unix.Rusage
		pid, err := unix.Wait4(-1, &ws, unix.WNOHANG, &ru)
		if pid == 0 && err == nil {
			if ended != nil {
				ended.finish(false)
				ended = nil
			}
			pid, err = unix.Wait4(-1, &ws, 0, &ru)
		}
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case err != nil: // ECHILD
			s.mu.Lock()
			// a child may have been started since; it would be waited for now
			p, again := unix.Wait4(-1, &ws, unix.WNOHANG, &ru)
			if again == nil {
				s.mu.Unlock()
				if p > 0 {
					ended = s.reaped(p, ws, &ru, ended)
				}
				continue
			}
			s.none, s.reaping = true, false
			s.announce()
			s.mu.Unlock()
			if ended != nil {
				ended.finish(true)
			}
			return
		default:
			ended = s.reaped(pid, ws, &ru, ended)
		}
	}
}

// reaped books an ended child and returns the family whose end is still to be
// told, if any.
func (s *Spawner) reaped(pid int, ws unix.WaitStatus, ru *unix.Rusage, pending *family) *family {
	if ws.Stopped() { // a child before its first instruction: see limitStopped
		return pending
	}
	if pending != nil { // a further child was there: others outlived the main process
		pending.finish(false)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.inits[pid]; p != nil {
		s.ended(p, ws, ru)
		s.announce()
		return nil
	}
	f := s.families[pid]
	main := f != nil && f.main.PID == pid && !f.ended()
	if f == nil {
		f = s.ownerOfOrphan()
	}
	if f != nil {
		f.book(ru)
	}
	s.announce()
	if !main {
		return nil
	}
	f.mu.Lock()
	f.status = exitStatus(ws)
	f.mu.Unlock()
	return f
}

// ownerOfOrphan picks the family that an ended child without a name is booked
// to: there is one at a time mostly.
func (s *Spawner) ownerOfOrphan() *family {
	var oldest *family
	for _, f := range s.families {
		if oldest == nil || f.main.Start < oldest.main.Start {
			oldest = f
		}
	}
	return oldest
}

// announce wakes who waits for progress. Called with mu held.
func (s *Spawner) announce() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// await waits for one child without touching any other of the process's.
func (s *Spawner) await(f *family) {
	var ws unix.WaitStatus
	var ru unix.Rusage
	poll := func() bool {
		for {
			pid, err := unix.Wait4(f.main.PID, &ws, unix.WNOHANG, &ru)
			if !errors.Is(err, unix.EINTR) {
				return pid != 0 || err != nil
			}
		}
	}
	if !waitReadable(f.ownPidfd(), poll) {
		// no pidfd: a thread of its own has to wait
		for {
			if _, err := unix.Wait4(f.main.PID, &ws, 0, &ru); !errors.Is(err, unix.EINTR) {
				break
			}
		}
	}
	f.book(&ru)
	f.mu.Lock()
	f.status = exitStatus(ws)
	f.mu.Unlock()
	f.finish(false)
}

// ownPidfd is a copy of the main process's pidfd for one goroutine, which Close
// does not take away; -1 if there is none.
func (f *family) ownPidfd() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.pidfd < 0 {
		return -1
	}
	own, err := unix.FcntlInt(uintptr(f.pidfd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	return own
}

// waitReadable calls poll now and whenever fd may have become readable, until
// poll says yes. It reports false if fd cannot be waited for so. It closes fd.
func waitReadable(fd int, poll func() bool) bool {
	if fd < 0 {
		return false
	}
	if unix.SetNonblock(fd, true) != nil {
		_ = unix.Close(fd)
		return false
	}
	file := os.NewFile(uintptr(fd), "pidfd")
	defer file.Close()
	if file.SetReadDeadline(time.Time{}) != nil { // not pollable
		return false
	}
	conn, err := file.SyscallConn()
	if err != nil {
		return false
	}
	return conn.Read(func(uintptr) bool { return poll() }) == nil
}

func exitStatus(ws unix.WaitStatus) host.ExitStatus {
	switch {
	case ws.Exited():
		return host.ExitStatus{Exited: true, Code: ws.ExitStatus()}
	case ws.Signaled():
		return host.ExitStatus{Signal: int(ws.Signal()), Core: ws.CoreDump()}
	}
	return host.ExitStatus{}
}
