// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cedar_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/errs"
)

// The request is the recorded one, and what follows is encrypted as if it had
// never been sent.
func TestConnectSharedPort(t *testing.T) {
	t.Parallel()
	c := cedartest.Load(t, vectors+"/shared-port.json").Connections[0]
	p := &cedartest.Player{Conn: c, Role: cedartest.Server, Exact: true}
	nc, wait := p.Start(t)
	conn := cedar.NewConn(nc, cedar.Limits{})
	conn.SetRand(c.Rand(cedartest.Client))
	request := cedar.SharedPortRequest{ID: *c.Messages[0].Items[1].Str, Client: *c.Messages[0].Items[2].Str, Deadline: -1}
	if err := conn.ConnectSharedPort(request); err != nil {
		t.Fatal(err)
	}
	for _, m := range c.Messages[1:] {
		var err error
		switch {
		case m.Event == cedartest.EncryptionOn:
			err = conn.EnableAES(c.Session.Key)
		case m.Event != "":
		case m.From == cedartest.Client:
			conn.PutBytes(m.Plaintext)
			err = conn.EndMessage()
		default:
			_, err = conn.Rest()
			conn.DiscardMessage()
		}
		if err != nil {
			t.Fatalf("%s: %v", m.Note, err)
		}
	}
	_ = conn.Close()
	wait()
}

func TestSharedPortRequest(t *testing.T) {
	t.Parallel()
	for _, want := range []cedar.SharedPortRequest{
		{ID: "startd_1_ab12", Client: "TOOL wirev", Deadline: -time.Second},
		{ID: "self", Client: "", Deadline: 20 * time.Second},
	} {
		a, b := pair(t, false)
		if err := a.ConnectSharedPort(want); err != nil {
			t.Fatal(err)
		}
		number, err := b.Int()
		check(t, number, command.SharedPortConnect, err)
		got, err := b.SharedPortRequest()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
	}
	for id, want := range map[string]bool{
		"collector": true, "startd_1234_ab12": true, "a.b-c_D": true, "": false, ".": false, "..": false, "a/b": false,
		"a b": false, "a\x00": false, strings.Repeat("a", 101): false, "é": false,
	} {
		if cedar.ValidSharedPortID(id) != want {
			t.Errorf("%q may be an id: want %v", id, want)
		}
		a, _ := pair(t, false)
		if err := a.ConnectSharedPort(cedar.SharedPortRequest{ID: id}); (err == nil) != want {
			t.Errorf("%q: %v", id, err)
		}
	}
	for name, put := range map[string]func(c *cedar.Conn){
		"path as id": func(c *cedar.Conn) { c.PutString("../x"); c.PutString(""); c.PutInt(-1); c.PutInt(0) },
		"many args":  func(c *cedar.Conn) { c.PutString("x"); c.PutString(""); c.PutInt(-1); c.PutInt(1 << 40) },
		"item left":  func(c *cedar.Conn) { c.PutString("x"); c.PutString(""); c.PutInt(-1); c.PutInt(0); c.PutInt(0) },
		"cut off":    func(c *cedar.Conn) { c.PutString("x"); c.PutString("") },
	} {
		r := cedartest.Reader(t, cedartest.Encode(t, false, put), false)
		if _, err := r.SharedPortRequest(); !errs.Is(err, errs.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Reading the announcement takes nothing of what follows it.
func TestSocketFollows(t *testing.T) {
	t.Parallel()
	x, y := cedartest.Pipe()
	a, b := cedar.NewConn(x, cedar.Limits{}), cedar.NewConn(y, cedar.Limits{})
	if err := a.PassSocket(); err != nil {
		t.Fatal(err)
	}
	if _, err := x.Write([]byte("!")); err != nil {
		t.Fatal(err)
	}
	if err := b.SocketFollows(); err != nil {
		t.Fatal(err)
	}
	rest := make([]byte, 1)
	if _, err := b.NetConn().Read(rest); err != nil || rest[0] != '!' {
		t.Errorf("%q, %v", rest, err)
	}
	a.PutInt(command.SharedPortConnect)
	if err := a.EndMessage(); err != nil {
		t.Fatal(err)
	}
	if err := b.SocketFollows(); !errs.Is(err, errs.Invalid) {
		t.Errorf("another command: %v", err)
	}
}
