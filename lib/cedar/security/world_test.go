// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/cedar/command"
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
	cmdQuery:  {Number: cmdQuery, Name: "QUERY_STARTD_ADS", Terms: command.Terms{Level: Read}},
	cmdClaim:  {Number: cmdClaim, Name: "REQUEST_CLAIM", Terms: command.Terms{Level: Daemon}},
	cmdOff:    {Number: cmdOff, Name: "DC_OFF_FAST", Terms: command.Terms{Level: Administrator}},
	cmdNop:    {Number: cmdNop, Name: "DC_NOP", Terms: command.Terms{Level: Allow}},
	cmdMapped: {Number: cmdMapped, Name: "DRAIN_JOBS", Terms: command.Terms{Level: Read, Authenticated: true}},
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
	w.payload(conn)
	return conn, s, <-w.requests, nil
}

// payload sends one. A server that refuses the command has hung up.
func (w *world) payload(conn *cedar.Conn) {
	conn.PutString("payload")
	_ = conn.EndMessage()
}

// talk has the server read the payload of open and answer it.
func (w *world) talk(conn *cedar.Conn, out outcome) {
	w.t.Helper()
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
