// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/claim"
)

// anyone lets every peer at every level, so that nothing but a missing proof
// keeps a request from acting.
const anyone = "ALLOW_READ = *\nALLOW_WRITE = *\nALLOW_DAEMON = *\nALLOW_ADMINISTRATOR = *\nALLOW_CONFIG = *\nALLOW_NEGOTIATOR = *\n"

// The sessions that the server of FuzzServer knows, by their ids. Their key is
// heldKey, which only the seeds use.
var heldKey = Key(strings.Repeat("k", keySize))

func heldSessions(here, elsewhere netip.Addr) []*Session {
	held := func(id string, p Peer, negotiated bool, from netip.Addr) *Session {
		return &Session{ID: id, Key: heldKey, Peer: p, PeerVersion: testVersion, Negotiated: negotiated, From: from}
	}
	keyless := held("keyless", unauthenticatedPeer(), true, here)
	keyless.Key = nil
	return []*Session{
		held("negotiated", Peer{User: "condor@password", Method: "PASSWORD"}, true, here),
		held("nobody", unauthenticatedPeer(), true, here),
		held("elsewhere", Peer{User: "condor@password", Method: "PASSWORD"}, true, elsewhere),
		held("claim", Peer{User: SubmitSide, Method: MethodMatch}, false, here),
		held("family", Peer{User: Family, Method: MethodFamily}, false, here),
		keyless,
	}
}

// mayAct reports whether a request that was let in may have its effects for a
// peer which has shown no more than conn and session tell. resumed says that
// its connection began with a session that was taken up, first that no
// request came before it.
func mayAct(cmd command.Row, r *Request, conn *cedar.Conn, resumed, first bool) bool {
	s := r.Session
	switch {
	case !cmd.Acts() || r.Done || conn.Proven():
		return true
	case s == nil:
		return r.Bare && !r.Peer.Authenticated()
	case !resumed, len(s.Key) == 0:
		return !s.Peer.Authenticated() // no name is borrowed
	case !first || !cmd.Empty:
		return false
	case s.Negotiated: // an order without a payload: the id and the address are all there is
		return s.From == r.Addr.Addr()
	}
	return s.Peer.Method != MethodFamily || r.Addr.Addr().IsLoopback()
}

// heardFrom are the bytes of a client that takes a session up for a command
// without waiting for an answer, under a key or none, and then gives another
// command.
func heardFrom(t testing.TB, id string, command int, key Key, next int) []byte {
	mine, _ := cedartest.Pipe()
	heard := &tape{Conn: mine}
	conn := cedar.NewConn(heard, cedar.Limits{})
	if err := resumption(conn, id, command, false, "nonce of "+id); err != nil {
		t.Fatal(err)
	}
	if key != nil {
		if err := conn.EnableAES(key); err != nil {
			t.Fatal(err)
		}
	}
	conn.PutString("payload")
	if err := conn.EndMessage(); err != nil {
		t.Fatal(err)
	}
	Follow(conn, next)
	if err := conn.EndMessage(); err != nil {
		t.Fatal(err)
	}
	return heard.data
}

// fuzzed is a server that anybody may give commands, and the addresses its
// peers come from.
type fuzzed struct {
	*world
	far, near netip.AddrPort
	// Commands of each kind.
	read, order, bare int
}

func newFuzzed(t testing.TB) *fuzzed {
	w := &fuzzed{world: newWorld(t, anyone, ""), far: netip.MustParseAddrPort("10.9.9.9:40000"), near: netip.MustParseAddrPort("127.0.0.1:40000")}
	w.server.Commands, w.server.Log = proofCommands(), nil // a log of every input would fill the memory
	for n, c := range w.server.Commands {
		switch {
		case c.Level == Read && !c.Empty:
			w.read = n
		case c.Level == Administrator && !c.Empty:
			w.order = n
		case c.Level == Administrator:
			w.bare = n
		}
	}
	return w
}

// begun has the server hear b and returns what was begun, in order. What one
// peer did is gone before the next. It fails the test when something acts that
// may not.
func (w *fuzzed) begun(t *testing.T, b []byte, from netip.AddrPort) (names []string) {
	w.server.Sessions = NewSessions(w.clock, 50)
	must(w.server.Sessions.AddClaim(claim.NewID(serverText, 1, 1, claim.Secret(DefaultInfo("25.14.0").String()+keyText))))
	for _, s := range heldSessions(w.far.Addr(), w.near.Addr()) {
		if err := w.server.Sessions.Add(s, 0); err != nil {
			t.Fatal(err)
		}
	}
	mine, yours := cedartest.Pipe()
	_, _ = mine.Write(b)
	_ = mine.Close()
	conn := cedar.NewConn(yours, cedar.Limits{})
	r, err := w.server.Handshake(t.Context(), conn, from)
	resumed := err == nil && r.Resumed
	for n := 0; err == nil && n < 4; n++ {
		cmd := w.server.Commands[r.Command]
		if !mayAct(cmd, r, conn, resumed, n == 0) {
			t.Fatalf("%s acts as request %d from %v under session %q, whose key was not shown", cmd.Name, n+1, r.Addr, r.Session.ID)
		}
		if r.Done {
			break
		}
		names = append(names, cmd.Name)
		if !cmd.Empty {
			_, _ = conn.Rest()
			conn.DiscardMessage()
		}
		r, err = w.server.Next(t.Context(), conn, r)
	}
	return names
}

// Any bytes at all end a handshake without a panic, and without a request that
// acts in the name of a session whose key was not shown: not the first on the
// connection, and none after it.
func FuzzServer(f *testing.F) {
	for _, v := range cedartest.LoadDir(f, vectors) {
		for _, c := range v.Connections[:min(2, len(v.Connections))] {
			var b []byte
			for _, m := range c.From(cedartest.Client) {
				for _, p := range m.Packets {
					b = append(b, p...)
				}
			}
			if len(b) < 16<<10 {
				f.Add(b, false)
			}
		}
	}
	w := newFuzzed(f)
	for _, s := range heldSessions(w.far.Addr(), w.near.Addr()) {
		for _, key := range []Key{heldKey, Key(strings.Repeat("w", keySize)), nil} {
			for _, command := range []int{w.read, w.order, w.bare} {
				f.Add(heardFrom(f, s.ID, command, key, w.order), false)
				f.Add(heardFrom(f, s.ID, command, key, w.bare), true)
			}
		}
	}
	f.Fuzz(func(t *testing.T, b []byte, local bool) {
		from := w.far
		if local {
			from = w.near
		}
		w.begun(t, b, from)
	})
}

// TestFuzzServerSeeds holds the seeds of FuzzServer to what they are there for:
// who has the key acts with both requests, and who has not with neither.
func TestFuzzServerSeeds(t *testing.T) {
	t.Parallel()
	w := newFuzzed(t)
	for _, tt := range []struct {
		id   string
		key  Key
		from netip.AddrPort
		want string
	}{
		{"negotiated", heldKey, w.far, "ADMINISTRATOR_EMPTY_false ADMINISTRATOR_EMPTY_false"},
		{"elsewhere", heldKey, w.far, "ADMINISTRATOR_EMPTY_false ADMINISTRATOR_EMPTY_false"},
		{"claim", heldKey, w.far, "ADMINISTRATOR_EMPTY_false ADMINISTRATOR_EMPTY_false"},
		{"family", heldKey, w.near, "ADMINISTRATOR_EMPTY_false ADMINISTRATOR_EMPTY_false"},
		{"family", heldKey, w.far, ""},
		{"keyless", nil, w.far, ""},
		{"negotiated", nil, w.far, ""},
		{"claim", Key(strings.Repeat("w", keySize)), w.far, ""},
	} {
		if got := strings.Join(w.begun(t, heardFrom(t, tt.id, w.order, tt.key, w.order), tt.from), " "); got != tt.want {
			t.Errorf("under %q from %v %q is begun, want %q", tt.id, tt.from, got, tt.want)
		}
	}
}
