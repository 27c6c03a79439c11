// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ad

import (
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
)

// latch remembers what an expression of STARTD_LATCH_EXPRS last came to, and
// when that changed.
type latch struct {
	name    string // of the expression; the ad has its NameValue and NameTime
	looked  bool   // it was evaluated before
	defined bool
	value   int64
	changed clock.Instant // zero: never

	shownValue, shownTime bool // in the ad
}

// latched is an expression that is latched, with the names of what is shown
// of it.
type latched struct {
	name, value, time string
	computes          bool // the owner configured it and it is not a constant
}

// latch looks at the slot's latches. Booleans count as 0 and 1, reals are cut
// off, anything else is undefined. Value is published only for an expression
// that the owner configured and that is more than a constant.
func (a *Slot) latch(env *classad.Env, now clock.Instant) {
	if len(a.layer.latches) == 0 && len(a.latches) == 0 {
		return
	}
	again := a.latchedBy != a.layer
	a.latchedBy = a.layer
	if again && !slices.EqualFunc(a.layer.latches, a.latches, func(want latched, l latch) bool { return want.name == l.name }) {
		for _, l := range a.latches {
			a.drop(l.name + "Value")
			a.drop(l.name + "Time")
		}
		a.latches = make([]latch, len(a.layer.latches))
	}
	for i, of := range a.layer.latches {
		l := &a.latches[i]
		l.name = of.name
		value, defined := a.Ad().EvalInt(of.name, env)
		moved := defined != l.defined || defined && value != l.value
		if moved {
			l.changed = now
			if !l.looked && strings.EqualFold(of.name, attrNumDynamicSlots) {
				l.changed = clock.Instant{} // its first value is no change
			}
		}
		l.looked = true
		l.defined = defined
		if defined {
			l.value = value
		}
		if !moved && !again {
			continue // the ad has it
		}
		if defined && of.computes {
			a.setInt(of.value, l.value)
			l.shownValue = true
		} else if l.shownValue {
			a.drop(of.value)
			l.shownValue = false
		}
		if !l.changed.IsZero() {
			a.setInt(of.time, l.changed.Wall.Unix())
			l.shownTime = true
		} else if l.shownTime {
			a.drop(of.time)
			l.shownTime = false
		}
	}
}

// computes reports whether the owner configured an attribute and it is not a
// constant.
func (l *typeLayer) computes(name string) bool {
	for _, o := range l.own {
		if strings.EqualFold(o.name, name) {
			_, constant := o.expr.LiteralValue()
			return !constant
		}
	}
	return false
}
