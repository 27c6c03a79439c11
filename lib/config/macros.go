// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

// Macros expands texts by the rules of this language for somebody who has
// values of their own, such as the commands of a submit description.
type Macros struct {
	// Lookup gives the text that a name stands for, not expanded.
	Lookup func(name string) (text string, ok bool)
	Env    []string // NAME=value, for $ENV
	Seed   uint64   // picks random values
	Within []string // names whose values the text is part of, outermost first
	// Absolute makes a path absolute for $Ff; nil leaves it as it is.
	Absolute func(path string) string
}

// Expanded is what became of a text.
type Expanded struct {
	Text     string
	Missing  []string // names that stand for nothing and have no default
	Problems Problems
}

// Expand replaces the macros in a text. What could not be expanded is missing
// in the result and told as a problem.
func (m Macros) Expand(text string) Expanded {
	x := m.expansion()
	out := Expanded{Text: x.expand(text)}
	out.Missing, out.Problems = x.missing, x.problems
	return out
}

// ExpandSelf replaces only the references to self, by what Lookup gives for it,
// which is how "A = $(A) more" is read.
func (m Macros) ExpandSelf(text, self string) (string, Problems) {
	x := m.expansion()
	out, _ := x.expandSelf(text, self)
	return out, x.problems
}

func (m Macros) expansion() *expansion {
	return &expansion{macros: &macros{lookup: m.Lookup, env: m.Env, seed: m.Seed, absolute: m.Absolute}, names: m.Within}
}
