// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"sync/atomic"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/errs"
)

// Dialer connects to a daemon: through a shared port or CCB if its address
// says so. What it returns is at the place where the daemon's own protocol
// begins.
type Dialer func(ctx context.Context, to cedar.Sinful) (net.Conn, error)

// Client is the connecting side: it opens commands at daemons, with a session
// it has or a new one. Fill in the fields, call Configure, and use it from any
// number of goroutines.
type Client struct {
	Sessions *Sessions
	Clock    clock.Clock
	Dial     Dialer
	// Post opens a socket for datagrams to a daemon; nil sends none.
	Post   Dialer
	Log    *slog.Logger
	Limits cedar.Limits // of the streams it returns

	Version   string // our $CondorVersion string
	Subsystem string // as "STARTD"
	ParentID  string // of the condor_master that started us; "" = none
	PID       int

	// Address returns our own command socket, "" if we have none (a tool).
	Address func() string
	// Local tells the addresses of this host, for the session of the family.
	Local func(netip.Addr) bool
	// Kin reports whether the socket that listens at an address of this host may
	// be a daemon's of our family: whether it belongs to root, the account of the
	// daemons or us. The id of the family's session is sent in clear, so no other
	// is sent it. Nil says no of all.
	Kin func(net.Addr) bool
	// Names looks up the host names of a server, for ALLOW_CLIENT lists with
	// names; nil finds none.
	Names func(netip.Addr) []string
	// Rand is where keys and nonces come from; nil is crypto/rand.
	Rand io.Reader

	current atomic.Pointer[activeSettings]

	messages messageIDs

	newKeyExchange func() (keyExchange, error)
	arrange        func(*literals)
}

// Configure puts settings and means of authentication in force, for the
// commands that are opened from now on.
func (c *Client) Configure(settings *Settings, a Authenticator) {
	c.current.Store(&activeSettings{settings: settings, authn: a})
}

// Settings returns the settings in force, nil before Configure.
func (c *Client) Settings() *Settings {
	if f := c.current.Load(); f != nil {
		return f.settings
	}
	return nil
}

// Options say how a command is opened.
type Options struct {
	// Session is the id of the session to use, as of a claim: the command
	// fails if there is none of that id or the server does not know it. ""
	// takes what there is for the address and command, or makes one.
	Session string
	// AuthCommand is the command whose level is tested, for command.DCSecQuery and
	// command.DCAuthenticate.
	AuthCommand int
	// Authenticate asks for authentication even where the policy would do
	// without.
	Authenticate bool
	// Temporary makes a session of a minute that is not kept.
	Temporary bool
	// Datagrams makes a new session that does for datagrams as well: its life
	// is short, and ciphers for them are offered beside AES.
	Datagrams bool
	// Raw sends the bare number, for commands that want no handshake.
	Raw bool
}

// Command connects to a daemon and opens a command there: after it the payload
// is next on the stream, which the caller owns. The session is nil for a raw
// command. A session that the server has forgotten is replaced by a new one,
// unless it was named or handed over.
func (c *Client) Command(ctx context.Context, to cedar.Sinful, command int, o Options) (*cedar.Conn, *Session, error) {
	const attempts = 3
	var last error
	for range attempts {
		conn, err := c.connect(ctx, to)
		if err != nil {
			return nil, nil, err
		}
		session, err := c.Open(ctx, conn, to, command, o)
		if err == nil {
			return conn, session, nil
		}
		_ = conn.Close()
		last = err
		if !forgotten(err) {
			break
		}
	}
	return nil, nil, last
}

func (c *Client) connect(ctx context.Context, to cedar.Sinful) (*cedar.Conn, error) {
	if c.Dial == nil {
		return nil, errs.E("security.Command", errs.Internal, to.HostPort(), fmt.Errorf("there is no dialer"))
	}
	nc, err := c.Dial(ctx, to)
	if err != nil {
		return nil, errs.E("security.Command", errs.Other, to.HostPort(), err)
	}
	return cedar.NewConn(nc, c.Limits), nil
}

// Open opens a command on a stream that was just connected to a daemon.
func (c *Client) Open(ctx context.Context, conn *cedar.Conn, to cedar.Sinful, command int, o Options) (*Session, error) {
	f := c.current.Load()
	if f == nil {
		return nil, errs.E("security.Open", errs.Internal, "", fmt.Errorf("the client is not configured"))
	}
	ctx, cancel := context.WithTimeout(ctx, f.settings.Deadline)
	defer cancel()
	release := conn.Bind(ctx)
	defer release()
	if o.Raw {
		Follow(conn, command)
		return nil, nil
	}
	restore := guard(conn, f.settings.StepTimeout)
	defer restore()
	h := clientShake{c: c, f: f, ctx: ctx, conn: conn, to: to, address: to.String(), command: command, o: o}
	return h.run()
}

// Follow begins a further command on a stream that was opened before: its bare
// number, to be followed by the payload in the same message.
func Follow(conn *cedar.Conn, command int) { conn.PutInt(int64(command)) }

// Query asks a daemon whether we may give a command, as condor_ping does. The
// ad is what it says about us: AuthorizationSucceeded and the token we showed.
func (c *Client) Query(ctx context.Context, to cedar.Sinful, number int) (*Session, map[string]any, error) {
	conn, session, err := c.Command(ctx, to, command.DCSecQuery, Options{AuthCommand: number, Temporary: true})
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = conn.Close() }()
	release := conn.Bind(ctx)
	defer release()
	ad, err := getMessage(conn)
	if err != nil {
		return nil, nil, err
	}
	answer := make(map[string]any, len(ad))
	for _, a := range ad {
		answer[a.name] = a.value
	}
	return session, answer, nil
}

func (c *Client) random() io.Reader {
	if c.Rand == nil {
		return rand.Reader
	}
	return c.Rand
}

func (c *Client) keyExchange() (keyExchange, error) {
	if c.newKeyExchange != nil {
		return c.newKeyExchange()
	}
	return newKeyExchange(c.random())
}

func (c *Client) log(ctx context.Context, level slog.Level, message string, attrs ...slog.Attr) {
	if c.Log != nil {
		c.Log.LogAttrs(ctx, level, message, attrs...)
	}
}

// errForgotten is a session that the server does not know any more and that
// may be replaced.
type errForgotten struct{ error }

func (e errForgotten) Unwrap() error { return e.error }
