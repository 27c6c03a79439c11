// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"strings"
)

// Check examines every setting that is a knob: its macros expand, and its
// value has the type and is in the range of the knob table. It returns all
// that is wrong, nil if nothing is.
func (s *Snapshot) Check() Problems {
	var out Problems
	for i := range s.m.table.entries {
		e := &s.m.table.entries[i]
		if e.origin.Kind == Detected {
			continue
		}
		out = append(out, s.checkEntry(e)...)
	}
	return out
}

// Sort divides what Check finds for a daemon that begins: what it cannot begin
// with, and what it says and goes on without. HTCondor's startd takes what is no
// expression for undefined and logs it, and never looks at what it does not
// read; a number that it reads and that is none ends it. A word that means nothing
// has the default.
func (s *Snapshot) Sort() (fatal, doubtful Problems) {
	for _, p := range s.Check() {
		if p.Class == BadValue && !s.mustBeRight(bareName(p.Knob)) {
			doubtful = append(doubtful, p)
		} else {
			fatal = append(fatal, p)
		}
	}
	return fatal, doubtful
}

// mustBeRight reports whether a knob's value is needed as its type has it.
func (s *Snapshot) mustBeRight(name string) bool {
	k := findKnob(name)
	return k == nil || k.Type != TypeExpr && k.Type != TypeString && (k.Mark() == InForce || k.Mark() == ForMacros)
}

func (s *Snapshot) checkEntry(e *entry) Problems {
	x := s.expansion(e.name)
	x.names = append(x.names, e.name)
	text := x.expand(e.raw)
	if len(x.problems) > 0 {
		return s.placed(x, e.name, e)
	}
	bare := bareName(e.name)
	k := findKnob(bare)
	if k == nil || trim(text) == "" || k.IsFamily() && isLooseFamily(bare, nil) {
		return nil
	}
	p := &Problem{Class: BadValue, Value: text}
	number := func(f float64, ok bool, message, want string) {
		switch {
		case !ok:
			p.Message, p.Want = message, want
		case s.outOfRange(k, e.name, f):
			p.Message, p.Want = "is out of range", rangeText(k)
		}
	}
	switch k.Type {
	case TypeBool:
		if _, ok := evalBool(text); !ok {
			p.Message, p.Want = "is not a boolean", "True or False"
		}
	case TypeInt:
		n, ok := evalInt(text)
		number(float64(n), ok, "is not an integer", "a whole number")
	case TypeFloat:
		f, ok := evalReal(text)
		number(f, ok, "is not a number", "a number")
	case TypeDuration:
		n, ok := evalInt(text)
		if !ok && isCronPeriod(bare) {
			n, ok = cronPeriod(trim(text))
		}
		number(float64(n), ok, "is not a time", "a whole number of seconds")
	case TypeString:
		if len(k.Words) > 0 && !slices.ContainsFunc(k.Words, func(w string) bool { return equalFold(w, trim(text)) }) {
			p.Message, p.Want = "is none of the words that mean something", strings.Join(k.Words, ", ")
		}
	case TypeExpr:
		if _, err := parseExpr(text); err != nil {
			p.Message, p.Want = err.Error(), "a ClassAd expression"
		}
	}
	if p.Message == "" {
		return nil
	}
	return Problems{s.m.place(p, e.name, e)}
}
