// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/errs"
)

// Security finds out who is at the other end of a connection and what it may
// have. *security.Server is it; it logs what it refuses.
type Security interface {
	// Narrow bounds a stream whose peer is not known, in size and in time, until
	// restore puts back what was before.
	Narrow(conn *cedar.Conn) (restore func())
	// Handshake returns the first command of a connection, allowed, with its
	// payload next on conn. from may be not valid.
	Handshake(ctx context.Context, conn *cedar.Conn, from netip.AddrPort) (*security.Request, error)
	// Next waits for a further command on a connection that last came from.
	Next(ctx context.Context, conn *cedar.Conn, last *security.Request) (*security.Request, error)
}

// Server answers commands. Its exported fields are set before the first
// connection and not changed after.
type Server struct {
	Table    *Table
	Security Security
	// Datagrams does for datagrams what Security does for connections; nil
	// takes none.
	Datagrams Datagrams
	Limits    Limits
	Wire      cedar.Limits // of every connection; its Timeout is Limits.Message
	Log       *slog.Logger

	once     sync.Once
	guard    *guard
	turns    *turns // of handshakes
	wg       sync.WaitGroup
	refusals logLimiter
	// panics counts those that protect caught.
	panics atomic.Int64
}

func (s *Server) start() {
	s.once.Do(func() {
		s.guard = newGuard(s.Limits)
		s.turns = newTurns(runtime.GOMAXPROCS(0), turnStall)
		if s.Log == nil {
			s.Log = slog.New(slog.DiscardHandler)
		}
	})
}

// Serve accepts from l, which it closes, until ctx ends or l fails. It returns
// nil when ctx ended; connections may then still be served, see Wait.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	s.start()
	defer l.Close()
	stop := context.AfterFunc(ctx, func() { _ = l.Close() })
	defer stop()
	pause := time.Duration(0)
	for {
		nc, err := l.Accept()
		if ctx.Err() != nil {
			if err == nil {
				_ = nc.Close()
			}
			return nil
		}
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return errs.E("listen.Serve", errs.Broken, l.Addr().String(), err)
			}
			pause = clock.Longer(pause)
			s.Log.Warn("could not accept a connection", "addr", l.Addr().String(), "err", err)
			if !wait(ctx, pause) {
				return nil
			}
			continue
		}
		pause = 0
		s.ServeConn(ctx, nc)
	}
}

// ServeConn serves a connection that was accepted elsewhere: passed by a
// shared port, or opened by ourselves towards a peer that could not reach us.
// It owns nc, and returns at once, unless connections come faster than they
// can have said something: then after a fraction of a second.
func (s *Server) ServeConn(ctx context.Context, nc net.Conn) {
	s.start()
	e, victim, pause, err := s.guard.admit(nc, time.Now())
	for pause > 0 && wait(ctx, pause) {
		e, victim, pause, err = s.guard.admit(nc, time.Now())
	}
	if err != nil || e == nil {
		_ = nc.Close()
		if err != nil {
			s.noRoom("connection refused", nc, err)
		}
		return
	}
	s.displaced(victim)
	conn := cedar.NewConn(nc, s.Wire)
	conn.SetTimeout(s.guard.limits.Message)
	conn.SetAccount(account{s, e})
	s.wg.Go(func() {
		defer s.guard.leave(e)
		c := &conversation{s: s, e: e, conn: conn, from: peerAddr(nc), log: s.Log.With("peer", peerName(nc))}
		taken := false
		if err := protect(func() error { taken = c.run(ctx); return nil }); err != nil {
			s.panicked(c.log, err)
		}
		if !taken {
			_ = conn.Close()
		}
	})
}

// displaced logs that a connection was closed in favour of another.
func (s *Server) displaced(victim *entry) {
	if victim != nil {
		s.noRoom("no room for connections, closed the oldest of the peer with the most", victim.nc, nil)
	}
}

// noRoom logs what there was no room for, a line in ten seconds.
func (s *Server) noRoom(what string, nc net.Conn, err error) {
	n, say := s.refusals.allow(time.Now())
	switch {
	case !say:
	case err != nil:
		s.Log.Warn(what, "peer", peerName(nc), "err", err, "since", n)
	default:
		s.Log.Warn(what, "peer", peerName(nc), "since", n)
	}
}

// Wait ends what is served: idle connections and those of unknown peers are
// closed at once, handlers may finish until ctx ends, and then lose their
// connections. It returns when no handler runs any more. The context given to
// Serve should have ended.
func (s *Server) Wait(ctx context.Context) {
	s.start()
	s.guard.close()
	stop := context.AfterFunc(ctx, s.guard.kill)
	defer stop()
	s.wg.Wait()
}

// Connections returns how many connections there are, and how many of them
// have not said who they are.
func (s *Server) Connections() (all, unknown int) {
	s.start()
	return s.guard.count()
}

// Panics returns how many connections and datagrams were ended by a panic of
// ours, in a handler or before one was found.
func (s *Server) Panics() int64 { return s.panics.Load() }

// panicked counts and logs the panic that an error carries, and does nothing for
// another error.
func (s *Server) panicked(log *slog.Logger, err error) {
	var p *panicError
	if errors.As(err, &p) {
		s.panics.Add(1)
		log.Error("a panic ended a connection", "panic", fmt.Sprint(p.value), "stack", string(p.stack))
	}
}

// turnStall is how long a handshake may work at a time. The most costly step,
// a signature of RSA, takes a few milliseconds.
const turnStall = 50 * time.Millisecond

// conversation is what happens on one connection.
type conversation struct {
	s    *Server
	e    *entry
	conn *cedar.Conn
	from netip.AddrPort
	log  *slog.Logger
}

// run serves the connection to its end. It returns true when a handler has
// taken it.
func (c *conversation) run(ctx context.Context) (taken bool) {
	limits := c.s.guard.limits
	req, err := c.greet(ctx, limits.Handshake)
	for {
		if err != nil {
			c.log.Debug("connection ended", "err", err)
			return false
		}
		if req.Done {
			return false
		}
		cmd, ok := c.s.Table.Lookup(req.Command)
		if !ok {
			c.log.Warn("command refused", "command", command.Name(req.Command), "user", req.Peer.User, "err", "there is no such command")
			return false
		}
		if !c.letIn(cmd, req) {
			return false
		}
		taken, ok := c.call(ctx, cmd, req)
		if taken {
			return true
		}
		if !ok || !cmd.Keep || ctx.Err() != nil || !c.s.guard.rest(c.e) {
			return false
		}
		req, err = c.next(ctx, req, limits)
	}
}

// letIn takes a place for a command that was allowed.
func (c *conversation) letIn(cmd Command, req *security.Request) bool {
	victim, err := c.s.guard.letIn(c.e, c.pass(cmd, req))
	c.s.displaced(victim)
	if err != nil {
		c.gone("connection refused", err)
	}
	return err == nil
}

// gone logs why the connection has to end, unless its place went to another.
func (c *conversation) gone(what string, err error) {
	if !errors.Is(err, errEvicted) {
		c.s.noRoom(what, c.e.nc, err)
	}
}

// pass says what the connection is let in as.
func (c *conversation) pass(cmd Command, req *security.Request) pass {
	p := pass{readOnly: !cmd.Acts() && !cmd.Authenticated}
	if req.Proven(c.conn) {
		p.user = req.Peer.User
	}
	return p
}

// greet has the peer say who it is, within d.
func (c *conversation) greet(ctx context.Context, d time.Duration) (*security.Request, error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	release := c.conn.Bind(ctx)
	defer release()
	if err := c.first(); err != nil {
		return nil, err
	}
	u := c.s.turns.begin(ctx, peerKey(c.conn.NetConn()))
	defer u.Idle()
	c.conn.SetYielder(u)
	defer c.conn.SetYielder(nil)
	return c.s.Security.Handshake(ctx, c.conn, c.from)
}

// first waits for the first message, which moves the connection away from the
// silent ones.
func (c *conversation) first() error {
	restore := c.s.Security.Narrow(c.conn)
	err := c.conn.Await()
	restore()
	if k := errs.KindOf(err); k == errs.Invalid || k == errs.Exhausted {
		c.log.Info("connection refused", "err", err) // not one that just went away
	}
	if err != nil {
		return err
	}
	victim, err := c.s.guard.heard(c.e, time.Now())
	c.s.displaced(victim)
	if err != nil {
		c.gone("connection refused", err)
	}
	return err
}

// next waits for one more command on a connection that is secured already.
func (c *conversation) next(ctx context.Context, last *security.Request, limits Limits) (*security.Request, error) {
	c.conn.DiscardMessage()
	c.conn.SetTimeout(limits.Idle)
	defer c.conn.SetTimeout(limits.Message)
	return c.s.Security.Next(ctx, c.conn, last)
}

// call runs the handler of a command. taken says that it has the connection
// now, ok that it succeeded.
func (c *conversation) call(ctx context.Context, cmd Command, req *security.Request) (taken, ok bool) {
	call := &Call{
		Conn: c.conn, Command: cmd, Request: req, Addr: c.from,
		Log: c.log.With("command", cmd.Name),
	}
	call.Log.Debug("command", "user", req.Peer.User)
	release := sync.OnceFunc(c.conn.Bind(ctx))
	defer release()
	call.detach = func() bool {
		release() // the new owner of the connection may use it at once
		if !c.s.guard.detach(c.e) {
			return false
		}
		c.conn.SetAccount(nil)
		return true
	}
	err := call.handle(ctx)
	if isPanic(err) {
		c.s.panics.Add(1)
	}
	return call.gone && !isPanic(err), err == nil
}

// handle runs the handler, and logs what goes wrong.
func (c *Call) handle(ctx context.Context) error {
	err := protect(func() error { return c.Command.Handle(ctx, c) })
	var p *panicError
	switch {
	case errors.As(err, &p):
		c.Log.Error("the handler of a command panicked", "user", c.Request.Peer.User, "panic", fmt.Sprint(p.value), "stack", string(p.stack))
	case err != nil:
		c.Log.Warn("command failed", "user", c.Request.Peer.User, "err", err)
	}
	return err
}

// panicError carries a panic out of a handler.
type panicError struct {
	value any
	stack []byte
}

func (p *panicError) Error() string { return fmt.Sprintf("panic: %v", p.value) }

func isPanic(err error) bool {
	var p *panicError
	return errors.As(err, &p)
}

func protect(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{value: v, stack: debug.Stack()}
		}
	}()
	return f()
}

// logLimiter lets one line through in ten seconds and counts the others.
type logLimiter struct {
	mu   sync.Mutex
	last time.Time
	n    int
}

func (q *logLimiter) allow(now time.Time) (n int, say bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.n++
	if !q.last.IsZero() && now.Sub(q.last) < 10*time.Second {
		return 0, false
	}
	n, q.n, q.last = q.n, 0, now
	return n, true
}

func peerName(nc net.Conn) string {
	if a := nc.RemoteAddr(); a != nil {
		return a.String()
	}
	return "unknown"
}

// wait sleeps for d and returns false when ctx ends before.
func wait(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}
