// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/endpoint"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
)

const (
	testVersion  = "$CondorVersion: 25.14.0 2026-11-20 TEST $"
	testPlatform = "$CondorPlatform: X86_64-Debian_12 $"
	startdText   = "<127.0.0.1:9618?addrs=127.0.0.1-9618&alias=ep.example.org&noUDP>"
	keyText      = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
	owner        = "alice@example.org"
)

func testClaim() claim.Secret {
	return claim.Secret(startdText + "#1700000000#1#" + security.DefaultInfo("25.14.0").String() + keyText)
}

// job is a Handler over a scratch directory.
type job struct {
	mu        sync.Mutex
	target    Target
	running   bool
	vacated   []string
	proxies   []string
	noProxy   error // of RenewProxy
	reconnect func(ctx context.Context, conn *cedar.Conn, ad *classad.Ad) error
}

func (j *job) Reconnect(ctx context.Context, conn *cedar.Conn, ad *classad.Ad) error {
	if j.reconnect == nil {
		return errors.New("the job is gone")
	}
	return j.reconnect(ctx, conn, ad)
}

func (j *job) Vacate(_ context.Context, reason string, code, subcode int, soft bool) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.vacated = append(j.vacated, fmt.Sprintf("%s/%d/%d/%v", reason, code, subcode, soft))
	return nil
}

func (j *job) RenewProxy(file []byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.noProxy == nil {
		j.proxies = append(j.proxies, string(file))
	}
	return j.noProxy
}

func (j *job) told() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.vacated, " ")
}

func (j *job) Running() (Target, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.target, j.running
}

func (j *job) set(f func(*job)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	f(j)
}

// lockedBuffer is a log.
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

// world is a command socket with a running job, and somebody who knows its claim.
type world struct {
	t      testing.TB
	socket *CommandSocket
	job    *job
	dir    string
	log    *lockedBuffer
	peers  *security.Sessions // of the other side
}

func newWorld(t testing.TB, change ...func(*Config)) *world {
	t.Helper()
	w := &world{t: t, dir: t.TempDir(), log: &lockedBuffer{}, peers: security.NewSessions(clock.System(), 100)}
	root, err := os.OpenRoot(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	ad := mustAd(t, `User = "`+owner+`"`+"\nOut = \"_condor_stdout\"\nErr = \"_condor_stderr\"\nOriginalOut = \"job.out\"\nTransferOutput = \"result,sub/deep, link,pipe,../up\"\nUserLog=\"x\"")
	w.job = &job{running: true, target: Target{Job: ad, Root: root, Scratch: w.dir, Stdout: "_condor_stdout", Stderr: "_condor_stderr"}}
	cfg := Config{
		Claim: testClaim(), Address: startdText, Job: w.job, Platform: testPlatform,
		Endpoint: endpoint.New(endpoint.Config{Version: testVersion, Log: slog.New(slog.NewTextHandler(w.log, &slog.HandlerOptions{Level: slog.LevelDebug}))}),
		Settings: settings(t),
	}
	for _, f := range change {
		f(&cfg)
	}
	if w.socket, err = Open(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- w.socket.Serve(context.WithoutCancel(t.Context())) }()
	t.Cleanup(func() {
		w.socket.Close()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		_ = root.Close()
		if strings.Contains(w.log.String(), keyText) {
			t.Error("the key of the claim is in the log")
		}
	})
	id, err := claim.ParseID(testClaim().Reveal())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.peers.AddExecuteSide(id, ""); err != nil {
		t.Fatal(err)
	}
	return w
}

func mustAd(t testing.TB, text string) *classad.Ad {
	t.Helper()
	ad, err := classad.ParseAd(text, classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	return ad
}

func (w *world) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// dial connects to the socket without saying anything.
func (w *world) dial() net.Conn {
	w.t.Helper()
	s, err := cedar.ParseSinful(w.socket.Address())
	if err != nil {
		w.t.Fatal(err)
	}
	nc, err := net.Dial("tcp", netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(s.Port)).String())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = nc.Close() })
	return nc
}

// command opens a command under a session of the other side's.
func (w *world) command(number int, session string) (*cedar.Conn, error) {
	return w.commandOver(w.dial(), number, session)
}

func (w *world) commandOver(nc net.Conn, number int, session string) (*cedar.Conn, error) {
	w.t.Helper()
	client := &security.Client{
		Sessions: w.peers, Clock: clock.System(), Version: testVersion, Subsystem: "SCHEDD", PID: 1, Address: func() string { return "" },
		Dial: func(context.Context, cedar.Sinful) (net.Conn, error) { return nc, nil },
	}
	client.Configure(&security.Settings{Authorizer: &security.Authorizer{}, StepTimeout: 10 * time.Second, Deadline: 10 * time.Second, ResumeResponse: true}, nil)
	to, err := cedar.ParseSinful(w.socket.Address())
	if err != nil {
		w.t.Fatal(err)
	}
	conn, _, err := client.Command(w.t.Context(), to, number, security.Options{Session: session})
	return conn, err
}

func claimSession() string {
	id, _ := claim.ParseID(testClaim().Reveal())
	return id.Public
}

// ask sends an ad and returns the answer.
func ask(conn *cedar.Conn, request *classad.Ad) (*classad.Ad, error) {
	conn.PutAd(request, cedar.AdOptions{})
	if err := conn.EndMessage(); err != nil {
		return nil, err
	}
	ad, err := conn.Ad(cedar.AdOptions{})
	if err != nil {
		return nil, err
	}
	return ad, conn.EndOfMessage()
}

// ownerSession has a session made for the owner, as a schedd does, and returns
// its id after the owner took it over.
func (w *world) ownerSession() string {
	w.t.Helper()
	conn, err := w.command(command.CreateJobOwnerSecSession, claimSession())
	if err != nil {
		w.t.Fatal(err)
	}
	request := classad.NewAd()
	request.SetString("ClaimId", testClaim().Reveal())
	request.SetString("SessionInfo", `[Encryption="YES";Integrity="YES";CryptoMethods="AES";]`)
	reply, err := ask(conn, request)
	if err != nil {
		w.t.Fatal(err)
	}
	if ok, _ := reply.EvalBool("Result", nil); !ok {
		w.t.Fatalf("no session: %s", reply.Text(classad.Old))
	}
	text, _ := reply.EvalString("ClaimId", nil)
	id, err := security.ParseCapabilityID(text)
	if err != nil {
		w.t.Fatal(err)
	}
	if at, _ := reply.EvalString("StarterIpAddr", nil); at != w.socket.Address() {
		w.t.Errorf("StarterIpAddr is %q, want %q", at, w.socket.Address())
	}
	if _, err := w.peers.AddShared(id.Session, id.Info.String(), claim.Secret(text[strings.LastIndexByte(text, ']')+1:])); err != nil {
		w.t.Fatal(err)
	}
	return id.Session
}
