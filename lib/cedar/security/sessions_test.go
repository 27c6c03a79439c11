// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/rapidtest"
)

// Peers can push out only what peers made, and those without a name first.
func TestStoreIsBounded(t *testing.T) {
	t.Parallel()
	c := clock.NewFake(time.Unix(0, 0))
	s := NewSessions(c, 10)
	for i := range 20 {
		id := claim.NewID(serverText, 1, int64(i), claim.Secret(DefaultInfo("25.14.0").String()+keyText))
		if _, err := s.AddClaim(id); err != nil {
			t.Fatal(err)
		}
	}
	add := func(id, user string) {
		if err := s.Add(&Session{ID: id, Peer: Peer{User: user}, Negotiated: true}, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 8 {
		add(fmt.Sprint("alice", i), "alice@x")
	}
	for i := range 1000 {
		add(fmt.Sprint("nobody", i), Unauthenticated)
	}
	if s.Len() != 30 {
		t.Errorf("%d sessions, want 30", s.Len())
	}
	for i := range 8 {
		if _, ok := s.Get(fmt.Sprint("alice", i)); !ok {
			t.Errorf("alice%d was pushed out by peers without a name", i)
		}
	}
	for i := range 10 {
		add(fmt.Sprint("bob", i), "bob@x")
	}
	if _, ok := s.Get("alice0"); ok || s.Len() != 30 {
		t.Errorf("the oldest session is there: %t; %d sessions", ok, s.Len())
	}
	if n := s.ForgetNegotiated(); n != 10 || s.Len() != 20 {
		t.Errorf("%d dropped, %d left", n, s.Len())
	}
}

func TestStoreConflicts(t *testing.T) {
	t.Parallel()
	c := clock.NewFake(time.Unix(1000, 0))
	s := NewSessions(c, 10)
	id := claim.NewID(serverText, 1, 1, claim.Secret(DefaultInfo("25.14.0").String()+keyText))
	first := must(s.AddClaim(id))
	if _, err := s.AddClaim(id); !errs.Is(err, errs.Conflict) {
		t.Errorf("err = %v, want conflict", err)
	}
	s.Expire(id.Public, time.Minute)
	if second, err := s.AddClaim(id); err != nil || second == first {
		t.Errorf("a session that only lingers stays: %v", err)
	}
	info := DefaultInfo("25.14.0")
	info.Expires = time.Unix(1060, 0)
	timed := NewCapabilityID("admin_x#1#1", info, keyText)
	if _, err := s.AddCapability(timed, time.Hour); err != nil {
		t.Fatal(err)
	}
	c.Advance(time.Minute)
	if _, ok := s.Get("admin_x#1#1"); ok {
		t.Error("a session outlives what its info says")
	}
	if _, err := s.AddCapability(timed, time.Hour); !errs.Is(err, errs.Expired) {
		t.Errorf("err = %v, want expired", err)
	}
	for _, info := range []string{`[CryptoMethods="BLOWFISH";]`, `[A=B;]`, `x`} {
		if _, err := s.AddShared("y", info, keyText); err == nil {
			t.Errorf("a session is made of %s", info)
		}
	}
	if _, err := s.AddClaim(claim.NewID(serverText, 1, 2, keyText)); !errs.Is(err, errs.Invalid) {
		t.Errorf("err = %v, want invalid: there is no info", err)
	}
}

// Whatever is done to a store, its parts agree with each other and with its
// bound, and no session is found that is over.
func TestStoreProperties(t *testing.T) {
	t.Parallel()
	rapidtest.Check(t, func(t *rapid.T) {
		c := clock.NewFake(time.Unix(0, 0))
		s := NewSessions(c, 5)
		ids := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "f", "g", "h"})
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				n := &Session{
					ID: ids.Draw(t, "id"), Peer: Peer{User: rapid.SampledFrom([]string{Unauthenticated, "alice@x"}).Draw(t, "user")},
					Negotiated: rapid.Bool().Draw(t, "negotiated"), Lease: time.Duration(rapid.IntRange(0, 3).Draw(t, "lease")) * time.Second,
					ValidCommands: []int{rapid.IntRange(0, 3).Draw(t, "command")},
				}
				if rapid.Bool().Draw(t, "outgoing") {
					n.Address = "<1.2.3.4:5>"
				}
				_ = s.Add(n, time.Duration(rapid.IntRange(0, 9).Draw(t, "life"))*time.Second)
			},
			"use":    func(t *rapid.T) { s.use(ids.Draw(t, "id")) },
			"forget": func(t *rapid.T) { s.Forget(ids.Draw(t, "id")) },
			"expire": func(t *rapid.T) { s.Expire(ids.Draw(t, "id"), time.Second) },
			"sweep":  func(*rapid.T) { s.Sweep() },
			"time":   func(t *rapid.T) { c.Advance(time.Duration(rapid.IntRange(0, 4).Draw(t, "s")) * time.Second) },
			"choose": func(t *rapid.T) {
				n := rapid.IntRange(0, 3).Draw(t, "command")
				if found, ok := s.choose("<1.2.3.4:5>", n, func() bool { return false }); ok && (found.Address == "" || found.ValidCommands[0] != n) {
					t.Fatalf("chose %+v for %d", found, n)
				}
			},
			"": func(t *rapid.T) {
				if got := s.known.Len() + s.nameless.Len(); got > 5 || got+s.pinned.Len() != len(s.byID) {
					t.Fatalf("%d negotiated, %d pinned, %d by id", got, s.pinned.Len(), len(s.byID))
				}
				for r, handle := range s.routes {
					el, ok := s.byID[handle]
					if !ok {
						t.Fatalf("route %v leads nowhere", r)
					}
					if e := el.Value.(*entry); e.session.Address != r.address {
						t.Fatalf("route %v leads to %+v", r, e.session)
					}
				}
				for handle, el := range s.byID {
					if e := el.Value.(*entry); e.session.handle() != handle {
						t.Fatalf("%q is kept under %q", e.session.handle(), handle)
					}
				}
			},
		})
	})
}
