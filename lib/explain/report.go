// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/policy"
)

// Report is an answer about a slot or a job.
type Report struct {
	Slot     string    `json:"slot,omitempty"`
	Job      string    `json:"job,omitempty"`
	State    string    `json:"state"`
	Activity string    `json:"activity,omitempty"`
	Since    time.Time `json:"since,omitzero"`

	Number string    `json:"transition,omitempty"` // of the last transition in the documents
	From   string    `json:"from,omitempty"`       // State/Activity before it
	At     time.Time `json:"at,omitzero"`          // when the last transition happened
	Why    string    `json:"why,omitempty"`

	// Answer says in one sentence or two why the slot takes no job, or what
	// becomes of the job.
	Answer string       `json:"answer,omitempty"`
	Exprs  []Expression `json:"expressions,omitempty"`
	Slots  []Verdict    `json:"slots,omitempty"` // for a job: what the slots say
	Notes  []string     `json:"notes,omitempty"`
}

// Expression is one that was asked, with its value and what it read.
type Expression struct {
	Name   string   `json:"name"`
	Text   string   `json:"text"`
	Value  string   `json:"value"`
	Origin string   `json:"origin"`           // file:line, template or <default>
	Macros []string `json:"macros,omitempty"` // that it goes through, with where they were set
	Reads  []string `json:"reads,omitempty"`  // "KeyboardIdle = 34", and where it was set if that is known
	// Residual is what would make it otherwise.
	Residual *Residual `json:"residual,omitempty"`
}

// Source is what answers are made from besides a slot and a job.
type Source struct {
	// Lookup finds a setting of the configuration.
	Lookup   func(name string) (config.Setting, bool)
	Now      time.Time
	Location *time.Location
	Rand     func() float64
	// Work, if set, is how many steps all evaluations of one answer may take
	// together; [MostWork] is a good number. Where they do not do, the answer
	// says that it was given up.
	Work *classad.Budget
}

// MostWork is how many steps an answer may take that keeps others waiting, about
// half of a second. What an expression costs is up to the one who wrote it, and a
// job's ad may come from anybody who may ask.
const MostWork = 8_000_000

// spent reports whether the answer has to be given up.
func (src Source) spent() bool { return src.Work != nil && src.Work.Spent() }

// gaveUp is what is said of a slot for which the steps did not do.
const gaveUp = "no answer was found: it takes too long to evaluate these expressions"

// Slot is a slot to be explained.
type Slot struct {
	Name   string
	Pair   policy.Pair
	Since  time.Time           // when the activity was entered
	Ad     *classad.Ad         // not to be changed
	Policy *policy.Expressions // may be nil
	Broken string              // why, "" if it is sound
	// Refused is why it takes no job for a while, since the machine is not
	// sound, "" if it is.
	Refused string

	// Last is the decision that led here, at LastAt; Present what the policy
	// says now. Both may be empty. Target is the job that Present asked about, of
	// the slot's claim; nil without one.
	Last, Present policy.Decision
	LastAt        time.Time
	Target        *classad.Ad

	Job   *classad.Ad // that runs, or that might; nil without one
	JobID string      // of the one that runs
}

// over is the slot's ad with the policy in it.
func (s *Slot) over() *classad.Ad {
	if s.Policy == nil {
		return s.Ad
	}
	return s.Policy.Over(s.Ad)
}

// OfSlot explains a slot.
func OfSlot(src Source, s Slot) *Report {
	r := &Report{
		Slot: s.Name, Job: s.JobID, State: s.Pair.State.String(), Activity: s.Pair.Activity.String(), Since: s.Since, At: s.LastAt,
		Why: s.Last.Reason,
	}
	if s.Last.Moves() {
		r.From = s.Last.From.String()
	}
	if s.Last.Number != 0 {
		r.Number = strconv.Itoa(s.Last.Number)
	}
	my := s.over()
	seen := map[string]bool{}
	for i, list := range [][]policy.Trace{s.Last.Trace, s.Present.Trace} {
		for _, t := range list {
			x := src.traced(t)
			if i == 1 {
				x.Residual = src.turned(t, my, s.Target)
			}
			if key := x.Name + "\x00" + x.Value; !seen[key] || x.Residual != nil {
				seen[key] = true
				r.Exprs = slices.DeleteFunc(r.Exprs, func(o Expression) bool { return o.Name == x.Name && o.Value == x.Value })
				r.Exprs = append(r.Exprs, x)
			}
		}
	}
	said := len(r.Exprs)
	var start *Expression
	if open(s.Pair.State) && s.Policy != nil {
		if e := s.Policy.Get(policy.Start); e.Expr != nil {
			x := src.asked(e, my, s.Job, true)
			r.Exprs = append(r.Exprs, x)
			start = &x
		}
	}
	keeps, may := src.kept(&s, my, r)
	r.Answer = answer(&s, keeps, may, start)
	if src.spent() {
		// What was evaluated last came to nothing: only what decisions saw is true.
		r.Exprs, r.Answer = r.Exprs[:min(said, len(r.Exprs))], s.Name+": "+gaveUp
		for i := range r.Exprs {
			r.Exprs[i].Residual = nil
		}
	}
	return r
}

// kept is IS_OWNER where it keeps a slot that nobody has for its owner: as the
// slot's own state has it, or if there is a job that might run, as it will be
// asked about that. may is IS_OWNER where it keeps the slot from some jobs only.
func (src Source) kept(s *Slot, my *classad.Ad, r *Report) (keeps, may *Expression) {
	if !open(s.Pair.State) {
		return nil, nil
	}
	isOwner := func(x *Expression) bool { return strings.HasSuffix(x.Name, policy.IsOwner.String()) }
	if s.Job != nil && s.Policy != nil {
		e := s.Policy.Get(policy.IsOwner)
		if e.Expr == nil {
			return nil, nil
		}
		x := src.asked(e, my, s.Job, false)
		if !slices.ContainsFunc(r.Exprs, func(o Expression) bool { return isOwner(&o) && o.Value == x.Value }) {
			said := x
			said.Name += " for this job"
			r.Exprs = append(r.Exprs, said)
		}
		if x.Residual.Is {
			return nil, nil
		}
		return &x, nil
	}
	for i := range r.Exprs {
		x := &r.Exprs[i]
		switch {
		case !isOwner(x) || x.Residual == nil:
		case s.Pair.State == policy.Owner:
			return x, nil
		case x.Residual.Need != nil && x.Residual.Need.dependsOnJob():
			return nil, x
		}
	}
	return nil, nil
}

// open reports whether a slot in that state may take a job if START says so.
func open(s policy.State) bool {
	return s == policy.Owner || s == policy.Unclaimed || s == policy.Backfill
}

// answer is the sentence about a slot. owner is IS_OWNER where that keeps the slot
// from jobs, may where it keeps it from some.
func answer(s *Slot, owner, may, start *Expression) string {
	switch {
	case s.Broken != "":
		return s.Name + " takes no job because it is broken: " + s.Broken
	case s.Pair.State == policy.Claimed && s.JobID != "":
		return s.Name + " takes no other job while it runs " + s.JobID
	case s.Pair.State == policy.Claimed:
		return s.Name + " is claimed and takes the jobs of its claim only"
	case s.Pair.State == policy.Matched:
		return s.Name + " waits for the one it was matched with"
	case s.Pair.State == policy.Preempting:
		return s.Name + " takes no job while it gets rid of the one it has"
	case s.Pair.State == policy.Drained:
		return s.Name + " takes no job while it is drained"
	}
	if s.Refused != "" {
		return s.Name + " takes no job because the machine has a fault: " + s.Refused
	}
	var out []string
	if owner != nil {
		who := s.Name + " takes no job because its owner has it"
		switch {
		case s.Job != nil:
			who = s.Name + " does not take this job because its owner keeps it"
		case owner.Residual.Need != nil && owner.Residual.Need.dependsOnJob():
			who = "whether " + s.Name + " takes a job depends on the job; without one its owner has it"
		}
		out = append(out, who+": "+owner.Name+" is "+owner.Value)
		if start == nil || !slices.EqualFunc(owner.Residual.Changes, start.Residual.Changes, Change.same) || len(owner.Residual.Changes) == 0 {
			out = append(out, owner.Residual.Sentence(owner.Name))
		}
	} else if s.Pair.State == policy.Owner && s.Job == nil {
		out = append(out, s.Name+" takes no job because its owner has it")
	}
	switch {
	case start == nil:
	case start.Residual.Is && len(out) > 0:
		out = append(out, start.Name+" is TRUE")
	case start.Residual.Is && may != nil:
		out = append(out, "whether "+s.Name+" takes a job depends on the job: "+may.Name+" is "+may.Value+" without one", may.Residual.Sentence(may.Name))
	case start.Residual.Is && s.Job == nil:
		out = append(out, s.Name+" takes any job that fits: "+start.Name+" is TRUE")
	case start.Residual.Is:
		out = append(out, s.Name+" would let this job in: "+start.Name+" is TRUE")
	case len(out) == 0 && s.Job == nil && start.Residual.Need != nil && start.Residual.Need.dependsOnJob():
		out = append(out, "whether "+s.Name+" takes a job depends on the job", start.Residual.Sentence(start.Name))
	default:
		if len(out) == 0 {
			out = append(out, s.Name+" takes no job")
		}
		out = append(out, start.Residual.Sentence(start.Name))
	}
	return strings.Join(out, "\n")
}

// same reports whether both set an attribute to the same.
func (c Change) same(o Change) bool {
	return c.Of == o.Of && c.Attribute == o.Attribute && c.To == o.To
}

// dependsOnJob reports whether nothing but what a job says is missing.
func (n *Need) dependsOnJob() bool {
	if n.Condition != "" {
		return n.NoJob
	}
	for i := range n.All {
		if !n.All[i].dependsOnJob() {
			return false
		}
	}
	for i := range n.Any {
		if n.Any[i].dependsOnJob() {
			return true
		}
	}
	return len(n.All) > 0
}

// traced is an expression as a decision saw it.
func (src Source) traced(t policy.Trace) Expression {
	x := Expression{Name: t.Name, Text: t.Text, Value: t.Taken}
	switch {
	case t.OfJob:
		x.Origin = "<job>"
	case t.Text != "":
		x.Origin, x.Macros = t.Origin.String(), src.macros(t.Origin)
	}
	for _, r := range t.Reads {
		x.read(src, r)
	}
	return x
}

// asked evaluates an expression of a slot, and says what would make it so.
func (src Source) asked(e policy.Expression, my, job *classad.Ad, want bool) Expression {
	x := Expression{Name: e.Name, Text: e.Expr.String(), Origin: e.Origin.String(), Macros: src.macros(e.Origin)}
	env := &classad.Env{My: my, Target: job, Now: src.Now, Location: src.Location, Rand: src.Rand, MaxSteps: maxSteps, Budget: src.Work}
	env.OnRead = func(r classad.Read) { x.read(src, r) }
	x.Value = word(e.Expr.Eval(env))
	x.Residual = src.find(e.Expr, my, job, want)
	return x
}

// find looks for what would make an expression of a slot so.
func (src Source) find(e *classad.Expr, my, job *classad.Ad, want bool) *Residual {
	r := Find(Question{Expr: e, Slot: my, Job: job, Want: want, Now: src.Now, Location: src.Location, Rand: src.Rand, Work: src.Work})
	return &r
}

// turned is what would make a condition that was asked come out otherwise, nil
// if it is no condition.
func (src Source) turned(t policy.Trace, my, job *classad.Ad) *Residual {
	if t.Text == "" || t.OfJob {
		return nil
	}
	var taken bool
	switch {
	case strings.HasSuffix(t.Taken, "TRUE"):
		taken = true
	case strings.HasSuffix(t.Taken, "FALSE"):
	default:
		return nil
	}
	e, err := classad.ParseExpr(t.Text, classad.Old)
	if err != nil {
		return nil
	}
	return src.find(e, my, job, !taken)
}

// macros are the settings that a value went through, with their places.
func (src Source) macros(o config.Origin) []string {
	var out []string
	for _, name := range o.Via {
		text := "$(" + name + ")"
		if src.Lookup != nil {
			if set, ok := src.Lookup(name); ok {
				text += " " + set.Origin.String()
			}
		}
		out = append(out, text)
	}
	return out
}

// read notes an attribute that was looked at, once.
func (x *Expression) read(src Source, r classad.Read) {
	if r.Scope == "" && strings.EqualFold(r.Name, "TARGET") {
		return // there is no job to ask
	}
	text := r.Name + " = " + word(r.Value)
	if r.Scope != "" {
		text = r.Scope + "." + text
	}
	if src.Lookup != nil && r.Scope != "TARGET" {
		if set, ok := src.Lookup(r.Name); ok && set.Origin.Kind != config.Default {
			text += "   " + set.Origin.String()
		}
	}
	if !slices.Contains(x.Reads, text) {
		x.Reads = append(x.Reads, text)
	}
}
