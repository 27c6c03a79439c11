// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clock tells the time twice: on the wall, and since boot including
// sleep. Published times are wall times; leases, retirement and timeouts count
// in boot time, because a wall clock jumps and Go's monotonic clock stands
// still while a Linux machine sleeps. Rules never call a clock: they are given
// an Instant. The package must never be a hidden global; it has no Now func.
package clock

import (
	"sync"
	"time"
)

// Instant is one moment on both scales.
type Instant struct {
	Wall time.Time     // what calendars and ads show
	Boot time.Duration // since boot, sleep included; never goes back
}

// Sub returns how much boot time passed from u to t.
func (t Instant) Sub(u Instant) time.Duration { return t.Boot - u.Boot }

// Add returns the instant d later on both scales.
func (t Instant) Add(d time.Duration) Instant {
	return Instant{Wall: t.Wall.Add(d), Boot: t.Boot + d}
}

// IsZero reports whether t was never set.
func (t Instant) IsZero() bool { return t.Wall.IsZero() && t.Boot == 0 }

// Jump returns how far the wall clock moved beyond what the boot clock says
// passed between u and t: positive for a jump forwards, 0 when both agree.
func (t Instant) Jump(u Instant) time.Duration {
	return t.Wall.Round(0).Sub(u.Wall.Round(0)) - t.Sub(u)
}

// Clock gives the present instant. Implementations are safe for concurrent use.
type Clock interface {
	Now() Instant
}

// System returns a clock of the running process: wall time from the operating
// system and, as boot time, Go's monotonic clock counted from the call. It is
// right where the operating system's boot clock cannot be read; platforms that
// can read it (Linux: CLOCK_BOOTTIME) bring a clock of their own.
func System() Clock { return &system{start: time.Now()} }

type system struct{ start time.Time }

func (s *system) Now() Instant {
	n := time.Now()
	return Instant{Wall: n, Boot: n.Sub(s.start)}
}

// Fake is a clock that stands still until told. Its zero value stands at the
// zero instant.
type Fake struct {
	mu  sync.Mutex
	now Instant
}

// NewFake returns a fake clock that stands at wall, an hour after boot.
func NewFake(wall time.Time) *Fake {
	return &Fake{now: Instant{Wall: wall, Boot: time.Hour}}
}

// Now returns where the clock stands.
func (f *Fake) Now() Instant {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// Advance lets d pass on both scales and returns the new instant.
func (f *Fake) Advance(d time.Duration) Instant {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = f.now.Add(d)
	return f.now
}

// JumpWall moves the wall clock alone by d, as an administrator would.
func (f *Fake) JumpWall(d time.Duration) Instant {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now.Wall = f.now.Wall.Add(d)
	return f.now
}
