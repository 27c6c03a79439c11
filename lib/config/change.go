// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import "slices"

// Change is a setting whose value differs between two Snapshots.
type Change struct {
	Name          string
	Before, After string   // expanded; "" when not set
	Reconfig      Reconfig // whether the new value applies without a restart
}

// Changes returns, in order of names, what differs in next. A value differs
// when it expands to another text, even if its own text is the same; one drawn
// by chance may differ in every reading.
func (s *Snapshot) Changes(next *Snapshot) []Change {
	names := append(s.Names(), next.Names()...)
	slices.SortFunc(names, compareFold)
	names = slices.CompactFunc(names, equalFold)
	var out []Change
	for _, name := range names {
		before, after := s.peek(name), next.peek(name)
		if before == after {
			continue
		}
		c := Change{Name: name, Before: before, After: after}
		if k, ok := LookupKnob(name); ok {
			c.Reconfig = k.Reconfig
		}
		out = append(out, c)
	}
	return out
}
