// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"bytes"
	"context"
	"net"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
)

// deaf takes what is written and says what it was given.
type deaf struct{ net.Conn }

func (d deaf) Write(b []byte) (int, error) { return len(b), nil }

// saying returns a connection to a peer that says b and hangs up.
func saying(b []byte) *cedar.Conn {
	mine, yours := cedartest.Pipe()
	_, _ = yours.Write(b)
	_ = yours.Close()
	return cedar.NewConn(deaf{mine}, cedar.Limits{})
}

// said are the bytes of a peer that says what put puts.
func said(t testing.TB, put func(conn *cedar.Conn, end func())) []byte {
	mine, _ := cedartest.Pipe()
	heard := &tape{Conn: mine}
	conn := cedar.NewConn(heard, cedar.Limits{})
	put(conn, func() {
		if err := conn.EndMessage(); err != nil {
			t.Fatal(err)
		}
	})
	return heard.data
}

// replies are what a server says to a client that wants a new session.
func replies(t testing.TB, wants string, change func(policy, end *literals)) []byte {
	var policy, end literals
	for _, name := range []string{"Authentication", "Encryption", "Integrity"} {
		policy.set(name, wants)
	}
	policy.set("AuthMethods", "PASSWORD")
	policy.set("SessionDuration", "60")
	policy.set("RemoteVersion", testVersion)
	end.set("ReturnCode", "AUTHORIZED")
	end.set("Sid", "ep:17:1:1:ab")
	end.set("User", Unauthenticated)
	end.set("ValidCommands", "5,442")
	change(&policy, &end)
	return said(t, func(conn *cedar.Conn, done func()) {
		put(conn, policy)
		done()
		put(conn, end)
		done()
	})
}

// FuzzClient lets anything play the server. A client that demands to know its
// server, or that talks to it under a key, never takes it for one that it
// knows; one that demands nothing gets a session with nobody.
func FuzzClient(f *testing.F) {
	same := func(_, _ *literals) {}
	for _, b := range [][]byte{
		replies(f, "NO", same), replies(f, "YES", same),
		replies(f, "NO", func(policy, _ *literals) {
			policy.set("CryptoMethods", "AES")
			policy.set("ECDHPublicKey", "AAAA")
		}),
		replies(f, "NO", func(_, end *literals) { *end = nil }),
		replies(f, "NO", func(_, end *literals) { (*end)[1].value = strings.Repeat("x", maxName+1) }),
		replies(f, "NO", func(_, end *literals) { (*end)[3].value = "5,-1,x" }),
		replies(f, "NO", func(_, end *literals) { (*end)[0].value = "DENIED" }),
		said(f, func(conn *cedar.Conn, done func()) {
			var ad literals
			ad.set("ReturnCode", "SID_NOT_FOUND")
			put(conn, ad)
			done()
		}),
	} {
		for _, resume := range []bool{false, true} {
			f.Add(b, resume)
		}
	}
	for _, v := range cedartest.LoadDir(f, vectors) {
		for _, c := range v.Connections[:min(2, len(v.Connections))] {
			var b []byte
			for _, m := range c.From(cedartest.Server) {
				for _, p := range m.Packets {
					b = append(b, p...)
				}
			}
			if len(b) > 0 && len(b) < 16<<10 {
				f.Add(b, false)
			}
		}
	}
	const methods = "SEC_DEFAULT_AUTHENTICATION_METHODS = PASSWORD, TOKEN, SSL\n"
	open := newWorld(f, "", methods).client
	strict := newWorld(f, "", methods+"SEC_DEFAULT_AUTHENTICATION = REQUIRED\n").client
	sealed := newWorld(f, "", methods+"SEC_DEFAULT_ENCRYPTION = REQUIRED\n").client
	f.Fuzz(func(t *testing.T, b []byte, resume bool) {
		for _, c := range []*Client{open, strict, sealed} {
			c.Log, c.Sessions = nil, NewSessions(c.Clock, 50)
			o := Options{}
			if resume {
				o.Session = "ours"
				s := &Session{ID: o.Session, Key: heldKey, Peer: unauthenticatedPeer(), Address: serverText, PeerVersion: testVersion, Negotiated: true}
				if err := c.Sessions.Add(s, 0); err != nil {
					t.Fatal(err)
				}
			}
			conn := saying(b)
			s, err := c.Open(context.Background(), conn, serverAddress, cmdQuery, o)
			switch {
			case err != nil:
			case resume:
				if !bytes.Equal(s.Key, heldKey) || !conn.Encrypted() || conn.Proven() {
					t.Errorf("the session %q is taken up, encrypted %t, shown by the server %t", s.ID, conn.Encrypted(), conn.Proven())
				}
			case c != open:
				t.Errorf("a session %q with %+v, of which more was demanded", s.ID, s.Peer)
			case s.Peer.Authenticated() || s.Key != nil || s.ID == "" || len(s.ID) > maxName:
				t.Errorf("a session %q with %+v", s.ID, s.Peer)
			}
		}
	})
}

// keeper keeps what an authentication came to.
type keeper struct {
	Authenticator
	last authn.Result
}

func (k *keeper) Authenticate(ctx context.Context, conn *cedar.Conn, p authn.Peer, methods []authn.Method) (authn.Result, error) {
	r, err := k.Authenticator.Authenticate(ctx, conn, p, methods)
	k.last = r
	return r, err
}

// FuzzKeyMessage reads any message about keys, after a method that can hide one.
// What is taken for a key is one, and no more of it is read than a key needs.
func FuzzKeyMessage(f *testing.F) {
	const methods = "SEC_DEFAULT_AUTHENTICATION = REQUIRED\nSEC_DEFAULT_AUTHENTICATION_METHODS = PASSWORD\n"
	w := newWorld(f, "ALLOW_READ = *\n"+methods, methods)
	k := &keeper{Authenticator: w.client.current.Load().authn}
	w.client.Configure(w.client.current.Load().settings, k)
	if _, _, _, err := w.open(cmdQuery, Options{}); err != nil || !k.last.Wraps() {
		f.Fatal(err)
	}
	wrapped, err := k.last.Wrap(authn.Secret(heldKey))
	if err != nil {
		f.Fatal(err)
	}
	message := func(has int64, b []byte, head ...int64) []byte {
		return said(f, func(conn *cedar.Conn, done func()) {
			conn.PutInt(has)
			done()
			for _, n := range head {
				conn.PutInt(n)
			}
			conn.PutBytes(b)
			done()
		})
	}
	good := message(1, wrapped, keySize, wireAES, 60, int64(len(wrapped)))
	for _, b := range [][]byte{
		good, message(0, wrapped), message(2, wrapped), message(1, nil, keySize), message(1, wrapped, keySize, wireAES, 60, 1<<20),
		message(1, wrapped, keySize, 1, 60, int64(len(wrapped))), message(1, wrapped[:8], keySize, wireAES, 60, 8), {},
	} {
		f.Add(b)
	}
	h := &clientShake{c: w.client, f: w.client.current.Load(), address: serverText}
	h.conn = saying(good)
	if key, err := h.takeKey(k.last); err != nil || !bytes.Equal(key, heldKey) {
		f.Fatalf("a key of %d bytes, %v", len(key), err)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h := &clientShake{c: w.client, f: w.client.current.Load(), ctx: t.Context(), conn: saying(b), address: serverText}
		key, err := h.takeKey(k.last)
		if key != nil && (err != nil || len(key) != keySize) {
			t.Errorf("a key of %d bytes, %v", len(key), err)
		}
		h.conn = saying(b)
		if key, _ := h.takeKey(authn.Result{}); key != nil {
			t.Error("a key that nothing hid is taken")
		}
	})
}
