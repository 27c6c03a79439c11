// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/cedartest"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/errs"
)

// proofCommands are one of each kind: at every level there is one with a payload
// and one without.
func proofCommands() Commands {
	all := Commands{}
	n := 1000
	for l := range levels {
		if l == Default || l == ClientLevel {
			continue
		}
		for _, empty := range []bool{false, true} {
			n++
			all[n] = command.Row{Number: n, Name: fmt.Sprintf("%v_EMPTY_%t", l, empty), Terms: command.Terms{Level: l, Empty: empty}}
		}
	}
	return all
}

// resumption is the first message of somebody who takes up a session.
func resumption(conn *cedar.Conn, id string, number int, answer bool, nonce string) error {
	conn.PutInt(command.DCAuthenticate)
	var ad literals
	ad.set("UseSession", "YES")
	ad.set("Sid", id)
	ad.set("Command", int64(number))
	ad.set("CryptoMethods", "AES")
	ad.set("ResumeResponse", answer)
	ad.set("Nonce", nonce)
	put(conn, ad)
	return conn.EndMessage()
}

// Who knows the id of a session and not its key begins no command above READ
// with it, whatever the session, and changes nothing of the session; its holder
// begins all that its level allows. Orders without a payload cannot prove the
// key: a session that was negotiated goes by an id which cannot be guessed and
// by the address that made it, one that was handed over by such an id, or by
// this machine.
func TestNothingBeforeProof(t *testing.T) {
	t.Parallel()
	const config = "ALLOW_READ = *\nALLOW_WRITE = *\nALLOW_DAEMON = *\nALLOW_ADMINISTRATOR = *\nALLOW_CONFIG = *\nALLOW_NEGOTIATOR = *\n"
	near, far, other := netip.MustParseAddrPort("127.0.0.1:40000"), netip.MustParseAddrPort("10.9.9.9:40000"), netip.MustParseAddrPort("10.9.9.8:40000")
	for _, session := range []struct {
		name       string
		peer       Peer
		negotiated bool
		from       netip.AddrPort
		// emptyActs says that an order without a payload is begun for who knows the id.
		emptyActs bool
		refused   bool // for everybody
	}{
		{"negotiated", Peer{User: "condor@password", Method: "PASSWORD"}, true, far, true, false},
		{"negotiated without a name", unauthenticatedPeer(), true, far, true, false},
		{"negotiated elsewhere", Peer{User: "condor@password", Method: "PASSWORD"}, true, other, false, false},
		{"claim", Peer{User: SubmitSide, Method: MethodMatch}, false, far, true, false},
		{"capability", Peer{User: CollectorSide, Method: MethodMatch}, false, far, true, false},
		{"family", Peer{User: Family, Method: MethodFamily}, false, near, true, false},
		{"family from elsewhere", Peer{User: Family, Method: MethodFamily}, false, far, false, true},
		{"parent", Peer{User: Parent, Method: MethodFamily}, false, near, true, false},
		{"parent from elsewhere", Peer{User: Parent, Method: MethodFamily}, false, far, false, true},
	} {
		for number, cmd := range proofCommands() {
			for _, answer := range []bool{true, false} {
				for _, key := range []string{"right", "wrong", "clear"} {
					t.Run(fmt.Sprintf("%s/%s/answer %t/%s", session.name, cmd.Name, answer, key), func(t *testing.T) {
						t.Parallel()
						w := newWorld(t, config, "")
						w.from = session.from
						w.server.Commands = proofCommands()
						right := Key(strings.Repeat("k", keySize))
						s := &Session{ID: "the id", Key: right, Peer: session.peer, PeerVersion: testVersion, Negotiated: session.negotiated, From: far.Addr()}
						if err := w.server.Sessions.Add(s, 0); err != nil {
							t.Fatal(err)
						}
						mine, yours := cedartest.Pipe()
						w.serve(yours)
						conn := cedar.NewConn(mine, cedar.Limits{})
						if err := resumption(conn, "the id", number, answer, "nonce of the peer"); err != nil {
							t.Fatal(err)
						}
						if answer {
							if _, err := getMessage(conn); err != nil {
								t.Fatal(err)
							}
						}
						switch key {
						case "right":
							_ = conn.EnableAES(right)
						case "wrong":
							_ = conn.EnableAES(Key(strings.Repeat("w", keySize)))
						}
						if !cmd.Empty {
							w.payload(conn)
						}
						_ = mine.Close()
						out := <-w.requests
						acts := cmd.Level != Allow && cmd.Level != Read
						begun := out.err == nil
						switch {
						case session.refused && begun:
							t.Fatalf("%+v is begun from another machine", out.r)
						case session.refused:
							return
						}
						allowed := w.server.Settings().Authorizer.AllowedAny(cmd.Level, nil, Asker{Peer: session.peer, Addr: session.from.Addr()}).OK
						want := allowed
						if acts {
							want = allowed && (!cmd.Empty && key == "right" || cmd.Empty && session.emptyActs)
						}
						if begun != want {
							t.Fatalf("begun %t, want %t: %v", begun, want, out.err)
						}
						if acts && key != "right" && !cmd.Empty {
							// The nonce is not spent, so the holder is not denied by a stranger.
							if !w.server.Sessions.fresh("the id", "nonce of the peer") {
								t.Error("a request that was not proven used up a nonce")
							}
						}
					})
				}
			}
		}
	}
}

// A session that was made at a level which demands little is not used at one
// that demands more: not resumed, and not on the connection that made it.
func TestLevelJudgesSession(t *testing.T) {
	t.Parallel()
	const weak = "ALLOW_READ = *\nALLOW_ADMINISTRATOR = *\nSEC_DEFAULT_AUTHENTICATION_METHODS = PASSWORD, CLAIMTOBE\n"
	for _, tt := range []struct {
		name, config string
		session      Session
		want         string // part of why it is refused; "" if it is not
	}{
		{"nothing is demanded", "", Session{Peer: unauthenticatedPeer(), Key: Key(strings.Repeat("k", keySize))}, ""},
		{"authentication", "SEC_ADMINISTRATOR_AUTHENTICATION = REQUIRED\n", Session{Peer: unauthenticatedPeer(), Key: Key(strings.Repeat("k", keySize))}, "demands authentication"},
		{"authenticated", "SEC_ADMINISTRATOR_AUTHENTICATION = REQUIRED\n", Session{Peer: Peer{User: "condor@password", Method: "PASSWORD"}, Key: Key(strings.Repeat("k", keySize))}, ""},
		{"by another method", "SEC_ADMINISTRATOR_AUTHENTICATION = REQUIRED\nSEC_ADMINISTRATOR_AUTHENTICATION_METHODS = PASSWORD\n",
			Session{Peer: Peer{User: "alice@x.org", Method: "CLAIMTOBE"}, Key: Key(strings.Repeat("k", keySize))}, "does not take the session's method"},
		{"encryption", "SEC_ADMINISTRATOR_ENCRYPTION = REQUIRED\n", Session{Peer: Peer{User: "condor@password", Method: "PASSWORD"}}, "demands encryption"},
		{"integrity", "SEC_ADMINISTRATOR_INTEGRITY = REQUIRED\n", Session{Peer: Peer{User: "condor@password", Method: "PASSWORD"}}, "demands integrity"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, weak+tt.config, "")
			s := tt.session
			s.ID, s.Negotiated, s.PeerVersion, s.From = "the id", true, testVersion, w.from.Addr()
			check := func(how string, err error) {
				t.Helper()
				if got := fmt.Sprint(err); tt.want == "" && err != nil || tt.want != "" && !strings.Contains(got, tt.want) {
					t.Errorf("%s: %v, want %q", how, err, tt.want)
				}
			}
			r := &Request{Command: cmdQuery, Session: &s, Peer: s.Peer, Addr: w.from}
			mine, yours := cedartest.Pipe()
			conn := cedar.NewConn(yours, cedar.Limits{})
			client := cedar.NewConn(mine, cedar.Limits{})
			Follow(client, cmdOff)
			if err := client.EndMessage(); err != nil {
				t.Fatal(err)
			}
			_, err := w.server.Next(t.Context(), conn, r)
			check("on the same connection", err)
			if w.server.Allowed(Administrator, r, nil) != (tt.want == "") {
				t.Errorf("a handler that asks for the level is answered %t", tt.want != "")
			}

			if err := w.server.Sessions.Add(&s, 0); err != nil {
				t.Fatal(err)
			}
			mine, yours = cedartest.Pipe()
			w.serve(yours)
			client = cedar.NewConn(mine, cedar.Limits{})
			if err := resumption(client, "the id", cmdOff, true, "n"); err != nil {
				t.Fatal(err)
			}
			answer, err := getMessage(client)
			if err != nil {
				t.Fatal(err)
			}
			if code := answer.str("ReturnCode"); (code == "SID_NOT_FOUND") != (tt.want != "" || len(s.Key) == 0) {
				t.Errorf("the client is answered %q", code)
			}
			if len(s.Key) > 0 {
				_ = client.EnableAES(s.Key)
			}
			w.payload(client)
			out := <-w.requests
			if len(s.Key) == 0 {
				if !errs.Is(out.err, errs.NotFound) {
					t.Errorf("a session without a key is taken up for an order: %v", out.err)
				}
				return
			}
			check("resumed", out.err)
		})
	}
}

// Ids that we make cannot be guessed, and no log has one.
func TestSessionIDs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, open, "")
	seen := map[string]bool{}
	form := regexp.MustCompile(`^ep:17:\d+:\d+:[0-9a-f]{32}$`)
	for range 20 {
		w.client.Sessions = NewSessions(w.clock, 10)
		_, s, _, err := w.open(cmdQuery, Options{})
		if err != nil || !form.MatchString(s.ID) || seen[s.ID] {
			t.Fatalf("%q, %v; again: %t", s.ID, err, seen[s.ID])
		}
		seen[s.ID] = true
		w.server.Sessions.Forget(s.ID)
		_, _, _, _ = w.open(cmdQuery, Options{Session: s.ID})
		if strings.Contains(w.logs.String(), s.ID) {
			t.Fatalf("the log has the id:\n%s", w.logs)
		}
	}
}

// What was authenticated and not encrypted is not kept: its id goes in clear.
func TestSessionsWithoutKeyAreNotKept(t *testing.T) {
	t.Parallel()
	const clear = "SEC_DEFAULT_AUTHENTICATION = REQUIRED\nSEC_DEFAULT_ENCRYPTION = NEVER\nSEC_DEFAULT_INTEGRITY = NEVER\nSEC_DEFAULT_CRYPTO_METHODS = BLOWFISH\nSEC_DEFAULT_AUTHENTICATION_METHODS = CLAIMTOBE\n"
	w := newWorld(t, open+clear, clear)
	_, s, out, err := w.open(cmdQuery, Options{})
	if err != nil || out.err != nil {
		t.Fatal(err, out.err)
	}
	if s.Encrypts() || out.r.Session.Encrypts() {
		t.Skip("this configuration gives a key, so it shows nothing")
	}
	if _, ok := w.server.Sessions.Get(out.r.Session.ID); ok || out.r.Peer.Method != authn.ClaimToBe.Recorded() {
		t.Errorf("the session of %+v is kept", out.r.Peer)
	}
}

// A client is told to use a session only for commands that it is good enough
// for, so that it does not lose a command to a session that is refused.
func TestSessionServesWhatItMay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, open+"ALLOW_DAEMON = *\nSEC_READ_AUTHENTICATION = REQUIRED\nSEC_DAEMON_AUTHENTICATION = OPTIONAL\n", "")
	_, s, out, err := w.open(cmdClaim, Options{})
	if err != nil || out.err != nil || out.r.Peer.Authenticated() {
		t.Fatalf("%+v, %v, %v", out.r, err, out.err)
	}
	if got := fmt.Sprint(out.r.Session.ValidCommands, s.ValidCommands); got != "[442] [442]" {
		t.Errorf("the session is for %s, want what is at DAEMON alone", got)
	}
}
