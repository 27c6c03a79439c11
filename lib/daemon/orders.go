// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"fmt"
	"sync"

	"github.com/execpoint/execpoint/lib/errs"
)

// Mode is a way to go down.
type Mode uint8

// The ways.
const (
	Graceful Mode = iota // jobs get their retirement and vacate time, within SHUTDOWN_GRACEFUL_TIMEOUT
	Peaceful             // jobs may end as they like
	Fast                 // jobs are killed
)

// String returns the mode's name, as "graceful".
func (m Mode) String() string {
	switch m {
	case Graceful:
		return "graceful"
	case Peaceful:
		return "peaceful"
	case Fast:
		return "fast"
	}
	return "unknown"
}

// Exit statuses of a daemon that condor_master looks at.
const (
	ExitOK        = 0
	ExitError     = 1
	ExitException = 4  // something that must not happen; the master starts us again
	ExitNoLog     = 44 // the log cannot be written; HTCondor calls it DPRINTF_ERROR
	ExitNoRestart = 99 // the master is not to start us again
)

// Numbers that DC_RAISESIGNAL uses, those of Unix.
const (
	signalHangup = 1  // SIGHUP: read the configuration again
	signalQuit   = 3  // SIGQUIT: go down fast
	signalTerm   = 15 // SIGTERM: go down gracefully
)

// Control is who carries out what a daemon is ordered. Calls may come at any
// time from any goroutine, and more than once; they must not wait for what
// they set off.
type Control interface {
	// Reconfigure reads the configuration again. full asks for what a mere
	// reconfiguration leaves out, too.
	Reconfigure(full bool)
	// Shutdown goes down. A later order for a faster way overrides one for a
	// slower.
	Shutdown(m Mode)
}

// Orders turns signals and commands into orders: a tool may say first that
// the next shutdown is to be a peaceful one, and then have the signal sent. The
// zero value with Control set is ready; it is safe for concurrent use.
type Orders struct {
	Control Control

	mu       sync.Mutex
	peaceful bool
}

// SetPeaceful says whether Terminate is to be peaceful.
func (o *Orders) SetPeaceful(peaceful bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.peaceful = peaceful
}

// Hangup is SIGHUP.
func (o *Orders) Hangup() { o.Control.Reconfigure(false) }

// Terminate is SIGTERM.
func (o *Orders) Terminate() {
	o.mu.Lock()
	m := Graceful
	if o.peaceful {
		m = Peaceful
	}
	o.mu.Unlock()
	o.Control.Shutdown(m)
}

// Quit is SIGQUIT.
func (o *Orders) Quit() { o.Control.Shutdown(Fast) }

// Raise obeys a signal by its number on Unix.
func (o *Orders) Raise(number int64) error {
	switch number {
	case signalHangup:
		o.Hangup()
	case signalQuit:
		o.Quit()
	case signalTerm:
		o.Terminate()
	default:
		return errs.E("daemon.Raise", errs.Unsupported, "", fmt.Errorf("signal %d means nothing to this daemon; 1, 3 and 15 do", number))
	}
	return nil
}
