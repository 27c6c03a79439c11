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
	"sync"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/errs"
)

const (
	testVersion = "$CondorVersion: 25.14.0 2026-11-20 TEST $"
	serverText  = "<10.0.0.1:9618?noUDP>"
	password    = "a secret of the pool"
)

// The commands of the test server.
const (
	cmdQuery  = 5
	cmdClaim  = 442
	cmdOff    = 60005
	cmdNop    = 60011
	cmdMapped = 474
)

var testCommands = Commands{
	cmdQuery: {Number: cmdQuery, Name: "QUERY_STARTD_ADS", Level: Read}, cmdClaim: {Number: cmdClaim, Name: "REQUEST_CLAIM", Level: Daemon},
	cmdOff: {Number: cmdOff, Name: "DC_OFF_FAST", Level: Administrator}, cmdNop: {Number: cmdNop, Name: "DC_NOP", Level: Allow},
	cmdMapped: {Number: cmdMapped, Name: "DRAIN_JOBS", Level: Read, Authenticated: true},
}

// world is a server and a client that meet in memory.
type world struct {
	t        testing.TB
	clock    *clock.Fake
	server   *Server
	client   *Client
	from     netip.AddrPort
	logs     *lockedBuffer
	requests chan outcome
	dials    int
	tap      func(net.Conn) net.Conn // may watch what the client sends
}

// outcome is what became of a connection on the server.
type outcome struct {
	r    *Request
	err  error
	conn *cedar.Conn
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// files are private files in memory.
type files map[string][]byte

func (f files) ReadPrivate(path string, _ int64) ([]byte, error) {
	if b, ok := f[path]; ok {
		return b, nil
	}
	return nil, errs.E("files", errs.NotFound, path, errors.New("no such file"))
}

// scramble is how key files are written.
func scramble(text string) []byte {
	b := []byte(text)
	for i := range b {
		b[i] ^= [4]byte{0xDE, 0xAD, 0xBE, 0xEF}[i%4]
	}
	return b
}

// newWorld makes a server and a client with their configurations. Both know
// the pool's password and may claim to be alice.
func newWorld(t testing.TB, serverConfig, clientConfig string) *world {
	t.Helper()
	w := &world{t: t, clock: clock.NewFake(time.Unix(1795188226, 0)), from: netip.MustParseAddrPort("10.9.9.9:40000"), logs: &lockedBuffer{}, requests: make(chan outcome, 100)}
	logger := slog.New(slog.NewTextHandler(w.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	w.server = &Server{Commands: testCommands, Sessions: NewSessions(w.clock, 50), Clock: w.clock, Log: logger, Version: testVersion, Host: "ep", PID: 17}
	w.client = &Client{
		Sessions: NewSessions(w.clock, 50), Clock: w.clock, Log: logger, Version: testVersion, Subsystem: "STARTD", PID: 18,
		Address: func() string { return "<10.9.9.9:9618>" }, Dial: w.dial,
	}
	w.configureServer(serverConfig)
	w.configureClient(clientConfig, files{"/pool": scramble(password)})
	return w
}

func (w *world) configureServer(text string) {
	w.t.Helper()
	s, err := SettingsFrom(configured(w.t, text+"\nUID_DOMAIN = x.org\nTRUST_DOMAIN = x.org\n"), Sources{Subsystem: "STARTD"})
	if err != nil {
		w.t.Fatal(err)
	}
	a := &authn.Server{}
	a.UIDDomain, a.TrustDomain, a.PasswordFile = "x.org", "x.org", "/pool"
	a.ClaimToBeDomain, a.Files = true, files{"/pool": scramble(password)}
	w.server.Configure(s, a)
}

func (w *world) configureClient(text string, f files) {
	w.t.Helper()
	s, err := SettingsFrom(configured(w.t, text+"\nUID_DOMAIN = x.org\nTRUST_DOMAIN = x.org\n"), Sources{Subsystem: "STARTD"})
	if err != nil {
		w.t.Fatal(err)
	}
	a := &authn.Client{}
	a.UIDDomain, a.TrustDomain, a.PasswordFile = "x.org", "x.org", "/pool"
	a.ClaimToBeUser, a.ClaimToBeDomain, a.Files = "alice", true, f
	w.client.Configure(s, a)
}

// dial connects the client to the server.
func (w *world) dial(context.Context, cedar.Sinful) (net.Conn, error) {
	w.dials++
	mine, yours := cedartest.Pipe()
	w.serve(yours)
	if w.tap != nil {
		mine = w.tap(mine)
	}
	return mine, nil
}

// serve lets the server accept a connection in the background.
func (w *world) serve(nc net.Conn) {
	conn := cedar.NewConn(nc, cedar.Limits{})
	go func() {
		r, err := w.server.Handshake(context.Background(), conn, w.from)
		if err != nil || r.Done {
			_ = conn.Close()
		}
		w.requests <- outcome{r, err, conn}
	}()
}

var serverAddress = must(cedar.ParseSinful(serverText))

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// open opens a command and returns both ends.
func (w *world) open(command int, o Options) (*cedar.Conn, *Session, outcome, error) {
	w.t.Helper()
	conn, s, err := w.client.Command(w.t.Context(), serverAddress, command, o)
	if err != nil {
		return nil, nil, outcome{}, err
	}
	return conn, s, <-w.requests, nil
}

// talk sends a payload and gets it back.
func (w *world) talk(conn *cedar.Conn, out outcome) {
	w.t.Helper()
	conn.PutString("payload")
	if err := conn.EndMessage(); err != nil {
		w.t.Error(err)
	}
	s, err := out.conn.String()
	if err != nil || s != "payload" || out.conn.EndOfMessage() != nil {
		w.t.Errorf("the server reads %q, %v", s, err)
	}
	out.conn.PutString("reply")
	if err := out.conn.EndMessage(); err != nil {
		w.t.Error(err)
	}
	if s, err := conn.String(); err != nil || s != "reply" || conn.EndOfMessage() != nil {
		w.t.Errorf("the client reads %q, %v", s, err)
	}
}

const open = "ALLOW_READ = *\nALLOW_DAEMON = condor@password, alice@x.org/10.9.*\nALLOW_ADMINISTRATOR = root@x.org\n"

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
	for _, command := range []int{cmdOff, 999999, -7, DCAuthenticate} {
		Follow(conn, command)
		if err := conn.EndMessage(); err != nil {
			t.Fatal(err)
		}
		if r, err := w.server.Next(t.Context(), out.conn, out.r); err == nil {
			t.Errorf("command %d may act: %+v", command, r)
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
	_, first, out, err := w.open(cmdQuery, Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 9 { // used again and again, it lives for its 1000 s
		w.clock.Advance(99 * time.Second)
		_, s, out, err := w.open(cmdQuery, Options{})
		if err != nil || s != first || !out.r.Resumed {
			t.Fatalf("session %v, %v", s, err)
		}
	}
	w.clock.Advance(99 * time.Second)
	if _, s, _, err := w.open(cmdQuery, Options{}); err != nil || s != first {
		t.Fatalf("after 990 s: %v, %v", s, err)
	}
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
	_, _, out, err := w.open(DCAuthenticate, Options{AuthCommand: cmdQuery})
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
	w.server.Sessions.Forget("family:0123")
	conn, s, err := w.client.Command(t.Context(), serverAddress, cmdQuery, Options{})
	if err != nil || !s.Negotiated {
		t.Fatalf("session %+v, %v", s, err)
	}
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
	w.client.newAgreement = func() (agreement, error) { return fixed{}, nil }
	conn, s, out, err := w.open(cmdClaim, Options{})
	if err != nil {
		t.Fatalf("%v\n%s", err, w.logs)
	}
	if !s.Encrypts() || !bytes.Equal(s.Key, out.r.Session.Key) || !conn.Encrypted() {
		t.Errorf("session %+v", s)
	}
	w.talk(conn, out)

	w = newWorld(t, open+methods+"CLAIMTOBE\n", methods+"CLAIMTOBE\n")
	w.client.newAgreement = func() (agreement, error) { return fixed{}, nil }
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
