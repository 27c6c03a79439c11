// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package securitytest

import (
	"context"
	"io/fs"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
)

const (
	domain   = "x.org"
	password = "the secret of the pool"
	member   = "condor@password" // the user that PASSWORD authenticates
	version  = "$CondorVersion: 25.14.0 2026-11-20 TEST $"
	// before is a command at READ, with a payload, that comes before another on
	// the same connection.
	before = 1 << 20
)

var (
	key   = security.Key(strings.Repeat("k", 32))
	other = security.Key(strings.Repeat("o", 32))

	here      = netip.MustParseAddrPort("127.0.0.1:40000")
	there     = netip.MustParseAddrPort("10.9.9.9:40000")
	elsewhere = netip.MustParseAddrPort("10.9.9.8:40000")
)

// policy is a configuration of the server under which each command is tried.
type policy struct {
	settings *security.Settings
	authn    *authn.Server
}

func newPolicy(t testing.TB, text string) policy {
	t.Helper()
	s, err := security.SettingsFrom(parse(t, text), security.Sources{Subsystem: "STARTD"})
	if err != nil {
		t.Fatal(err)
	}
	a := &authn.Server{}
	a.UIDDomain, a.TrustDomain, a.PasswordFile, a.Files = domain, domain, "/pool", secrets{}
	return policy{s, a}
}

func parse(t testing.TB, text string) *config.Snapshot {
	t.Helper()
	c, err := config.Parse("condor_config", text+"\nUID_DOMAIN = x.org\nTRUST_DOMAIN = x.org\nSEC_DEFAULT_AUTHENTICATION_METHODS = PASSWORD\n", config.Options{
		Subsystem: "STARTD", Facts: map[string]string{"FULL_HOSTNAME": "ep.x.org"},
		ReadFile: func(string) ([]byte, error) { return nil, fs.ErrNotExist },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// secrets is the pool's password, scrambled as in its file.
type secrets struct{}

func (secrets) ReadPrivate(path string, _ int64) ([]byte, error) {
	if path != "/pool" {
		return nil, errs.E("securitytest.ReadPrivate", errs.NotFound, path, fs.ErrNotExist)
	}
	b := []byte(password)
	for i := range b {
		b[i] ^= [4]byte{0xDE, 0xAD, 0xBE, 0xEF}[i%4]
	}
	return b, nil
}

// rig is a server that is sent one command, and the sender.
type rig struct {
	t      testing.TB
	server *security.Server
	from   netip.AddrPort
	cmd    listen.Command
}

func newRig(t testing.TB, p policy, all security.Commands, cmd listen.Command) *rig {
	c := clock.NewFake(time.Unix(1795188226, 0))
	s := &security.Server{
		Commands: all, Sessions: security.NewSessions(c, 10), Clock: c, Log: slog.New(slog.DiscardHandler), Version: version, Host: "ep", PID: 17,
	}
	s.Configure(p.settings, p.authn)
	return &rig{t: t, server: s, from: there, cmd: cmd}
}

// has puts a session with a key into the server's store.
func (r *rig) has(id string, peer security.Peer, negotiated bool) {
	r.t.Helper()
	err := r.server.Sessions.Add(&security.Session{
		ID: id, Key: key, Peer: peer, PeerVersion: version, Negotiated: negotiated, From: there.Addr(),
		Encryption: true, Ciphers: []cedar.Cipher{cedar.Blowfish},
	}, 0)
	if err != nil {
		r.t.Fatal(err)
	}
}

// serve begins what the client sends on the connection that it returns. begun
// then tells whether that was a command that may act: authorized, and its
// payload read.
func (r *rig) serve(first bool) (nc net.Conn, begun func() bool) {
	mine, yours := cedartest.Pipe()
	result := make(chan bool, 1)
	go func() {
		conn := cedar.NewConn(yours, cedar.Limits{})
		defer conn.Close()
		ctx := context.Background()
		req, err := r.server.Handshake(ctx, conn, r.from)
		if err == nil && !first {
			if err = payload(conn); err == nil {
				req, err = r.server.Next(ctx, conn, req)
			}
		}
		if err == nil && !r.cmd.Empty {
			err = payload(conn)
		}
		result <- err == nil && req.Command == r.cmd.Number && !req.Done
	}()
	return mine, func() bool {
		_ = mine.Close()
		return <-result
	}
}

func payload(conn *cedar.Conn) error {
	if _, err := conn.String(); err != nil {
		return err
	}
	return conn.EndOfMessage()
}

func (r *rig) sendPayload(conn *cedar.Conn) {
	if !r.cmd.Empty {
		conn.PutString("payload")
		_ = conn.EndMessage() // a server that refuses has hung up
	}
}

// bare sends the command's number without a handshake.
func (r *rig) bare() bool {
	nc, begun := r.serve(true)
	conn := cedar.NewConn(nc, cedar.Limits{})
	conn.PutInt(int64(r.cmd.Number))
	if !r.cmd.Empty {
		conn.PutString("payload")
	}
	_ = conn.EndMessage()
	return begun()
}

// negotiated makes a new session, for the command itself or for one before it
// on the same connection.
func (r *rig) negotiated(authenticate, first bool) bool {
	mode := "NEVER"
	if authenticate {
		mode = "REQUIRED"
	}
	text := "SEC_CLIENT_AUTHENTICATION = " + mode + "\n"
	settings, err := security.SettingsFrom(parse(r.t, text), security.Sources{Subsystem: "STARTD"})
	if err != nil {
		r.t.Fatal(err)
	}
	a := &authn.Client{}
	a.UIDDomain, a.TrustDomain, a.PasswordFile, a.Files = domain, domain, "/pool", secrets{}
	var begun func() bool
	c := &security.Client{
		Sessions: security.NewSessions(r.server.Clock, 10), Clock: r.server.Clock, Version: version, Subsystem: "STARTD", PID: 18,
		Log: slog.New(slog.DiscardHandler), Address: func() string { return "<10.9.9.9:9618>" },
		Dial: func(context.Context, cedar.Sinful) (net.Conn, error) {
			var nc net.Conn
			nc, begun = r.serve(first)
			return nc, nil
		},
	}
	c.Configure(settings, a)
	to, err := cedar.ParseSinful("<10.0.0.1:9618>")
	if err != nil {
		r.t.Fatal(err)
	}
	command := r.cmd.Number
	if !first {
		command = before
	}
	conn, _, err := c.Command(context.Background(), to, command, security.Options{Authenticate: authenticate})
	if err == nil {
		if !first {
			conn.PutString("payload")
			_ = conn.EndMessage()
			conn.PutInt(int64(r.cmd.Number))
			if r.cmd.Empty {
				_ = conn.EndMessage()
			}
		}
		r.sendPayload(conn)
	}
	return begun()
}

// resumed takes a session up. A nil key is that of somebody who knows no more
// than the id.
func (r *rig) resumed(id string, k security.Key, answer bool) bool {
	nc, begun := r.serve(true)
	conn := cedar.NewConn(nc, cedar.Limits{})
	conn.PutInt(command.DCAuthenticate)
	conn.PutAd(r.request(id, answer), cedar.AdOptions{})
	if err := conn.EndMessage(); err != nil {
		r.t.Fatal(err)
	}
	if answer {
		// The answer is in clear, and the server may have hung up without one.
		if _, err := conn.Ad(cedar.AdOptions{}); err != nil || conn.EndOfMessage() != nil {
			return begun()
		}
	}
	if k != nil {
		if err := conn.EnableAES(k); err != nil {
			r.t.Fatal(err)
		}
	}
	r.sendPayload(conn)
	return begun()
}

func (r *rig) request(id string, answer bool) *classad.Ad {
	ad := classad.NewAd()
	ad.SetString("UseSession", "YES")
	ad.SetString("Sid", id)
	ad.SetInt("Command", int64(r.cmd.Number))
	ad.SetString("CryptoMethods", "AES")
	ad.SetString("Nonce", "bm9uY2Ugb2YgMzMgYnl0ZXMgaW4gYmFzZTY0IG9mIG91cnM=")
	ad.SetBool("ResumeResponse", answer)
	return ad
}

// datagram sends the command in one: in clear and without a session, or of a
// session, protected as protect does.
func (r *rig) datagram(id string, protect func(*cedar.Datagram)) bool {
	form := cedar.Plain
	if protect != nil {
		form = cedar.Counted
	}
	b, err := cedar.WriteForm(form, version, func(c *cedar.Conn) {
		if id == "" {
			c.PutInt(int64(r.cmd.Number))
		} else {
			c.PutInt(command.DCAuthenticate)
			c.PutAd(r.request(id, false), cedar.AdOptions{})
		}
		if !r.cmd.Empty {
			c.PutString("payload")
		}
	})
	if err != nil {
		r.t.Fatal(err)
	}
	m := cedar.Datagram{Payload: b}
	if protect != nil {
		protect(&m)
	}
	req, conn, err := r.server.Datagram(context.Background(), r.from, m)
	if err == nil && !r.cmd.Empty {
		err = payload(conn)
	}
	return err == nil && req.Command == r.cmd.Number
}
