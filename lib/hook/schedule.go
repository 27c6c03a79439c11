// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
)

// pause is the least time between two starts of a WaitForExit job: one that
// ends at once would otherwise be started without end.
const pause = time.Second

// slack keeps sums of loads such as 0.1+0.2 from being more than 0.3.
const slack = 1e-9

// Start is a job that is to be started now. Whoever gets it starts it and then
// calls Ended, also if it could not be started.
type Start struct{ Job Job }

// turn is where one job stands.
type turn struct {
	job     Job
	running bool
	stop    bool          // it was told to end
	ready   bool          // due, and waits for load or its condition
	runs    int           // starts so far
	started time.Duration // of the last start, in boot time
	due     time.Duration // of the next start; counts if timed
	timed   bool
}

// Schedule says when jobs start and stop. It is a value without a clock: the
// same calls at the same instants give the same answers. It is owned by one
// goroutine.
type Schedule struct {
	turns   []*turn
	removed []*turn // of an earlier configuration, still running
	max     float64
}

// NewSchedule returns the schedule of a list of jobs, none of which has run.
func NewSchedule(c Cron) *Schedule {
	s := &Schedule{max: c.MaxLoad}
	for _, j := range c.Jobs {
		s.turns = append(s.turns, newTurn(j))
	}
	return s
}

func newTurn(j Job) *turn { return &turn{job: j, ready: j.Mode != OnDemand} }

// Due returns what is to be started now and which running jobs are to be ended
// because they are due again and have KILL. allowed evaluates a CONDITION where
// the daemon's ad is at hand; a job whose condition is not true waits. A job
// waits as well while its load and that of the running ones exceed the budget.
// Due is called when Next says, after every Ended, Demand and Reconfigure, and
// now and then for the conditions.
func (s *Schedule) Due(now clock.Instant, allowed func(*classad.Expr) bool) (starts []Start, stops []string) {
	load := s.load()
	for _, t := range s.turns {
		if t.timed && t.due <= now.Boot {
			t.timed = false
			switch {
			case !t.running:
				t.ready = true
			case t.job.Kill && !t.stop:
				t.stop = true
				stops = append(stops, t.job.Name)
			}
			if t.job.Mode == Periodic {
				// Periods that passed unnoticed are not made up for.
				missed := (now.Boot - t.due) / t.job.Period
				t.due, t.timed = t.due+(missed+1)*t.job.Period, true
			}
		}
		if !t.ready || t.running || t.job.Load+load > s.max+slack || s.leaving(t.job.Name) {
			continue
		}
		if c := t.job.Condition; c != nil && !allowed(c) {
			continue
		}
		t.ready, t.running, t.stop = false, true, false
		t.started = now.Boot
		t.runs++
		switch {
		case t.job.Mode == WaitForExit:
			t.timed = false
		case t.job.Mode == Periodic && !t.timed:
			t.due, t.timed = now.Boot+t.job.Period, true
		}
		load += t.job.Load
		starts = append(starts, Start{Job: t.job})
	}
	return starts, stops
}

// Ended says that a job is not running any more, or could not be started.
func (s *Schedule) Ended(job string, now clock.Instant) {
	if s.leaving(job) {
		s.removed = slices.DeleteFunc(s.removed, func(t *turn) bool { return t.is(job) })
		return
	}
	t := s.find(job)
	if t == nil || !t.running {
		return
	}
	stopped := t.stop
	t.running, t.stop = false, false
	switch {
	case t.job.Mode == WaitForExit:
		t.due, t.timed = max(now.Boot+t.job.Period, t.started+pause), true
	case t.job.Mode == Periodic && stopped:
		t.ready = true // it was ended for this start
	}
}

// Demand asks for one run of an OnDemand job; it is false for any other job and
// for one that runs or waits already.
func (s *Schedule) Demand(job string) bool {
	t := s.find(job)
	if t == nil || t.job.Mode != OnDemand || t.running || t.ready {
		return false
	}
	t.ready = true
	return true
}

// Reconfigure takes a new list over. It returns the running jobs that are to be
// told by SIGHUP and those to be ended because they are not in the list any
// more. A job that goes on keeps its turn, by a changed period counted from its
// last start.
func (s *Schedule) Reconfigure(c Cron, now clock.Instant) (hups, stops []string) {
	old := s.turns
	s.turns, s.max = nil, c.MaxLoad
	for _, j := range c.Jobs {
		i := slices.IndexFunc(old, func(t *turn) bool { return t.is(j.Name) && t.job.Mode == j.Mode })
		if i < 0 {
			s.turns = append(s.turns, newTurn(j))
			continue
		}
		t := old[i]
		old = slices.Delete(old, i, i+1)
		moved := t.job.Period != j.Period
		t.job = j
		switch {
		case j.Rerun && t.runs > 0:
			t.ready = true // a running one goes on to its end first
		case t.running && j.Hup:
			hups = append(hups, j.Name)
		}
		if moved && t.runs > 0 && t.timed {
			t.due = max(t.started+j.Period, now.Boot)
		}
		s.turns = append(s.turns, t)
	}
	for _, t := range old {
		if t.running {
			t.stop = true
			s.removed = append(s.removed, t)
			stops = append(stops, t.job.Name)
		}
	}
	return hups, stops
}

// Next is when Due will next have something to say because time has passed. It
// is false while only an end, a demand or a condition can change that.
func (s *Schedule) Next() (time.Duration, bool) {
	var next time.Duration
	found := false
	for _, t := range s.turns {
		if t.timed && (!found || t.due < next) {
			next, found = t.due, true
		}
	}
	return next, found
}

// Waiting reports whether a job waits for its condition to become true, so that
// Due may have something to say at any time.
func (s *Schedule) Waiting() bool {
	return slices.ContainsFunc(s.turns, func(t *turn) bool { return t.ready && !t.running && t.job.Condition != nil })
}

// Idle reports whether nothing runs.
func (s *Schedule) Idle() bool { return !s.any() }

func (s *Schedule) any() bool {
	return len(s.removed) > 0 || slices.ContainsFunc(s.turns, func(t *turn) bool { return t.running })
}

func (s *Schedule) load() float64 {
	sum := 0.0
	for _, list := range [...][]*turn{s.turns, s.removed} {
		for _, t := range list {
			if t.running {
				sum += t.job.Load
			}
		}
	}
	return sum
}

// leaving reports whether a job of that name, out of the list, still runs. Its
// successor does not start before it has ended.
func (s *Schedule) leaving(job string) bool {
	return slices.ContainsFunc(s.removed, func(t *turn) bool { return t.is(job) })
}

func (s *Schedule) find(job string) *turn {
	for _, t := range s.turns {
		if t.is(job) {
			return t
		}
	}
	return nil
}

func (t *turn) is(job string) bool { return strings.EqualFold(t.job.Name, job) }
