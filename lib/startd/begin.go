// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package startd

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/daemon"
	"github.com/execpoint/execpoint/lib/observe"
)

// giveUp is how long a start that was told to end may take to do so. What it
// waits for then cannot be hurried, such as a file server that is gone.
const giveUp = 3 * time.Second

// beginning is the start of the daemon, until its slots are there. An order to
// end breaks it off: there is no job that could be given time, and a user or a service
// manager that starts the daemon does not wait for it. HTCondor's startd obeys only
// after its start, which helps no user.
type beginning struct {
	mu     sync.Mutex
	over   bool
	broken bool
	cancel context.CancelFunc
}

// breakOff ends the start, and reports whether it was not over yet.
func (b *beginning) breakOff() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.over {
		b.broken = true
		b.cancel()
	}
	return !b.over
}

// brokenOff reports whether the start was ended by an order.
func (b *beginning) brokenOff() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.broken
}

// end says that the start is over.
func (b *beginning) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
}

// endsEarly waits for the life of the daemon, and not for one that was told to
// end before it had begun and does not.
func (d *daemonState) endsEarly(ctx context.Context, live func(context.Context) (int, error)) (status int, err error) {
	type outcome struct {
		status int
		err    error
	}
	ended := make(chan outcome, 1)
	go func() {
		status, err := live(ctx)
		ended <- outcome{status, err}
	}()
	select {
	case out := <-ended:
		return out.status, out.err
	case <-ctx.Done():
	}
	limit := time.NewTimer(giveUp)
	defer limit.Stop()
	late := limit.C
	if !d.begin.brokenOff() {
		late = nil // the caller's order: jobs are ended first
	}
	select {
	case out := <-ended:
		return out.status, out.err
	case <-late:
		return d.broken(nil)
	}
}

// broken is the outcome of a life that ended with err, if it is one that was
// told to end before it had begun.
func (d *daemonState) broken(err error) (int, error) {
	if d.begin.brokenOff() {
		d.say("told to end during the start")
		if log := d.logger(); log != nil {
			observe.Banner{Program: program, PID: d.o.PID}.End(log, daemon.ExitOK)
		}
		return daemon.ExitOK, nil
	}
	return daemon.ExitException, err
}

// logger is the daemon's log, nil before there is one.
func (d *daemonState) logger() *slog.Logger {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.logs == nil {
		return nil
	}
	return d.logs.log
}

// say tells what belongs to the start: in the log, or where the daemon was
// started from as long as it is not known where the log is.
func (d *daemonState) say(text string) {
	if log := d.logger(); log != nil {
		log.Info(text)
	} else if d.o.Early != nil {
		fmt.Fprintf(d.o.Early, "%s: %s\n", program, text)
	}
}

// during does one step of the start. If it takes long it is said what is waited
// for.
func (d *daemonState) during(step string, f func() error) error {
	defer observe.Waiting(func() { d.say("waiting for " + step) })()
	return f()
}
