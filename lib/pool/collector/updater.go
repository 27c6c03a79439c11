// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/pool/ads"
	"github.com/execpoint/execpoint/lib/pool/directory"
	"github.com/execpoint/execpoint/lib/pool/engine"
)

// update is one message to collectors. It is shared by their updaters and not
// changed once it is queued.
type update struct {
	kind, name      string // of the ad
	command         int
	public, private *classad.Ad
}

func (u *update) key() string { return u.kind + u.name }

// updater tells one collector, in a goroutine of its own. For each ad it holds
// at most one message, the latest, so that its memory is bounded by the number
// of slots however long the collector is away.
type updater struct {
	updates *Updates
	to      directory.Collector
	log     *slog.Logger
	all     bool // everything is to be queued again; guarded by updateQueue.mu
	started bool // run was called; guarded by updateQueue.mu
	// after is done of the updater that the collector had before it was named no more
	// and then again; nil if there is none. Its farewell must not come after our ads.
	after <-chan struct{}

	mu       sync.Mutex
	pending  map[string]*update
	order    []string        // keys of pending, oldest first
	sent     map[string]bool // keys of ads that it may have
	retiring bool            // only withdrawals are left to be sent
	status   Status
	wake     chan struct{}
	done     chan struct{} // closed when nothing will be sent any more
	once     sync.Once     // of started
	last     string        // the last failure that was logged
	inClear  clearness     // what was logged of it
	streams  bool          // datagrams were tried and cannot be

	tokenSeeking // run's alone
}

// Status is how things are with one collector.
type Status struct {
	Collector string // as configured
	Address   string
	Connected bool
	Datagrams bool      // updates go over UDP, and it never says whether it listens
	Version   string    // its $CondorVersion string, "" if not known yet
	Since     time.Time // when it was connected or lost, zero before
	// Updates and Withdrawals count what was sent, Skipped messages that
	// a later one took the place of, Failures broken or refused connections,
	// Refused ads that could not be written.
	Updates, Withdrawals, Skipped, Failures, Refused int64
	Pending                                          int
	LastUpdate                                       time.Time
	LastTook                                         time.Duration // for the last round of messages
	Err                                              error         // of the last failure, nil while connected
}

func newUpdater(u *Updates, to directory.Collector) *updater {
	s := &updater{
		updates: u, to: to, log: u.log.With("collector", to.Text), all: true,
		pending: make(map[string]*update), sent: make(map[string]bool),
		wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	s.status.Collector, s.status.Address = to.Text, to.At.String()
	return s
}

// offer queues a message. A later one about the same ad takes the place of an
// earlier.
func (s *updater) offer(u *update) {
	s.mu.Lock()
	if !s.retiring {
		s.put(u)
	}
	s.mu.Unlock()
	engine.Wake(s.wake)
}

// put is offer for who holds mu.
func (s *updater) put(u *update) {
	key := u.key()
	if _, ok := s.pending[key]; ok {
		s.status.Skipped++
	} else {
		s.order = append(s.order, key)
	}
	s.pending[key] = u
}

// withdraw queues that an ad is gone, if the collector may have it.
func (s *updater) withdraw(kind, name, address string) {
	s.mu.Lock()
	key := kind + name
	if s.sent[key] {
		s.put(&update{kind: kind, name: name, command: command.InvalidateStartdAds, public: withdrawal(kind, name, address)})
	} else {
		s.drop(key)
	}
	s.mu.Unlock()
	engine.Wake(s.wake)
}

func (s *updater) drop(key string) {
	if _, ok := s.pending[key]; ok {
		delete(s.pending, key)
		s.order = slices.DeleteFunc(s.order, func(k string) bool { return k == key })
	}
}

// retire leaves nothing to be sent but that all ads are gone.
func (s *updater) retire(address string) {
	s.mu.Lock()
	if !s.retiring {
		s.retiring = true
		clear(s.pending)
		s.order = s.order[:0]
		keys := make([]string, 0, len(s.sent))
		for key := range s.sent {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for _, key := range keys {
			kind := ads.TypeSlot
			name, ok := strings.CutPrefix(key, ads.TypeSlot)
			if !ok {
				kind, name = ads.TypeDaemon, strings.TrimPrefix(key, ads.TypeDaemon)
			}
			s.put(&update{kind: kind, name: name, command: command.InvalidateStartdAds, public: withdrawal(kind, name, address)})
		}
	}
	s.mu.Unlock()
	engine.Wake(s.wake)
}

// next returns the oldest message that waits. The collector may have it from
// then on, whatever becomes of the connection.
func (s *updater) next() (u *update, retiring bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.order) == 0 {
		return nil, s.retiring
	}
	u = s.pending[s.order[0]]
	s.sent[u.key()] = true
	return u, s.retiring
}

// finished takes a message off the queue unless a later one took its place.
func (s *updater) finished(u *update, did bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := u.key()
	switch {
	case !did:
	case u.command == command.UpdateStartdAd:
		s.status.Updates++
		s.status.LastUpdate = s.updates.cfg.Clock.Now().Wall
	default:
		delete(s.sent, key)
		s.status.Withdrawals++
	}
	if s.pending[key] != u {
		return
	}
	delete(s.pending, key)
	if s.order[0] == key {
		s.order = s.order[1:]
	} else {
		s.order = slices.DeleteFunc(s.order, func(k string) bool { return k == key })
	}
}

// left reports whether the updater will send nothing any more.
func (s *updater) left() bool {
	select {
	case <-s.done:
		return true
	default:
		return false
	}
}
