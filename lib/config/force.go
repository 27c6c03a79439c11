// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import "strings"

// Unread is a setting that somebody made and nothing here reads.
type Unread struct {
	Setting
	Instead string // what to do
}

// Unread returns the settings that an Execution Point of HTCondor's would act by
// and this one does not, in order of their names: those of files, the environment
// and the command line that differ from the default. What a template sets was
// not asked for by name, and what other daemons read is theirs.
func (s *Snapshot) Unread() []Unread {
	var out []Unread
	used := s.usedNames()
	for _, name := range s.Names() {
		k := findKnob(bareName(name))
		if k == nil || k.Mark() != NothingReads || used[strings.ToLower(bareName(name))] {
			continue // what others refer to has an effect there
		}
		set, ok := s.Lookup(name)
		if !ok || set.IsDefault || set.Origin.Kind == Default || set.Origin.Kind == Detected || set.Origin.Kind == Template {
			continue
		}
		if text, ok := k.DefaultFor(false); ok {
			if text, err := s.Expand(text); err == nil && equalFold(trim(text), trim(set.Value)) {
				continue
			}
		}
		if trim(set.Value) != "" {
			out = append(out, Unread{set, k.NotYet})
		}
	}
	return out
}
