// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"container/list"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/errs"
)

// Sessions are the sessions of a process, incoming and outgoing, by id and by
// the address and command they serve. They are safe for concurrent use. Their
// number is bounded: what peers negotiate pushes out the session that has not
// been used longest, those of peers without a name first. Sessions of claims,
// of the family and of capabilities are never pushed out.
type Sessions struct {
	clock clock.Clock
	most  int

	mu     sync.Mutex
	byID   map[string]*list.Element // by handle; of *entry, in known, nameless or pinned
	routes map[route]string         // to handles
	// From the one used longest ago to the latest: negotiated sessions of
	// peers with a name and of those without, and all others.
	known, nameless, pinned *list.List
	family                  string // id of the family session, "" = none
	unrelated               map[string]bool
}

// DefaultSessions bounds the negotiated sessions kept if nothing else is said:
// each takes about a kilobyte.
const DefaultSessions = 10000

// maxUnrelated bounds the addresses remembered not to be of our family.
const maxUnrelated = 1000

// NewSessions returns an empty store for at most that many negotiated
// sessions; 0 is [DefaultSessions].
func NewSessions(c clock.Clock, most int) *Sessions {
	if most <= 0 {
		most = DefaultSessions
	}
	return &Sessions{
		clock: c, most: most, byID: map[string]*list.Element{}, routes: map[route]string{},
		known: list.New(), nameless: list.New(), pinned: list.New(), unrelated: map[string]bool{},
	}
}

// Len returns how many sessions there are, over or not.
func (t *Sessions) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID)
}

// Add keeps a session for life, 0 without end. A session of the same id that
// lives fails with Conflict, unless its claim is gone.
func (t *Sessions) Add(s *Session, life time.Duration) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	if el, ok := t.byID[s.handle()]; ok {
		if e := el.Value.(*entry); !e.linger && !e.over(now.Boot) {
			return errs.E("security.Sessions.Add", errs.Conflict, s.ID, fmt.Errorf("there is a session of that id"))
		}
		t.drop(el)
	}
	e := &entry{session: s, expires: ends(now, life), used: now.Boot}
	order := t.order(e)
	t.byID[s.handle()] = order.PushBack(e)
	for _, r := range s.routes() {
		t.routes[r] = s.handle()
	}
	t.shrink(now.Boot)
	return nil
}

func (t *Sessions) order(e *entry) *list.List {
	switch {
	case e.pinned():
		return t.pinned
	case e.session.Peer.Authenticated() || e.session.Address != "":
		return t.known
	}
	return t.nameless
}

// shrink keeps the negotiated sessions within their number.
func (t *Sessions) shrink(now time.Duration) {
	for t.known.Len()+t.nameless.Len() > t.most {
		if n := t.nameless.Front(); n != nil {
			t.drop(n)
		} else {
			t.drop(t.known.Front())
		}
	}
	// A few of those at the front that are over go as well, so that a store
	// that is only added to does not keep them.
	for _, order := range []*list.List{t.nameless, t.known} {
		for range 2 {
			el := order.Front()
			if el == nil || !el.Value.(*entry).over(now) {
				break
			}
			t.drop(el)
		}
	}
}

// drop forgets an entry and the routes that lead to it.
func (t *Sessions) drop(el *list.Element) {
	e := el.Value.(*entry)
	t.order(e).Remove(el)
	delete(t.byID, e.session.handle())
	for _, r := range e.session.routes() {
		if t.routes[r] == e.session.handle() {
			delete(t.routes, r)
		}
	}
	if t.family == e.session.ID {
		t.family = ""
	}
}

// Get returns a session that is not over, without using it.
func (t *Sessions) Get(id string) (*Session, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.live(id)
	if e == nil {
		return nil, false
	}
	return e.session, true
}

func (t *Sessions) live(id string) *entry {
	el, ok := t.byID[id]
	if !ok {
		return nil
	}
	e := el.Value.(*entry)
	if e.over(t.clock.Now().Boot) {
		t.drop(el)
		return nil
	}
	return e
}

// use returns a session that is not over and renews its lease.
func (t *Sessions) use(id string) (*Session, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.touch(id)
}

func (t *Sessions) touch(id string) (*Session, bool) {
	e := t.live(id)
	if e == nil {
		return nil, false
	}
	e.used = t.clock.Now().Boot
	t.order(e).MoveToBack(t.byID[id])
	return e.session, true
}

// came notes the version with which a peer took up a session, "" if it did not
// say.
func (t *Sessions) came(id, version string) {
	if version == "" {
		version = silentVersion
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if el, ok := t.byID[id]; ok {
		el.Value.(*entry).version = version
	}
}

// maxNonces bounds the resumptions without an answer that one session allows.
const maxNonces = 10_000

// fresh reports whether a nonce is new to a session. A resumption that we
// answer has a nonce of ours in its first packet; one that we do not answer
// could be recorded and played again, if its nonce were not remembered.
func (t *Sessions) fresh(id, nonce string) bool {
	var sum [16]byte
	full := sha256.Sum256([]byte(nonce))
	copy(sum[:], full[:])
	t.mu.Lock()
	defer t.mu.Unlock()
	el, ok := t.byID[id]
	if !ok || nonce == "" {
		return false
	}
	e := el.Value.(*entry)
	if _, seen := e.nonces[sum]; seen || len(e.nonces) >= maxNonces {
		return false
	}
	if e.nonces == nil {
		e.nonces = map[[16]byte]struct{}{}
	}
	e.nonces[sum] = struct{}{}
	return true
}

// maxDatagramMarks bounds the datagrams of one session that are remembered.
const maxDatagramMarks = 4096

// freshMarks reports whether all of some marks are new to a session, and
// remembers them; the oldest are forgotten for that.
func (t *Sessions) freshMarks(id string, marks ...string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	el, ok := t.byID[id]
	if !ok {
		return false
	}
	e := el.Value.(*entry)
	if e.marks == nil {
		e.marks = map[[16]byte]struct{}{}
	}
	fresh := true
	for _, m := range marks {
		full := sha256.Sum256([]byte(m))
		sum := [16]byte(full[:])
		if _, seen := e.marks[sum]; seen {
			fresh = false
			continue
		}
		if len(e.marked) < maxDatagramMarks {
			e.marked = append(e.marked, sum)
		} else {
			delete(e.marks, e.marked[e.oldest])
			e.marked[e.oldest] = sum
			e.oldest = (e.oldest + 1) % maxDatagramMarks
		}
		e.marks[sum] = struct{}{}
	}
	return fresh
}

// silentVersion stands for peers too old to tell their version.
const silentVersion = "$CondorVersion: 9.8.0 FakeOldVersion $"

// peerVersion returns the best that is known of the peer's version.
func (t *Sessions) peerVersion(s *Session) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if el, ok := t.byID[s.handle()]; ok && !s.Negotiated {
		if v := el.Value.(*entry).version; v != "" {
			return v
		}
	}
	return s.PeerVersion
}

// choose returns the session to send a command to an address with: one that
// serves it, or else that of the family if relative says that the peer may
// belong to it. relative is asked only where that decides.
func (t *Sessions) choose(address string, command int, relative func() bool) (*Session, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r := route{address, command}
	if id, ok := t.routes[r]; ok {
		if s, ok := t.touch(id); ok {
			return s, true
		}
		delete(t.routes, r)
	}
	family := t.family
	if family == "" || t.unrelated[address] {
		return nil, false
	}
	t.mu.Unlock()
	ok := relative() // asks the system
	t.mu.Lock()
	if !ok {
		return nil, false
	}
	return t.touch(family)
}

// discard drops a session wherever it came from.
func (t *Sessions) discard(s *Session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if el, ok := t.byID[s.handle()]; ok {
		t.drop(el)
	}
}

// Forget drops a session, and does nothing if there is none of that id.
func (t *Sessions) Forget(id string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if el, ok := t.byID[id]; ok {
		t.drop(el)
	}
}

// Expire lets a session end after d, and lets another of the same id take its
// place at once: this is how the session of a claim that is gone is kept for
// messages that are under way. It reports whether there is such a session.
func (t *Sessions) Expire(id string, d time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	e := t.live(id)
	if e == nil {
		return false
	}
	e.linger = true
	e.expires = t.clock.Now().Boot + d
	return true
}

// Sweep drops all sessions that are over and returns their number. A server
// calls it every few minutes.
func (t *Sessions) Sweep() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	now, n := t.clock.Now().Boot, 0
	for _, order := range []*list.List{t.nameless, t.known, t.pinned} {
		for el := order.Front(); el != nil; {
			next := el.Next()
			if el.Value.(*entry).over(now) {
				t.drop(el)
				n++
			}
			el = next
		}
	}
	return n
}

// ForgetNegotiated drops what peers negotiated, as a change of the
// configuration asks for, and returns the number.
func (t *Sessions) ForgetNegotiated() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, order := range []*list.List{t.nameless, t.known} {
		for order.Len() > 0 {
			t.drop(order.Front())
			n++
		}
	}
	clear(t.unrelated)
	return n
}

// noteUnrelated remembers that the daemon at an address does not know the session
// of our family.
func (t *Sessions) noteUnrelated(address string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.unrelated) < maxUnrelated {
		t.unrelated[address] = true
	}
}

// IDs returns the ids of the sessions that are not over, sorted.
func (t *Sessions) IDs() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now().Boot
	var ids []string
	for _, el := range t.byID {
		if e := el.Value.(*entry); !e.over(now) {
			ids = append(ids, e.session.ID)
		}
	}
	slices.Sort(ids)
	return ids
}
