// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ad

import (
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
)

// Statistics of the daemon's ad are kept since the EP began and, as RecentX,
// for a window that moves on by quanta.
const (
	statQuantum = 4 * time.Minute
	statQuanta  = 5
)

// tally sums up values and knows the least and the greatest.
type tally struct {
	count         int64
	sum, min, max float64
}

func (t *tally) add(v float64) {
	if t.count == 0 || v < t.min {
		t.min = v
	}
	if t.count == 0 || v > t.max {
		t.max = v
	}
	t.count++
	t.sum += v
}

func (t *tally) join(o tally) {
	switch {
	case o.count == 0:
	case t.count == 0:
		*t = o
	default:
		t.count, t.sum, t.min, t.max = t.count+o.count, t.sum+o.sum, min(t.min, o.min), max(t.max, o.max)
	}
}

// statistic is one tally since the beginning and one for each recent quantum.
type statistic struct {
	all    tally
	recent [statQuanta]tally
	last   int64 // number of the newest quantum, since the EP began
}

// reach moves the window on to a quantum.
func (s *statistic) reach(quantum int64) {
	for n := max(s.last, quantum-statQuanta) + 1; n <= quantum; n++ {
		s.recent[n%statQuanta] = tally{}
	}
	s.last = max(s.last, quantum)
}

func (s *statistic) add(v float64, quantum int64) {
	s.reach(quantum)
	s.all.add(v)
	s.recent[s.last%statQuanta].add(v)
}

// statistics are those of an EP.
type statistics struct {
	starts, preempted, byRank, byPriority statistic
	claimRequests, activationRequests     statistic
	busy, lasted                          statistic
}

func (m *Machine) quantum(now clock.Instant) int64 {
	return int64(max(0, now.Sub(m.started)) / statQuantum)
}

// JobStarted counts a job that was activated.
func (m *Machine) JobStarted(now clock.Instant) { m.stats.starts.add(1, m.quantum(now)) }

// ClaimAsked counts a request for a claim, ActivationAsked one to activate a
// claim, whatever is answered.
func (m *Machine) ClaimAsked(now clock.Instant) { m.stats.claimRequests.add(1, m.quantum(now)) }

// ActivationAsked is described at ClaimAsked.
func (m *Machine) ActivationAsked(now clock.Instant) {
	m.stats.activationRequests.add(1, m.quantum(now))
}

// Preempted counts a claim that has to make room for another one, because of
// its rank or, without that, of the user's priority.
func (m *Machine) Preempted(byRank bool, now clock.Instant) {
	m.stats.preempted.add(1, m.quantum(now))
	if byRank {
		m.stats.byRank.add(1, m.quantum(now))
	} else {
		m.stats.byPriority.add(1, m.quantum(now))
	}
}

// StarterLived counts a starter that has ended and how long it lived.
func (m *Machine) StarterLived(d time.Duration, now clock.Instant) {
	m.stats.busy.add(d.Seconds(), m.quantum(now))
}

// JobLasted counts a job that has ended and how long its process was there.
func (m *Machine) JobLasted(d time.Duration, now clock.Instant) {
	m.stats.lasted.add(d.Seconds(), m.quantum(now))
}

// recently returns what the recent window has of a statistic.
func (s *statistic) recently(quantum int64) tally {
	s.reach(quantum)
	var recent tally
	for _, t := range s.recent {
		recent.join(t)
	}
	return recent
}

// counts shows what is counted: slots show it of the whole EP.
func (m *Machine) counts(ad *classad.Ad, now clock.Instant) {
	q := m.quantum(now)
	for _, c := range [...]struct {
		name, recent string
		s            *statistic
	}{
		{"JobStarts", "RecentJobStarts", &m.stats.starts},
		{"JobPreemptions", "RecentJobPreemptions", &m.stats.preempted},
		{"JobRankPreemptions", "RecentJobRankPreemptions", &m.stats.byRank},
		{"JobUserPrioPreemptions", "RecentJobUserPrioPreemptions", &m.stats.byPriority},
		{"ClaimRequests", "RecentClaimRequests", &m.stats.claimRequests},
		{"ActivationRequests", "RecentActivationRequests", &m.stats.activationRequests},
	} {
		ad.SetInt(c.recent, c.s.recently(q).count)
		ad.SetInt(c.name, c.s.all.count)
	}
}

// statistics shows counts and durations. Of durations there is only the count
// as long as nothing was counted.
func (m *Machine) statistics(ad *classad.Ad, now clock.Instant) {
	m.counts(ad, now)
	q := m.quantum(now)
	for _, c := range [...]struct {
		name string
		s    *statistic
	}{{"JobBusyTime", &m.stats.busy}, {"JobDuration", &m.stats.lasted}} {
		recent := c.s.recently(q)
		for _, shown := range [...]struct {
			name string
			t    tally
		}{{c.name, c.s.all}, {"Recent" + c.name, recent}} {
			name, t := shown.name, shown.t
			ad.SetInt(name+"Count", t.count)
			if t.count > 0 {
				ad.SetReal(name+"Avg", t.sum/float64(t.count))
				ad.SetReal(name+"Min", t.min)
				ad.SetReal(name+"Max", t.max)
			}
		}
	}
}
