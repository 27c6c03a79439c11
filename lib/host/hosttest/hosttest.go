// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hosttest is a machine in memory for tests: programs are Go
// functions, processes are goroutines, and time is whatever the test's is, so
// that a testing/synctest bubble lives hours of it at once. It owns the
// behaviour of lib/host that every platform has to show; it must never touch
// the real machine, and never be used outside tests.
//
//	m := hosttest.New()
//	m.Install("/bin/sleep", func(p *hosttest.Process) host.ExitStatus {
//		p.Sleep(10 * time.Minute)
//		return host.ExitStatus{Exited: true}
//	})
//	family, err := m.Spawn(host.SpawnSpec{Path: "/bin/sleep"})
package hosttest

import (
	"errors"
	"io/fs"
	"sync"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// The signals that mean something here.
const (
	SIGKILL = 9 // ends a process whatever its program does
	SIGTERM = 15
)

// Program is what a process does. It returns how it ends; what it returns
// after SIGKILL does not matter.
type Program func(p *Process) host.ExitStatus

// Machine implements host.Spawner and host.Census.
type Machine struct {
	mu       sync.Mutex
	programs map[string]Program
	families []*Family
	next     int
	remains  []host.Remains
}

// New returns a machine without programs. The process that uses it has pid
// 1000.
func New() *Machine { return &Machine{programs: map[string]Program{}, next: 1001} }

// Install puts a program at path.
func (m *Machine) Install(path string, p Program) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.programs[path] = p
}

// Families returns all that were spawned, in order.
func (m *Machine) Families() []*Family {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]*Family(nil), m.families...)
}

// Spawn implements host.Spawner. A program that is not installed does not
// exist, as fs.ErrNotExist says.
func (m *Machine) Spawn(spec host.SpawnSpec) (host.Family, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	program := m.programs[spec.Path]
	if program == nil {
		return nil, errs.E("hosttest.Spawn", errs.NotFound, spec.Path, fs.ErrNotExist)
	}
	f := &Family{Spec: spec, main: host.ProcID{PID: m.next, Start: uint64(m.next)}, done: make(chan struct{}), procs: 1}
	f.changed = sync.NewCond(&f.mu)
	m.next++
	m.families = append(m.families, f)
	go func() {
		status := program(&Process{f: f})
		f.mu.Lock()
		defer f.mu.Unlock()
		f.end(status)
	}()
	return f, nil
}

// Self implements host.Census.
func (m *Machine) Self() host.ProcID { return host.ProcID{PID: 1000, Start: 1} }

// Boot implements host.Census.
func (m *Machine) Boot() string { return "boot" }

// Alive implements host.Census.
func (m *Machine) Alive(p host.ProcID) bool {
	for _, f := range m.Families() {
		if f.main == p {
			return !f.Status().Ended()
		}
	}
	return p == m.Self()
}

// Running implements host.Census.
func (m *Machine) Running(pid int) bool {
	return m.Alive(host.ProcID{PID: pid, Start: uint64(pid)})
}

// KillRemains implements host.Census: it notes what it was asked for and kills
// the family whose main process that is.
func (m *Machine) KillRemains(r host.Remains) (int, error) {
	m.mu.Lock()
	m.remains = append(m.remains, r)
	m.mu.Unlock()
	for _, f := range m.Families() {
		if f.main == r.Main {
			return f.Kill()
		}
	}
	return 0, nil
}

// Suspects implements host.Census: every process here is of a known family.
func (m *Machine) Suspects(host.Remains, string) ([]string, error) { return nil, nil }

// Remains returns what KillRemains was asked for.
func (m *Machine) Remains() []host.Remains {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]host.Remains(nil), m.remains...)
}

// Errno is a host.Errno for the errors of this machine, and for those of the
// real file system that tests meet.
func Errno(err error) (int, string, bool) {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 2, "No such file or directory", true
	case errors.Is(err, fs.ErrPermission):
		return 13, "Permission denied", true
	}
	return 0, "", false
}

// SignalNumber is a host.SignalNumber that knows a few.
func SignalNumber(name string) (int, bool) {
	n, ok := map[string]int{"SIGHUP": 1, "SIGINT": 2, "SIGQUIT": 3, "SIGKILL": SIGKILL, "SIGUSR1": 10, "SIGTERM": SIGTERM}[name]
	return n, ok
}
