// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/errs"
)

// Authenticator runs the exchange of authentication on a stream, from the mask
// of methods up to the message about keys. [authn.Client] and [authn.Server]
// are the ones there are.
type Authenticator interface {
	Authenticate(ctx context.Context, conn *cedar.Conn, peer authn.Peer, methods []authn.Method) (authn.Result, error)
	// Offer returns those methods that can be run now, in the same order.
	Offer(methods []authn.Method) []authn.Method
	// IssuerKeys returns the ids of the signing keys at hand.
	IssuerKeys() ([]string, error)
}

// Server is the accepting side: it finds out who connected, agrees on a
// session or takes one up, and lets nothing pass that is not allowed. Fill in
// the fields, call Configure, and use it from any number of goroutines.
type Server struct {
	Commands Commands
	Sessions *Sessions
	Clock    clock.Clock
	Log      *slog.Logger

	Version string // our $CondorVersion string
	Host    string // first part of session ids
	PID     int    // second part

	// Names looks up the host names of a peer, for lists with names, and
	// gives only those that lead back to the address; nil finds none.
	// [HostNames.Of] does so.
	Names func(netip.Addr) []string

	// Rand is where keys and nonces come from; nil is crypto/rand.
	Rand io.Reader

	current atomic.Pointer[activeSettings]
	counter atomic.Int64

	// newKeyExchange makes our half of a key exchange, nil for P-256 of Rand.
	newKeyExchange func() (keyExchange, error)
	// sessionID makes the id of a session, nil for newID.
	sessionID func() (string, error)
	// arrange may change an ad before it is sent; nil sends it as it is.
	arrange func(*literals)
}

// activeSettings is what a reload replaces, as one thing.
type activeSettings struct {
	settings *Settings
	authn    Authenticator // nil: no peer can be authenticated
}

// policy returns what is wanted of a session at a level, with the methods that
// can be run now. It fails if authentication is demanded and cannot be had.
func (c *activeSettings) policy(l Level) (Policy, error) {
	p := c.settings.Policy(l)
	if c.authn == nil {
		return p.only(nil)
	}
	return p.only(c.authn.Offer(p.Methods))
}

// authenticate runs the methods within the policy's patience.
func (c *activeSettings) authenticate(ctx context.Context, conn *cedar.Conn, p Policy, peer authn.Peer, methods []authn.Method) (authn.Result, error) {
	if p.Patience > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.Patience)
		defer cancel()
	}
	return c.authn.Authenticate(ctx, conn, peer, methods)
}

// issuers returns the ids of our signing keys as policy ads have them, if the
// policy has tokens at all.
func (c *activeSettings) issuers(p Policy) string {
	if c.authn == nil || !slices.Contains(p.Methods, authn.Token) {
		return ""
	}
	keys, err := c.authn.IssuerKeys()
	if err != nil {
		return "" // tokens that need no key of ours are still welcome
	}
	return strings.Join(keys, ", ")
}

// near reports whether an address is of this machine. One that is not known is
// that of a socket of this machine.
func (c *activeSettings) near(addr netip.Addr) bool {
	addr = addr.Unmap()
	return !addr.IsValid() || addr.IsLoopback() || c.settings.Authorizer.local != nil && c.settings.Authorizer.local(addr)
}

// Configure puts settings and means of authentication in force, for the
// connections that are accepted from now on; a nil Authenticator lets nobody
// authenticate.
func (s *Server) Configure(settings *Settings, a Authenticator) {
	s.current.Store(&activeSettings{settings: settings, authn: a})
}

// Settings returns the settings in force, nil before Configure.
func (s *Server) Settings() *Settings {
	if c := s.current.Load(); c != nil {
		return c.settings
	}
	return nil
}

// Request is a command that may act: who gave it, and under which session.
type Request struct {
	Command int
	Session *Session // nil for a bare command
	Peer    Peer
	Addr    netip.AddrPort
	Resumed bool
	Bare    bool // no handshake came before it: the peer is unknown
	// Done says that there is nothing left to do: the request was only about
	// security and has been answered. Close the connection.
	Done bool
	// Why is what the authorization rests on, for the log.
	Why string
}

// Proven reports whether the peer on conn has shown that it is r.Peer: by
// authentication just now, or by the key of a session that it took up. The id of
// a session alone shows nothing, for others may have heard it.
func (r *Request) Proven(conn *cedar.Conn) bool {
	return r.Session != nil && r.Peer.Proven() && (!r.Resumed || conn.Proven())
}

// Narrow bounds a stream as long as its peer is not known, as Handshake does:
// the size of its messages, and with SEC_TCP_SESSION_TIMEOUT how long one may
// take. restore puts back what was before.
func (s *Server) Narrow(conn *cedar.Conn) (restore func()) {
	step := time.Duration(0)
	if c := s.current.Load(); c != nil {
		step = c.settings.StepTimeout
	}
	return guard(conn, step)
}

// Handshake reads the beginning of a connection: a command with its
// handshake, or a bare one. When it returns a Request, that is authorized and
// the payload of the command is next on conn, whose limits are then what the
// command and the peer's proof allow of those that it had. When it returns an error the
// connection is of no more use; the reason has been logged. from is the
// peer's address.
func (s *Server) Handshake(ctx context.Context, conn *cedar.Conn, from netip.AddrPort) (*Request, error) {
	c := s.current.Load()
	if c == nil {
		return nil, errs.E("security.Handshake", errs.Internal, "", fmt.Errorf("the server is not configured"))
	}
	ctx, cancel := context.WithTimeout(ctx, c.settings.Deadline)
	defer cancel()
	release := conn.Bind(ctx)
	defer release()
	before := conn.Limits()
	restore := guard(conn, c.settings.StepTimeout)
	h := serverShake{s: s, c: c, ctx: ctx, conn: conn, limits: before, from: netip.AddrPortFrom(from.Addr().Unmap(), from.Port())}
	r, err := h.run()
	restore()
	if err != nil {
		s.log(ctx, h.level(err), "connection refused", slog.String("peer", from.String()),
			slog.String("command", s.commandName(h.command)), slog.String("user", h.peer.User), slog.Any("err", err))
		return nil, err
	}
	conn.SetLimits(allow(s.Commands[r.Command], before, r.Proven(conn)))
	s.log(ctx, slog.LevelDebug, "command allowed", slog.String("peer", from.String()), slog.String("command", s.commandName(r.Command)),
		slog.String("user", r.Peer.User), slog.String("method", r.Peer.Method), slog.Bool("resumed", r.Resumed), slog.String("why", r.Why))
	return r, nil
}

// Next reads a further command from a connection whose first was last: a bare
// number, authorized under the same session, within the limits of the first. It returns io.EOF when the peer
// has closed the connection between commands.
func (s *Server) Next(ctx context.Context, conn *cedar.Conn, last *Request) (*Request, error) {
	c := s.current.Load()
	release := conn.Bind(ctx)
	defer release()
	n, err := conn.Int()
	if err != nil {
		return nil, err
	}
	r := &Request{Command: commandNumber(n), Session: last.Session, Peer: last.Peer, Addr: last.Addr, Bare: last.Bare}
	if last.Session != nil && conn.Proven() {
		s.Sessions.use(last.Session.ID) // a session that is over still serves the connection it made
	}
	v, err := s.authorize(c, r)
	if err != nil {
		s.log(ctx, slog.LevelWarn, "command refused", slog.String("peer", last.Addr.String()),
			slog.String("command", s.commandName(r.Command)), slog.String("user", r.Peer.User), slog.Any("err", err))
		return nil, err
	}
	r.Why = v.Why
	return r, nil
}

// authorize decides about a request whose peer is known.
func (s *Server) authorize(c *activeSettings, r *Request) (Verdict, error) {
	cmd, ok := s.Commands[r.Command]
	if !ok {
		return Verdict{}, errs.E("security.authorize", errs.NotFound, s.commandName(r.Command), fmt.Errorf("there is no such command"))
	}
	if cmd.Authenticated && !r.Peer.Mapped() {
		return Verdict{}, errDenied("security.authorize", s.commandName(r.Command), "the command demands a user that is known here, not "+clip(r.Peer.User))
	}
	return s.judge(c, r, s.commandName(r.Command), cmd.Level, cmd.Alternatives, s.Names)
}

// Allowed reports whether who sent a request may act at another level than that
// of the command, as a handler asks whose payload decides what is changed. The
// level judges the session as it does for a command of its own. names looks up
// the names of the sender's host, as Server.Names does.
func (s *Server) Allowed(l Level, r *Request, names func(netip.Addr) []string) bool {
	c := s.current.Load()
	if c == nil {
		return false
	}
	_, err := s.judge(c, r, l.String(), l, nil, names)
	return err == nil
}

// judge decides whether who sent a request may act at a level: the level's
// policy judges the session, and the lists judge the peer.
func (s *Server) judge(c *activeSettings, r *Request, subject string, l Level, alternatives []Level, names func(netip.Addr) []string) (Verdict, error) {
	if r.Bare && l != Allow {
		p := c.settings.Policy(l)
		if p.Negotiation == Required || p.Authentication == Required {
			return Verdict{}, errDenied("security.authorize", subject, "the command came without the handshake that level "+l.String()+" demands")
		}
	}
	if r.Session != nil && r.Session.Negotiated {
		if why := c.settings.Policy(l).lacks(r.Session); why != "" {
			return Verdict{}, errDenied("security.authorize", subject, why)
		}
	}
	v := c.settings.Authorizer.AllowedAny(l, alternatives, Asker{Peer: r.Peer, Addr: r.Addr.Addr(), Names: names})
	if !v.OK {
		return v, errDenied("security.authorize", subject, l.String()+": "+v.Why)
	}
	return v, nil
}

// commandName names a command for logs and errors.
func (s *Server) commandName(n int) string {
	if c, ok := s.Commands[n]; ok && c.Name != "" {
		return c.Name
	}
	return command.Name(n)
}

func (s *Server) log(ctx context.Context, level slog.Level, message string, attrs ...slog.Attr) {
	if s.Log != nil {
		s.Log.LogAttrs(ctx, level, message, attrs...)
	}
}

func (s *Server) random() io.Reader {
	if s.Rand == nil {
		return rand.Reader
	}
	return s.Rand
}

// newID makes the id of a new session. HTCondor's ids end after the counter, and
// can be guessed; 128 random bits follow it in ours.
func (s *Server) newID() (string, error) {
	if s.sessionID != nil {
		return s.sessionID()
	}
	random, err := randomID(s.random())
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s:%d:%d:%d:%s", s.Host, s.PID, s.Clock.Now().Wall.Unix(), s.counter.Add(1)-1, random), nil
}

// randomID is 128 random bits as 32 hex digits.
func randomID(random io.Reader) (string, error) {
	if random == nil {
		random = rand.Reader
	}
	var b [16]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", errs.E("security.randomID", errs.Internal, "", err)
	}
	return hex.EncodeToString(b[:]), nil
}

// nonce is 33 random bytes in base64, which make the first packets of a
// resumed session differ from those of any other.
func nonce(random io.Reader) (string, error) {
	var b [33]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(b[:]), nil
}

// commandNumber cuts a number from the wire to what a command can be; one that
// does not fit is no command.
func commandNumber(n int64) int {
	if n < 0 || n > 1<<31-1 {
		return -1
	}
	return int(n)
}
