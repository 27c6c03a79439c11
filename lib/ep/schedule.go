// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"time"

	"github.com/execpoint/execpoint/lib/clock"
)

// schedule says when the engine wants to be called again. All but wake are boot
// times.
type schedule struct {
	update  time.Duration // of the next periodic update
	updated bool          // the first update has been
	poll    time.Duration // of the next look at every slot's policy, where that is polled
	polled  int           // slots in a state whose policy is polled
	timer   time.Duration // of the earliest timer, 0 if none runs
	wake    clock.Instant // of the last WakeAt
}

// setTimer makes sure that the engine looks at its timers at that boot time.
func (s *schedule) setTimer(at time.Duration) {
	if s.timer == 0 || at < s.timer {
		s.timer = at
	}
}

// timerDue reports whether a timer has run out, and forgets them all: who still
// needs one sets it again.
func (s *schedule) timerDue(now time.Duration) bool {
	if s.timer == 0 || now < s.timer {
		return false
	}
	s.timer = 0
	return true
}

// beginPolling and endPolling count a slot that is polled or no longer is.
func (s *schedule) beginPolling(first time.Duration) {
	if s.polled == 0 {
		s.poll = first
	}
	s.polled++
}

func (s *schedule) endPolling() { s.polled-- }

// soonest brings update and poll forward, for shorter intervals.
func (s *schedule) soonest(update, poll time.Duration) {
	s.update, s.poll = min(s.update, update), min(s.poll, poll)
}

// next is when the next Tick is due.
func (s *schedule) next(polling bool) time.Duration {
	at := s.update
	if polling {
		at = min(at, s.poll)
	}
	if s.timer != 0 {
		at = min(at, s.timer)
	}
	return at
}
