// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package proc

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/platform/linux/space"
)

// room is the space of a family on the thread that made it, or that came to it.
type room struct {
	space  host.Space
	thread int
	// pids is the first process of its PID namespace, nil without one or for who came
	// to another family's. It is no process of the family: when it ends the kernel has
	// ended every other of the namespace, and it ends when it is killed.
	pids *pidSpace
}

// pidSpace is a PID namespace by its first process.
type pidSpace struct {
	pid    int
	pidfd  int // -1 where the kernel has none, and when it is over
	owner  *family
	done   chan struct{} // closed when it has been waited for
	status unix.WaitStatus
}

// apart calls f on another thread than the family's, whose /proc may be that of a PID
// namespace in which this process does not exist.
func (r *room) apart(f func()) {
	if r == nil {
		f()
		return
	}
	done := make(chan struct{})
	go func() { defer close(done); f() }()
	<-done
}

// numbered reports whether processes of the thread are born in another PID namespace.
func (r *room) numbered() bool { return r != nil && r.space.PIDs }

// root is the directory that is / for them, "" for that of this process.
func (r *room) root() string {
	if r == nil {
		return ""
	}
	return r.space.Root
}

// init is the first process of the family's own PID namespace, nil without one.
func (r *room) init() *pidSpace {
	if r == nil {
		return nil
	}
	return r.pids
}

// wantsRoom reports whether spec's process does not see what this process does.
func wantsRoom(spec host.SpawnSpec) bool {
	if other, ok := spec.Beside.(*family); ok {
		return other.room != nil
	}
	return spec.Beside == nil && spec.Space != nil && !spec.Space.IsZero()
}

// offMain calls f on a locked thread that is not the main one. The calling goroutine
// is locked to its thread, and f's is never unlocked: it ends with f.
func offMain(f func()) {
	if unix.Gettid() != os.Getpid() {
		f()
		return
	}
	done := make(chan struct{})
	go func() { // on another thread, as this one is taken
		defer close(done)
		lockThread()
		f()
	}()
	<-done
}

// furnish makes the room of f on the calling thread.
func (s *Spawner) furnish(spec host.SpawnSpec, f *family) error {
	r := &room{space: *spec.Space, thread: unix.Gettid()}
	if err := space.Make(r.space, spec.User); err != nil {
		return err
	}
	f.room = r
	if !r.space.PIDs {
		return nil
	}
	return s.startInit(spec, f)
}

// startInit starts the first process of the thread's PID namespace and waits until
// there is a /proc.
func (s *Spawner) startInit(spec host.SpawnSpec, f *family) error {
	var env []string
	if spec.Marker != "" {
		env = []string{spec.Marker}
	}
	s.mu.Lock()
	in, err := space.StartInit(f.room.space, spec.User, env)
	if err != nil {
		s.mu.Unlock()
		return err
	}
	p := &pidSpace{pid: in.PID, pidfd: in.PidFD, owner: f, done: make(chan struct{})}
	f.room.pids = p
	s.inits[in.PID] = p
	if s.role == Starter {
		s.none = false
	} else {
		go p.await(s)
	}
	s.mu.Unlock()
	if s.takeReaping() {
		go s.reap()
	}
	if in.Ready() {
		return nil
	}
	<-p.done
	err = fmt.Errorf("the first process of a PID namespace: %w", unix.Errno(p.status.ExitStatus()))
	if !p.status.Exited() {
		err = fmt.Errorf("the first process of a PID namespace died on signal %d", p.status.Signal())
	}
	return errs.E("proc.startInit", errs.Broken, space.ProcOf(f.room.space), err)
}

// await waits for the process in a program whose other children are not its own.
func (p *pidSpace) await(s *Spawner) {
	var ws unix.WaitStatus
	var ru unix.Rusage
	for {
		if _, err := unix.Wait4(p.pid, &ws, 0, &ru); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended(p, ws, &ru)
}

// ended books the end of a namespace's first process: it has waited for those that had
// lost their parents. Called with mu held.
func (s *Spawner) ended(p *pidSpace, ws unix.WaitStatus, ru *unix.Rusage) {
	p.owner.book(ru)
	p.status = ws
	delete(s.inits, p.pid)
	if p.pidfd >= 0 {
		unix.Close(p.pidfd)
		p.pidfd = -1
	}
	close(p.done)
}

// over reports whether the namespace is gone, or there is none.
func (p *pidSpace) over() bool {
	if p == nil {
		return true
	}
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// kill ends the namespace with all that is in it. Called without the spawner's mu.
func (p *pidSpace) kill(s *Spawner) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inits[p.pid] == p {
		// It kills the others when it gets a processor, for which thousands may wait.
		_ = urgent(p.pid) // who may not waits
	}
	switch {
	case s.inits[p.pid] != p: // it is over
	case p.pidfd >= 0:
		_ = unix.PidfdSendSignal(p.pidfd, unix.SIGKILL, nil, 0)
	default: // before 5.3: as near as one can get
		_ = unix.Kill(p.pid, unix.SIGKILL)
	}
}
