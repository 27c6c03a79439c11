// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/errs"
)

// A peer that says nothing, stops half way or dribbles loses the connection
// in time, and only its own.
func TestSlowPeers(t *testing.T) {
	t.Parallel()
	hello := cedartest.Encode(t, false, func(c *cedar.Conn) {
		c.PutInt(command.DCAuthenticate)
		var ad literals
		ad.set("Command", int64(cmdQuery))
		put(c, ad)
	})
	head := slices.Clip([]byte{1, 0, 0, byte(len(hello) >> 8), byte(len(hello))})
	var bytewise, endless [][]byte
	for _, b := range append(head, hello...) {
		bytewise = append(bytewise, []byte{b})
	}
	for range 500 {
		endless = append(endless, []byte{0, 0, 0, 0, 1, 'x'})
	}
	// What the peers say, a second after each piece.
	for name, says := range map[string][][]byte{
		"silent": nil, "half a header": {head[:3]}, "half an ad": {append(head, hello[:10]...)}, "a byte a second": bytewise, "packets without an end": endless,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, open, "")
				mine, yours := cedartest.Pipe()
				begin := time.Now()
				w.serve(yours)
				var peer sync.WaitGroup
				peer.Go(func() {
					for _, piece := range says {
						if _, err := mine.Write(piece); err != nil {
							return
						}
						time.Sleep(time.Second)
					}
				})
				defer peer.Wait()
				out := <-w.requests
				took := time.Since(begin)
				if !errs.Is(out.err, errs.Expired) || took != 20*time.Second {
					t.Errorf("after %v: %v", took, out.err)
				}
				_ = mine.Close()
				if _, _, _, err := w.open(cmdQuery, Options{}); err != nil {
					t.Errorf("others are not served: %v", err)
				}
			})
		})
	}
}

// A server that goes silent in any step costs the client its deadline, no
// more.
func TestSilentServer(t *testing.T) {
	t.Parallel()
	for steps := range 3 {
		t.Run(fmt.Sprint(steps), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, open, "")
				w.client.Dial = func(context.Context, cedar.Sinful) (net.Conn, error) {
					mine, yours := cedartest.Pipe()
					go func() {
						conn := cedar.NewConn(yours, cedar.Limits{})
						for range steps {
							if _, err := conn.Rest(); err != nil {
								return
							}
							conn.DiscardMessage()
							conn.PutInt(0)
							_ = conn.EndMessage()
						}
						_, _ = io.Copy(io.Discard, yours)
					}()
					return mine, nil
				}
				begin := time.Now()
				_, _, _, err := w.open(cmdQuery, Options{})
				if err == nil || time.Since(begin) > 2*time.Minute {
					t.Errorf("after %v: %v", time.Since(begin), err)
				}
			})
		})
	}
}

// The context of the caller ends a handshake at once.
func TestCancel(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, open, "")
		ctx, cancel := context.WithCancel(t.Context())
		mine, yours := cedartest.Pipe()
		done := make(chan error, 1)
		go func() {
			_, err := w.server.Handshake(ctx, cedar.NewConn(yours, cedar.Limits{}), w.from)
			done <- err
		}()
		synctest.Wait()
		begin := time.Now()
		cancel()
		if err := <-done; err == nil || time.Since(begin) != 0 {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		_ = mine.Close()
	})
}

// First messages that make no sense are refused, each with its reason, and
// nothing acts.
func TestWrongFirstMessages(t *testing.T) {
	t.Parallel()
	ad := func(change func(ad *literals)) func(c *cedar.Conn) {
		return func(c *cedar.Conn) {
			var l literals
			l.set("Command", int64(cmdQuery))
			l.set("Enact", "NO")
			l.set("NewSession", "YES")
			l.set("AuthMethods", "FS")
			l.set("CryptoMethods", "AES")
			l.set("Authentication", "OPTIONAL")
			l.set("Encryption", "OPTIONAL")
			l.set("Integrity", "OPTIONAL")
			l.set("SessionDuration", "60")
			change(&l)
			c.PutInt(command.DCAuthenticate)
			put(c, l)
		}
	}
	set := func(name string, value any) func(*literals) {
		return func(l *literals) {
			for i := range *l {
				if (*l)[i].name == name {
					(*l)[i].value = value
					return
				}
			}
			l.set(name, value)
		}
	}
	for name, test := range map[string]struct {
		put  func(c *cedar.Conn)
		kind errs.Kind
	}{
		"no command":            {ad(set("Command", "five")), errs.Invalid},
		"a negative command":    {ad(set("Command", int64(-1))), errs.NotFound},
		"a command too large":   {ad(set("Command", int64(1<<40+cmdQuery))), errs.NotFound},
		"no session":            {ad(set("NewSession", "NO")), errs.Invalid},
		"no reply wanted":       {ad(set("Enact", "YES")), errs.Invalid},
		"a cookie":              {ad(set("Cookie", "x")), errs.Denied},
		"no session id":         {ad(set("UseSession", "YES")), errs.NotFound},
		"the id of the client":  {ad(func(l *literals) { set("UseSession", "YES")(l); set("Sid", "a\x01b")(l) }), errs.NotFound},
		"a wrong point":         {ad(set("ECDHPublicKey", "AAAA")), errs.Invalid},
		"encryption, no key":    {ad(set("Encryption", "REQUIRED")), errs.Denied},
		"an unknown cipher":     {ad(func(l *literals) { set("Encryption", "REQUIRED")(l); set("CryptoMethods", "ROT13")(l) }), errs.Denied},
		"an unknown wish":       {ad(set("Authentication", "WHATEVER")), errs.Other},
		"the number only":       {func(c *cedar.Conn) { c.PutInt(command.DCAuthenticate) }, errs.Invalid},
		"a negative number":     {func(c *cedar.Conn) { c.PutInt(-5) }, errs.NotFound},
		"a byte":                {func(c *cedar.Conn) { c.PutByte(0) }, errs.Invalid},
		"a sec query of itself": {ad(set("Command", int64(command.DCSecQuery))), errs.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, open, "")
			mine, yours := cedartest.Pipe()
			w.serve(yours)
			conn := cedar.NewConn(mine, cedar.Limits{})
			test.put(conn)
			if err := conn.EndMessage(); err != nil {
				t.Fatal(err)
			}
			out := <-w.requests
			if errs.KindOf(out.err) != test.kind {
				t.Errorf("err = %v (%v), want %v", out.err, errs.KindOf(out.err), test.kind)
			}
			_ = mine.Close()
		})
	}
}

// tape records what the client writes.
type tape struct {
	net.Conn
	mu   sync.Mutex
	data []byte
}

func (c *tape) Write(b []byte) (int, error) {
	c.mu.Lock()
	c.data = append(c.data, b...)
	c.mu.Unlock()
	return c.Conn.Write(b)
}

// What was recorded of a resumed session is of no use to who plays it again,
// with an answer of ours in it or without.
func TestReplayedResumption(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"true", "false"} {
		t.Run(answer, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, open, "SEC_ENABLE_RESUME_SERVER_RESPONSE = "+answer+"\n")
			if _, _, _, err := w.open(cmdQuery, Options{}); err != nil {
				t.Fatal(err)
			}
			var heard *tape
			w.tap = func(nc net.Conn) net.Conn { heard = &tape{Conn: nc}; return heard }
			conn, _, out, err := w.open(cmdQuery, Options{})
			if err != nil || !out.r.Resumed {
				t.Fatal(err)
			}
			w.talk(conn, out)

			mine, yours := cedartest.Pipe()
			w.serve(yours)
			if _, err := mine.Write(heard.data); err != nil {
				t.Fatal(err)
			}
			replayed := <-w.requests
			if replayed.err == nil {
				if s, err := replayed.conn.String(); err == nil {
					t.Errorf("the payload %q acts a second time", s)
				}
			} else if answer == "true" {
				t.Errorf("err = %v, want the first packet to fail", replayed.err)
			}
			_ = mine.Close()
			conn, _, out, err = w.open(cmdQuery, Options{})
			if err != nil || !out.r.Resumed {
				t.Fatalf("the session is spoilt: %v", err)
			}
			w.talk(conn, out)
		})
	}
}

// A session is checked anew when it is taken up: from another address, and
// after the lists have changed.
func TestResumptionIsAuthorized(t *testing.T) {
	t.Parallel()
	const claimToBe = "SEC_DEFAULT_AUTHENTICATION = REQUIRED\nSEC_DEFAULT_AUTHENTICATION_METHODS = CLAIMTOBE\n"
	w := newWorld(t, open+claimToBe, claimToBe)
	if _, _, _, err := w.open(cmdClaim, Options{}); err != nil {
		t.Fatal(err)
	}
	w.from = netip.MustParseAddrPort("10.8.0.1:999")
	if _, _, out, err := w.open(cmdClaim, Options{}); err != nil || !errs.Is(out.err, errs.Denied) || !strings.Contains(out.err.Error(), "10.8.0.1") {
		t.Errorf("from a foreign address: %+v, %v, %v", out.r, out.err, err)
	}
	w.from = netip.MustParseAddrPort("10.9.0.1:999")
	if _, _, out, err := w.open(cmdClaim, Options{}); err != nil || out.err != nil {
		t.Errorf("from an allowed address: %v, %v", out.err, err)
	}
	w.configureServer("ALLOW_READ = *\n" + claimToBe)
	if _, _, out, err := w.open(cmdClaim, Options{}); err != nil || !errs.Is(out.err, errs.Denied) {
		t.Errorf("after a reload: %v, %v", out.err, err)
	}
}

// CLAIMTOBE opens only the level it was asked for.
func TestClaimToBeIsLimited(t *testing.T) {
	t.Parallel()
	const claimToBe = "SEC_DEFAULT_AUTHENTICATION = REQUIRED\nSEC_DEFAULT_AUTHENTICATION_METHODS = CLAIMTOBE\nALLOW_ADMINISTRATOR = *\nALLOW_DAEMON = *\n"
	w := newWorld(t, claimToBe, claimToBe)
	_, _, out, err := w.open(cmdClaim, Options{})
	if err != nil {
		t.Fatal(err)
	}
	conn, _, out2, err := w.open(cmdClaim, Options{})
	if err != nil || !out2.r.Resumed {
		t.Fatal(err)
	}
	w.talk(conn, out2)
	Follow(conn, cmdOff)
	if err := conn.EndMessage(); err != nil {
		t.Fatal(err)
	}
	if _, err := w.server.Next(t.Context(), out2.conn, out2.r); !errs.Is(err, errs.Denied) || !strings.Contains(err.Error(), "limited to DAEMON") {
		t.Errorf("err = %v; peer %+v", err, out.r.Peer)
	}
}

// A server cannot pass off a session of its own as one of ours, nor come back
// with it.
func TestServerChosenID(t *testing.T) {
	t.Parallel()
	w := newWorld(t, open, "")
	id := claim.NewID(serverText, 1795188226, 1, claim.Secret(DefaultInfo("25.14.0").String()+keyText))
	ours := must(w.client.Sessions.AddClaim(id))
	w.server.arrange = func(ad *literals) {
		for i := range *ad {
			if (*ad)[i].name == "Sid" {
				(*ad)[i].value = id.Public
			}
		}
	}
	_, s, _, err := w.open(cmdQuery, Options{})
	if err != nil || s.ID != id.Public {
		t.Fatal(s, err)
	}
	if got, ok := w.client.Sessions.Get(id.Public); !ok || got != ours {
		t.Error("the session of the claim was replaced")
	}
	// As a server, the client side knows no session of the server's choosing.
	w.client.Sessions.Forget(id.Public)
	if _, ok := w.client.Sessions.use(id.Public); ok {
		t.Error("a session that we made as a client may be taken up by the server")
	}
}
