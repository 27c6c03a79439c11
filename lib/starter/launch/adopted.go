// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/host"
)

// adopted is a starter that another startd began: no child of this process, so that
// nothing tells when it ends, nor how.
type adopted struct {
	proc   host.ProcID
	census host.Census
	done   chan struct{}
	leave  chan struct{} // closed when nobody waits for its end any more

	mu     sync.Mutex
	status host.ExitStatus
}

func newAdopted(p host.ProcID, c host.Census) *adopted {
	return &adopted{proc: p, census: c, done: make(chan struct{}), leave: make(chan struct{})}
}

// Main implements host.Process.
func (s *adopted) Main() host.ProcID { return s.proc }

// Done implements host.Process.
func (s *adopted) Done() <-chan struct{} { return s.done }

// Status implements host.Process. One that said its last word counts as well.
func (s *adopted) Status() host.ExitStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.status
}

// Kill implements host.Process.
func (s *adopted) Kill() (int, error) {
	return s.census.KillRemains(host.Remains{Boot: s.census.Boot(), Parent: s.proc, Main: s.proc})
}

// Close implements host.Process.
func (s *adopted) Close() (int, error) { return 0, nil }

// await waits until a starter is gone that has hung up, which it does when it ends.
func (s *adopted) await(well bool) {
	for pause := time.Millisecond; s.census.Alive(s.proc); pause = min(2*pause, time.Second) {
		select {
		case <-time.After(pause):
		case <-s.leave:
			close(s.done)
			return
		}
	}
	s.mu.Lock()
	s.status = host.ExitStatus{Signal: unknownEnd}
	if well {
		s.status = host.ExitStatus{Exited: true}
	}
	s.mu.Unlock()
	close(s.done)
}

// unknownEnd stands for the signal of a starter that ended without its last word: it was
// killed, and nobody knows how.
const unknownEnd = 9
