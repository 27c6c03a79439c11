// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadow

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/errs"
)

// DefaultTimeout is how long an answer may take if nothing else is said.
const DefaultTimeout = 300 * time.Second

// Options are what a Caller is told besides its connection.
type Options struct {
	Timeout time.Duration // for one call; 0 is DefaultTimeout
	Log     *slog.Logger  // nil for none
	Peer    string        // the shadow's $CondorVersion or number, if it is known
	Clock   clock.Clock   // nil is clock.System
}

// Caller is the starter's end of the conversation with the shadow. Its methods
// may be called by many goroutines; one call is under way at a time.
type Caller struct {
	timeout time.Duration
	log     *slog.Logger
	clock   clock.Clock

	mu      sync.Mutex
	line    *line
	peer    string // version
	contact clock.Instant
}

// New begins the conversation on a connection, which the Caller owns from then
// on: nobody else may read, write or close it.
func New(conn *cedar.Conn, o Options) *Caller {
	c := &Caller{timeout: o.Timeout, log: o.Log, clock: o.Clock, peer: o.Peer}
	if c.timeout <= 0 {
		c.timeout = DefaultTimeout
	}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if c.clock == nil {
		c.clock = clock.System()
	}
	if c.peer == "" {
		c.peer = conn.PeerVersion()
	}
	c.attach(conn)
	return c
}

// Replace goes on with the conversation on another connection, after the
// shadow or its successor came back. The old connection is closed and calls
// that wait on it fail.
func (c *Caller) Replace(conn *cedar.Conn) {
	old := c.current()
	c.attach(conn)
	old.fail(errors.New("another connection took its place"))
}

func (c *Caller) attach(conn *cedar.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if conn.PeerVersion() == "" {
		conn.SetPeerVersion(c.peer)
	}
	c.contact = c.clock.Now()
	c.line = newLine(conn, c.timeout, c.touch)
}

func (c *Caller) touch() {
	now := c.clock.Now()
	c.mu.Lock()
	c.contact = now
	c.mu.Unlock()
}

func (c *Caller) current() *line {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.line
}

// End ends the conversation and closes the connection.
func (c *Caller) End() { c.current().fail(errClosed) }

// Break ends the conversation because of cause, as if the connection had been
// lost: the shadow is expected to come back.
func (c *Caller) Break(cause error) { c.current().fail(cause) }

// Connected reports whether there is a conversation.
func (c *Caller) Connected() bool {
	select {
	case <-c.Lost():
		return false
	default:
		return true
	}
}

// Lost is closed once the present conversation broke. After Replace there is
// another one.
func (c *Caller) Lost() <-chan struct{} { return c.current().gone }

// Cause returns why the present conversation broke, nil if it has not.
func (c *Caller) Cause() error {
	l := c.current()
	if cause := l.why(); cause != nil {
		return errs.E("shadow.Caller", errs.Transient, l.conn.Peer(), fmt.Errorf("%w: %w", ErrLost, cause))
	}
	return nil
}

// Contact is when the shadow answered last, or the connection was taken up.
func (c *Caller) Contact() clock.Instant {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.contact
}

// LastContact is Contact on the wall.
func (c *Caller) LastContact() time.Time { return c.Contact().Wall }

// Peer is the shadow's address, for messages to people.
func (c *Caller) Peer() string { return c.current().conn.Peer() }

// AtLeast reports whether the shadow is known to be of that version or newer.
func (c *Caller) AtLeast(major, minor, patch int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	v, ok := cedar.ParseVersion(c.peer)
	return ok && v.AtLeast(major, minor, patch)
}

// SetPeerVersion tells which version the shadow is, as the ad of a reconnect
// says it.
func (c *Caller) SetPeerVersion(version string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.peer = version
}

// ask makes one call.
func (c *Caller) ask(ctx context.Context, r *Request) (Reply, error) {
	l := c.current()
	if err := r.check(); err != nil {
		return Reply{}, c.invalid(r.Call, err)
	}
	if err := l.take(ctx); err != nil {
		return Reply{}, c.failed(l, r.Call, err)
	}
	p := &pending{request: r, done: make(chan Reply, 1)}
	if err := l.send(p, r.Put); err != nil {
		return Reply{}, c.failed(l, r.Call, err)
	}
	reply, err := l.answer(ctx, p)
	if err != nil {
		return Reply{}, c.failed(l, r.Call, err)
	}
	return reply, c.refused(l, r.Call, reply)
}

// invalid is the error of a call that was not made.
func (c *Caller) invalid(call Call, why error) error {
	return errs.E("shadow."+call.String(), errs.Invalid, "", why)
}

// tell makes a call that has no answer.
func (c *Caller) tell(ctx context.Context, r *Request) error {
	l := c.current()
	if err := r.check(); err != nil {
		return c.invalid(r.Call, err)
	}
	if err := l.take(ctx); err != nil {
		return c.failed(l, r.Call, err)
	}
	defer func() { <-l.turn }()
	if err := l.send(nil, r.Put); err != nil {
		return c.failed(l, r.Call, err)
	}
	return nil
}

// refused is the error of an answer that says no.
func (c *Caller) refused(l *line, call Call, reply Reply) error {
	f, _ := call.form()
	switch {
	case reply.Value >= 0, f.answer == answerLone, f.answer == answerGuidance, f.answer == answerCreds:
		return nil
	}
	refusal := &CallError{Call: f.name, Errno: reply.Errno}
	return errs.E("shadow."+f.name, refusal.kind(), l.conn.Peer(), refusal)
}

// failed is the error of a call that got no answer.
func (c *Caller) failed(l *line, call Call, err error) error {
	op := "shadow." + call.String()
	if !errors.Is(err, ErrLost) {
		return errs.E(op, errs.Other, l.conn.Peer(), err)
	}
	if cause := l.why(); cause != nil {
		err = fmt.Errorf("%w: %w", ErrLost, cause)
	}
	c.log.Debug("call to the shadow failed", "call", call.String(), "peer", l.conn.Peer(), "err", err)
	return errs.E(op, errs.Transient, l.conn.Peer(), err)
}
