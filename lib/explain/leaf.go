// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
)

// Ranks of conditions: what comes by itself first, what is the nature of the
// slot last.
const (
	rankItself = iota
	rankJob
	rankSlot
	rankUnknown
	rankState
)

// natures are attributes of a slot that nobody changes to let a job in.
var natures = [...]string{"State", "Activity", "SlotID", "SlotTypeID", "SlotType", "PartitionableSlot", "DynamicSlot", "Name", "Machine",
	"OpSys", "Arch", "OpSysAndVer", "TotalCpus", "TotalMemory", "DetectedCpus", "DetectedMemory"}

func rankOf(r read) int {
	switch {
	case r.of == ofJob:
		return rankJob
	case slices.ContainsFunc(natures[:], func(n string) bool { return strings.EqualFold(n, r.name) }):
		return rankState
	case isGrowing(r.name) || isClock(r.name):
		return rankItself
	}
	return rankSlot
}

// opposite is the comparison that holds where another does not.
var opposite = map[string]string{
	"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "==", "=?=": "=!=", "=!=": "=?=",
}

// isComparison reports whether x compares two sides.
func isComparison(x classad.Syntax) bool {
	return x.Kind == classad.SyntaxBinary && opposite[x.Word] != ""
}

// watch notes when a comparison that is as wanted may turn.
func (f *finder) watch(p place) {
	if x := p.e.Syntax(); isComparison(x) {
		f.look(f.w.reads(p.e, p.s))
		f.times = append(f.times, f.turns(p, x)...)
	}
}

func (f *finder) look(reads []read) {
	for _, r := range reads {
		if !slices.ContainsFunc(f.seen, func(o read) bool { return o.of == r.of && strings.EqualFold(o.name, r.name) }) {
			f.seen = append(f.seen, r)
		}
	}
}

// leaf is a condition that is not taken apart further.
func (f *finder) leaf(p place, want goal, v classad.Value) *Need {
	x := p.e.Syntax()
	n := &Need{In: p.in, rank: rankUnknown}
	if x.Kind == classad.SyntaxLiteral {
		n.Condition, n.Never = "the constant "+word(v), true
		n.Now = "nothing changes it"
		return n
	}
	reads := f.w.reads(p.e, p.s)
	n.Condition = f.condition(p, x, want.truth)
	n.Now, n.NoJob = f.now(p, x, reads)
	if len(reads) == 0 && !f.timely(p.e) {
		n.Never = f.w.random == nil || !mentions(p.e, "random")
		n.Now = "it is " + word(v) + " whatever happens"
		return n
	}
	f.look(reads)
	if isComparison(x) {
		turns := f.turns(p, x)
		f.times = append(f.times, turns...)
		n.Forecast = f.forecast(p.e, p.s, want, turns, reads)
		if n.Forecast != nil {
			n.rank = rankItself
		}
	}
	if len(reads) > 0 && !slices.ContainsFunc(reads, func(r read) bool { return rankOf(r) != rankState }) {
		n.rank = rankState
	}
	slices.SortStableFunc(reads, func(a, b read) int { return cmp.Compare(rankOf(a), rankOf(b)) })
	n.Changes = f.solved(p, x, want, reads, n)
	if missing := f.supplied(reads); len(n.Changes) == 0 && len(missing) > 1 {
		// Several are not there: give them all a value, then look for the right one.
		g := finder{w: f.w.as(missing)}
		if c := g.solved(p, x, want, reads, n); len(c) > 0 {
			n.Changes = merged(missing, c)
		}
		f.w.tries = g.w.tries
	}
	return n
}

// solved returns the change of one of the attributes that makes the condition
// so, the best first; empty if there is none.
func (f *finder) solved(p place, x classad.Syntax, want goal, reads []read, n *Need) []Change {
	for _, r := range reads {
		if r.fixed {
			continue
		}
		if c, ok := f.solve(p, x, want, r); ok {
			n.rank = min(n.rank, rankOf(r))
			return []Change{c}
		}
	}
	return nil
}

// supplied are the attributes that are nowhere, each with a value.
func (f *finder) supplied(reads []read) []Change {
	var out []Change
	for _, r := range reads {
		if _, ok := f.w.lookup(r.of, r.name); !ok {
			e := classad.Literal(classad.Int(1))
			out = append(out, Change{Of: r.of.String(), Attribute: r.name, To: e.String(), to: e})
		}
	}
	return out
}

// timely reports whether an expression asks for the time.
func (f *finder) timely(e *classad.Expr) bool {
	return mentions(e, "time") || mentions(e, "CurrentTime")
}

// mentions reports whether a function or an attribute of that name is in e.
func mentions(e *classad.Expr, name string) bool {
	left := maxParts
	var walk func(e *classad.Expr) bool
	walk = func(e *classad.Expr) bool {
		if left--; left < 0 {
			return false
		}
		x := e.Syntax()
		if (x.Kind == classad.SyntaxCall || x.Kind == classad.SyntaxName) && strings.EqualFold(x.Word, name) {
			return true
		}
		return slices.ContainsFunc(x.Args, walk)
	}
	return walk(e)
}

// solve looks for the value of one attribute that makes the condition so.
func (f *finder) solve(p place, x classad.Syntax, want goal, r read) (Change, bool) {
	change := Change{Of: r.of.String(), Attribute: r.name, From: word(r.value)}
	if _, ok := f.w.lookup(r.of, r.name); !ok {
		change.From = ""
	}
	for _, e := range f.candidates(p, x, r) {
		change.to = e
		if is(f.w.value(p.e, p.s, supposed{changes: []Change{change}}), want) {
			change.To = e.String()
			return change, true
		}
	}
	return Change{}, false
}

// maxCandidates bounds the values that are tried for one attribute.
const maxCandidates = 40

// candidates are values worth trying for an attribute, the nearest first.
func (f *finder) candidates(p place, x classad.Syntax, r read) []*classad.Expr {
	var out []*classad.Expr
	add := func(v classad.Value) {
		if len(out) < maxCandidates {
			out = append(out, classad.Literal(v))
		}
	}
	if isComparison(x) {
		for _, v := range f.crossings(p, x, r) {
			add(v)
		}
		for i, a := range x.Args {
			if n := a.Syntax(); n.Kind == classad.SyntaxName && strings.EqualFold(n.Word, r.name) {
				add(f.w.value(x.Args[1-i], p.s, supposed{}))
			}
		}
	}
	add(classad.Bool(true))
	add(classad.Bool(false))
	for _, text := range texts(p.e) {
		add(classad.String(text))
	}
	add(classad.String(""))
	add(classad.Int(1))
	add(classad.Int(0))
	if !r.value.IsUndefined() {
		add(classad.Undefined())
	}
	return out
}

// crossings are the numbers around which both sides are equal, if they go
// straight with the attribute.
func (f *finder) crossings(p place, x classad.Syntax, r read) []classad.Value {
	from, ok := r.value.AsNumber()
	if !ok {
		from = 0
	}
	_, whole := r.value.AsInt()
	diff := func(at float64) (float64, bool) {
		var to classad.Value
		if whole || !ok {
			to = classad.Int(int64(at))
		} else {
			to = classad.Real(at)
		}
		as := supposed{changes: []Change{{Of: r.of.String(), Attribute: r.name, to: classad.Literal(to)}}}
		a, okA := f.w.value(x.Args[0], p.s, as).AsNumber()
		b, okB := f.w.value(x.Args[1], p.s, as).AsNumber()
		return a - b, okA && okB
	}
	d0, ok0 := diff(from)
	d1, ok1 := diff(from + 1)
	slope := d1 - d0
	if !ok0 || !ok1 || slope == 0 || math.IsNaN(slope) || math.IsInf(slope, 0) {
		return nil
	}
	at := from - d0/slope
	if math.IsNaN(at) || math.Abs(at) > 1<<52 {
		return nil
	}
	low, high := math.Floor(at), math.Ceil(at)
	list := []float64{low, high, low - 1, high + 1}
	if !whole && ok {
		near := max(0.01, math.Abs(at)*1e-6)
		for _, n := range [...]float64{at, at - near, at + near} {
			round := math.Round(n*1e4) / 1e4
			list = append(list, round)
			if math.Abs(round-n) > 1e-9 {
				list = append(list, n)
			}
		}
	}
	slices.SortStableFunc(list, func(a, b float64) int { return cmp.Compare(math.Abs(a-from), math.Abs(b-from)) })
	var out []classad.Value
	for _, n := range slices.Compact(list) {
		if n == math.Trunc(n) && (whole || !ok) {
			out = append(out, classad.Int(int64(n)))
		} else {
			out = append(out, classad.Real(n))
		}
	}
	return out
}

// texts are the strings in an expression, and the items of those that are
// lists.
func texts(e *classad.Expr) []string {
	var out []string
	left := maxParts
	var walk func(e *classad.Expr)
	walk = func(e *classad.Expr) {
		if left--; left < 0 || len(out) > maxCandidates {
			return
		}
		x := e.Syntax()
		if v, ok := e.LiteralValue(); ok {
			if s, ok := v.AsString(); ok && len(s) < 1<<10 {
				out = append(out, s)
				if items := strings.FieldsFunc(s, func(c rune) bool { return c == ',' || c == ' ' }); len(items) > 1 {
					out = append(out, items[:min(len(items), 4)]...)
				}
			}
		}
		for _, a := range x.Args {
			walk(a)
		}
	}
	walk(e)
	return out
}
