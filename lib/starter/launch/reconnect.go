// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/sandbox"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// Return says how a later startd comes back to a starter whose plan said
// protocol.OrphanStay.
type Return struct {
	Dir     string // EXECUTE/dir_<pid>
	Census  host.Census
	Private sandbox.Private
	// Dial knocks at the named door in an open directory, and names the process behind
	// it; nil where there are none.
	Dial func(dir *os.File, name string) (net.Conn, int, error)
	Log  *slog.Logger // nil is silence

	// Heard is the last report that was dealt with; those after it come again.
	// Unanswered are orders of which nobody knows whether they arrived: the starter
	// carries out those that did not.
	Heard      uint64
	Unanswered []Numbered
}

// look is how often a starter is looked for that is just ending.
const look = 50 * time.Millisecond

// stillThere is how long another startd may be there that has just gone: the starter may
// not have seen it.
const stillThere = time.Second

// Reconnect comes back to the starter of a sandbox. Its handle delivers what no startd
// has heard, and then what the starter says. Of one that has ended meanwhile there is
// what it left; it is cleared away when the owner has Heard that.
//
// A starter that another startd is connected to is a Conflict, one of another version
// of the protocol Unsupported. NotFound is a sandbox that is not there, Denied one that
// others could have made. ctx bounds Reconnect itself.
func Reconnect(ctx context.Context, r Return) (*Handle, error) {
	const op = "launch.Reconnect"
	if r.Log == nil {
		r.Log = slog.New(slog.DiscardHandler)
	}
	began := time.Now()
	for {
		h, err := r.once(ctx)
		switch errs.KindOf(err) {
		case errs.Unsupported, errs.Denied:
			return nil, errs.E(op, errs.Other, r.Dir, err)
		case errs.Conflict:
			if time.Since(began) > stillThere {
				return nil, errs.E(op, errs.Other, r.Dir, err)
			}
		case errs.NotFound:
			if _, serr := os.Lstat(r.Dir); serr != nil {
				return nil, errs.E(op, errs.NotFound, r.Dir, err)
			}
		}
		if err == nil {
			return h, nil
		}
		select {
		case <-ctx.Done():
			return nil, errs.E(op, errs.Transient, r.Dir, errors.Join(err, ctx.Err()))
		case <-time.After(look): // it has no door yet, or is just ending
		}
	}
}

// once is one attempt.
func (r Return) once(ctx context.Context) (*Handle, error) {
	left, err := sandbox.Open(r.Dir, r.Private)
	if err != nil {
		return nil, err
	}
	defer left.Own.Close()
	if left.Record.Boot != r.Census.Boot() || !r.Census.Alive(left.Record.Starter) {
		return r.dead(left), nil
	}
	if r.Dial == nil {
		return nil, errs.E("launch.Reconnect", errs.Unsupported, "", errors.New("a starter cannot be reached on this system"))
	}
	nc, pid, err := r.Dial(left.Own, sandbox.DoorFile)
	if err != nil {
		return nil, err
	}
	if pid != left.Record.Starter.PID {
		nc.Close()
		return nil, errs.E("launch.Reconnect", errs.Denied, "", fmt.Errorf("process %d listens in the place of the starter %v", pid, left.Record.Starter))
	}
	return r.alive(ctx, nc, left.Record)
}

// alive begins a conversation.
func (r Return) alive(ctx context.Context, nc net.Conn, record sandbox.Record) (*Handle, error) {
	s := newAdopted(record.Starter, r.Census)
	h := newHandle(s, socket{nc}, 0, r.Census, r.Private, r.Log)
	h.stays, h.heard = true, r.Heard
	go h.follow(nc)
	err := h.awaitHello(ctx)
	if err == nil {
		err = h.known(record)
	}
	if err == nil {
		err = h.resume(r)
	}
	if err != nil {
		close(s.leave) // whoever has it waits for it
		h.hangUp()
		return nil, err
	}
	h.watch()
	return h, nil
}

// known says why the starter that said hello is not the one of a record.
func (h *Handle) known(record sandbox.Record) error {
	hello := h.Hello()
	if hello.Proc != record.Starter || hello.Activation != record.Activation {
		return errs.E("launch.Reconnect", errs.Denied, "", fmt.Errorf("it is the starter %v of %q that answers", hello.Proc, hello.Activation))
	}
	if hello.Lost > 0 {
		h.log.Warn("a starter had no room for all that nobody heard", "activation", hello.Activation, "lost", hello.Lost)
	}
	return nil
}

// resume says hello, and sends again what may not have arrived.
func (h *Handle) resume(r Return) error {
	line, err := protocol.Append(nil, protocol.Line{Message: protocol.StartdHello{Program: protocol.Program, Heard: r.Heard}})
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.number = h.first.hello.Taken
	if err := h.orders.put(message{line: line}); err != nil {
		return err
	}
	for _, o := range r.Unanswered {
		if err := h.sendAs(message{}, o); err != nil {
			return err
		}
	}
	h.reclaim.execute = filepath.Dir(r.Dir) // from now on it is ours to clear away
	return nil
}

// dead is a handle for what a starter left that has ended.
func (r Return) dead(left sandbox.Left) *Handle {
	h := newHandle(newAdopted(left.Record.Starter, r.Census), nowhere{}, 0, r.Census, r.Private, r.Log)
	h.hangUp()
	h.heard, h.reclaim.execute, h.leftBehind = r.Heard, filepath.Dir(r.Dir), &leftBehind{dealt: r.Heard, more: make(chan struct{}, 1)}
	h.greet(&protocol.StarterHello{Proc: left.Record.Starter, Activation: left.Record.Activation, State: protocol.Over}, nil)
	go h.follow(io.NopCloser(bytes.NewReader(left.Unheard)))
	return h
}

// leftBehind is what a starter left that had ended. Its fields but more are under the
// handle's lock.
type leftBehind struct {
	more    chan struct{} // more of it was dealt with
	dealt   uint64        // the last report that was
	givenUp bool          // nobody wants it
}

// awaitDealtWith waits until the owner has dealt with all that a starter left which had ended.
func (h *Handle) awaitDealtWith() {
	for h.leftBehind != nil {
		h.mu.Lock()
		over := h.leftBehind.givenUp || h.leftBehind.dealt >= h.heard
		h.mu.Unlock()
		if over {
			return
		}
		<-h.leftBehind.more
	}
}

// giveUp gives up what a starter left.
func (h *Handle) giveUp() {
	if h.leftBehind == nil {
		return
	}
	h.mu.Lock()
	h.leftBehind.givenUp = true
	h.mu.Unlock()
	h.wake()
}

func (h *Handle) wake() {
	if h.leftBehind == nil {
		return
	}
	select {
	case h.leftBehind.more <- struct{}{}:
	default:
	}
}

// saidAll reports whether the last word was heard.
func (h *Handle) saidAll() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ended
}

// socket is a Channel by which no connection can be passed.
type socket struct{ net.Conn }

// Pass refuses.
func (socket) Pass([]byte, net.Conn) error {
	return errs.E("launch.Pass", errs.Unsupported, "", errors.New("a connection can be passed with the plan alone"))
}

// nowhere is the Channel to a starter that has ended.
type nowhere struct{ socket }

// Write implements Channel.
func (nowhere) Write([]byte) (int, error) { return 0, os.ErrClosed }

// SetWriteDeadline implements Channel.
func (nowhere) SetWriteDeadline(time.Time) error { return nil }

// Close implements Channel.
func (nowhere) Close() error { return nil }
