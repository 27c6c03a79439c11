// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import "slices"

// Changes says what became of an ad since a snapshot. Each list is in the
// order of [Ad.Names].
type Changes struct {
	Set     []string // attributes that are new or have another expression
	Removed []string
}

// None reports whether nothing changed.
func (c Changes) None() bool { return len(c.Set) == 0 && len(c.Removed) == 0 }

// ChangesSince compares a with an earlier snapshot of it, taken with
// [Ad.Clone]. What counts is how expressions are written, not what they
// evaluate to; a layer below that is the same ad in both is not looked into,
// since a snapshot shares it. A nil snapshot is an empty ad.
func (a *Ad) ChangesSince(snapshot *Ad) Changes {
	if snapshot == nil {
		snapshot = &Ad{}
	}
	below := a.parent
	if below != snapshot.parent {
		below = nil // compare all that shows
	}
	var c Changes
	if below == nil && (a.parent != nil || snapshot.parent != nil) {
		compareAll(&c, a, snapshot)
	} else if a.layout == snapshot.layout {
		for i := range a.vals {
			if !sameAttr(a.vals[i], snapshot.vals[i]) {
				c.Set = append(c.Set, a.layout.names[i].text)
			}
		}
	} else {
		compareOwn(&c, a, snapshot)
	}
	slices.SortFunc(c.Set, canonicalLess)
	slices.SortFunc(c.Removed, canonicalLess)
	return c
}

// compareOwn compares what two ads have themselves over the same layer below.
func compareOwn(c *Changes, a, snapshot *Ad) {
	for i := range a.vals {
		at := &a.layout.names[i]
		if old := snapshot.lookup(at.text, at.hash); old == nil || !sameAttr(a.vals[i], *old) {
			c.Set = append(c.Set, at.text)
		}
	}
	for i := range snapshot.vals {
		at := &snapshot.layout.names[i]
		if a.find(at.text, at.hash) != nil {
			continue
		}
		switch now := a.lookup(at.text, at.hash); {
		case now == nil:
			c.Removed = append(c.Removed, at.text)
		case !sameAttr(*now, snapshot.vals[i]):
			c.Set = append(c.Set, at.text)
		}
	}
}

func compareAll(c *Changes, a, snapshot *Ad) {
	for _, at := range a.visible() {
		if old := snapshot.lookup(at.name, at.hash); old == nil || !sameAttr(at.v, *old) {
			c.Set = append(c.Set, at.name)
		}
	}
	for _, at := range snapshot.visible() {
		if a.lookup(at.name, at.hash) == nil {
			c.Removed = append(c.Removed, at.name)
		}
	}
}
