// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package listen

import (
	"fmt"

	"github.com/execpoint/execpoint/lib/errs"
)

// The shares of Limits.Held. Unknown peers have little together and
// less each, so that messages of known users always find room beside theirs; and
// no known user has all.
const (
	unknownShare = 8  // of Held, for all unknown peers
	strangeShare = 32 // of Held, for those of one address
	knownShare   = 2  // of Held, for one known user at one address
)

// account grants one connection the memory for its messages; it is the
// cedar.Account of it.
type account struct {
	s *Server
	e *entry
}

// Take implements cedar.Account.
func (a account) Take(n int) error {
	err := a.s.guard.take(a.e, n)
	if err != nil && !a.e.wasEvicted(a.s.guard) {
		a.s.noRoom("a message refused for want of room", a.e.nc, err)
	}
	return err
}

// Give implements cedar.Account.
func (a account) Give(n int) { a.s.guard.give(a.e, n) }

// take grants n bytes more to e.
func (g *guard) take(e *entry, n int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, in := g.entries[e]; !in {
		return errEvicted
	}
	have, most, whose := g.heldBy[e.key], g.limits.Held/knownShare, "one peer"
	if !e.known {
		most, whose = g.limits.Held/strangeShare, "one address"
		if all := g.limits.Held / unknownShare; have+n <= most && g.held[0]+n > all {
			have, most, whose = g.held[0], all, "unknown peers"
		}
	}
	if all := g.held[0] + g.held[1]; have+n <= most && all+n > g.limits.Held {
		have, most, whose = all, g.limits.Held, "all peers"
	}
	if have+n > most {
		g.refused++
		return errs.E("listen.take", errs.Exhausted, e.key,
			fmt.Errorf("messages of %s that are not read yet hold %d bytes, and %d more are over the limit of %d", whose, have, n, most))
	}
	g.hold(e, n)
	return nil
}

// give takes n bytes back from e.
func (g *guard) give(e *entry, n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.hold(e, -min(n, e.held))
}

// hold counts n bytes more, or less.
func (g *guard) hold(e *entry, n int) {
	if n == 0 {
		return
	}
	e.held += n
	g.held[e.index()] += n
	if g.heldBy[e.key] += n; g.heldBy[e.key] == 0 {
		delete(g.heldBy, e.key)
	}
}

func (e *entry) wasEvicted(g *guard) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return e.evicted
}

// Held returns how many bytes the messages take that are not read yet.
func (s *Server) Held() int {
	s.start()
	s.guard.mu.Lock()
	defer s.guard.mu.Unlock()
	return s.guard.held[0] + s.guard.held[1]
}

// Refused returns how many connections were closed, and messages refused,
// because there was no room for them.
func (s *Server) Refused() int64 {
	s.start()
	s.guard.mu.Lock()
	defer s.guard.mu.Unlock()
	return s.guard.refused
}
