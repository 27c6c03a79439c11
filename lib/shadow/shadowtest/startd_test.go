// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowtest_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/shadow"
	"github.com/execpoint/execpoint/lib/shadow/shadowtest"
	"github.com/execpoint/execpoint/lib/transfer"
)

const startdAddress = "<127.0.0.1:9620>"

func newClaim(t testing.TB) claim.ID {
	t.Helper()
	secret, err := security.NewClaimSecret("25.14.0", nil)
	if err != nil {
		t.Fatal(err)
	}
	return claim.NewID(startdAddress, 1795188544, 1, secret)
}

func adOf(t testing.TB, text string) *classad.Ad {
	t.Helper()
	ad, err := classad.ParseAd(text, classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	return ad
}

func rootOf(t testing.TB, files map[string]string) *os.Root {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return root
}

// node is a startd with one claim, and the starters that it starts, in memory.
type node struct {
	t        testing.TB
	server   *listen.Server
	sessions *security.Sessions
	claim    claim.ID
	files    *shadowtest.Server
	run      func(ctx context.Context, conn *cedar.Conn) // a starter
	back     func(ctx context.Context, conn *cedar.Conn) // what CA_RECONNECT_JOB does
	busy     int                                         // activations to be answered "try again"
	told     chan int                                    // commands that came
}

func newNode(t testing.TB, files *shadowtest.Server, id claim.ID) *node {
	t.Helper()
	n := &node{t: t, sessions: security.NewSessions(clock.System(), 0), claim: id, files: files, told: make(chan int, 100)}
	if _, err := n.sessions.AddClaim(id); err != nil {
		t.Fatal(err)
	}
	row := func(number int, name string, handle listen.Handler) listen.Command {
		return listen.Command{Row: command.Row{Number: number, Name: name, Terms: command.Terms{Level: security.Daemon}}, Handle: func(ctx context.Context, c *listen.Call) error {
			n.told <- number
			return handle(ctx, c)
		}}
	}
	table, err := listen.NewTable(
		row(442, "REQUEST_CLAIM", n.request), row(444, "ACTIVATE_CLAIM", n.activate), row(413, "DEACTIVATE_CLAIM_JOB_DONE", n.deactivate),
		row(443, "RELEASE_CLAIM", n.release), row(1200, "CA_CMD", n.ca),
	)
	if err != nil {
		t.Fatal(err)
	}
	snap, err := config.Parse("node", "COLLECTOR_HOST =\nALLOW_READ = *\nALLOW_WRITE = *\nALLOW_DAEMON = *\n", config.Options{})
	if err != nil {
		t.Fatal(err)
	}
	set, err := security.SettingsFrom(snap, security.Sources{Subsystem: "STARTD"})
	if err != nil {
		t.Fatal(err)
	}
	server := &security.Server{Commands: table.Security(), Sessions: n.sessions, Clock: clock.System(), Version: shadowtest.Version, Host: "ep", PID: 1}
	server.Configure(set, nil)
	n.server = &listen.Server{Table: table, Security: server}
	t.Cleanup(func() {
		done, stop := context.WithCancel(context.Background())
		stop()
		n.server.Wait(done)
	})
	return n
}

// dial connects to the node.
func (n *node) dial(ctx context.Context, _ cedar.Sinful) (net.Conn, error) {
	a, b := cedartest.Pipe()
	n.server.ServeConn(n.t.Context(), b)
	return a, nil
}

func (n *node) id(conn *cedar.Conn) error {
	text, err := conn.Secret()
	if err == nil && text.Reveal() != n.claim.Wire() {
		err = errors.New("another claim")
	}
	return err
}

func (n *node) request(_ context.Context, c *listen.Call) error {
	if err := n.id(c.Conn); err != nil {
		return err
	}
	if _, err := c.Conn.Rest(); err != nil {
		return err
	}
	c.Conn.DiscardMessage()
	c.Conn.PutInt(1)
	return c.Conn.EndMessage()
}

func (n *node) activate(ctx context.Context, c *listen.Call) error {
	if err := n.id(c.Conn); err != nil {
		return err
	}
	if _, err := c.Conn.Rest(); err != nil {
		return err
	}
	c.Conn.DiscardMessage()
	if n.busy > 0 {
		n.busy--
		ad := classad.NewAd()
		ad.SetString("VacateReason", "still cleaning")
		c.Conn.PutInt(2)
		c.Conn.PutAd(ad, cedar.AdOptions{})
		return c.Conn.EndMessage()
	}
	c.Conn.PutInt(1)
	if err := c.Conn.EndMessage(); err != nil {
		return err
	}
	if !c.Detach() {
		return errors.New("the connection is gone")
	}
	go n.run(n.t.Context(), c.Conn)
	return nil
}

func (n *node) deactivate(_ context.Context, c *listen.Call) error {
	if err := errors.Join(n.id(c.Conn), c.Conn.EndOfMessage()); err != nil {
		return err
	}
	ad := classad.NewAd()
	ad.SetBool("Start", true)
	c.Conn.PutAd(ad, cedar.AdOptions{})
	return c.Conn.EndMessage()
}

func (n *node) release(_ context.Context, c *listen.Call) error {
	return errors.Join(n.id(c.Conn), c.Conn.EndOfMessage())
}

func (n *node) ca(_ context.Context, c *listen.Call) error {
	ad, err := c.Conn.Ad(cedar.AdOptions{})
	if err != nil {
		return err
	}
	if err := c.Conn.EndOfMessage(); err != nil {
		return err
	}
	reply := classad.NewAd()
	reply.SetString("Result", "Success")
	reply.SetString("StarterIpAddr", startdAddress)
	c.Conn.PutAd(reply, cedar.AdOptions{})
	if err := c.Conn.EndMessage(); err != nil {
		return err
	}
	if name, _ := ad.EvalString("Command", nil); name == "CA_RECONNECT_JOB" && c.Detach() {
		go n.back(n.t.Context(), c.Conn)
	}
	return nil
}

// fetch opens a connection for files as a starter does.
func (n *node) fetch(ctx context.Context, s shadow.Session, key string, command int) (*cedar.Conn, error) {
	sessions := security.NewSessions(clock.System(), 0)
	if _, err := sessions.AddShared(s.ID, s.Info, s.Key); err != nil {
		return nil, err
	}
	client := &security.Client{
		Sessions: sessions, Clock: clock.System(), Version: shadowtest.Version, Subsystem: "STARTER", PID: 3,
		Address: func() string { return startdAddress },
		Dial: func(ctx context.Context, _ cedar.Sinful) (net.Conn, error) {
			a, b := cedartest.Pipe()
			n.files.ServeConn(n.t.Context(), b)
			return a, nil
		},
	}
	snap, err := config.Parse("starter", "COLLECTOR_HOST =\nALLOW_CLIENT = *\n", config.Options{})
	if err != nil {
		return nil, err
	}
	set, err := security.SettingsFrom(snap, security.Sources{Subsystem: "STARTER"})
	if err != nil {
		return nil, err
	}
	client.Configure(set, nil)
	to, err := cedar.ParseSinful(n.files.Address())
	if err != nil {
		return nil, err
	}
	conn, _, err := client.Command(ctx, to, command, security.Options{Session: s.ID})
	if err != nil {
		return nil, err
	}
	return conn, transfer.Begin(conn, cedar.Secret(key))
}

// A whole job without a job: claimed, tried again, activated, its files in and
// out, ended, deactivated, released.
func TestRunJob(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	id := newClaim(t)
	submit, scratch := rootOf(t, map[string]string{"in.txt": "some input\n"}), rootOf(t, nil)
	files, err := shadowtest.NewServer("<127.0.0.1:9700>", nil)
	if err != nil {
		t.Fatal(err)
	}
	s := shadowtest.New(shadowtest.Job{Ad: adOf(t, "JobUniverse = 5\nGlobalJobId = \"a#1.0#1\"\n"), Claim: id, Root: submit})
	if err := files.Add(s, shadowtest.Files{In: transfer.SendPlan{Items: []transfer.SendItem{{Source: "in.txt"}}}}); err != nil {
		t.Fatal(err)
	}
	n := newNode(t, files, id)
	n.busy = 2
	starter := make(chan error, 1)
	n.run = func(ctx context.Context, conn *cedar.Conn) { starter <- n.starter(ctx, conn, scratch) }
	d, err := shadowtest.NewStartd(startdAddress, "<127.0.0.1:9701>", n.dial, nil)
	if err != nil {
		t.Fatal(err)
	}
	grant, err := d.Request(ctx, id, adOf(t, "JobUniverse = 5\n"), false)
	if err != nil || len(grant.Claims) != 1 || grant.Claims[0] != id {
		t.Fatalf("%+v, %v", grant, err)
	}
	end, err := d.RunJob(ctx, s)
	if err := errors.Join(err, <-starter); err != nil {
		t.Fatal(err)
	}
	if end.Exit == nil || end.Exit.Ints[0] != 7<<8 || end.Exit.Ints[1] != 100 {
		t.Errorf("ended with %+v", end)
	}
	if err := d.Release(ctx, id); err != nil {
		t.Fatal(err)
	}
	if b, err := submit.ReadFile("out.txt"); err != nil || string(b) != "some input\nsome output\n" {
		t.Errorf("came back: %q, %v", b, err)
	}
	moved, err := s.WaitTransfers(ctx, 2)
	if err != nil {
		t.Fatal(err)
	}
	slices.SortFunc(moved, func(a, b shadowtest.Transfer) int { return a.Command - b.Command })
	for i, m := range moved {
		if m.Err != nil || m.Stats.Files != 1 || m.Command != command.FiletransUpload+i {
			t.Errorf("transfer %d: %+v", i, m)
		}
	}
	var calls []string
	for _, c := range s.Calls() {
		calls = append(calls, c.Request.Call.String())
	}
	want := []string{"get_job_info", "register_starter_info", "get_sec_session_info", "job_exit"}
	if !slices.Equal(calls, want) {
		t.Errorf("calls %v, want %v", calls, want)
	}
	// RELEASE_CLAIM has no answer: it arrives when it does.
	var told []int
	for len(told) < 6 {
		select {
		case c := <-n.told:
			told = append(told, c)
		case <-ctx.Done():
			t.Fatalf("commands %v", told)
		}
	}
	if want := []int{442, 444, 444, 444, 413, 443}; !slices.Equal(told, want) {
		t.Errorf("commands %v, want %v", told, want)
	}
}

// starter does what a starter does, without a job.
func (n *node) starter(ctx context.Context, conn *cedar.Conn, scratch *os.Root) error {
	c := shadow.New(conn, shadow.Options{})
	defer c.End()
	job, err := c.JobInfo(ctx)
	if err != nil {
		return err
	}
	me := classad.NewAd()
	me.SetString("CondorVersion", shadowtest.Version)
	if err := c.RegisterStarter(ctx, me); err != nil {
		return err
	}
	sessions, ok, err := c.Sessions(ctx)
	if err != nil || !ok {
		return errors.Join(err, errors.New("no sessions"))
	}
	key, _ := job.EvalString("TransferKey", nil)
	up, err := n.fetch(ctx, sessions.Transfer, key, command.FiletransUpload)
	if err != nil {
		return err
	}
	if _, err := transfer.Receive(ctx, transfer.Side{Conn: up}, scratch, transfer.ReceiveOptions{}); err != nil {
		return err
	}
	_ = up.Close()
	b, err := scratch.ReadFile("in.txt")
	if err != nil {
		return err
	}
	if err := scratch.WriteFile("out.txt", append(b, "some output\n"...), 0o644); err != nil {
		return err
	}
	down, err := n.fetch(ctx, sessions.Transfer, key, command.FiletransDownload)
	if err != nil {
		return err
	}
	if _, err := transfer.Send(ctx, transfer.Side{Conn: down}, scratch, transfer.SendPlan{Final: true, Items: []transfer.SendItem{{Source: "out.txt"}}}, transfer.SendOptions{}); err != nil {
		return err
	}
	_ = down.Close()
	return c.JobExit(ctx, shadow.WaitStatus(7, 0), shadow.Exited, classad.NewAd())
}

// A key that no shadow has, or has no more, is answered as the original does.
func TestWrongKey(t *testing.T) {
	t.Parallel()
	id := newClaim(t)
	files, err := shadowtest.NewServer("<127.0.0.1:9700>", nil)
	if err != nil {
		t.Fatal(err)
	}
	s := shadowtest.New(shadowtest.Job{Claim: id, Root: rootOf(t, nil)})
	if err := files.Add(s, shadowtest.Files{}); err != nil {
		t.Fatal(err)
	}
	files.Remove(s)
	session, err := s.Session()
	if err != nil {
		t.Fatal(err)
	}
	n := newNode(t, files, id)
	conn, err := n.fetch(t.Context(), session, "1#nonsense", command.FiletransUpload)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if i, err := conn.Int(); err != nil || i != 0 || conn.More() {
		t.Errorf("answered %d, %v", i, err)
	}
}

// The connection is lost, and the shadow comes back by way of the startd.
func TestReconnect(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	id := newClaim(t)
	s := shadowtest.New(shadowtest.Job{Ad: adOf(t, "GlobalJobId = \"a#1.0#1\"\nUidDomain = \"example\"\n"), Claim: id})
	n := newNode(t, nil, id)
	callers := make(chan *shadow.Caller, 1)
	n.run = func(ctx context.Context, conn *cedar.Conn) {
		c := shadow.New(conn, shadow.Options{})
		callers <- c
		if err := c.BeginExecution(ctx); err != nil {
			t.Error(err)
		}
	}
	back := make(chan *cedar.Conn, 1)
	n.back = func(_ context.Context, conn *cedar.Conn) { back <- conn }
	d, err := shadowtest.NewStartd(startdAddress, "<127.0.0.1:9701>", n.dial, nil)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan shadowtest.End, 1)
	go func() {
		end, _ := d.RunJob(ctx, s) // the error is that of our own closing
		ended <- end
	}()
	if _, err := s.Wait(ctx, shadow.CallBeginExecution, 0); err != nil {
		t.Fatal(err)
	}
	s.Vanish()
	if end := <-ended; end.Exit != nil || end.Held != nil {
		t.Fatalf("ended with %+v", end)
	}
	caller := <-callers
	<-caller.Lost()
	if err := caller.BeginExecution(ctx); !errors.Is(err, shadow.ErrLost) {
		t.Fatalf("a call found %v", err)
	}
	conn, err := s.Reconnect(ctx, d)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		end, err := s.Serve(ctx, conn)
		if err != nil {
			t.Error(err)
		}
		ended <- end
	}()
	caller.Replace(<-back)
	if !caller.Connected() {
		t.Fatal("not connected")
	}
	if err := caller.JobExit(ctx, shadow.NoStatus, shadow.ShouldRequeue, classad.NewAd()); err != nil {
		t.Fatal(err)
	}
	if end := <-ended; end.Exit == nil || end.Exit.Ints[1] != int64(shadow.ShouldRequeue) {
		t.Errorf("ended with %+v", end)
	}
	caller.End()
}

// What a shadow says when it comes back is what the recorded one said.
func TestReplayReconnectAd(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"ep-reconnect-same-shadow", "ep-reconnect-new-shadow"} {
		found := false
		for _, c := range cedartest.Load(t, vectors+name+".json").Connections {
			for _, m := range c.Messages {
				if m.Note != "CA_CMD ad" || !strings.Contains(string(m.Plaintext), "CA_RECONNECT_JOB") {
					continue
				}
				found = true
				raw, _ := m.Items[0].RawAd()
				s := shadowtest.New(shadowtest.Job{Ad: adOf(t, strings.Join(raw.Lines, "\n"))})
				got := cedartest.Encode(t, true, func(c *cedar.Conn) {
					c.SetPeerVersion("25.14.0")
					c.PutAd(s.ReconnectAd(), cedar.AdOptions{})
				})
				if err := cedartest.Diff(m.Plaintext, got); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			}
		}
		if !found {
			t.Errorf("%s has no such ad", name)
		}
	}
}
