// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
)

// Question asks what would make an expression TRUE, or FALSE.
type Question struct {
	Expr  *classad.Expr
	OfJob bool // Expr is the job's; otherwise it is the slot's
	// Slot is the slot's ad, in which the policy's other expressions can be
	// seen by name. Job is nil if there is none: what is asked of it is then
	// said to depend on the job.
	Slot, Job *classad.Ad
	Want      bool

	Now      time.Time
	Location *time.Location // nil is UTC
	Rand     func() float64 // for random(); nil: it gives error
	// Work is what all evaluations may take together, with those of other
	// questions. Once it is spent the answer is worth nothing. Nil: no bound.
	Work *classad.Budget
}

// Residual is what stands between an expression and a truth.
type Residual struct {
	Want  bool   `json:"want"`  // what it is to come to
	Value string `json:"value"` // what it comes to now: "FALSE", "UNDEFINED"
	// Is is set if it comes to that already; there is nothing else then.
	Is bool `json:"is,omitempty"`
	// Never is set if it comes to that whatever changes.
	Never bool `json:"never,omitempty"`
	// Constant is set if the whole expression is one.
	Constant bool `json:"constant,omitempty"`
	// Need says what is missing.
	Need *Need `json:"need,omitempty"`
	// Changes are one way to it, the least that was found. They were tried:
	// with them the expression does come to Want. Empty if none was found.
	Changes []Change `json:"changes,omitempty"`
	// Forecast is when it comes to that by itself; nil if that cannot be told.
	Forecast *Forecast `json:"forecast,omitempty"`

	tries int // evaluations that it took
}

// Need is a condition that is not met, or several.
type Need struct {
	All []Need `json:"all,omitempty"` // each of them is missing
	Any []Need `json:"any,omitempty"` // one of them would do

	// A single condition, as it would have to be: "KeyboardIdle > 900".
	Condition string `json:"condition,omitempty"`
	// In is the attribute it is written in, "" for the expression itself.
	In string `json:"in,omitempty"`
	// Now is what is there instead: "it is 34 now".
	Now      string    `json:"now,omitempty"`
	Never    bool      `json:"never,omitempty"`  // a constant, which nothing changes
	NoJob    bool      `json:"no_job,omitempty"` // it depends on a job, and there is none
	Changes  []Change  `json:"changes,omitempty"`
	Forecast *Forecast `json:"forecast,omitempty"`

	rank int // how likely it is that a person can bring it about; less is better
}

// Change is one attribute with another value.
type Change struct {
	Of        string `json:"of"` // "slot" or "job"
	Attribute string `json:"attribute"`
	From      string `json:"from"` // its value now
	To        string `json:"to"`   // as it would be written

	to *classad.Expr
}

// Expr is To as an expression.
func (c Change) Expr() *classad.Expr { return c.to }

// Forecast is when a condition comes about by itself.
type Forecast struct {
	Seconds int64 `json:"after_s"`
	// Provided is what must go on as it is: "nobody types".
	Provided string `json:"provided,omitempty"`
}

// After is for how long from now on it has not come about.
func (f *Forecast) After() time.Duration { return time.Duration(f.Seconds) * time.Second }

// Find looks for what is missing. It looks at the whole expression, through
// the definitions of the names in it, and says nothing that it has not tried.
func Find(q Question) (r Residual) {
	w := &world{slot: q.Slot, job: q.Job, now: q.Now, location: q.Location, random: q.Rand, work: q.Work}
	if w.slot == nil {
		w.slot = classad.NewAd()
	}
	f := finder{w: w, parts: maxParts}
	s := side(q.OfJob)
	want := goal{truth: q.Want}
	v := w.value(q.Expr, s, supposed{})
	r = Residual{Want: q.Want, Value: word(v)}
	defer func() { r.tries = w.tries }()
	_, r.Constant = q.Expr.LiteralValue()
	if is(v, want) {
		r.Is = true
		return r
	}
	need := f.need(place{e: q.Expr, s: s}, want)
	if need == nil {
		return r
	}
	r.Need = need
	if r.Never = need.never(); r.Never {
		return r
	}
	r.Changes = f.way(q.Expr, s, want, need)
	r.Forecast = f.forecast(q.Expr, s, want, f.times, f.seen)
	return r
}

// maxRounds bounds how often a way is looked for from where the last one led.
const maxRounds = 4

// way returns changes with which an expression comes to what is wanted, empty
// if none are found. What is missing together may ask two things of one
// attribute, or one change may ask for another: then the way goes on from
// there.
func (f *finder) way(e *classad.Expr, s side, want goal, need *Need) []Change {
	for _, choose := range [...]func(*Need) []Change{(*Need).leastWay, (*Need).everyWay} {
		var made []Change
		for n, round := need, 0; n != nil && round < maxRounds; round++ {
			step := choose(n)
			if len(step) == 0 {
				break
			}
			made = merged(made, step)
			if is(f.w.value(e, s, supposed{changes: made}), want) {
				return made
			}
			next := finder{w: f.w.as(made), parts: maxParts}
			n = next.need(place{e: e, s: s}, want)
			f.w.tries = next.w.tries
		}
	}
	return nil
}

// merged is made with the changes of step, which go before.
func merged(made, step []Change) []Change {
	out := slices.Clone(made)
	for _, c := range step {
		i := slices.IndexFunc(out, func(o Change) bool { return o.Of == c.Of && strings.EqualFold(o.Attribute, c.Attribute) })
		if i < 0 {
			out = append(out, c)
			continue
		}
		c.From = out[i].From
		out[i] = c
	}
	return out
}

// finder walks through one expression.
type finder struct {
	w     *world
	parts int
	times []time.Duration // when a comparison may turn
	seen  []read          // what comparisons look at
}

// place is where an expression stands.
type place struct {
	e      *classad.Expr
	s      side
	in     string   // attribute, "" for the one that was asked about
	inside []string // attributes under way, to notice a circle
	depth  int
}

func (p place) part(e *classad.Expr) place {
	p.e = e
	p.depth++
	return p
}

// need returns what an expression misses, nil if it misses nothing.
func (f *finder) need(p place, want goal) *Need {
	f.parts--
	v := f.w.value(p.e, p.s, supposed{})
	met := is(v, want)
	if f.parts < 0 || p.depth > maxNested {
		if met {
			return nil
		}
		return f.leaf(p, want, v)
	}
	x := p.e.Syntax()
	switch {
	case x.Kind == classad.SyntaxUnary && x.Word == "!":
		return f.need(p.part(x.Args[0]), want.not())
	case x.Kind == classad.SyntaxBinary && (x.Word == "&&" || x.Word == "||"):
		return f.logic(p, x, want, met)
	case x.Kind == classad.SyntaxChoice, x.Kind == classad.SyntaxCall && strings.EqualFold(x.Word, "ifThenElse") && len(x.Args) == 3:
		return f.choice(p, x, want, met)
	case x.Kind == classad.SyntaxBinary && opposite[x.Word] != "":
		if n, ok := f.truthTest(p, x, want); ok {
			return n
		}
	case x.Kind == classad.SyntaxName:
		if n, ok := f.definition(p, x, want); ok {
			return n
		}
	}
	if met {
		f.watch(p)
		return nil
	}
	return f.leaf(p, want, v)
}

// logic is && and ||. Both sides are needed for TRUE of && and FALSE of ||,
// one for the others.
func (f *finder) logic(p place, x classad.Syntax, want goal, met bool) *Need {
	a, b := f.need(p.part(x.Args[0]), want), f.need(p.part(x.Args[1]), want)
	if met {
		return nil
	}
	if want.truth == (x.Word == "&&") {
		return both(a, b)
	}
	// An error on the left makes the whole an error whatever the right says.
	if f.w.value(x.Args[0], p.s, supposed{}).IsError() || b == nil {
		return a
	}
	return either(a, b)
}

// choice is c ? x : y. The branch that is taken now is the one to look at,
// unless nothing can come of it.
func (f *finder) choice(p place, x classad.Syntax, want goal, met bool) *Need {
	c := f.w.value(x.Args[0], p.s, supposed{})
	yes, no := is(c, goal{truth: true}), is(c, goal{})
	f.need(p.part(x.Args[0]), goal{truth: !yes}) // for when it turns
	branch := func(i int, cond bool) *Need {
		return both(f.need(p.part(x.Args[0]), goal{truth: cond}), f.need(p.part(x.Args[i]), want))
	}
	if met {
		f.need(p.part(x.Args[0]), goal{truth: no})
		return nil
	}
	var here, other *Need
	switch {
	case yes:
		if here = f.need(p.part(x.Args[1]), want); here.possible() {
			return here
		}
		other = branch(2, false)
	case no:
		if here = f.need(p.part(x.Args[2]), want); here.possible() {
			return here
		}
		other = branch(1, true)
	default:
		here, other = branch(1, true), branch(2, false)
	}
	return either(here, other)
}

// truthTest is a comparison of a condition with TRUE or FALSE, such as
// START =?= FALSE: what matters is the condition. ok is false if x is none.
func (f *finder) truthTest(p place, x classad.Syntax, want goal) (n *Need, ok bool) {
	for i, a := range x.Args {
		v, constant := a.LiteralValue()
		b, isBool := v.AsBool()
		other := x.Args[1-i]
		if !constant || !isBool || !f.composed(p, other) {
			continue
		}
		g := want
		switch x.Word {
		case "=?=", "=!=":
			// What is neither is not b either.
			is := want.truth == (x.Word == "=?=")
			g = goal{truth: b == is, loose: !is}
		case "==":
			g.truth = b == want.truth
		case "!=":
			g.truth = b != want.truth
		default:
			continue
		}
		return f.need(p.part(other), g), true
	}
	return nil, false
}

// composed reports whether an expression is a condition of several parts, or
// the name of one.
func (f *finder) composed(p place, e *classad.Expr) bool {
	x := e.Syntax()
	switch x.Kind {
	case classad.SyntaxUnary:
		return x.Word == "!"
	case classad.SyntaxBinary:
		return x.Word == "&&" || x.Word == "||" || opposite[x.Word] != ""
	case classad.SyntaxName:
		s := p.s
		if x.Scope == "TARGET" {
			s = !s
		}
		def, ok := f.w.lookup(s, x.Word)
		return ok && p.depth < maxNested && f.composed(place{s: s, depth: p.depth + 1}, def)
	}
	return false
}

// definition goes on in what a name stands for. ok is false if that is a
// constant, nothing, or the name leads back to itself.
func (f *finder) definition(p place, x classad.Syntax, want goal) (n *Need, ok bool) {
	s := p.s
	if x.Scope == "TARGET" {
		s = !s
	}
	e, found := f.w.lookup(s, x.Word)
	if !found && x.Scope == "" {
		s = !s
		e, found = f.w.lookup(s, x.Word)
	}
	if !found {
		return nil, false
	}
	if _, constant := e.LiteralValue(); constant {
		return nil, false
	}
	key := s.String() + "." + strings.ToLower(x.Word)
	for _, name := range p.inside {
		if name == key {
			return nil, false
		}
	}
	inside := append(p.inside[:len(p.inside):len(p.inside)], key)
	return f.need(place{e: e, s: s, in: x.Word, inside: inside, depth: p.depth + 1}, want), true
}

// both joins what is missing of two that must come.
func both(a, b *Need) *Need {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	n := &Need{}
	for _, x := range []*Need{a, b} {
		if len(x.All) > 0 {
			n.All = append(n.All, x.All...)
		} else {
			n.All = append(n.All, *x)
		}
		n.rank = max(n.rank, x.rank)
	}
	return n.once(n.All)
}

// either joins two of which one would do. What cannot be changed is left out
// if there is something else.
func either(a, b *Need) *Need {
	switch {
	case !a.possible():
		return b
	case !b.possible() || a == nil:
		return a
	case a.rank >= rankState && b.rank < rankState:
		return b
	case b.rank >= rankState && a.rank < rankState:
		return a
	}
	n := &Need{rank: min(a.rank, b.rank)}
	for _, x := range []*Need{a, b} {
		if len(x.Any) > 0 {
			n.Any = append(n.Any, x.Any...)
		} else {
			n.Any = append(n.Any, *x)
		}
	}
	return n.once(n.Any)
}

// once drops what is said twice in a list of n.
func (n *Need) once(list []Need) *Need {
	var out []Need
	said := map[string]bool{}
	for i := range list {
		key := strings.Join(list[i].lines(""), "\n")
		if !said[key] {
			said[key] = true
			out = append(out, list[i])
		}
	}
	switch {
	case len(out) == 1:
		return &out[0]
	case len(n.All) > 0:
		n.All = out
	default:
		n.Any = out
	}
	return n
}

// possible reports whether there is a way; nothing missing is one.
func (n *Need) possible() bool { return n == nil || !n.never() }

// never reports whether a constant stands in the way.
func (n *Need) never() bool {
	if n.Never {
		return true
	}
	for i := range n.All {
		if n.All[i].never() {
			return true
		}
	}
	for i := range n.Any {
		if !n.Any[i].never() {
			return false
		}
	}
	return len(n.Any) > 0
}

// leastWay takes of alternatives the best that has a way.
func (n *Need) leastWay() []Change {
	if len(n.Any) > 0 {
		var best []Change
		rank := 0
		for i := range n.Any {
			if c := n.Any[i].leastWay(); len(c) > 0 && (best == nil || n.Any[i].rank < rank) {
				best, rank = c, n.Any[i].rank
			}
		}
		return best
	}
	return n.joined((*Need).leastWay)
}

// everyWay takes the last of alternatives that has a way.
func (n *Need) everyWay() []Change {
	for i := len(n.Any) - 1; i >= 0; i-- {
		if c := n.Any[i].everyWay(); len(c) > 0 {
			return c
		}
	}
	return n.joined((*Need).everyWay)
}

// joined is the way to all of n, empty if one of them has none.
func (n *Need) joined(way func(*Need) []Change) []Change {
	if len(n.All) == 0 {
		return n.Changes
	}
	var out []Change
	for i := range n.All {
		c := way(&n.All[i])
		if len(c) == 0 {
			return nil
		}
		out = append(out, c...)
	}
	return out
}
