// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ad

import (
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// Snapshot returns the slot's ad as it is published: flat, with the times it
// has spent in its states, run times as numbers and, for a partitionable
// slot, what is collected from its dynamic slots. It belongs to the caller.
func (a *Slot) Snapshot(now clock.Instant) *classad.Ad {
	out := classad.NewAd()
	out.Update(a.m.ad)
	out.Update(a.layer.ad)
	out.Update(a.ad)
	out.SetInt(attrMyCurrentTime, now.Wall.Unix())
	if !a.matchable() {
		out.Delete(attrStart)
		out.Delete(attrWithinLimits)
	}
	env := classad.Env{Now: now.Wall, Location: a.m.src.Location}
	for _, name := range [...]string{attrTotalJobRunTime, attrTotalJobSuspended, attrTotalClaimRunTime, attrTotalClaimSuspended} {
		if n, ok := a.ad.EvalInt(name, &env); ok && n > 0 {
			out.SetInt(name, n)
		} else {
			out.Delete(name)
		}
	}
	a.times(out, now)
	if a.over != nil {
		out.Update(a.over)
		a.metered(out, now)
	}
	if a.s.Kind == slot.Partitionable && a.m.set.hasRollup {
		a.rollup(out, &env)
	}
	return out
}

// times shows the time spent in each pair since the slot began, where there
// was any.
func (a *Slot) times(out *classad.Ad, now clock.Instant) {
	for _, s := range policy.States {
		for _, act := range policy.Activities {
			d := a.spent[s][act]
			if a.pair == (policy.Pair{State: s, Activity: act}) {
				d += now.Sub(a.began)
			}
			if n := seconds(d); n > 0 {
				out.SetInt("TotalTime"+s.String()+act.String(), n)
			}
		}
	}
}

// rolledUp are collected from dynamic slots besides custom resources and what
// the owner adds.
var rolledUp = [...]string{
	attrName, attrDSlotID, attrCurrentRank, attrRemoteUser, attrRemoteOwner, attrAccountingGroup, attrState, attrActivity,
	attrEnteredState, attrRetirementRemaining, attrCpus, attrMemory, attrDisk,
}

// rollup collects values of the dynamic slots as ChildX lists, in the order of
// the slots; a missing value stands as undefined.
func (a *Slot) rollup(out *classad.Ad, env *classad.Env) {
	children := a.children()
	collect := func(name string) {
		elems := make([]*classad.Expr, len(children))
		for i, c := range children {
			elems[i] = classad.Literal(c.Ad().Eval(name, env))
		}
		out.SetValue("Child"+name, classad.List(elems...))
	}
	for _, name := range rolledUp {
		collect(name)
	}
	for _, r := range a.m.src.Ledger.Resources() {
		collect(r.Name)
	}
	for _, name := range a.m.set.rollup {
		collect(name)
	}
}

// children returns the ads of the dynamic slots, in order.
func (a *Slot) children() []*Slot {
	out := make([]*Slot, 0, a.s.Children)
	for i := a.m.index(a.s.ID) + 1; i < len(a.m.slots) && a.m.slots[i].s.ID.N == a.s.ID.N; i++ {
		out = append(out, a.m.slots[i])
	}
	return out
}
