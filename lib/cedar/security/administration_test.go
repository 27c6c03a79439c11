// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/errs"
)

// Whoever was given the capability out of our ad may administrate, for half an
// hour, and nothing else.
func TestAdministration(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", "")
	a := &Administration{Sessions: w.server.Sessions, Commands: testCommands.Valid(Administrator, true), Clock: w.clock, Address: func() string { return serverText }, Start: 1795188000}
	text, err := a.Capability()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := a.Capability(); err != nil || again != text {
		t.Errorf("another one at once, %v", err)
	}
	form := regexp.MustCompile(`^admin_` + regexp.QuoteMeta(serverText) + `#1795188000#1_[0-9a-f]{32}#\[Encryption="YES";Integrity="YES";ValidCommands="60005,5,474";\][0-9a-f]{64}$`)
	if !form.MatchString(text.Reveal()) {
		t.Errorf("the capability is %q, want the form %s", text.Reveal(), form)
	}
	// A tool takes it up like a claim id.
	tool := must(ParseCapabilityID(text.Reveal()))
	s := &Session{ID: tool.Session, Key: tool.sessionKey(), Peer: Peer{User: ExecuteSide, Method: MethodMatch}, PeerVersion: testVersion}
	if err := w.client.Sessions.Add(s, 0); err != nil {
		t.Fatal(err)
	}
	conn, _, out, err := w.open(cmdOff, Options{Session: tool.Session})
	if err != nil || out.err != nil || out.r.Peer.User != CollectorSide {
		t.Fatalf("request %+v, %v, %v", out.r, out.err, err)
	}
	w.talk(conn, out)
	if _, _, out, err = w.open(cmdClaim, Options{Session: tool.Session}); err != nil || !errs.Is(out.err, errs.Denied) {
		t.Errorf("it opens DAEMON: %v, %v", out.err, err)
	}
	w.clock.Advance(capabilityReuse)
	if next, err := a.Capability(); err != nil || next == text {
		t.Errorf("the old one is given out after %v: %v", capabilityReuse, err)
	}
	if _, _, out, err = w.open(cmdOff, Options{Session: tool.Session}); err != nil || out.err != nil {
		t.Errorf("the old one is of no use any more: %v, %v", out.err, err)
	}
	w.clock.Advance(capabilityLife)
	if _, _, _, err = w.open(cmdOff, Options{Session: tool.Session}); !errs.Is(err, errs.NotFound) {
		t.Errorf("err = %v, want not found", err)
	}
}

// The session with the daemon that started us goes by its id, and is found for
// the commands it names.
func TestParentSession(t *testing.T) {
	t.Parallel()
	info := DefaultInfo("25.14.0")
	info.ValidCommands = []int{cmdClaim, cmdOff}
	key := NewCapabilityID("vm:1:2:3", info, keyText)
	w := newWorld(t, "", "") // the server plays condor_master
	w.from = netip.MustParseAddrPort("127.0.0.1:40000")
	child := &Session{ID: key.Session, Key: key.sessionKey(), Peer: Peer{User: Child, Method: MethodFamily}, PeerVersion: testVersion}
	if err := w.server.Sessions.Add(child, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := w.client.Sessions.AddParent(key, serverText); err != nil {
		t.Fatal(err)
	}
	conn, s, out, err := w.open(cmdClaim, Options{})
	if err != nil || out.err != nil || out.r.Peer.User != Child || s.Peer.User != Parent {
		t.Fatalf("request %+v, %v, %v", out.r, out.err, err)
	}
	w.talk(conn, out)
}

func TestNewClaimSecret(t *testing.T) {
	t.Parallel()
	a, b := must(NewClaimSecret("25.14.0", nil)), must(NewClaimSecret("25.14.0", nil))
	if a == b {
		t.Error("two secrets are the same")
	}
	id := claim.NewID(serverText, 1, 1, a)
	c, err := ParseCapabilityID(id.Wire())
	if err != nil || c.Session != id.Public || len(c.key) != 64 {
		t.Errorf("%v, %v", c, err)
	}
	if diff := cmp.Diff(DefaultInfo("25.14.0"), c.Info); diff != "" {
		t.Error(diff)
	}
}

// zone is a resolver in memory.
type zone struct {
	names map[string][]string
	addrs map[string][]netip.Addr
	asked int
}

func (z *zone) LookupAddr(_ context.Context, addr string) ([]string, error) {
	z.asked++
	if n, ok := z.names[addr]; ok {
		return n, nil
	}
	return nil, errors.New("no such address")
}

func (z *zone) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	if a, ok := z.addrs[host]; ok {
		return a, nil
	}
	return nil, errors.New("no such host")
}

// A name counts only if it leads back to the address.
func TestHostNames(t *testing.T) {
	t.Parallel()
	good, bad := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	z := &zone{
		names: map[string][]string{"10.0.0.1": {"a.x.org.", "b.x.org."}, "10.0.0.2": {"a.x.org."}},
		addrs: map[string][]netip.Addr{"a.x.org.": {netip.MustParseAddr("::ffff:10.0.0.1")}, "b.x.org.": {bad}, "c.x.org": {good, bad}},
	}
	c := clock.NewFake(time.Unix(0, 0))
	h := &HostNames{Resolver: z, Clock: c}
	if got := h.Of(good); !cmp.Equal(got, []string{"a.x.org"}) {
		t.Errorf("names %v", got)
	}
	if got := h.Of(bad); got != nil {
		t.Errorf("an address that only says so has names %v", got)
	}
	h.Of(netip.MustParseAddr("::ffff:10.0.0.1"))
	if z.asked != 2 {
		t.Errorf("%d questions, want 2", z.asked)
	}
	c.Advance(noNames)
	h.Of(bad)
	h.Of(good)
	c.Advance(namesKept)
	h.Of(good)
	if z.asked != 4 {
		t.Errorf("%d questions, want 4", z.asked)
	}
	if got := h.Addresses(t.Context(), "c.x.org"); len(got) != 2 {
		t.Errorf("addresses %v", got)
	}
	if got := h.Addresses(t.Context(), "none"); got != nil {
		t.Errorf("addresses %v", got)
	}
}

// waitingZone answers nothing until ctx ends.
type waitingZone struct{ zone }

func (z *waitingZone) LookupAddr(ctx context.Context, addr string) ([]string, error) {
	z.asked++
	<-ctx.Done()
	return nil, ctx.Err()
}

// A look-up ends with who asks, and is not taken for the answer that the
// address has no name.
func TestHostNamesCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		z := &waitingZone{}
		h := &HostNames{Resolver: z, Clock: clock.System()}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if got := h.Within(ctx, netip.MustParseAddr("10.0.0.1")); got != nil || time.Since(began) != time.Second {
			t.Errorf("after %v %v", time.Since(began), got)
		}
		if got := h.Of(netip.MustParseAddr("10.0.0.1")); got != nil || time.Since(began) != 6*time.Second || z.asked != 2 {
			t.Errorf("after %v and %d questions %v", time.Since(began), z.asked, got)
		}
	})
}

// Behind a shared port only daemons behind the same one are of our family.
func TestRelative(t *testing.T) {
	t.Parallel()
	w := newWorld(t, open, "")
	w.client.Kin = func(net.Addr) bool { return true }
	for own, want := range map[string]bool{
		"": true, "<10.9.9.9:9618>": true, "<10.9.9.9:9618?sock=startd_1_ab>": true, "<10.9.9.9:7777?sock=startd_1_ab>": false,
	} {
		w.client.Address = func() string { return own }
		nc := must(w.dial(t.Context(), serverAddress))
		h := clientShake{c: w.client, f: w.client.current.Load(), conn: cedar.NewConn(loopback{nc}, cedar.Limits{}), to: serverAddress}
		if h.relative() != want {
			t.Errorf("as %q: %t, want %t", own, !want, want)
		}
		_ = nc.Close()
	}
}
