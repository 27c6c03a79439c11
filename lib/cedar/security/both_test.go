// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/errs"
)

// A session is made in every form, and is taken up for the next command.
func TestSessions(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, server, client string
		command              int
		user, method         string
		encrypted            bool
	}{
		{"nobody", "", "", cmdQuery, Unauthenticated, "", true},
		{"nobody, without a cipher", "SEC_DEFAULT_CRYPTO_METHODS = 3DES\n", "", cmdQuery, Unauthenticated, "", false},
		{"encryption without authentication", "SEC_DEFAULT_ENCRYPTION = REQUIRED\nSEC_DEFAULT_AUTHENTICATION = NEVER\n", "", cmdQuery, Unauthenticated, "", true},
		{"password", "SEC_DEFAULT_AUTHENTICATION = REQUIRED\nSEC_DEFAULT_AUTHENTICATION_METHODS = PASSWORD\n", "SEC_DEFAULT_AUTHENTICATION_METHODS = PASSWORD\n", cmdClaim, "condor@password", "PASSWORD", true},
		{"claim to be", "SEC_DEFAULT_AUTHENTICATION_METHODS = CLAIMTOBE\n", "SEC_CLIENT_AUTHENTICATION = REQUIRED\nSEC_DEFAULT_AUTHENTICATION_METHODS = PASSWORD, CLAIMTOBE\n", cmdClaim, "alice@x.org", "CLAIMTOBE", true},
		{"mapped", "CERTIFICATE_MAPFILE = /map\nSEC_DEFAULT_AUTHENTICATION_METHODS = CLAIMTOBE\n", "SEC_DEFAULT_AUTHENTICATION = PREFERRED\nSEC_DEFAULT_AUTHENTICATION_METHODS = CLAIMTOBE\n", cmdClaim, "root@x.org", "CLAIMTOBE", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, strings.ReplaceAll(open+test.server, "CERTIFICATE_MAPFILE = /map\n", ""), test.client)
			if strings.Contains(test.server, "CERTIFICATE_MAPFILE") {
				s := *w.server.Settings()
				s.Map = must(ParseMap("/map", "CLAIMTOBE ^alice@x.org$ root\n", MapOptions{}))
				s.Authorizer = openTo(Daemon)
				w.server.Configure(&s, w.server.current.Load().authn)
			}
			conn, session, out, err := w.open(test.command, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if out.err != nil || out.r.Command != test.command || out.r.Bare || out.r.Resumed || out.r.Peer.User != test.user || out.r.Peer.Method != test.method {
				t.Fatalf("request %+v, %v", out.r, out.err)
			}
			if session.Self != test.user || session.Encrypts() != test.encrypted || conn.Encrypted() != test.encrypted || out.conn.Encrypted() != test.encrypted {
				t.Errorf("session %+v, streams %t %t", session, conn.Encrypted(), out.conn.Encrypted())
			}
			w.talk(conn, out)

			again, taken, out2, err := w.open(test.command, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if taken != session || !out2.r.Resumed || out2.r.Session != out.r.Session || out2.r.Peer.User != test.user {
				t.Errorf("the second command has %+v", out2.r)
			}
			if again.Encrypted() != test.encrypted {
				t.Error("the resumed stream is not as the first")
			}
			w.talk(again, out2)
		})
	}
}

// A further command on the same stream is authorized as well.
func TestFurtherCommands(t *testing.T) {
	t.Parallel()
	w := newWorld(t, open, "")
	conn, _, out, err := w.open(cmdQuery, Options{})
	if err != nil {
		t.Fatal(err)
	}
	w.talk(conn, out)
	Follow(conn, cmdQuery)
	conn.PutString("more")
	if err := conn.EndMessage(); err != nil {
		t.Fatal(err)
	}
	r, err := w.server.Next(t.Context(), out.conn, out.r)
	if err != nil || r.Command != cmdQuery || r.Session != out.r.Session || r.Peer.User != Unauthenticated {
		t.Fatalf("request %+v, %v", r, err)
	}
	if s, err := out.conn.String(); s != "more" || err != nil || out.conn.EndOfMessage() != nil {
		t.Errorf("payload %q, %v", s, err)
	}
	for _, number := range []int{cmdOff, 999999, -7, command.DCAuthenticate} {
		Follow(conn, number)
		if err := conn.EndMessage(); err != nil {
			t.Fatal(err)
		}
		if r, err := w.server.Next(t.Context(), out.conn, out.r); err == nil {
			t.Errorf("command %d may act: %+v", number, r)
		}
		out.conn.DiscardMessage()
	}
	_ = conn.Close()
	if _, err := w.server.Next(t.Context(), out.conn, out.r); !errors.Is(err, io.EOF) {
		t.Errorf("err = %v, want the end", err)
	}
}

// A server that was restarted does not know the session: a new one is made.
func TestForgottenSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, open, "")
	_, first, _, err := w.open(cmdQuery, Options{})
	if err != nil {
		t.Fatal(err)
	}
	w.server.Sessions = NewSessions(w.clock, 10)
	conn, second, err := w.client.Command(t.Context(), serverAddress, cmdQuery, Options{})
	if err != nil {
		t.Fatal(err)
	}
	w.payload(conn)
	if second == first || w.dials != 3 {
		t.Errorf("%d connections, the same session: %t", w.dials, second == first)
	}
	if out := <-w.requests; !errs.Is(out.err, errs.NotFound) {
		t.Errorf("the server's first error is %v", out.err)
	}
	out := <-w.requests
	w.talk(conn, out)
}

// Sessions end with their time, and without use with their lease; the server
// keeps them a little longer.
func TestEndOfSessions(t *testing.T) {
	t.Parallel()
	const times = "SEC_DEFAULT_SESSION_DURATION = 1000\nSEC_DEFAULT_SESSION_LEASE = 100\n"
	w := newWorld(t, open+times, "")
	_, first, _, err := w.open(cmdQuery, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 9 { // used again and again, it lives for its 1000 s
		w.clock.Advance(99 * time.Second)
		conn, s, out, err := w.open(cmdQuery, Options{})
		if err != nil || s != first || !out.r.Resumed {
			t.Fatalf("session %v, %v", s, err)
		}
		w.talk(conn, out)
	}
	w.clock.Advance(99 * time.Second)
	conn, s, out, err := w.open(cmdQuery, Options{})
	if err != nil || s != first {
		t.Fatalf("after 990 s: %v, %v", s, err)
	}
	w.talk(conn, out)
	w.clock.Advance(10 * time.Second)
	if _, s, _, err := w.open(cmdQuery, Options{}); err != nil || s == first {
		t.Fatalf("after 1000 s: the old session %t, %v", s == first, err)
	}
	if _, ok := w.server.Sessions.Get(out.r.Session.ID); !ok {
		t.Error("the server dropped the session without its slack")
	}
	w.clock.Advance(20 * time.Second)
	if _, ok := w.server.Sessions.Get(out.r.Session.ID); ok {
		t.Error("the server keeps a session that is over")
	}
	_, third, _, err := w.open(cmdQuery, Options{})
	if err != nil {
		t.Fatal(err)
	}
	w.clock.Advance(100 * time.Second)
	if _, s, _, err := w.open(cmdQuery, Options{}); err != nil || s == third {
		t.Errorf("the lease does not end a session: %v", err)
	}
}

// Refusals say why in the log and in the error, and nothing is kept.
func TestRefusals(t *testing.T) {
	t.Parallel()
	const claimToBe = "SEC_DEFAULT_AUTHENTICATION = REQUIRED\nSEC_DEFAULT_AUTHENTICATION_METHODS = CLAIMTOBE\n"
	for _, test := range []struct {
		name, server, client string
		command              int
		from                 string
		kind                 errs.Kind
		err, log             string
	}{
		{"no level", open, "", cmdOff, "", errs.Denied, `the server answered "DENIED" to unauthenticated@unmapped`, "ALLOW_ADMINISTRATOR has no entry that fits unauthenticated@unmapped from 10.9.9.9"},
		{"no level for a user", open + claimToBe, claimToBe, cmdOff, "", errs.Denied, `"DENIED" to alice@x.org`, "ALLOW_ADMINISTRATOR has no entry that fits alice@x.org from 10.9.9.9"},
		{"another address", open + claimToBe, claimToBe, cmdClaim, "10.8.1.1:5", errs.Denied, "DENIED", "fits alice@x.org from 10.8.1.1"},
		{"a user is demanded", open, "SEC_CLIENT_AUTHENTICATION = NEVER\n", cmdMapped, "", errs.Transient, "closed the connection", "no agreement on authentication: NEVER for the client, REQUIRED for the server"},
		{"unknown command", open, "", 999999, "", errs.Transient, "it may not know command 999999", "there is no such command"},
		{"no agreement", open + "SEC_READ_ENCRYPTION = NEVER\n", "SEC_CLIENT_ENCRYPTION = REQUIRED\n", cmdQuery, "", errs.Transient, "closed", "no agreement on encryption: REQUIRED for the client, NEVER for the server"},
		{"no cipher", open + "SEC_READ_CRYPTO_METHODS = 3DES\nSEC_READ_ENCRYPTION = OPTIONAL\n", "SEC_CLIENT_ENCRYPTION = REQUIRED\n", cmdQuery, "", errs.Transient, "closed", "no agreement on encryption"},
		{"no method", open + "SEC_DEFAULT_AUTHENTICATION = REQUIRED\nSEC_DEFAULT_AUTHENTICATION_METHODS = PASSWORD\n", "SEC_DEFAULT_AUTHENTICATION_METHODS = CLAIMTOBE\n", cmdQuery, "", errs.Denied, "no method of authentication is common", `the client has \"CLAIMTOBE\", level READ takes \"PASSWORD\"`},
		{"an unacceptable server", open, "ALLOW_CLIENT = 192.0.2.*\n", cmdQuery, "", errs.Denied, "the server is not acceptable: ALLOW_CLIENT has no entry", ""},
		{"reserved name", open + claimToBe + "CERTIFICATE_MAPFILE = /map\n", claimToBe, cmdClaim, "", errs.Transient, "", "is reserved for sessions that are handed over"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, strings.ReplaceAll(test.server, "CERTIFICATE_MAPFILE = /map\n", ""), test.client)
			if strings.Contains(test.server, "CERTIFICATE_MAPFILE") {
				s := *w.server.Settings()
				s.Map = must(ParseMap("/map", "CLAIMTOBE . submit-side@matchsession\n", MapOptions{}))
				w.server.Configure(&s, w.server.current.Load().authn)
			}
			if test.from != "" {
				w.from = netip.MustParseAddrPort(test.from)
			}
			_, _, _, err := w.open(test.command, Options{})
			if !errs.Is(err, test.kind) || !strings.Contains(err.Error(), test.err) {
				t.Errorf("err = %v (%v), want %q", err, errs.KindOf(err), test.err)
			}
			out := <-w.requests
			if test.log != "" && (out.err == nil || !strings.Contains(w.logs.String(), test.log)) {
				t.Errorf("the server's error is %v; its log:\n%s\nwant %s", out.err, w.logs, test.log)
			}
			if test.log != "" && w.server.Sessions.Len() != 0 {
				t.Error("the server kept the session")
			}
			if test.kind == errs.Denied && w.client.Sessions.Len() > 0 && !strings.Contains(test.name, "server") {
				t.Error("the client kept the session")
			}
		})
	}
}

// Authentication that is only preferred may fail, on both sides at once.
func TestTolerableFailure(t *testing.T) {
	t.Parallel()
	const methods = "SEC_DEFAULT_AUTHENTICATION = PREFERRED\nSEC_DEFAULT_AUTHENTICATION_METHODS = PASSWORD\n"
	w := newWorld(t, open+methods, methods)
	w.configureClient(methods, files{}) // without the password
	conn, s, out, err := w.open(cmdQuery, Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, w.logs)
	}
	if out.r.Peer.User != Unauthenticated || s.Self != Unauthenticated || !conn.Encrypted() {
		t.Errorf("request %+v", out.r)
	}
	w.talk(conn, out)
}

// DC_SEC_QUERY and DC_AUTHENTICATE are answered here.
func TestQuery(t *testing.T) {
	t.Parallel()
	w := newWorld(t, open, "")
	s, answer, err := w.client.Query(t.Context(), serverAddress, cmdQuery)
	if err != nil || answer["AuthorizationSucceeded"] != true || s.Self != Unauthenticated {
		t.Errorf("answer %v, session %v, %v", answer, s, err)
	}
	if out := <-w.requests; out.err != nil || !out.r.Done {
		t.Errorf("request %+v, %v", out.r, out.err)
	}
	if w.client.Sessions.Len() != 0 {
		t.Error("a session for a question is kept")
	}
	if _, _, err = w.client.Query(t.Context(), serverAddress, cmdOff); !errs.Is(err, errs.Denied) {
		t.Errorf("err = %v, want denied", err)
	}
	<-w.requests
	_, _, out, err := w.open(command.DCAuthenticate, Options{AuthCommand: cmdQuery})
	if err != nil || !out.r.Done || out.r.Command != cmdQuery {
		t.Errorf("request %+v, %v", out.r, err)
	}
	if !slices.Contains(w.client.Sessions.IDs(), out.r.Session.ID) {
		t.Error("the session that was asked for is not there")
	}
}

// A bare command acts only where nobody has to be known.
func TestBareCommands(t *testing.T) {
	t.Parallel()
	w := newWorld(t, open+"SEC_DAEMON_AUTHENTICATION = REQUIRED\n", "")
	for _, test := range []struct {
		command int
		ok      bool
	}{{cmdNop, true}, {cmdQuery, true}, {cmdClaim, false}, {cmdMapped, false}, {999999, false}} {
		conn, s, err := w.client.Command(t.Context(), serverAddress, test.command, Options{Raw: true})
		if err != nil || s != nil {
			t.Fatal(s, err)
		}
		conn.PutString("payload")
		if err := conn.EndMessage(); err != nil {
			t.Fatal(err)
		}
		out := <-w.requests
		if (out.err == nil) != test.ok {
			t.Errorf("command %d: %+v, %v", test.command, out.r, out.err)
		}
		if out.err == nil {
			if s, err := out.conn.String(); s != "payload" || err != nil || !out.r.Bare || out.r.Peer.User != Unauthenticated {
				t.Errorf("command %d: %q, %v, %+v", test.command, s, err, out.r)
			}
		}
	}
	w.configureServer(open + "SEC_READ_NEGOTIATION = REQUIRED\n")
	if _, _, err := w.client.Command(t.Context(), serverAddress, cmdQuery, Options{Raw: true}); err != nil {
		t.Fatal(err)
	}
	_ = must(w.dial(t.Context(), serverAddress)).Close()
}

// A schedd that holds a claim id needs no entry in any list; one that does not
// is told so.
func TestClaimSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", "")
	id := claim.NewID(serverText, 1795188226, 1, claim.Secret(DefaultInfo("25.14.0").String()+keyText))
	if _, err := w.server.Sessions.AddClaim(id); err != nil {
		t.Fatal(err)
	}
	if _, err := w.client.Sessions.AddExecuteSide(id, serverText); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		conn, s, out, err := w.open(cmdClaim, Options{Session: id.Public})
		if err != nil {
			t.Fatal(err)
		}
		if out.r.Peer.User != SubmitSide || out.r.Peer.Method != MethodMatch || s.Peer.User != ExecuteSide || !conn.Encrypted() {
			t.Errorf("request %+v", out.r)
		}
		w.talk(conn, out)
	}
	_, _, out, err := w.open(cmdOff, Options{Session: id.Public})
	if err != nil || !errs.Is(out.err, errs.Denied) {
		// Taken up again, but not for that: the client sees the end of the stream.
		t.Errorf("request %+v, %v, %v", out.r, out.err, err)
	}

	// The claim is gone; what is under way still arrives for ten minutes.
	if !w.server.Sessions.Expire(id.Public, ClaimLinger) {
		t.Fatal("no session to end")
	}
	w.clock.Advance(ClaimLinger - time.Second)
	if _, _, _, err := w.open(cmdClaim, Options{Session: id.Public}); err != nil {
		t.Error(err)
	}
	w.clock.Advance(time.Second)
	if _, _, _, err := w.open(cmdClaim, Options{Session: id.Public}); !errs.Is(err, errs.NotFound) {
		t.Errorf("err = %v, want not found", err)
	}
	if _, ok := w.client.Sessions.Get(id.Public); !ok {
		t.Error("a session that was handed over is dropped")
	}
	if _, _, _, err := w.open(cmdClaim, Options{Session: "<1.2.3.4:5>#1#9"}); !errs.Is(err, errs.NotFound) {
		t.Errorf("err = %v, want not found", err)
	}
}

// Daemons under one condor_master need no other session; a stranger on the
// same host gets an ordinary one.
func TestFamilySession(t *testing.T) {
	t.Parallel()
	key := NewCapabilityID("family:0123", DefaultInfo("25.14.0"), keyText)
	w := newWorld(t, open, "")
	w.client.Local = func(netip.Addr) bool { return true }
	kin, asked := true, 0
	w.client.Kin = func(at net.Addr) bool {
		asked++
		return kin && at.String() == "127.0.0.1:9618"
	}
	w.from = netip.MustParseAddrPort("127.0.0.1:40000")
	for _, s := range []*Sessions{w.server.Sessions, w.client.Sessions} {
		if _, err := s.AddFamily(key); err != nil {
			t.Fatal(err)
		}
	}
	loop := func(ctx context.Context, to cedar.Sinful) (net.Conn, error) {
		nc, err := w.dial(ctx, to)
		return loopback{nc}, err
	}
	w.client.Dial = loop
	_, _, out, err := w.open(cmdOff, Options{})
	if err != nil || out.r.Peer.User != Family || !out.r.Resumed {
		t.Fatalf("request %+v, %v", out.r, err)
	}
	// A daemon of somebody else at the same address does not get to see the id.
	kin = false
	var sent *tape
	w.tap = func(nc net.Conn) net.Conn { sent = &tape{Conn: nc}; return sent }
	if _, s, out, err := w.open(cmdQuery, Options{}); err != nil || !s.Negotiated || out.r.Resumed {
		t.Fatalf("session %+v, %v", s, err)
	}
	if asked != 2 || len(sent.data) == 0 || bytes.Contains(sent.data, []byte("family:0123")) {
		t.Errorf("asked %d times, and the stranger is sent\n%q", asked, sent.data)
	}
	kin, w.tap = true, nil
	w.client.Sessions.ForgetNegotiated()
	w.server.Sessions.Forget("family:0123")
	conn, s, err := w.client.Command(t.Context(), serverAddress, cmdQuery, Options{})
	if err != nil || !s.Negotiated {
		t.Fatalf("session %+v, %v", s, err)
	}
	w.payload(conn)
	<-w.requests
	w.talk(conn, <-w.requests)
	if _, ok := w.client.Sessions.Get("family:0123"); !ok {
		t.Error("the family's session is dropped")
	}
}

// loopback is a connection that says it goes to this host.
type loopback struct{ net.Conn }

func (loopback) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9618} }

// A peer without ECDH gets a key wrapped by the method, if that can hide it.
func TestWithoutECDH(t *testing.T) {
	t.Parallel()
	const methods = "SEC_DEFAULT_AUTHENTICATION = REQUIRED\nSEC_DEFAULT_AUTHENTICATION_METHODS = "
	w := newWorld(t, open+methods+"PASSWORD\n", methods+"PASSWORD\n")
	w.client.newKeyExchange = func() (keyExchange, error) { return fixed{}, nil }
	conn, s, out, err := w.open(cmdClaim, Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, w.logs)
	}
	if !s.Encrypts() || !bytes.Equal(s.Key, out.r.Session.Key) || !conn.Encrypted() {
		t.Errorf("session %+v", s)
	}
	w.talk(conn, out)

	w = newWorld(t, open+methods+"CLAIMTOBE\n", methods+"CLAIMTOBE\n")
	w.client.newKeyExchange = func() (keyExchange, error) { return fixed{}, nil }
	if _, s, _, err := w.open(cmdClaim, Options{}); err == nil {
		t.Errorf("a key that nothing hides is used: %+v", s)
	}
}

// Keys, passwords and claim ids are in no log and no error of all of this.
func TestNoSecrets(t *testing.T) {
	t.Parallel()
	const methods = "SEC_DEFAULT_AUTHENTICATION = REQUIRED\nSEC_DEFAULT_AUTHENTICATION_METHODS = PASSWORD, CLAIMTOBE\n"
	w := newWorld(t, open+methods, methods)
	id := claim.NewID(serverText, 1795188226, 1, claim.Secret(DefaultInfo("25.14.0").String()+keyText))
	server := must(w.server.Sessions.AddClaim(id))
	secrets := []string{keyText, hex.EncodeToString(server.Key), password, string(server.Key)}
	var texts []string
	note := func(err error) {
		if err != nil {
			texts = append(texts, err.Error())
		}
	}
	_, s, out, err := w.open(cmdClaim, Options{})
	if err != nil {
		t.Fatal(err)
	}
	secrets = append(secrets, hex.EncodeToString(s.Key), string(s.Key), hex.EncodeToString(out.r.Session.Key))
	_, _, _, err = w.open(cmdOff, Options{})
	note(err)
	note(w.server.Sessions.Add(server, 0))
	_, err = w.server.Sessions.AddClaim(id)
	note(err)
	_, err = w.server.Sessions.AddShared("x", "[Broken", claim.Secret(keyText))
	note(err)
	_, err = w.server.Sessions.AddClaim(claim.NewID(serverText, 1, 2, claim.Secret(keyText)))
	note(err)
	_, err = w.client.Sessions.AddExecuteSide(claim.NewID(serverText, 1, 2, claim.Secret("["+keyText)), serverText)
	note(err)
	w.server.log(t.Context(), slog.LevelInfo, "everything", slog.Any("session", s), slog.Any("key", s.Key), slog.Any("request", out.r))
	if len(texts) < 5 {
		t.Errorf("only %d errors", len(texts))
	}
	texts = append(texts, w.logs.String())
	for _, text := range texts {
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				t.Errorf("a secret is shown in: %s", text)
			}
		}
	}
}
