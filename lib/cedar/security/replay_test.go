// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/errs"
)

func eachRecording(t *testing.T, role cedartest.Role, f func(r *recording)) {
	for _, v := range cedartest.LoadDir(t, vectors) {
		for _, c := range v.Connections {
			t.Run(fmt.Sprintf("%s/%d", v.Name, c.Index), func(t *testing.T) {
				t.Parallel()
				f(newRecording(t, v, c, role))
			})
		}
	}
}

// Every recorded handshake, with our server against the recorded client: each
// of our replies is the recorded one, to the byte, and the rest of the
// connection decrypts and encrypts as it was.
func TestReplayServer(t *testing.T) {
	t.Parallel()
	eachRecording(t, cedartest.Server, func(r *recording) {
		t := r.t
		now := r.clock()
		table, level := r.commands()
		s := &Server{
			Commands: table, Sessions: r.sessions(now), Clock: now, Rand: r.rand(), newKeyExchange: r.keyExchange, arrange: r.arrange,
			Version: ourVersion(r.shown),
		}
		s.sessionID = func() (string, error) { return r.post.str("Sid"), nil }
		settings := r.settings(level)
		settings.policies[level] = r.serverPolicy(level)
		s.Configure(settings, played{r: r, identity: r.identity(), keys: splitKeys(r.reply.str("IssuerKeys"))})

		conn, done := r.player()
		defer done()
		r.next++ // the first message is read by the handshake
		if r.reply != nil {
			r.next++
		}
		req, err := s.Handshake(t.Context(), conn, netip.MustParseAddrPort("127.0.0.1:40000"))
		if refused := r.refused(); refused != errs.Other {
			if errs.KindOf(err) != refused {
				t.Fatalf("err = %v, want %v", err, refused)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		want := r.command()
		if want == command.DCSecQuery {
			want = r.subcommand()
		}
		if req.Command != want || req.Bare || req.Done != (r.command() == command.DCSecQuery) {
			t.Errorf("request %+v, want command %d", req, want)
		}
		if r.post != nil && req.Peer.User != r.post.str("User") {
			t.Errorf("user %q, want %q", req.Peer.User, r.post.str("User"))
		}
		if r.post == nil && strings.HasPrefix(req.Session.ID, "<") && req.Peer.User == Unauthenticated {
			t.Errorf("the peer of a claim session is %q", req.Peer.User)
		}
		if len(r.shown) > 0 && r.post != nil && !req.Done {
			r.shown = nil // answers of the command
		}
		r.rest(conn)
	})
}

// Every recorded handshake, with our client against the recorded server.
func TestReplayClient(t *testing.T) {
	t.Parallel()
	eachRecording(t, cedartest.Client, func(r *recording) {
		t := r.t
		now := r.clock()
		pid, _ := r.first.number("ServerPid")
		c := &Client{
			Sessions: r.sessions(now), Clock: now, Rand: r.rand(), newKeyExchange: r.keyExchange, arrange: r.arrange,
			Version: r.first.str("RemoteVersion"), Subsystem: r.first.str("Subsystem"), PID: int(pid),
			Address: func() string { return r.first.str("ServerCommandSock") },
		}
		settings := r.settings(ClientLevel)
		settings.policies[ClientLevel] = r.clientPolicy()
		c.Configure(settings, played{r: r, keys: splitKeys(r.first.str("IssuerKeys"))})
		if _, ok := r.first.find("ECDHPublicKey"); !ok && r.first.yes("NewSession") {
			c.newKeyExchange = func() (keyExchange, error) { return fixed{}, nil }
		}
		to, err := cedar.ParseSinful(r.first.str("ConnectSinful"))
		if err != nil {
			t.Fatal(err)
		}
		conn, done := r.player()
		defer done()
		r.next++
		if r.reply != nil {
			r.next++
		}
		o := Options{AuthCommand: r.subcommand()}
		if sid := r.first.str("Sid"); strings.Contains(sid, "#") {
			o.Session = sid
		}
		if r.first.str("Sid") == "nosuch:1:2:3" {
			s := &Session{ID: "nosuch:1:2:3", Key: make(Key, keySize), Peer: unauthenticatedPeer(), Negotiated: true, PeerVersion: c.Version, Address: to.String(), ValidCommands: []int{r.command()}}
			if err := c.Sessions.Add(s, time.Hour); err != nil {
				t.Fatal(err)
			}
		}
		session, err := c.Open(t.Context(), conn, to, r.command(), o)
		if refused := r.refused(); refused != errs.Other {
			if err == nil {
				t.Fatalf("opened, want %v", refused)
			}
			if r.post != nil && errs.KindOf(err) != errs.Denied {
				t.Errorf("err = %v, want denied", err)
			}
			if c.Sessions.Len() > len(r.v.Secrets.Claims) {
				t.Errorf("a refused session was kept: %v", c.Sessions.IDs())
			}
			if r.first.str("Sid") == "nosuch:1:2:3" && !forgotten(err) {
				t.Errorf("err = %v, want one after which a new session is tried", err)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		if r.post != nil {
			if session.ID != r.post.str("Sid") || session.Self != r.post.str("User") {
				t.Errorf("session %q of %q, want %q of %q", session.ID, session.Self, r.post.str("Sid"), r.post.str("User"))
			}
			if again, ok := c.Sessions.choose(to.String(), r.command(), func() bool { return false }); r.command() != command.DCSecQuery && (!ok || again != session) {
				t.Error("the session is not found again for its command")
			}
		}
		if session.Encrypts() != (len(r.c.Session.Key) > 0) || conn.Encrypted() != session.Encrypts() {
			t.Errorf("encrypted: session %t, stream %t", session.Encrypts(), conn.Encrypted())
		}
		r.shown = nil
		r.rest(conn)
	})
}

// refused is the kind of error that a recording ends with, Other if it does
// not.
func (r *recording) refused() errs.Kind {
	switch {
	case r.post.str("ReturnCode") == "DENIED":
		return errs.Denied
	case r.first.str("Sid") == "nosuch:1:2:3", r.command() == 999999:
		return errs.NotFound
	case r.first.yes("NewSession") && r.post == nil:
		return errs.Denied
	}
	return errs.Other
}

// serverPolicy is the policy that the recorded server must have had.
func (r *recording) serverPolicy(l Level) Policy {
	p := Policy{
		Level: l, Negotiation: Preferred, Authentication: Optional, Encryption: Optional, Integrity: Optional, AES: true,
		Duration: 24 * time.Hour, Lease: time.Hour,
	}
	if r.reply.yes("Authentication") {
		p.Authentication = Required
	}
	p.Methods, _ = authn.ParseMethods(r.reply.str("AuthMethodsList"))
	if len(p.Methods) == 0 {
		p.Methods = []authn.Method{authn.Password}
	}
	return p
}

// clientPolicy is the policy that the recorded client told.
func (r *recording) clientPolicy() Policy {
	p := Policy{
		Level: ClientLevel, Authentication: requirement(r.first, "Authentication"), Encryption: requirement(r.first, "Encryption"), Integrity: requirement(r.first, "Integrity"),
		Negotiation: requirement(r.first, "OutgoingNegotiation"), AES: true, Duration: seconds(r.first.str("SessionDuration")),
	}
	if _, ok := r.first.find("AuthenticationNew"); ok {
		p.Authentication = requirement(r.first, "AuthenticationNew")
	}
	n, _ := r.first.number("SessionLease")
	p.Lease = time.Duration(n) * time.Second
	p.Methods, _ = authn.ParseMethods(r.first.str("AuthMethods"))
	return p
}

func ourVersion(ads []literals) string {
	for _, ad := range ads {
		if v := ad.str("RemoteVersion"); v != "" {
			return v
		}
	}
	return ""
}

func splitKeys(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ", ")
}
