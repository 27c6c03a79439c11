// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/classad"
)

// Sender opens a connection to a daemon for a command, secured and at the
// payload.
type Sender func(ctx context.Context, to cedar.Sinful, command int) (*cedar.Conn, error)

// Parent keeps the daemon that started us content.
type Parent struct {
	Address cedar.Sinful
	Send    Sender
	PID     int // ours
	// Silence is how long we may say nothing: <SUBSYSTEM>_NOT_RESPONDING_TIMEOUT
	// or NOT_RESPONDING_TIMEOUT. It is asked before each message, so that a
	// reconfiguration counts.
	Silence func() time.Duration
	// Healthy reports whether the daemon does its work. Nothing is said as
	// long as it does not, so that the parent notices. Nil is always.
	Healthy func(ctx context.Context) bool
	Log     *slog.Logger
}

// tries is how often one message is tried.
const tries = 3

// Period returns how long after a message the next one is sent.
func Period(silence time.Duration) time.Duration {
	return max(silence/3-30*time.Second, time.Second)
}

// KeepAlive says that we live, at once and then in time, until ctx ends.
func (p *Parent) KeepAlive(ctx context.Context) {
	for {
		silence := p.Silence()
		if silence <= 0 {
			silence = time.Hour
		}
		period := Period(silence)
		if p.Healthy == nil || p.Healthy(ctx) {
			p.try(ctx, period, func(ctx context.Context) error { return p.alive(ctx, silence) }, command.DCChildAlive)
		} else {
			p.Log.Warn("not telling the parent that all is well: it is not", "command", command.Name(command.DCChildAlive))
		}
		if !sleep(ctx, period) {
			return
		}
	}
}

// Ready tells the parent that the daemon is ready.
func (p *Parent) Ready(ctx context.Context) {
	p.try(ctx, 3*time.Minute, p.ready, command.DCSetReady)
}

// try does something up to three times within a period.
func (p *Parent) try(ctx context.Context, period time.Duration, f func(context.Context) error, number int) {
	limit := max(period/tries, time.Minute)
	for n := 1; ; n++ {
		attempt, cancel := context.WithTimeout(ctx, limit)
		err := f(attempt)
		cancel()
		if err == nil {
			p.Log.Debug("told the parent", "command", command.Name(number))
			return
		}
		if ctx.Err() != nil {
			return
		}
		p.Log.Warn("could not tell the parent", "command", command.Name(number), "try", n, "err", err)
		if n == tries || !sleep(ctx, min(period/10, 5*time.Second)+rand.N(time.Second)) {
			return
		}
	}
}

func (p *Parent) alive(ctx context.Context, silence time.Duration) error {
	return p.send(ctx, command.DCChildAlive, func(c *cedar.Conn) {
		c.PutInt(int64(p.PID))
		c.PutInt(int64(silence / time.Second))
		c.PutFloat(0) // time spent on waiting for the lock of the log
	})
}

func (p *Parent) ready(ctx context.Context) error {
	ad := readyAd("Ready")
	ad.SetInt("DaemonPID", int64(p.PID))
	return p.send(ctx, command.DCSetReady, func(c *cedar.Conn) { c.PutAd(ad, adOptions) })
}

func (p *Parent) send(ctx context.Context, number int, put func(*cedar.Conn)) error {
	c, err := p.Send(ctx, p.Address, number)
	if err != nil {
		return err
	}
	defer c.Close()
	release := c.Bind(ctx)
	defer release()
	put(c)
	return c.EndMessage()
}

// readyAd is how a daemon says what state it is in.
func readyAd(state string) *classad.Ad {
	ad := classad.NewAd()
	ad.SetString("DaemonName", "STARTD")
	ad.SetString("DaemonState", state)
	return ad
}

// sleep waits for d and returns false when ctx ends before.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
