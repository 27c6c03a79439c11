// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"math"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
)

// Limits of one question: expressions may come from an enemy.
const (
	maxSteps  = 20_000 // of one evaluation
	maxTries  = 4_000  // evaluations
	maxParts  = 600    // parts of expressions looked at
	maxNested = 24     // operators and definitions inside one another
)

// world is the two ads with the time, as they are or as they might be.
type world struct {
	slot, job *classad.Ad // job is nil without one
	now       time.Time
	location  *time.Location
	random    func() float64
	tries     int
	work      *classad.Budget // nil: no bound but those above
}

// side is the ad an expression belongs to.
type side bool

const (
	ofSlot side = false
	ofJob  side = true
)

func (s side) String() string {
	if s == ofJob {
		return "job"
	}
	return "slot"
}

// supposed is what is taken to be otherwise: some attributes, and the time.
type supposed struct {
	changes []Change
	after   time.Duration
}

// as is the world in which changes are made; it shares the count of tries.
func (w *world) as(changes []Change) *world {
	x := *w
	x.slot, x.job = w.ads(supposed{changes: changes})
	return &x
}

// ads are the two ads as they would be.
func (w *world) ads(as supposed) (slot, job *classad.Ad) {
	slot, job = w.slot, w.job
	if len(as.changes) == 0 && as.after == 0 {
		return slot, job
	}
	slot = classad.NewAd()
	slot.SetParent(w.slot)
	w.age(slot, as.after)
	for _, c := range as.changes {
		if c.Of == ofSlot.String() {
			slot.Set(c.Attribute, c.to)
			continue
		}
		if job == w.job {
			job = classad.NewAd()
			if w.job != nil {
				job.SetParent(w.job)
			}
		}
		job.Set(c.Attribute, c.to)
	}
	return slot, job
}

// env is where an expression of that side is evaluated.
func (w *world) env(s side, as supposed) *classad.Env {
	slot, job := w.ads(as)
	env := &classad.Env{My: slot, Target: job, Now: w.now.Add(as.after), Location: w.location, Rand: w.random, MaxSteps: maxSteps, Budget: w.work}
	if s == ofJob {
		env.My, env.Target = job, slot
	}
	return env
}

// value evaluates an expression of that side; error when too much was asked.
func (w *world) value(e *classad.Expr, s side, as supposed) classad.Value {
	if w.tries >= maxTries || w.work != nil && w.work.Spent() {
		return classad.ErrorValue()
	}
	w.tries++
	return e.Eval(w.env(s, as))
}

// reads returns what an evaluation looks at, each attribute once.
func (w *world) reads(e *classad.Expr, s side) []read {
	var out []read
	env := w.env(s, supposed{})
	env.OnRead = func(r classad.Read) {
		of := s
		switch {
		case r.Scope == "TARGET", r.Scope == "" && r.Value.IsUndefined() && w.missing(r.Name):
			of = !s // a bare name that no ad has is asked of the other one last
		case r.Scope == "":
			return // inside a nested ad
		}
		x := read{name: r.Name, of: of, value: r.Value, nowhere: r.Scope == ""}
		x.fixed = !w.settable(x)
		for _, y := range out {
			if y.of == x.of && strings.EqualFold(y.name, x.name) {
				return
			}
		}
		out = append(out, x)
	}
	w.tries++
	e.Eval(env)
	return out
}

// read is an attribute that was looked at.
type read struct {
	name  string
	of    side
	value classad.Value
	fixed bool // it is an expression, which follows from others
	// nowhere is set for a bare name that neither ad has; of is the one that
	// was asked last.
	nowhere bool
}

func (w *world) ad(s side) *classad.Ad {
	if s == ofJob {
		return w.job
	}
	return w.slot
}

func (w *world) lookup(s side, name string) (*classad.Expr, bool) {
	if a := w.ad(s); a != nil {
		return a.Lookup(name)
	}
	return nil, false
}

func (w *world) missing(name string) bool {
	_, slot := w.lookup(ofSlot, name)
	_, job := w.lookup(ofJob, name)
	return !slot && !job
}

// settable reports whether an attribute is a constant or missing.
func (w *world) settable(r read) bool {
	e, ok := w.lookup(r.of, r.name)
	if !ok {
		return true
	}
	_, constant := e.LiteralValue()
	return constant
}

// growing are the attributes that grow by one in a second as long as nobody
// touches the machine.
var growing = [...]string{"KeyboardIdle", "ConsoleIdle"}

func isGrowing(name string) bool {
	for _, g := range growing {
		if strings.EqualFold(g, name) {
			return true
		}
	}
	return false
}

// Attributes that follow the time of day.
const (
	clockMin      = "ClockMin"
	clockDay      = "ClockDay"
	myCurrentTime = "MyCurrentTime"
)

func isClock(name string) bool {
	return strings.EqualFold(name, clockMin) || strings.EqualFold(name, clockDay)
}

// age sets in ad what d later will be otherwise by itself.
func (w *world) age(ad *classad.Ad, d time.Duration) {
	if d == 0 {
		return
	}
	number := func(name string) (float64, bool) {
		e, ok := w.slot.Lookup(name)
		if !ok {
			return 0, false
		}
		v, ok := e.LiteralValue()
		if !ok {
			return 0, false
		}
		f, ok := v.AsNumber()
		return f, ok && math.Abs(f) < 1<<53
	}
	for _, name := range [...]string{growing[0], growing[1], myCurrentTime} {
		if f, ok := number(name); ok {
			ad.SetInt(name, int64(f)+int64(d/time.Second))
		}
	}
	zone := w.location
	if zone == nil {
		zone = time.UTC
	}
	then := w.now.Add(d).In(zone)
	if _, ok := number(clockMin); ok {
		ad.SetInt(clockMin, int64(then.Hour()*60+then.Minute()))
	}
	if _, ok := number(clockDay); ok {
		ad.SetInt(clockDay, int64(then.Weekday()))
	}
}

// goal is what a condition is to come to: a truth, or, loosely, anything but
// the opposite, so that what is not known will do.
type goal struct{ truth, loose bool }

func (g goal) not() goal { return goal{!g.truth, g.loose} }

// is reports whether a value is as wanted: a number counts as a truth.
func is(v classad.Value, want goal) bool {
	isTrue := v.IsTrue()
	isFalse := false
	if b, ok := v.AsBool(); ok {
		isFalse = !b
	} else if f, ok := v.AsNumber(); ok {
		isFalse = f == 0
	}
	switch {
	case want.truth && want.loose:
		return !isFalse
	case want.truth:
		return isTrue
	case want.loose:
		return !isTrue
	}
	return isFalse
}
