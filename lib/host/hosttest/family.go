// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package hosttest

import (
	"errors"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

// Family implements host.Family over one goroutine and as many silent
// children as its program says.
type Family struct {
	Spec host.SpawnSpec // what it was started with

	main host.ProcID
	done chan struct{}

	mu        sync.Mutex
	changed   *sync.Cond
	over      bool
	status    host.ExitStatus
	suspended bool
	signals   []int // not yet seen by the program
	received  []int
	procs     int // living ones, the main process included
	left      int
	usage     host.Usage
	closed    bool
	strays    []host.ProcID
	limits    *host.GroupLimits // set by Limit
}

// Main implements host.Family.
func (f *Family) Main() host.ProcID { return f.main }

// Grouped implements host.Family.
func (f *Family) Grouped() bool { return f.Spec.Group != "" }

// Done implements host.Family.
func (f *Family) Done() <-chan struct{} { return f.done }

// Status implements host.Family.
func (f *Family) Status() host.ExitStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status
}

// end ends the main process, once. Called with mu held.
func (f *Family) end(status host.ExitStatus) {
	if f.over {
		return
	}
	f.over, f.status = true, status
	f.procs--
	f.changed.Broadcast()
	close(f.done)
}

// Unmarked implements host.Family: see Stray.
func (f *Family) Unmarked() ([]host.ProcID, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed || f.Spec.Group != "" {
		return nil, nil
	}
	return append([]host.ProcID(nil), f.strays...), nil
}

// Stray has the family show these processes as ones without its marker.
func (f *Family) Stray(ids ...host.ProcID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.strays = ids
}

// Alone implements host.Family.
func (f *Family) Alone() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.over && f.procs == 0
}

// Signal implements host.Family.
func (f *Family) Signal(sig int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return nil
	}
	f.received = append(f.received, sig)
	if sig == SIGKILL {
		f.end(host.ExitStatus{Signal: SIGKILL})
		return nil
	}
	f.signals = append(f.signals, sig)
	f.changed.Broadcast()
	return nil
}

// Received returns the signals that were sent to the main process.
func (f *Family) Received() []int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]int(nil), f.received...)
}

// Suspended reports whether the family is stopped.
func (f *Family) Suspended() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.suspended
}

// Suspend implements host.Family.
func (f *Family) Suspend() (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.suspended = true
	f.changed.Broadcast()
	return f.procs, nil
}

// Continue implements host.Family.
func (f *Family) Continue() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.suspended = false
	f.changed.Broadcast()
	return nil
}

// Limit implements host.Family.
func (f *Family) Limit(l host.GroupLimits) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.Spec.Group == "" {
		return errs.E("hosttest.Limit", errs.Unsupported, f.Spec.Path, errors.New("the family has no control group"))
	}
	f.limits = &l
	return nil
}

// Lacks implements host.Family: it lacks nothing.
func (f *Family) Lacks() []string { return nil }

// Limits are those of the group by now.
func (f *Family) Limits() host.GroupLimits {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.limits == nil {
		return f.Spec.Limits.Group
	}
	return *f.limits
}

// Kill implements host.Family.
func (f *Family) Kill() (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := f.procs
	f.end(host.ExitStatus{Signal: SIGKILL})
	f.procs = 0
	return n, nil
}

// Usage implements host.Family.
func (f *Family) Usage() (host.Usage, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	u := f.usage
	u.Procs = f.procs
	return u, nil
}

// Close implements host.Family.
func (f *Family) Close() (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.closed {
		f.closed = true
		f.end(host.ExitStatus{Signal: SIGKILL})
		f.left, f.procs = f.procs, 0
	}
	return f.left, nil
}

// Closed reports whether Close was called.
func (f *Family) Closed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

// Process is a main process as its Program sees it.
type Process struct{ f *Family }

// Spec is what it was started with.
func (p *Process) Spec() host.SpawnSpec { return p.f.Spec }

// Fork adds n children that do nothing and outlive the process.
func (p *Process) Fork(n int) {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	p.f.procs += n
}

// Use sets what the family has used so far.
func (p *Process) Use(u host.Usage) {
	p.f.mu.Lock()
	defer p.f.mu.Unlock()
	p.f.usage = u
}

// Sleep lets d of the process's own time pass, in which suspensions do not
// count, and returns 0, or earlier with a signal that arrived. Of a process
// that was killed it returns SIGKILL, now and ever after.
func (p *Process) Sleep(d time.Duration) (sig int) {
	f := p.f
	f.mu.Lock()
	defer f.mu.Unlock()
	for {
		switch {
		case f.over:
			return SIGKILL
		case f.suspended:
			f.changed.Wait()
			continue
		case len(f.signals) > 0:
			sig, f.signals = f.signals[0], f.signals[1:]
			return sig
		case d <= 0:
			return 0
		}
		began := time.Now()
		timer := time.AfterFunc(d, func() {
			f.mu.Lock()
			defer f.mu.Unlock()
			f.changed.Broadcast()
		})
		f.changed.Wait()
		timer.Stop()
		d -= time.Since(began)
	}
}
