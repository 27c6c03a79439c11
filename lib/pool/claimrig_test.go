// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/pool"
	"github.com/execpoint/execpoint/lib/pool/claims"
	"github.com/execpoint/execpoint/lib/pool/directory"
	"github.com/execpoint/execpoint/lib/pool/engine"
	"github.com/execpoint/execpoint/lib/pool/pooltest"
	"github.com/execpoint/execpoint/lib/slot"
)

// begun is the system's clock, moved so that it began at some second.
type begun struct {
	system clock.Clock
	shift  time.Duration
}

func beginAt(unix int64) begun {
	c := clock.System()
	return begun{c, time.Unix(unix, 0).Sub(c.Now().Wall)}
}

func (c begun) Now() clock.Instant {
	now := c.system.Now()
	now.Wall = now.Wall.Add(c.shift)
	return now
}

// noMethods knows no way to authenticate: what is done here is done under
// sessions of claims.
type noMethods struct{}

func (noMethods) Authenticate(context.Context, *cedar.Conn, authn.Peer, []authn.Method) (authn.Result, error) {
	return authn.Result{}, errors.New("no methods")
}
func (noMethods) Offer([]authn.Method) []authn.Method { return nil }
func (noMethods) IssuerKeys() ([]string, error)       { return nil, nil }

// station is a whole EP in memory: the engine, the pool's side of it, and a
// command server behind real security.
type station struct {
	*pooltest.EP
	t        testing.TB
	pool     *pool.Pool
	sessions *security.Sessions
	client   *security.Client
	server   *listen.Server
	settings *security.Settings
	clock    clock.Clock
	log      *logs
	conns    context.Context
	end      func()        // has Run end, and waits for it
	asker    security.Peer // of the commands that handle gives; nobody is admin@example

	mu      sync.Mutex
	schedds []func() net.Conn // who answers when we connect, in order
	dialed  []cedar.Sinful
	effects []ep.Effect
	admit   atomic.Pointer[error]              // why a job is not given to a starter
	starter func(engine.Turn, ep.StartStarter) // nil: no starter begins
}

type stationOptions struct {
	text    string
	address string
	start   int64
	secrets map[int]claim.Secret // of the ids of these numbers
	change  func(*pool.Config)
	open    directory.Opener // nil: the station's own
	quiet   bool
}

const open = `
COLLECTOR_HOST =
ALLOW_DAEMON = nobody@nowhere
ALLOW_READ = *
ALLOW_WRITE = nobody@nowhere
ALLOW_ADMINISTRATOR = nobody@nowhere
ALLOW_NEGOTIATOR = nobody@nowhere
ALLOW_CLIENT = *
ENABLE_STARTD_DAEMON_AD = false
RUNBENCHMARKS = false
`

func newStation(t testing.TB, o stationOptions) *station {
	t.Helper()
	if o.address == "" {
		o.address = ourAddress
	}
	s := &station{t: t, log: &logs{}, clock: clock.System(), conns: t.Context()}
	if o.start != 0 {
		s.clock = beginAt(o.start)
	}
	at, err := cedar.ParseSinful(o.address)
	if err != nil {
		t.Fatal(err)
	}
	random, next := claims.NewSecret("25.14.0", func() bool { return s.pool.MatchSessions() }), 0
	s.EP = pooltest.New(t, pooltest.Options{
		Text: open + o.text, Address: o.address, Clock: s.clock, Cpus: 4, Host: "ep.wirev.test",
		Secret: func() claim.Secret {
			next++
			if known, ok := o.secrets[next]; ok {
				return known
			}
			return random()
		},
		Effect: func(turn engine.Turn, eff ep.Effect) {
			s.mu.Lock()
			s.effects = append(s.effects, eff)
			starter := s.starter
			s.mu.Unlock()
			if e, ok := eff.(ep.StartStarter); ok && starter != nil {
				starter(turn, e)
			}
		},
	})
	log := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if o.quiet {
		log = slog.New(slog.DiscardHandler)
	}
	s.sessions = security.NewSessions(s.clock, 0)
	if s.settings, err = security.SettingsFrom(s.Config, security.Sources{Subsystem: "STARTD"}); err != nil {
		t.Fatal(err)
	}
	s.client = &security.Client{
		Sessions: s.sessions, Clock: s.clock, Dial: s.dial, Log: log, Version: "$CondorVersion: 25.14.0 2026-11-20 TEST $",
		Subsystem: "STARTD", PID: 1, Address: func() string { return o.address },
	}
	s.client.Configure(s.settings, noMethods{})
	cfg := pool.Config{
		Owner: s.EP, Open: s.client, Sessions: s.sessions, Address: func() cedar.Sinful { return at }, Start: s.Start,
		Clock: s.clock, Rand: func() float64 { return 0.5 }, Log: log,
	}
	cfg.Admit = func(_ context.Context, id slot.ID, job *classad.Ad, nc net.Conn) error {
		if why := s.admit.Load(); why != nil && *why != nil {
			return errs.E("test", errs.Denied, id.String(), *why)
		}
		return nil
	}
	if o.open != nil {
		cfg.Open = o.open
	}
	if o.change != nil {
		o.change(&cfg)
	}
	s.pool = pool.New(cfg, s.Settings(t))
	table, err := listen.NewTable(s.pool.Commands()...)
	if err != nil {
		t.Fatal(err)
	}
	server := &security.Server{
		Commands: table.Security(), Sessions: s.sessions, Clock: s.clock, Log: log,
		Version: "$CondorVersion: 25.14.0 2026-11-20 TEST $", Host: "ep", PID: 1,
	}
	server.Configure(s.settings, noMethods{})
	s.server = &listen.Server{Table: table, Security: server, Log: log, Limits: listen.Limits{PerPeer: 1000}}

	ctx, cancel := context.WithCancel(t.Context())
	s.conns = ctx
	ran := make(chan struct{})
	s.Begin(ctx, t, s.pool)
	go func() { defer close(ran); s.pool.Run(ctx) }()
	s.end = func() { cancel(); <-ran }
	t.Cleanup(func() {
		s.end()
		done, stop := context.WithCancel(context.Background())
		stop()
		s.server.Wait(done)
	})
	return s
}

// dial connects to whoever comes next.
func (s *station) dial(_ context.Context, to cedar.Sinful) (net.Conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dialed = append(s.dialed, to)
	if len(s.schedds) == 0 {
		return nil, fmt.Errorf("nobody answers at %s", to)
	}
	next := s.schedds[0]
	s.schedds = s.schedds[1:]
	return next(), nil
}

// answer has a recorded schedd answer the next connection.
func (s *station) answer(c *cedartest.Connection) (asked <-chan struct{}) {
	done := make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.schedds = append(s.schedds, func() net.Conn {
		p := &cedartest.Player{Conn: c, Role: cedartest.Server, Check: checkPayload}
		client, server := cedartest.Pipe()
		go func() {
			defer close(done)
			defer server.Close()
			if err := p.Play(server); err != nil {
				s.t.Errorf("%s: %v", c, err)
			}
		}()
		return client
	})
	return done
}

// claimed returns the effects of one type.
func effectsOf[T ep.Effect](s *station) []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []T
	for _, eff := range s.effects {
		if e, ok := eff.(T); ok {
			all = append(all, e)
		}
	}
	return all
}

// peer is a schedd or shadow with the ids of claims.
type peer struct {
	*security.Client
	s *station
}

// peer returns one that knows the sessions of these claims.
func (s *station) peer(ids ...claim.ID) *peer {
	p := &peer{s: s}
	p.Client = &security.Client{
		Sessions: security.NewSessions(s.clock, 0), Clock: s.clock,
		Version: "$CondorVersion: 25.14.0 2026-11-20 TEST $", Subsystem: "SCHEDD", PID: 2,
		Address: func() string { return "<127.0.0.1:9700>" },
		Dial: func(context.Context, cedar.Sinful) (net.Conn, error) {
			a, b := cedartest.Pipe()
			s.server.ServeConn(s.conns, b)
			return a, nil
		},
	}
	p.Configure(s.settings, noMethods{})
	p.know(ids...)
	return p
}

func (p *peer) know(ids ...claim.ID) {
	p.s.t.Helper()
	for _, id := range ids {
		if _, known := p.Sessions.Get(id.Public); known {
			continue
		}
		if _, err := p.Sessions.AddClaim(id); err != nil {
			p.s.t.Fatal(err)
		}
	}
}

// open opens a command under the session of a claim.
func (p *peer) open(command int, session string) *cedar.Conn {
	p.s.t.Helper()
	to, err := cedar.ParseSinful(session[:strings.IndexByte(session, '>')+1])
	if err != nil {
		p.s.t.Fatal(err)
	}
	conn, _, err := p.Command(p.s.t.Context(), to, command, security.Options{Session: session})
	if err != nil {
		p.s.t.Fatal(err)
	}
	return conn
}

// offered returns the id by which a slot is to be claimed.
func (s *station) offered(name string) claim.ID {
	s.t.Helper()
	return s.view(name).NextClaim
}

func (s *station) view(name string) ep.SlotView {
	s.t.Helper()
	v, ok := s.find(name)
	if !ok {
		s.t.Fatalf("there is no %s", name)
	}
	return v
}

func (s *station) find(name string) (ep.SlotView, bool) {
	s.t.Helper()
	var v ep.SlotView
	found := false
	if err := s.Do(s.t.Context(), func(t engine.Turn) {
		for x := range t.Engine.Views() {
			if x.Name == name {
				v, found = x, true
			}
		}
	}); err != nil {
		s.t.Fatal(err)
	}
	return v, found
}

func (s *station) slots() []string {
	s.t.Helper()
	var all []string
	if err := s.Do(s.t.Context(), func(t engine.Turn) {
		for v := range t.Engine.Views() {
			all = append(all, v.Name+" "+v.Pair.String())
		}
	}); err != nil {
		s.t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

const smallJob = `MyType = "Job"
User = "alice@example"
Owner = "alice"
ScheddName = "schedd@example"
JobUniverse = 5
RequestCpus = 1
RequestMemory = 128
RequestDisk = 1024
Requirements = true
_condor_SECURE_CLAIM_ID = true
_condor_SEND_CLAIMED_AD = true
`

func adOf(t testing.TB, text string) *classad.Ad {
	t.Helper()
	ad, err := classad.ParseAd(text, classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	return ad
}

// request writes a REQUEST_CLAIM.
func putRequest(conn *cedar.Conn, id claim.ID, job *classad.Ad, evict ...claim.ID) error {
	conn.PutSecret(claim.Secret(id.Wire()))
	conn.PutAd(job, cedar.AdOptions{})
	conn.PutString("<127.0.0.1:9700>")
	conn.PutInt(20)
	conn.PutInt(int64(len(evict)))
	for _, e := range evict {
		conn.PutSecret(claim.Secret(e.Wire()))
	}
	return conn.EndMessage()
}

// grants is what a REQUEST_CLAIM was answered with.
type grants struct {
	code  int64 // of the last part: 0, 1, 3 or 5
	ids   []claim.ID
	ads   []*classad.Ad
	rest  claim.ID
	later *classad.Ad
}

func readGrants(conn *cedar.Conn) (grants, error) {
	var g grants
	id := func(plain bool) (claim.ID, error) {
		if plain {
			text, err := conn.String()
			if err != nil {
				return claim.ID{}, err
			}
			return claim.ParseID(text)
		}
		text, err := conn.Secret()
		if err != nil {
			return claim.ID{}, err
		}
		return claim.ParseID(text.Reveal())
	}
	for {
		code, err := conn.Int()
		if err != nil {
			return g, err
		}
		switch g.code = code; code {
		case 0, 1:
			return g, conn.EndOfMessage()
		case 3, 5:
			if g.rest, err = id(code == 3); err != nil {
				return g, err
			}
			if g.later, err = conn.Ad(cedar.AdOptions{}); err != nil {
				return g, err
			}
			return g, conn.EndOfMessage()
		case 7:
			one, err := id(false)
			if err != nil {
				return g, err
			}
			ad, err := conn.Ad(cedar.AdOptions{})
			if err != nil {
				return g, err
			}
			g.ids, g.ads = append(g.ids, one), append(g.ads, ad)
		default:
			return g, fmt.Errorf("code %d", code)
		}
	}
}

// claim requests a claim and returns the answer.
func (p *peer) claim(id claim.ID, job string) grants {
	p.s.t.Helper()
	conn := p.open(442, id.Public)
	defer conn.Close()
	if err := putRequest(conn, id, adOf(p.s.t, job)); err != nil {
		p.s.t.Fatal(err)
	}
	g, err := readGrants(conn)
	if err != nil {
		p.s.t.Fatal(err)
	}
	p.know(g.ids...)
	return g
}

// aboutClaim sends a command with nothing but a claim id, and returns what is
// answered: the value of Start, "0", or "" for a connection that is closed.
func (p *peer) aboutClaim(command int, session string, id claim.ID) string {
	p.s.t.Helper()
	conn := p.open(command, session)
	defer conn.Close()
	conn.PutSecret(claim.Secret(id.Wire()))
	if err := conn.EndMessage(); err != nil {
		p.s.t.Fatal(err)
	}
	switch command {
	case 403, 404, 413, 554, 561:
		ad, err := conn.Ad(cedar.AdOptions{})
		if err != nil {
			return ""
		}
		v, _ := ad.EvalBool("Start", nil)
		return fmt.Sprint("Start = ", v)
	}
	n, err := conn.Int()
	if err != nil {
		return ""
	}
	return fmt.Sprint(n)
}

// idle has all slots ready to be claimed.
func (s *station) idle() {
	s.t.Helper()
	s.Step(s.t, ep.Tick{})
}

// keyOf is the part of a claim id that nobody may see, as it would stand in a
// log: without the quotes in front of it.
func keyOf(id claim.ID) string {
	secret := id.Secret.Reveal()
	return secret[strings.IndexByte(secret, ']')+1:]
}

func itoa(n int) string { return fmt.Sprint(n) }

func sessionOf(id claim.ID) security.Options { return security.Options{Session: id.Public} }

// recorder keeps what the first connection sent.
type recorder struct {
	mu    sync.Mutex
	n     int
	first []byte
}

type tapped struct {
	net.Conn
	r *recorder
}

func (c tapped) Write(b []byte) (int, error) {
	c.r.mu.Lock()
	c.r.first = append(c.r.first, b...)
	c.r.mu.Unlock()
	return c.Conn.Write(b)
}

func (r *recorder) around(dial security.Dialer) security.Dialer {
	return func(ctx context.Context, to cedar.Sinful) (net.Conn, error) {
		nc, err := dial(ctx, to)
		if r.n++; err == nil && r.n == 1 {
			return tapped{nc, r}, nil
		}
		return nc, err
	}
}

// badSchedd is a schedd that answers ALIVE in some way of its own.
type badSchedd struct {
	serve  func(*cedar.Conn)
	mu     sync.Mutex
	n      int   // how often it was asked
	others []int // other commands that it was sent
}

func (s *badSchedd) asked() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n
}

func (s *badSchedd) Command(_ context.Context, _ cedar.Sinful, command int, _ security.Options) (*cedar.Conn, *security.Session, error) {
	if command != 441 {
		s.mu.Lock()
		s.others = append(s.others, command)
		s.mu.Unlock()
		return nil, nil, fmt.Errorf("command %d", command)
	}
	s.mu.Lock()
	s.n++
	s.mu.Unlock()
	client, server := cedartest.Pipe()
	conn, peer := cedar.NewConn(client, cedar.Limits{}), cedar.NewConn(server, cedar.Limits{})
	for _, c := range []*cedar.Conn{conn, peer} {
		if err := c.EnableAES(make([]byte, 32)); err != nil {
			return nil, nil, err
		}
	}
	go func() {
		defer peer.Close()
		if _, err := peer.Secret(); err == nil && peer.EndOfMessage() == nil {
			s.serve(peer)
		}
	}()
	return conn, &security.Session{ID: "s"}, nil
}
