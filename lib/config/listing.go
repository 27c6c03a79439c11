// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import "slices"

// Row is one name as it is stored in a Snapshot, or one default of the knob
// table that the macro language knows. A name that is set and has a default
// has two rows, first that of the setting.
type Row struct {
	Name   string
	Raw    string
	Origin Origin
	Knob   int // number of the default in the table, from 0; -1 if there is none

	// MatchesDefault reports a setting with the text of the default.
	MatchesDefault bool

	// Restated reports a setting that never had another value than the
	// default. HTCondor keeps none of these.
	Restated bool

	Used bool // somebody asked for it, or for something that refers to it
}

// Rows returns all names in order, compared without regard to case.
func (s *Snapshot) Rows() []Row {
	rows := make([]Row, 0, len(s.m.table.entries)+len(knobTable))
	for i := range s.m.table.entries {
		e := &s.m.table.entries[i]
		row := Row{Name: e.name, Raw: e.raw, Origin: e.origin, Knob: -1, Restated: !e.departed, Used: s.memory.places[i].used.Load()}
		row.MatchesDefault = matchesDefault(e.name, e.raw, s.m.windows)
		if at := knobAt(bareName(e.name)); at > 0 && at <= len(knobTable) {
			if _, ok := knobTable[at-1].seenDefault(s.m.windows); ok {
				row.Knob = at - 1
			}
		}
		rows = append(rows, row)
	}
	for i := range knobTable {
		raw, ok := knobTable[i].seenDefault(s.m.windows)
		if ok {
			rows = append(rows, Row{Name: knobTable[i].Name, Raw: raw, Knob: i, MatchesDefault: true, Used: s.memory.places[s.memory.entries+i].used.Load()})
		}
	}
	slices.SortStableFunc(rows, func(a, b Row) int { return compareFold(a.Name, b.Name) })
	return rows
}

// matchesDefault reports whether a text says the same as the default of a
// name. Besides equal texts those are true and false in any case, and on
// Windows paths that differ in case or kind of slashes.
func matchesDefault(name, text string, windows bool) bool {
	k := exactKnob(bareName(name))
	if k == nil {
		return false
	}
	def, ok := k.seenDefault(windows)
	switch {
	case !ok:
		return false
	case def == text:
		return true
	case equalFold(text, "true"), equalFold(text, "false"):
		return equalFold(def, text)
	case windows && k.Type == TypePath && len(def) == len(text):
		for i := range len(def) {
			a, b := lower(def[i]), lower(text[i])
			if a != b && (a != '/' && a != '\\' || b != '/' && b != '\\') {
				return false
			}
		}
		return true
	}
	return false
}

// DefaultText returns the text of the default of a name as the macro language
// sees it. The name may have the prefix of a daemon.
func (s *Snapshot) DefaultText(name string) (string, bool) {
	if text, ok := defaultOf(name, s.m.windows); ok {
		return text, true
	}
	return defaultOf(bareName(name), s.m.windows)
}

// Condition evaluates a text as if it stood behind "if". why says what is
// wrong with a text that is no condition; it is "" for one that is.
func (s *Snapshot) Condition(text string) (result bool, why string) {
	l := &loader{o: &Options{}, m: s.m}
	x := s.expansion("")
	expr := trim(x.expand(text))
	if len(x.problems) > 0 {
		return false, Problems(x.problems).Error()
	}
	return l.evaluateCondition(expr, expr != trim(text))
}

// TemplateText returns the lines of a template, for example of
// TemplateText("ROLE", "Execute", ""), with the arguments put in, and its name as it
// is spelled here.
func TemplateText(category, name, args string) (canonical, text string, ok bool) {
	t, ok := findTemplate(category, name)
	if !ok {
		return "", "", false
	}
	return t.name, expandArguments(t.text, args), true
}
