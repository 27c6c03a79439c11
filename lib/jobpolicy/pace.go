// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package jobpolicy

import "time"

const (
	// MostStarts is how often a job may start within a minute. One that starts
	// more often, because each run ends at once, gets nowhere and keeps its machine
	// busy: its next starts wait, each twice as long as the one before.
	MostStarts = 10

	minute    = time.Minute
	firstWait = time.Second
	lastWait  = time.Minute
	// further is how long a run must last that got further: nothing that lasts so
	// long can start more than MostStarts times a minute.
	further = minute / MostStarts
)

// Pace watches how often one job starts. A pool needs none: there each start
// costs the job a negotiation. The zero Pace is that of a job that never ran.
type Pace struct {
	starts [MostStarts]time.Duration // of the last runs, a ring
	count  int
	waits  int // in a row
}

// Ended notes a run that began and ended without the job leaving the queue, on a
// clock that only goes forward, and returns how long the next start has to wait.
func (p *Pace) Ended(began, ended time.Duration) time.Duration {
	oldest := p.starts[p.count%MostStarts]
	full := p.count >= MostStarts
	p.starts[p.count%MostStarts] = began
	p.count++
	if ended-began >= further {
		p.waits = 0
		return 0
	}
	if p.waits == 0 && !(full && began-oldest < minute) {
		return 0
	}
	p.waits++
	return min(firstWait<<min(p.waits-1, 16), lastWait)
}
