// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"cmp"
	"slices"

	"github.com/execpoint/execpoint/lib/cedar/command"
)

// Commands are the rows of a daemon's commands by number. It must not change
// while a Server uses it.
type Commands map[int]command.Row

// Valid returns the commands that a session at a level may be used for: those
// of the level and of what it implies, those that demand a mapped user only
// for one. They are in order of level, nearest first, then by number.
func (t Commands) Valid(l Level, mapped bool) []int {
	var all []int
	for _, level := range l.Implied() {
		from := len(all)
		for n, c := range t {
			if (c.Level == level || slices.Contains(c.Alternatives, level)) && (mapped || !c.Authenticated) && !slices.Contains(all[:from], n) {
				all = append(all, n)
			}
		}
		slices.SortFunc(all[from:], cmp.Compare)
	}
	return all
}
