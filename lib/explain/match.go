// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/spelling"
)

// Verdict is what slots that say the same say of a job, and it of them.
type Verdict struct {
	Slots []string `json:"slots"`
	// Takes is set if the job can start there now.
	Takes bool `json:"takes"`
	// Busy is the state of slots that would accept the job but have another,
	// or are not for jobs at present: "Claimed/Busy".
	Busy string `json:"busy,omitempty"`
	// Refusals are the sides that do not accept.
	Refusals []Refusal `json:"refusals,omitempty"`
	// GivenUp is set if it is not known, since the expressions take too long.
	GivenUp bool `json:"given_up,omitempty"`

	key string
}

// Refusal is a side of a match that does not accept the other.
type Refusal struct {
	Name     string   `json:"name"` // START, WithinResourceLimits, Requirements of the job
	Value    string   `json:"value"`
	Origin   string   `json:"origin,omitempty"`
	Residual Residual `json:"residual"`
}

// What refuses a job besides the owner's policy.
const (
	limits   = "WithinResourceLimits"
	ofTheJob = "Requirements of the job"
)

// maxJudged bounds the evaluations that one job may take over all slots, about
// a third of a second. Of the slots beyond it is only said which sides refuse.
const maxJudged = 200_000

// Judge holds a job against slots and puts together those that say the same.
// A slot's own Job is not looked at.
func Judge(src Source, job *classad.Ad, slots []Slot) []Verdict {
	var out []Verdict
	left := maxJudged
next:
	for i := range slots {
		v := src.judge(job, &slots[i], &left)
		for k := range out {
			if out[k].key == v.key {
				out[k].Slots = append(out[k].Slots, v.Slots...)
				continue next
			}
		}
		out = append(out, v)
	}
	return out
}

func (src Source) judge(job *classad.Ad, s *Slot, left *int) Verdict {
	v := Verdict{Slots: []string{s.Name}}
	my := s.over()
	ask := func(name, origin string, e *classad.Expr, of side) {
		q := Question{Expr: e, OfJob: of == ofJob, Slot: my, Job: job, Want: true, Now: src.Now, Location: src.Location, Rand: src.Rand, Work: src.Work}
		r := q.only()
		if !r.Is && *left > 0 && !src.spent() {
			r = Find(q)
			*left -= r.tries
		}
		if !r.Is {
			v.Refusals = append(v.Refusals, Refusal{Name: name, Value: r.Value, Origin: origin, Residual: r})
		}
	}
	switch {
	case s.Broken != "":
		v.Busy = "broken: " + s.Broken
	case !open(s.Pair.State):
		v.Busy = s.Pair.String()
	case s.Refused != "":
		v.Busy = "refusing jobs because of a fault of the machine: " + s.Refused
	}
	if s.Policy != nil {
		if e := s.Policy.Get(policy.Start); e.Expr != nil {
			ask(e.Name, e.Origin.String(), e.Expr, ofSlot)
		}
	} else if e, ok := s.Ad.Lookup("Start"); ok {
		ask("Start", "", e, ofSlot)
	}
	if s.Policy != nil {
		v.Refusals = append(src.owned(my, s, job, v.Refusals, left), v.Refusals...)
	}
	if e, ok := s.Ad.Lookup(limits); ok {
		ask(limits, "", e, ofSlot)
	}
	if e, ok := job.Lookup("Requirements"); ok {
		ask(ofTheJob, "", e, ofJob)
	}
	if src.spent() { // then the last of what was evaluated came to nothing
		v.Refusals, v.GivenUp = nil, true
	}
	v.Takes = !v.GivenUp && v.Busy == "" && len(v.Refusals) == 0
	v.key = strings.Join(v.lines(), "\n")
	return v
}

// only is an answer without a search.
func (q *Question) only() Residual {
	w := &world{slot: q.Slot, job: q.Job, now: q.Now, location: q.Location, random: q.Rand, work: q.Work}
	v := w.value(q.Expr, side(q.OfJob), supposed{})
	return Residual{Want: q.Want, Value: word(v), Is: is(v, goal{truth: q.Want})}
}

// owned is the refusal of a slot that its owner keeps from the job, none if what
// refused so far lacks the same.
func (src Source) owned(my *classad.Ad, s *Slot, job *classad.Ad, so []Refusal, left *int) []Refusal {
	e := s.Policy.Get(policy.IsOwner)
	if e.Expr == nil {
		return nil
	}
	q := Question{Expr: e.Expr, Slot: my, Job: job, Want: false, Now: src.Now, Location: src.Location, Rand: src.Rand, Work: src.Work}
	r := q.only()
	if r.Is {
		return nil
	}
	if *left > 0 && !src.spent() {
		r = Find(q)
		*left -= r.tries
	}
	if slices.ContainsFunc(so, func(o Refusal) bool { return slices.EqualFunc(o.Residual.Changes, r.Changes, Change.same) }) {
		return nil
	}
	return []Refusal{{Name: e.Name, Value: r.Value, Origin: e.Origin.String(), Residual: r}}
}

// lines says it without the names of the slots.
func (v *Verdict) lines() []string {
	if v.Takes {
		return []string{"would take the job now"}
	}
	var out []string
	if v.Busy != "" {
		out = append(out, "is "+v.Busy)
	}
	if v.GivenUp {
		out = append(out, gaveUp)
	}
	for i := range v.Refusals {
		r := &v.Refusals[i]
		text := r.Residual.Sentence(r.Name)
		if r.Origin != "" {
			head, rest, more := strings.Cut(text, "\n")
			text = head + " [" + r.Origin + "]"
			if more {
				text += "\n" + rest
			}
		}
		out = append(out, strings.Split(text, "\n")...)
	}
	return out
}

// who names the slots of a verdict: "slot1", "3 slots (slot1, slot2, slot3)".
func (v *Verdict) who() string {
	const shown = 6
	if len(v.Slots) == 1 {
		return v.Slots[0]
	}
	names := v.Slots
	more := ""
	if len(names) > shown {
		names, more = names[:shown], ", …"
	}
	return fmt.Sprintf("%d slots (%s%s)", len(v.Slots), strings.Join(names, ", "), more)
}

// JobAnswer is the sentence about a job that waits, or might be submitted.
func JobAnswer(verdicts []Verdict) string {
	takes, busy, unknown, all := 0, 0, 0, 0
	for i := range verdicts {
		n := len(verdicts[i].Slots)
		all += n
		switch {
		case verdicts[i].Takes:
			takes += n
		case verdicts[i].GivenUp:
			unknown += n
		case verdicts[i].Busy != "" && len(verdicts[i].Refusals) == 0:
			busy += n
		}
	}
	slots := func(n int) string { return spelling.Count(n, "slot") }
	switch {
	case all == 0:
		return "there is no slot"
	case takes > 0:
		return fmt.Sprintf("%d of %s would take the job now", takes, slots(all))
	case busy > 0:
		return fmt.Sprintf("no slot is free; %d of %s would take the job then", busy, slots(all))
	}
	if unknown > 0 {
		return fmt.Sprintf("whether %d of %s would take the job is not known: %s", unknown, slots(all), gaveUp)
	}
	return "no slot takes the job now"
}
