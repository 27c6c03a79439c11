// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/sandbox"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// Spec says how starters are started.
type Spec struct {
	Spawner host.Spawner    // starts the starter's process; its families are the starters with all below them
	Census  host.Census     // finds what a starter that died has left; nil leaves that to the next sweep
	Private sandbox.Private // whose directories its record is believed in
	Path    string          // the program: condor_starter, or condor_ep itself
	Args    []string        // its whole argument vector, e.g. {"condor_starter"} or {"condor_ep", "starter"}
	Env     []string        // its environment
	Stderr  *os.File        // its standard error, the starter's log; nil is the null device
	// Channel makes the standard input of a starter and the other end of it. A
	// connection can be passed along with a plan if that end can. nil is a pipe,
	// by which none can.
	Channel func() (child *os.File, parent Channel, err error)
	// AnswerWithin is half of the time that a starter may leave an order without
	// an answer. 0 is 10 s.
	AnswerWithin time.Duration
	Standby      int          // how many starters are kept running ahead, waiting for a plan
	Log          *slog.Logger // nil is silence
	// OwnMounts has starters mount what nobody else sees.
	OwnMounts bool
	// OwnUsers has starters begin in a user namespace of their own (host.SpawnSpec).
	OwnUsers bool
	// Mounter takes away what a starter that died had mounted where others see it;
	// nil where none does.
	Mounter host.Mounter
}

// Channel is the startd's end of a starter's standard input.
type Channel interface {
	io.WriteCloser
	SetWriteDeadline(time.Time) error
	// Pass writes a line with which the descriptor of nc arrives. nc stays the
	// caller's, who closes it: the connection lives on at the other end.
	Pass(line []byte, nc net.Conn) error
}

// pipe is a Channel by which no connection can be passed.
type pipe struct{ *os.File }

// Pass refuses.
func (p pipe) Pass([]byte, net.Conn) error {
	return errs.E("launch.Pass", errs.Unsupported, "", errors.New("a connection cannot be passed through a pipe"))
}

// openPipe is the Channel of a Spec without one.
func openPipe() (child *os.File, parent Channel, err error) {
	r, w, err := os.Pipe()
	return r, pipe{w}, err
}

// Launcher starts starters. It is safe for concurrent use.
type Launcher struct {
	spec Spec

	mu      sync.Mutex
	closed  bool
	used    int            // how often Use has changed the program
	standby []*Handle      // idle starters, oldest first
	filling int            // starters being started for standby
	work    sync.WaitGroup // goroutines of the launcher itself
}

// NewLauncher returns a launcher and begins to fill its standby. The caller
// closes it.
func NewLauncher(spec Spec) *Launcher {
	if spec.Log == nil {
		spec.Log = slog.New(slog.DiscardHandler)
	}
	if spec.Channel == nil {
		spec.Channel = openPipe
	}
	spec.Env = append(slices.DeleteFunc(slices.Clone(spec.Env), protocol.IsLean), protocol.Lean...)
	if !slices.ContainsFunc(spec.Env, func(entry string) bool { return strings.HasPrefix(entry, "GODEBUG=") }) {
		spec.Env = append(spec.Env, protocol.NoLimits)
	}
	l := &Launcher{spec: spec}
	l.refill()
	return l
}

// Launch gives plan to a starter of the standby, or to a new one, and returns
// as soon as the plan is on its way. What comes of it arrives through the
// handle. An error means that no starter holds the plan; it is Broken if none
// could be started at all, which is the machine's fault. The context bounds
// Launch itself, not the starter. The connection nc, nil for none, goes with the
// plan; the launcher owns it, and closes it here whatever happens.
func (l *Launcher) Launch(ctx context.Context, plan *protocol.Plan, nc net.Conn) (*Handle, error) {
	const op = "launch.Launch"
	if nc != nil {
		defer nc.Close()
	}
	if err := ctx.Err(); err != nil {
		return nil, errs.E(op, errs.Transient, plan.Activation, err)
	}
	for {
		h := l.take()
		if h == nil {
			break
		}
		if err := h.give(ctx, plan, nc); err == nil {
			return h, nil
		}
		if !h.speaks() {
			_ = h.Kill()
		}
		l.discard(h) // it died while it waited
	}
	spec, _ := l.now()
	h, err := start(spec)
	if err != nil {
		return nil, errs.E(op, errs.Broken, plan.Activation, err)
	}
	if err := h.give(ctx, plan, nc); err != nil {
		kind := errs.Other
		switch {
		case ctx.Err() != nil:
			kind = errs.Transient
			_ = h.Kill()
		case !h.speaks():
			kind, err = errs.Broken, fmt.Errorf("%s is no starter for this startd; is STARTER the one that came with it? %w", spec.Path, err)
			_ = h.Kill()
		}
		l.discard(h)
		return nil, errs.E(op, kind, plan.Activation, err)
	}
	return h, nil
}

// Close ends the standby and waits for it. Starters which hold a plan are not
// touched: they are their handles' owners'.
func (l *Launcher) Close() {
	l.mu.Lock()
	l.closed = true
	idle := l.standby
	l.standby = nil
	l.mu.Unlock()
	for _, h := range idle {
		h.hangUp()
	}
	for _, h := range idle {
		<-h.Exited()
	}
	l.work.Wait()
}

// Use has further starters be another program. Those that run stay; those that
// wait for a plan are ended.
func (l *Launcher) Use(path string, args []string) {
	l.use(func(s *Spec) { s.Path, s.Args = path, args })
}

// UseOwnUsers is Use for Spec.OwnUsers.
func (l *Launcher) UseOwnUsers(on bool) {
	l.use(func(s *Spec) { s.OwnUsers = on })
}

// use changes how further starters are started.
func (l *Launcher) use(change func(*Spec)) {
	l.mu.Lock()
	next := l.spec
	change(&next)
	if same := next.Path == l.spec.Path && slices.Equal(next.Args, l.spec.Args) && next.OwnUsers == l.spec.OwnUsers; same || l.closed {
		l.mu.Unlock()
		return
	}
	l.spec = next
	l.used++
	idle := l.standby
	l.standby = nil
	for _, h := range idle {
		l.work.Go(func() { l.discard(h) })
	}
	l.mu.Unlock()
	l.refill()
}

// now is how starters are started from now on; it changes with used.
func (l *Launcher) now() (spec Spec, used int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.spec, l.used
}

func (l *Launcher) take() *Handle {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.standby) == 0 {
		return nil
	}
	h := l.standby[0]
	l.standby = l.standby[1:]
	h.whenSettled(l.refill)
	return h
}

// refill starts as many starters as the standby lacks, in the background: the
// activation that took one must not pay for the next.
func (l *Launcher) refill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return
	}
	for len(l.standby)+l.filling < l.spec.Standby {
		l.filling++
		l.work.Go(func() {
			spec, used := l.now()
			h, err := start(spec)
			l.mu.Lock()
			l.filling--
			keep := err == nil && !l.closed && used == l.used
			if keep {
				l.standby = append(l.standby, h)
			}
			l.mu.Unlock()
			if err != nil {
				l.spec.Log.Warn("no starter for the standby", "err", err)
			} else if !keep {
				l.discard(h)
				l.refill() // it was of the program before
			}
		})
	}
}

// start runs one starter without a plan.
func start(spec Spec) (*Handle, error) {
	stdinR, stdinW, err := spec.Channel()
	if err != nil {
		return nil, err
	}
	stdoutR, stdoutW, err := os.Pipe()
	if err != nil {
		stdinR.Close()
		stdinW.Close()
		return nil, err
	}
	family, err := spec.Spawner.Spawn(host.SpawnSpec{
		Path: spec.Path, Args: spec.Args, Env: spec.Env,
		Stdin: stdinR, Stdout: stdoutW, Stderr: spec.Stderr,
		Bond: host.Independent, OwnMounts: spec.OwnMounts, OwnUsers: spec.OwnUsers,
	})
	stdinR.Close()
	stdoutW.Close()
	if err != nil {
		stdinW.Close()
		stdoutR.Close()
		return nil, errs.E("launch.start", errs.Broken, spec.Path, err)
	}
	h := newHandle(family, stdinW, spec.AnswerWithin, spec.Census, spec.Private, spec.Log)
	h.reclaim.mounter = spec.Mounter
	go h.follow(stdoutR)
	return h, nil
}

func (l *Launcher) discard(h *Handle) {
	h.hangUp()
	<-h.Exited()
}
