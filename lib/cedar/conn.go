// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedar

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/errs"
)

// Secret is text that prints as ***: a claim id, a key.
type Secret = claim.Secret

// MaxPacket is the largest payload of a packet that a peer takes, in bytes.
const MaxPacket = 1 << 20

// Limits bound what a peer can make a Conn hold. A zero field means its
// default.
type Limits struct {
	Packet  int           // bytes of one packet after its header, at most MaxPacket, which is the default
	Message int           // bytes of one message, default 32 MiB
	String  int           // bytes of one string, default 10,000,000
	AdLines int           // lines of one ad, default 1,000,000
	Timeout time.Duration // for one message, and for waiting for one; default 20 s, negative for none
}

func (l Limits) withDefaults() Limits {
	if l.Packet <= 0 || l.Packet > MaxPacket {
		l.Packet = MaxPacket
	}
	if l.Message <= 0 {
		l.Message = 32 << 20
	}
	if l.String <= 0 {
		l.String = 10_000_000
	}
	if l.AdLines <= 0 {
		l.AdLines = 1_000_000
	}
	if l.Timeout == 0 {
		l.Timeout = 20 * time.Second
	}
	return l
}

// A Conn is one stream, over TCP or anything else that is a net.Conn.
type Conn struct {
	nc          net.Conn
	limits      Limits
	most        atomic.Int64 // bytes of one message besides, 0 for none
	peer        string
	peerVersion string
	random      io.Reader
	bound       *binding

	transcript transcript
	aes        *aesState    // nil while the stream is clear
	proven     bool         // a packet under the key of aes was verified
	whenProven func() error // called once, as soon as it is
	form       Form         // of a message in datagrams

	in      input
	out     output
	account Account // of the read buffer; nil for none
	granted int     // bytes of it
	yielder Yielder // nil for none
}

// NewConn makes a stream of nc, which it owns from then on.
func NewConn(nc net.Conn, l Limits) *Conn {
	c := &Conn{nc: nc, limits: l.withDefaults(), random: rand.Reader}
	if a := nc.RemoteAddr(); a != nil {
		c.peer = a.String()
	}
	c.out.packet = defaultPacket
	return c
}

// counted reports whether strings go with their length.
func (c *Conn) counted() bool { return c.aes != nil || c.form == Counted }

// SetTimeout changes how long one message may take, and how long the next
// one may be awaited. Zero or less is without end.
func (c *Conn) SetTimeout(d time.Duration) {
	if d <= 0 {
		d = -1
	}
	c.limits.Timeout = d
}

// SetLimits replaces the limits, timeout included.
func (c *Conn) SetLimits(l Limits) { c.limits = l.withDefaults() }

// Limits returns the limits in force.
func (c *Conn) Limits() Limits { return c.limits }

// LimitMessage keeps the messages that come next from being longer than n bytes.
func (c *Conn) LimitMessage(n int) {
	l := c.Limits()
	l.Message = min(l.Message, n)
	c.SetLimits(l)
}

// BoundNext is LimitMessage for a stream that another goroutine reads: it holds for
// the messages of which nothing has come yet. 0 takes it back.
func (c *Conn) BoundNext(n int) { c.most.Store(int64(n)) }

// mostMessage is how long a message may be.
func (c *Conn) mostMessage() int {
	if n := int(c.most.Load()); n > 0 {
		return min(n, c.limits.Message)
	}
	return c.limits.Message
}

// SetRand replaces the source of base IVs, crypto/rand's by default.
func (c *Conn) SetRand(r io.Reader) { c.random = r }

// SetPeerVersion says what version the peer is: a $CondorVersion string or
// just its number. It decides about private attributes; see PutAd.
func (c *Conn) SetPeerVersion(v string) { c.peerVersion = v }

// PeerVersion returns what SetPeerVersion has set.
func (c *Conn) PeerVersion() string { return c.peerVersion }

// Close closes the connection. What was not ended is not sent.
func (c *Conn) Close() error { return c.nc.Close() }

// NetConn returns the connection below. Bytes that were read ahead are not
// in it any more; see Buffered.
func (c *Conn) NetConn() net.Conn { return c.nc }

// Peer returns the peer's address, for messages to people.
func (c *Conn) Peer() string { return c.peer }

// Format prints who is at the other end under every verb: the buffers of a
// Conn hold what the peers say, secrets included.
func (c *Conn) Format(f fmt.State, _ rune) { _, _ = fmt.Fprintf(f, "cedar.Conn(%s)", c.peer) }

// LogValue logs the same.
func (c *Conn) LogValue() slog.Value { return slog.StringValue(fmt.Sprint(c)) }

// binding is one context a Conn is bound to.
type binding struct {
	ctx   context.Context
	outer *binding
}

// Bind ends reading and writing with an error once ctx is done, until release
// is called. Bindings nest; they are released in reverse order.
func (c *Conn) Bind(ctx context.Context) (release func()) {
	outer := c.bound
	c.bound = &binding{ctx: ctx, outer: outer}
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(done)
		_ = c.nc.SetDeadline(time.Unix(1, 0))
	})
	return func() {
		if !stop() {
			<-done
		}
		c.bound = outer
	}
}

// canceled returns the error of a bound context that is done.
func (c *Conn) canceled() error {
	for b := c.bound; b != nil; b = b.outer {
		if b.ctx.Err() != nil {
			return context.Cause(b.ctx)
		}
	}
	return nil
}

// arm sets a deadline for one message. The context is looked at after the
// deadline was set, so that one which is done in between cannot be missed.
func (c *Conn) arm(set func(time.Time) error) error {
	var at time.Time
	if c.limits.Timeout > 0 {
		at = time.Now().Add(c.limits.Timeout)
	}
	if err := set(at); err != nil {
		return err
	}
	return c.canceled()
}

// fail wraps an error of the connection.
func (c *Conn) fail(op string, err error) error {
	kind := errs.KindOf(err)
	if cause := c.canceled(); cause != nil && isTimeout(err) {
		err = cause
	}
	switch {
	case kind != errs.Other:
	case isTimeout(err), errors.Is(err, context.DeadlineExceeded):
		kind = errs.Expired
	default:
		kind = errs.Transient
	}
	return errs.E("cedar."+op, kind, c.peer, err)
}

// malformed is the error for input that is wrong.
func (c *Conn) malformed(op, why string) error {
	return errs.E("cedar."+op, errs.Invalid, c.peer, errors.New(why))
}

// beyond is the error for input or output over a limit.
func (c *Conn) beyond(op, why string) error {
	return errs.E("cedar."+op, errs.Exhausted, c.peer, errors.New(why))
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.As(err, &ne) && ne.Timeout()
}
