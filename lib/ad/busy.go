// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ad

import (
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
)

// busyness is how long CPUBusy of a slot has been true.
type busyness struct {
	busy  bool
	since clock.Instant
	shown bool // in the ad
}

// timesBusy returns CPUBusy as configured if the owner's expressions ask for
// how long it has been true, as the documents' policies do; else nil. Under a
// latch of CpuBusy, CpuBusyTime is the time of its last change instead.
func (l *typeLayer) timesBusy(m *Machine, typeID int) *classad.Expr {
	if slices.ContainsFunc(l.latches, func(of latched) bool { return strings.EqualFold(of.name, attrCpuBusy) }) {
		return nil
	}
	asks := func(e *classad.Expr) bool {
		refs, ok := e.Refs(classad.NewAd())
		asked := func(n string) bool {
			return strings.EqualFold(n, attrCpuBusyTime) || strings.EqualFold(n, attrCpuIsBusy)
		}
		return !ok || slices.ContainsFunc(refs.External, asked) || slices.ContainsFunc(refs.Internal, asked)
	}
	x := m.src.Policy[typeID]
	if x != nil && (x.Mentions(attrCpuBusyTime) || x.Mentions(attrCpuIsBusy)) ||
		slices.ContainsFunc(l.own, func(o owner) bool { return asks(o.expr) }) {
		return m.set.expr(typeID, attrCpuBusy)
	}
	return nil
}

// timeBusy shows whether CPUBusy is true, and for how many seconds.
func (a *Slot) timeBusy(env *classad.Env, now clock.Instant) {
	b := &a.cpu
	if a.layer.busy == nil {
		if b.shown {
			a.drop(attrCpuBusyTime)
			a.drop(attrCpuIsBusy)
			*b = busyness{}
		}
		return
	}
	env.My = a.Ad()
	busy, _ := a.layer.busy.Eval(env).AsBool()
	env.My = nil
	if busy && !b.busy {
		b.since = now
	}
	if busy != b.busy || !b.shown {
		a.ad.SetBool(attrCpuIsBusy, busy)
	}
	b.busy, b.shown = busy, true
	if busy {
		a.setInt(attrCpuBusyTime, seconds(now.Sub(b.since)))
	} else {
		a.setInt(attrCpuBusyTime, 0)
	}
}
