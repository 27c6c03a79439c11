// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ad

import (
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
)

// latch remembers what an expression of STARTD_LATCH_EXPRS last came to, and
// when that changed.
type latch struct {
	defined bool
	value   int64
	changed clock.Instant // zero: never
}

// latch looks at the slot's latches. Booleans count as 0 and 1, reals are cut
// off, anything else is undefined. Value is published only for an expression
// that the owner configured and that is more than a constant.
func (a *Slot) latch(now clock.Instant) {
	if len(a.layer.latches) != len(a.latches) {
		a.latches = make([]latch, len(a.layer.latches))
	}
	for i, name := range a.layer.latches {
		l := &a.latches[i]
		env := classad.Env{Now: now.Wall, Location: a.m.src.Location}
		value, defined := a.Ad().EvalInt(name, &env)
		if defined != l.defined || defined && value != l.value {
			l.changed = now
		}
		l.defined = defined
		if defined {
			l.value = value
		}
		if defined && a.layer.computes(name) {
			a.ad.SetInt(name+"Value", l.value)
		} else {
			a.drop(name + "Value")
		}
		if l.changed.IsZero() {
			a.drop(name + "Time")
		} else {
			a.ad.SetInt(name+"Time", l.changed.Wall.Unix())
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
