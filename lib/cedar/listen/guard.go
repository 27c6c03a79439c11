// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
)

// Limits bound what peers can make a server hold. A zero field stands for its
// default.
type Limits struct {
	Conns      int           // connections in all; 4096
	PerPeer    int           // from one address; a quarter of Conns
	Handshakes int           // connections that have not said who they are; 512
	Handshake  time.Duration // until a peer has said who it is and what it wants; 120 s
	Message    time.Duration // until a message is there or was taken; 20 s
	Idle       time.Duration // between two commands on one connection; 20 min
}

func (l Limits) withDefaults() Limits {
	if l.Conns <= 0 {
		l.Conns = 4096
	}
	if l.PerPeer <= 0 {
		l.PerPeer = max(1, l.Conns/4)
	}
	if l.Handshakes <= 0 {
		l.Handshakes = 512
	}
	if l.Handshake <= 0 {
		l.Handshake = 120 * time.Second
	}
	if l.Message <= 0 {
		l.Message = 20 * time.Second
	}
	if l.Idle <= 0 {
		l.Idle = 20 * time.Minute
	}
	return l
}

// phase is how far a connection has come.
type phase uint8

const (
	shaking  phase = iota // not yet known
	busy                  // a handler has it
	waiting               // known, between two commands
	detached              // no longer ours
)

// entry is one connection that the guard counts.
type entry struct {
	nc      net.Conn
	peer    string
	since   uint64 // order of arrival in its phase
	phase   phase
	evicted bool // closed in favour of another
}

// guard counts connections. When there is no room it closes the oldest idle or
// unknown one of the peer that has the most, so that a flood drowns itself
// and not the others.
type guard struct {
	limits Limits

	mu      sync.Mutex
	arrival uint64
	entries map[*entry]struct{}
	byPeer  map[string]int
	unknown int
	closed  bool
}

func newGuard(l Limits) *guard {
	return &guard{limits: l.withDefaults(), entries: make(map[*entry]struct{}), byPeer: make(map[string]int)}
}

// admit counts nc in as a connection that is not known yet. victim is the
// connection that was closed for it, if any. With an error nc is not counted
// and the caller closes it.
func (g *guard) admit(nc net.Conn) (e, victim *entry, err error) {
	peer := peerKey(nc)
	g.mu.Lock()
	defer g.mu.Unlock()
	full := func(what string, limit int) (*entry, *entry, error) {
		return nil, nil, errs.E("listen.admit", errs.Exhausted, peer, fmt.Errorf("%s: the limit is %d", what, limit))
	}
	if g.closed {
		return nil, nil, errs.E("listen.admit", errs.Expired, peer, fmt.Errorf("the server stops"))
	}
	if g.byPeer[peer] >= g.limits.PerPeer {
		return full("too many connections from one address", g.limits.PerPeer)
	}
	allFull, unknownFull := len(g.entries) >= g.limits.Conns, g.unknown >= g.limits.Handshakes
	if allFull || unknownFull {
		victim = g.pick(peer, !unknownFull)
		if victim == nil && allFull {
			return full("too many connections", g.limits.Conns)
		}
		if victim == nil {
			return full("too many connections of unknown peers", g.limits.Handshakes)
		}
		victim.evicted = true
		g.forget(victim)
		_ = victim.nc.Close()
	}
	g.arrival++
	e = &entry{nc: nc, peer: peer, since: g.arrival}
	g.entries[e] = struct{}{}
	g.byPeer[peer]++
	g.unknown++
	return e, victim, nil
}

// pick returns the connection that has to go for one more of peer: of the peer
// that has the most, and has more than peer would, the oldest unknown one, or
// if idle ones count too the oldest of both. It returns nil when there is none.
func (g *guard) pick(peer string, idleToo bool) *entry {
	weight := func(e *entry) int { return g.byPeer[e.peer] }
	var best *entry
	for e := range g.entries {
		if e.phase != shaking && (!idleToo || e.phase != waiting) || weight(e) <= g.byPeer[peer]+1 && e.peer != peer {
			continue
		}
		switch {
		case best == nil, weight(e) > weight(best):
		case weight(e) < weight(best):
			continue
		case e.phase != best.phase && best.phase == shaking, e.phase == best.phase && e.since > best.since:
			continue
		}
		best = e
	}
	if best != nil && best.peer == peer {
		return nil // the newcomer is of the peer that has the most
	}
	return best
}

// move notes how far e has come. It returns false when e was evicted.
func (g *guard) move(e *entry, to phase) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e.evicted {
		return false
	}
	if to == detached {
		g.forget(e)
		e.phase = to
		return true
	}
	if e.phase == shaking && to != shaking {
		g.unknown--
	}
	g.arrival++
	e.phase, e.since = to, g.arrival
	return true
}

// leave counts e out; it may be called for one that is out.
func (g *guard) leave(e *entry) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forget(e)
}

func (g *guard) forget(e *entry) {
	if _, ok := g.entries[e]; !ok {
		return
	}
	delete(g.entries, e)
	if e.phase == shaking {
		g.unknown--
	}
	if g.byPeer[e.peer]--; g.byPeer[e.peer] == 0 {
		delete(g.byPeer, e.peer)
	}
}

// close admits nobody any more and closes the connections that no handler
// has.
func (g *guard) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for e := range g.entries {
		if e.phase != busy {
			_ = e.nc.Close()
		}
	}
}

// kill closes every connection.
func (g *guard) kill() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for e := range g.entries {
		_ = e.nc.Close()
	}
}

func (g *guard) count() (all, unknown int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.entries), g.unknown
}

// peerKey is the address that counts as one peer: an IPv4 address, the /64 of
// an IPv6 address (which one machine has for itself), or the kind of network.
func peerKey(nc net.Conn) string {
	a := peerAddr(nc).Addr()
	switch {
	case !a.IsValid():
		if nc.RemoteAddr() == nil {
			return "unknown"
		}
		return nc.RemoteAddr().Network()
	case a.Is4():
		return a.String()
	}
	p, err := a.WithZone("").Prefix(64)
	if err != nil {
		return a.String()
	}
	return p.String()
}

// peerAddr returns where nc comes from; it is not valid for what is no
// internet connection.
func peerAddr(nc net.Conn) netip.AddrPort {
	if t, ok := nc.RemoteAddr().(*net.TCPAddr); ok {
		ap := t.AddrPort()
		return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
	}
	return netip.AddrPort{}
}
