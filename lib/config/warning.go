// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"iter"
	"strings"
)

// Warnings returns what is legal in the configuration but hardly meant: names
// that are almost a knob, knobs without effect, references to names that
// nothing sets, and what was met in reading. It looks at every setting that a
// file makes and is meant for a person, not for every start of a program.
func (s *Snapshot) Warnings() []Problem {
	out := make([]Problem, 0, len(s.warnings))
	for _, p := range s.warnings {
		out = append(out, *p)
	}
	var used map[string]bool
	daemons := splitList(s.peek("DAEMON_LIST"))
	for i := range s.m.table.entries {
		e := &s.m.table.entries[i]
		if e.origin.Kind != File {
			continue
		}
		out = append(out, s.unsetReferences(e)...)
		name := bareName(e.name)
		k := findKnob(name)
		if k == nil || k.Type == TypeExpr || k.IsFamily() {
			out = append(out, s.oldAttributeWarnings(e)...)
		}
		if k != nil && k.Obsolete != "" {
			if used == nil {
				used = s.usedNames()
			}
			if !used[strings.ToLower(name)] { // else it is a macro like any other
				out = append(out, *s.obsoleteWarning(e, k))
			}
			continue
		}
		if k != nil && !isLooseFamily(name, daemons) {
			continue
		}
		near, ok := nearest(name)
		if !ok || s.m.table.find("", near) != nil {
			continue
		}
		if used == nil {
			used = s.usedNames()
		}
		if !used[strings.ToLower(name)] {
			out = append(out, *s.warn(e, NearMiss, "is no knob and nothing uses it", near))
		}
	}
	return out
}

// bareName drops the prefixes of a name.
func bareName(name string) string {
	return name[strings.LastIndexByte(name, '.')+1:]
}

func (s *Snapshot) warn(e *entry, class Class, message, want string) *Problem {
	return s.m.place(&Problem{Severity: Warning, Class: class, Message: message, Want: want}, e.name, e)
}

// references yields the macros in a text, those inside others too.
func references(text string) iter.Seq2[function, string] {
	return func(yield func(function, string) bool) {
		buf := []byte(text)
		for from := 0; ; {
			m, _, ok := nextMacro(buf, from, func(macro) bool { return true })
			if !ok || !yield(m.fn, string(m.body(buf))) {
				return
			}
			from = m.open + 1
		}
	}
}

// unsetReferences finds each $(X) that expands to nothing because nothing sets
// X: usually a helper of another file or of an older version.
func (s *Snapshot) unsetReferences(e *entry) []Problem {
	var out []Problem
	seen := map[string]bool{}
	for fn, name := range references(e.raw) {
		if fn != fnName || !isValidName(name) || equalFold(name, dollarName) || seen[strings.ToLower(name)] {
			continue
		}
		seen[strings.ToLower(name)] = true
		if _, _, ok := s.m.raw(name); ok {
			continue
		}
		k := findKnob(name)
		if k != nil && k.Obsolete == "" {
			continue // a knob that may well be unset
		}
		want, near := nearest(name)
		switch {
		case k != nil:
			want = k.Obsolete
		case !near:
			want = "a setting of " + name + ", or $(" + name + ":default)"
		}
		p := s.warn(e, UnsetReference, "refers to $("+name+"), which nothing sets", want)
		p.Value = e.raw
		out = append(out, *p)
	}
	return out
}

// usedNames returns, in lower case, the names that other settings refer to and
// those that are published in the slot ads.
func (s *Snapshot) usedNames() map[string]bool {
	used := map[string]bool{}
	for i := range s.m.table.entries {
		e := &s.m.table.entries[i]
		for _, body := range references(e.raw) {
			for name := range strings.FieldsFuncSeq(body, func(r rune) bool { return r == ':' || r == ',' || r == ' ' }) {
				used[strings.ToLower(name)] = true
			}
		}
		if name := strings.ToUpper(e.name); strings.HasSuffix(name, "STARTD_ATTRS") || strings.HasSuffix(name, "STARTD_EXPRS") {
			for _, attr := range splitList(e.raw) {
				used[strings.ToLower(attr)] = true
			}
		}
	}
	return used
}
