// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/policy"
)

// Result is what came of a scenario. Times count from its beginning.
type Result struct {
	Name     string
	Start    time.Time
	End      time.Duration
	Down     time.Duration // when the Execution Point had ended, negative: never
	Moves    []Move
	Jobs     []JobResult
	Notes    []Note // what was refused
	Warnings []Note // expressions that gave what they are not asked for
	Total    Totals
}

// Move is one move of a slot.
type Move struct {
	At       time.Duration
	Slot     string
	From, To policy.Pair
	Dynamic  bool   // the slot is a dynamic one
	Number   int    // of the transition in the documents, 0 if it has none
	Reason   string // as the field's logs have it
	Job      string // "3.0", "" if none was there
	// What decided, if an expression did.
	Expression string // its name as configured
	Text       string
	Value      string
	Origin     string // file:line where it was configured
	Reads      []string
}

// JobResult is what became of a job.
type JobResult struct {
	ID        string
	Kind      string
	State     string // idle, matched, running, completed, held, removed
	Why       string // of held or removed
	Arrived   time.Duration
	Began     time.Duration // of its first run, negative: never
	Ended     time.Duration // negative: not yet
	Starts    int
	Evictions int
	Done      time.Duration // run time that counts
	Lost      time.Duration // run time that was thrown away
	Running   time.Duration // run time of a run that goes on
	Suspended time.Duration
}

// Note is something to be told besides the moves.
type Note struct {
	At   time.Duration
	Line int // of the scenario, 0 if it comes from none
	Text string
}

// Totals are sums over all jobs, in run time of jobs.
type Totals struct {
	Jobs, Completed, Held, Removed int
	Starts, Evictions              int
	Suspensions                    int
	Good, Bad, Running             time.Duration
	Waited                         time.Duration // until the first start, of those that started
	Began                          int           // those that started
	Moves                          int
}

// maxReads is how many values of a decision are kept for each move.
const maxReads = 12

// moved notes a move.
func (r *run) moved(t ep.Transitioned) {
	m := Move{Slot: t.Name, Dynamic: t.Slot.Sub != 0, From: t.From, To: t.To, Number: t.Number, Reason: t.Decision.Reason}
	if r.w != nil {
		m.At = r.w.elapsed()
		if q := r.w.ap.running[t.Activation]; q != nil {
			m.Job = q.label()
		}
	}
	if tr := decisive(&t.Decision); tr != nil {
		m.Expression, m.Text, m.Value = tr.Name, tr.Text, tr.Value.Text(classad.Old)
		if tr.OfJob {
			m.Origin = "the job"
		} else {
			m.Origin = tr.Origin.String()
		}
		for _, read := range tr.Reads[:min(len(tr.Reads), maxReads)] {
			name := read.Name
			if read.Scope != "" {
				name = read.Scope + "." + name
			}
			m.Reads = append(m.Reads, name+" = "+read.Value.Text(classad.Old))
		}
	}
	if m.To == policy.ClaimedSuspended {
		r.res.Total.Suspensions++
	}
	r.res.Moves = append(r.res.Moves, m)
}

// decisive returns the expression on which a decision rests, nil if it rests on
// none: the one that its reason names, or what ended a retirement.
func decisive(d *policy.Decision) *policy.Trace {
	wanted := []string{strings.ToUpper(d.Reason)}
	switch {
	case d.Hold != nil:
		wanted = []string{"WANT_HOLD"}
	case strings.Contains(d.Reason, "retirement ended"):
		wanted = []string{"MAXJOBRETIREMENTTIME", "WANT_VACATE"}
	}
	for _, text := range wanted {
		for i := len(d.Trace) - 1; i >= 0; i-- {
			tr := &d.Trace[i]
			name := strings.TrimSuffix(strings.ToUpper(tr.Name), "_VANILLA")
			if rest, ok := strings.CutPrefix(name, "SLOT_TYPE_"); ok {
				_, name, _ = strings.Cut(rest, "_")
			}
			if tr.Text != "" && strings.Contains(text, name) {
				return tr
			}
		}
	}
	return nil
}

// finish takes stock.
func (r *run) finish() {
	t := &r.res.Total
	if r.w.life.over {
		r.res.Down = r.w.life.ended.Sub(r.w.begun)
	}
	for _, q := range r.w.ap.all {
		j := JobResult{
			ID: q.label(), Kind: q.name, State: q.state.String(), Why: q.outcome.why, Arrived: q.record.arrived, Began: q.record.began, Ended: q.record.end,
			Starts: q.record.starts, Evictions: q.record.evictions, Done: q.record.kept, Lost: q.record.lost, Suspended: q.record.suspended,
		}
		if a := r.w.starters[q.act]; a != nil && q.act != "" {
			j.Running = a.runTime()
		}
		if q.state == active || q.state == waiting || q.state == done {
			j.Why = ""
		}
		if q.state == removed {
			// What was done for a job that is thrown away is lost.
			j.Lost, j.Done = j.Lost+j.Done, 0
		}
		t.Jobs++
		switch q.state {
		case done:
			t.Completed++
		case onHold:
			t.Held++
		case removed:
			t.Removed++
		}
		t.Starts += j.Starts
		t.Evictions += j.Evictions
		t.Good += j.Done
		t.Bad += j.Lost
		t.Running += j.Running
		if j.Began >= 0 {
			t.Waited += j.Began - j.Arrived
			t.Began++
		}
		r.res.Jobs = append(r.res.Jobs, j)
	}
	t.Moves = len(r.res.Moves)
}
