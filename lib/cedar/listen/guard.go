// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"errors"
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
	PerPeer    int           // let in, of one user at one address; a quarter of Conns
	Handshakes int           // of Conns, for those that have sent nothing yet; 512, at most half of Conns
	Handshake  time.Duration // until a peer has said who it is and what it wants; 120 s
	Message    time.Duration // until a message is there or was taken; 20 s
	Idle       time.Duration // between two commands on one connection; 20 min
	Held       int           // bytes of messages that are not read yet, of all connections; 128 MiB
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
	l.Handshakes = max(1, min(l.Handshakes, l.Conns/2))
	if l.Handshake <= 0 {
		l.Handshake = 120 * time.Second
	}
	if l.Message <= 0 {
		l.Message = 20 * time.Second
	}
	if l.Idle <= 0 {
		l.Idle = 20 * time.Minute
	}
	if l.Held <= 0 {
		l.Held = 128 << 20
	}
	return l
}

// How long a connection keeps its place when others want it: so long for each
// connection of its phase. It bounds how many places a flood can take in a second,
// whatever it takes, and so how long a connection that comes then waits to be accepted: a
// kernel keeps 4,096 for us, mostly. A peer that means to say something does so at
// once, so that a silent connection needs no more than maxSilence; a handshake
// has several rounds and computes.
const (
	silencePerPlace   = 400 * time.Microsecond
	maxSilence        = 200 * time.Millisecond
	handshakePerPlace = time.Millisecond
)

// phase is how far a connection has come.
type phase uint8

const (
	silent   phase = iota // its first message is not there yet
	speaking              // it says who it is
	busy                  // it was let in, and a handler has it
	waiting               // it was let in, and is between two commands
	detached              // no longer ours
)

// pass says what a connection was let in as.
type pass struct {
	// user is who the peer has proven to be, "" if that is not known. Those of one
	// address that are known apart do not take each other's places.
	user string
	// readOnly says that the command changes nothing: it may be cut short when its
	// place is needed.
	readOnly bool
}

// entry is one connection that the guard counts.
type entry struct {
	nc      net.Conn
	key     string // of the peer: its address, and the user once that is known
	known   bool   // the user is
	phase   phase
	order   uint64    // of arrival in its phase
	since   time.Time // when it arrived, or its first message
	evicted bool      // closed in favour of another
	held    int       // bytes of its messages

	crowd          *crowd // that it can be a victim in, nil for none
	before, behind *entry // in it
}

// guard counts connections, and closes one where another needs its place.
//
// Some places are for those that have sent nothing: the newest of them has
// always one, and the longest silent of the peer that has most of them goes
// for it. The others are for those that have sent their first message, which
// no silent one can displace. When these are full, first those go whose user
// is not known (idle ones, then those that still say who they are, then those
// that only look), then idle ones of known users, then known users that only
// look; of each kind the oldest of the peer that has the most. A known user
// that may change something is never displaced. So the flood of one peer
// drowns itself, and at an address from which others come too, a job's machine
// or a NAT, it leaves them their places.
type guard struct {
	limits Limits

	mu      sync.Mutex
	arrival uint64
	entries map[*entry]struct{}
	let     map[string]int // connections that were let in, by key
	quiet   crowd          // in phase silent
	callers crowd          // in phase speaking
	idlers  [2]crowd       // in phase waiting; by whether the user is known
	readers [2]crowd       // in phase busy, with a command that changes nothing
	held    [2]int         // bytes of messages; by whether the user is known
	heldBy  map[string]int // the same by key
	refused int64          // connections and messages that there was no room for
	closed  bool
}

func newGuard(l Limits) *guard {
	return &guard{limits: l.withDefaults(), entries: make(map[*entry]struct{}), let: make(map[string]int), heldBy: make(map[string]int)}
}

// index of idlers, readers and held.
func (e *entry) index() int {
	if e.known {
		return 1
	}
	return 0
}

// put moves e to a phase and into the crowd that belongs to it.
func (g *guard) put(e *entry, to phase, in *crowd) {
	e.remove()
	g.arrival++
	e.phase, e.order = to, g.arrival
	if in != nil {
		in.add(e)
	}
}

// evict closes a victim.
func (g *guard) evict(e *entry) {
	e.evicted = true
	g.refused++
	g.forget(e)
	_ = e.nc.Close()
}

// admit counts nc in as a connection that has said nothing yet. victim is the
// connection that was closed for it, if any. When wait is not zero nothing was
// done: ask again after it, and meanwhile take no further connection. With an
// error nc is not counted and the caller closes it.
func (g *guard) admit(nc net.Conn, now time.Time) (e, victim *entry, wait time.Duration, err error) {
	peer := peerKey(nc)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, nil, 0, errs.E("listen.admit", errs.Expired, peer, errors.New("the server stops"))
	}
	if g.crowded() && g.idlers[0].n == 0 && g.callers.n > 0 { // it would displace one of them by its first message
		patience := time.Duration(g.callers.n) * handshakePerPlace
		if wait = g.callers.oldest().left(now, patience); wait > 0 {
			return nil, nil, wait, nil
		}
	}
	if g.quiet.n >= g.limits.Handshakes {
		victim = g.quiet.oldest()
		patience := min(maxSilence, time.Duration(g.quiet.n)*silencePerPlace)
		if wait = victim.left(now, patience); wait > 0 {
			return nil, nil, wait, nil
		}
		g.evict(victim)
	}
	e = &entry{nc: nc, key: peer, since: now}
	g.entries[e] = struct{}{}
	g.put(e, silent, &g.quiet)
	return e, victim, 0, nil
}

// left is how much of its patience e may still have. A clock that was set back
// gives it no more than all.
func (e *entry) left(now time.Time, patience time.Duration) time.Duration {
	return min(patience, patience-now.Sub(e.since))
}

// crowded reports whether all places of those that have spoken are taken.
func (g *guard) crowded() bool {
	return len(g.entries)-g.quiet.n >= g.limits.Conns-g.limits.Handshakes
}

// heard notes that the first message of e is there. victim is the connection
// that was closed for it, if any. With an error e has to go.
func (g *guard) heard(e *entry, now time.Time) (victim *entry, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e.evicted {
		return nil, errEvicted
	}
	if g.crowded() {
		for _, c := range []*crowd{&g.idlers[0], &g.callers, &g.readers[0], &g.idlers[1], &g.readers[1]} {
			if victim = c.oldest(); victim != nil {
				break
			}
		}
		if victim == nil {
			g.refused++
			return nil, errs.E("listen.heard", errs.Exhausted, e.key, fmt.Errorf("too many connections: %d, and none can be closed", len(g.entries)))
		}
		g.evict(victim)
	}
	e.since = now
	g.put(e, speaking, &g.callers)
	return victim, nil
}

// letIn notes that a command of e was allowed and is begun. victim is the
// connection that was closed for it, if any. With an error e has to go.
func (g *guard) letIn(e *entry, p pass) (victim *entry, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e.evicted {
		return nil, errEvicted
	}
	first := e.phase == silent || e.phase == speaking
	if first {
		e.remove()
		if p.user != "" {
			held := e.held
			g.hold(e, -held)
			e.key, e.known = e.key+" "+p.user, true
			g.hold(e, held)
		}
		if g.let[e.key] >= g.limits.PerPeer {
			victim = g.idlers[e.index()].oldestOf(e.key)
			if victim == nil {
				victim = g.readers[e.index()].oldestOf(e.key)
			}
			if victim == nil {
				g.refused++
				return nil, errs.E("listen.letIn", errs.Exhausted, e.key, fmt.Errorf("too many connections of one peer: the limit is %d", g.limits.PerPeer))
			}
			g.evict(victim)
		}
		g.let[e.key]++
	}
	var in *crowd
	if p.readOnly {
		in = &g.readers[e.index()]
	}
	g.put(e, busy, in)
	return victim, nil
}

// errEvicted ends a connection that was closed in favour of another.
var errEvicted = errors.New("closed in favour of another connection")

// rest notes that e, which was let in, is between two commands. It returns
// false when e was evicted.
func (g *guard) rest(e *entry) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e.evicted {
		return false
	}
	g.put(e, waiting, &g.idlers[e.index()])
	return true
}

// detach counts e out for the owner of its connection from now on. It returns
// false when e was evicted.
func (g *guard) detach(e *entry) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e.evicted {
		return false
	}
	g.forget(e)
	e.phase = detached
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
	e.remove()
	g.hold(e, -e.held)
	if e.phase != busy && e.phase != waiting {
		return
	}
	if g.let[e.key]--; g.let[e.key] == 0 {
		delete(g.let, e.key)
	}
}

// close admits no connection any more and closes the connections that no handler
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
	return len(g.entries), g.quiet.n + g.callers.n
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
