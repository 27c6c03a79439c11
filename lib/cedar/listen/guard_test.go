// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"fmt"
	"net"
	"testing"
	"time"
)

// crew brings connections into a guard at a time that the test moves.
type crew struct {
	t   *testing.T
	g   *guard
	now time.Time
}

func newCrew(t *testing.T, l Limits) *crew {
	return &crew{t: t, g: newGuard(l), now: time.Unix(1_000_000, 0)}
}

func (c *crew) admit(addr string) *entry {
	c.t.Helper()
	a, b := net.Pipe()
	c.t.Cleanup(func() { _ = a.Close(); _ = b.Close() })
	e, _, pause, err := c.g.admit(from{a, tcp(addr)}, c.now)
	if err != nil || pause > 0 {
		c.t.Fatalf("%s is not admitted: %v, wait %s", addr, err, pause)
	}
	return e
}

func (c *crew) speak(addr string) *entry {
	c.t.Helper()
	e := c.admit(addr)
	if _, err := c.g.heard(e, c.now); err != nil {
		c.t.Fatalf("%s is not heard: %v", addr, err)
	}
	return e
}

func (c *crew) work(addr string, p pass) *entry {
	c.t.Helper()
	e := c.speak(addr)
	if _, err := c.g.letIn(e, p); err != nil {
		c.t.Fatalf("%s is not let in: %v", addr, err)
	}
	return e
}

func (c *crew) idle(addr string, p pass) *entry {
	c.t.Helper()
	e := c.work(addr, p)
	if !c.g.rest(e) {
		c.t.Fatalf("%s may not stay", addr)
	}
	return e
}

// Who has to go when there is no place left, one after the other.
func TestVictimsInOrder(t *testing.T) {
	t.Parallel()
	c := newCrew(t, Limits{Conns: 12, Handshakes: 2, PerPeer: 20})
	alice, nobody := pass{user: "alice@pool"}, pass{}
	first := c.work("192.0.2.1:1", alice)
	type row struct {
		what string
		e    *entry
	}
	// They arrive in another order than they go.
	order := []row{
		{"a known user that looks", c.work("192.0.2.1:2", pass{user: "alice@pool", readOnly: true})},
		{"an idle known user", c.idle("192.0.2.1:3", alice)},
		{"an unknown peer that looks", c.work("192.0.2.1:4", pass{readOnly: true})},
		{"the first in a handshake, of a peer with one", c.speak("192.0.2.2:5")},
		{"the first in a handshake of the peer with two", c.speak("192.0.2.3:6")},
		{"the second of that peer", c.speak("192.0.2.3:7")},
		{"an idle unknown peer", c.idle("192.0.2.1:8", nobody)},
	}
	last := c.work("192.0.2.4:1", nobody)
	c.work("192.0.2.4:2", nobody)
	want := []int{6, 4, 3, 5, 2, 1, 0}
	for _, i := range want {
		c.now = c.now.Add(time.Second)
		e := c.admit("198.51.100.1:1")
		victim, err := c.g.heard(e, c.now)
		if err != nil {
			t.Fatalf("with %s there: %v", order[i].what, err)
		}
		if victim != order[i].e {
			t.Errorf("%v went, want %s, %v", victim.nc.RemoteAddr(), order[i].what, order[i].e.nc.RemoteAddr())
		}
		if _, err := c.g.letIn(e, pass{user: "bob@pool"}); err != nil {
			t.Fatal(err)
		}
	}
	e := c.admit("198.51.100.1:1")
	if victim, err := c.g.heard(e, c.now); err == nil {
		t.Errorf("%v went for another although it may have changed something", victim.nc.RemoteAddr())
	}
	if first.evicted || last.evicted {
		t.Error("a handler lost its connection")
	}
	if got := c.g.refused; got != int64(len(want))+1 {
		t.Errorf("%d are counted as refused, want %d", got, len(want)+1)
	}
}

// A silent connection never displaces one that has spoken, keeps its place for a
// while, and then goes for the next one: first of all those of the peer that has
// the most.
func TestSilentOnesMakeRoom(t *testing.T) {
	t.Parallel()
	c := newCrew(t, Limits{Conns: 100, Handshakes: 10})
	spoken := c.speak("192.0.2.1:1")
	other := c.admit("192.0.2.9:1")
	var flood []*entry
	for i := range 9 {
		flood = append(flood, c.admit(fmt.Sprintf("192.0.2.1:%d", i+2)))
	}
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	patience := 10 * silencePerPlace
	if _, _, pause, err := c.g.admit(from{a, tcp("192.0.2.1:77")}, c.now); err != nil || pause != patience {
		t.Errorf("one more has to wait for %s, %v; want %s", pause, err, patience)
	}
	for i, want := range flood[:5] {
		c.now = c.now.Add(patience)
		e, victim, pause, err := c.g.admit(from{a, tcp("192.0.2.1:77")}, c.now)
		if err != nil || pause != 0 || victim != want {
			t.Fatalf("admitting one more: %v, wait %s, %+v went; want %v", err, pause, victim, want.nc.RemoteAddr())
		}
		if i > 0 {
			c.g.leave(e)
			c.admit("192.0.2.1:78")
		}
	}
	if spoken.evicted || other.evicted {
		t.Error("one that had spoken, or of a peer with one connection, went for a silent one")
	}
	if all, unknown := c.g.count(); all != 11 || unknown != 11 {
		t.Errorf("%d connections, %d unknown, want 11 and 11", all, unknown)
	}
}

// A handshake has time to end although others want its place: as long as none has
// had enough, no connection is accepted.
func TestHandshakesHaveTheirTime(t *testing.T) {
	t.Parallel()
	c := newCrew(t, Limits{Conns: 30, Handshakes: 10})
	for i := range 20 {
		c.speak(fmt.Sprintf("192.0.2.1:%d", i+1))
	}
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	patience := 20 * handshakePerPlace
	c.now = c.now.Add(patience / 2)
	if _, _, pause, err := c.g.admit(from{a, tcp("192.0.2.2:1")}, c.now); err != nil || pause != patience/2 {
		t.Errorf("one more has to wait for %s, %v; want %s", pause, err, patience/2)
	}
	if _, _, pause, _ := c.g.admit(from{a, tcp("192.0.2.2:1")}, c.now.Add(-time.Hour)); pause != patience {
		t.Errorf("after the clock was set back one more has to wait for %s, want %s", pause, patience)
	}
	c.now = c.now.Add(patience / 2)
	c.speak("192.0.2.2:1")
	if c.g.refused != 1 || c.g.callers.queues["192.0.2.1"].n != 19 {
		t.Errorf("%d went, %d of the others are left", c.g.refused, c.g.callers.queues["192.0.2.1"].n)
	}
}

// What a peer has that nobody knows takes nothing from a user of the same
// address that has shown who it is, nor one user from another.
func TestUsersOfOneAddressHaveTheirOwnPlaces(t *testing.T) {
	t.Parallel()
	c := newCrew(t, Limits{Conns: 100, Handshakes: 10, PerPeer: 3})
	for i := range 3 {
		c.work(fmt.Sprintf("192.0.2.1:%d", i+1), pass{})
		c.work(fmt.Sprintf("192.0.2.1:%d", i+4), pass{user: "job@pool"})
	}
	for _, p := range []pass{{}, {user: "job@pool"}} {
		if victim, err := c.g.letIn(c.speak("192.0.2.1:9"), p); err == nil {
			t.Errorf("%q has a fourth connection, instead of %v", p.user, victim)
		}
	}
	root := c.idle("192.0.2.1:10", pass{user: "root@pool"})
	c.work("192.0.2.1:11", pass{user: "root@pool"})
	c.work("192.0.2.1:12", pass{user: "root@pool"})
	victim, err := c.g.letIn(c.speak("192.0.2.1:13"), pass{user: "root@pool"})
	if err != nil || victim != root {
		t.Errorf("one more of a user that has an idle one: %v, %v went", err, victim)
	}
	for e := range c.g.entries {
		c.g.leave(e)
	}
	if len(c.g.let) != 0 || c.g.quiet.n+c.g.callers.n+c.g.idlers[1].n != 0 {
		t.Errorf("something is left of peers that are gone: %v", c.g.let)
	}
}
