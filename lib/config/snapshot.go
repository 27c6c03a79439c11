// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// Snapshot is a configuration as read. It is immutable and safe for concurrent
// use, and answers the same each time. It remembers what it was asked for, so
// that a second question is answered at once; see Save.
type Snapshot struct {
	m        *macros
	warnings Problems
	twice    []Problem
	sources  []string
	from     *recording
	memory   memory
}

// Setting is what a name stands for.
type Setting struct {
	Name   string // as first written, with the prefix it was found under
	Raw    string // before expansion
	Value  string // after
	Origin Origin

	// Earlier are the origins of the values that Raw was built from by += or
	// by referring to itself, oldest first; the last fifty of them.
	Earlier []Origin

	// IsDefault reports that nothing sets the name and the knob table does.
	// Implied reports a default that the macro language does not see, so that
	// HTCondor's tools call the name not defined; see Knob.
	IsDefault, Implied bool

	// Restated reports a setting that never had another value than the
	// default. HTCondor's tools show the default for it.
	Restated bool

	// Err is what went wrong in expanding, a Problems; Value then lacks what
	// could not be expanded.
	Err error
}

// Lookup returns what name stands for. It is looked for as
// SUBSYSTEM.LOCALNAME.name, LOCALNAME.name, SUBSYSTEM.name and name, then in
// the knob table. A name that is set to nothing is found, with an empty Value.
func (s *Snapshot) Lookup(name string) (Setting, bool) {
	raw, e, ok := s.find(name)
	implied := false
	if e == nil && raw == "" {
		if text, has := impliedOf(name, s.m.windows); has {
			raw, implied, ok = text, true, true
		}
	}
	if !ok {
		return Setting{}, false
	}
	set := Setting{Name: name, Raw: raw, IsDefault: e == nil, Implied: implied}
	if e != nil {
		set.Name, set.Origin, set.Earlier, set.Restated = e.name, e.origin, slices.Clone(e.earlier), !e.departed
	} else if k := exactKnob(name); k != nil {
		set.Name = k.Name
	}
	x := s.expansion(name)
	x.memory = &s.memory
	s.memory.use(e, name)
	x.via = &set.Origin.Via
	x.names = append(x.names, name)
	set.Value = x.expand(raw)
	if len(x.problems) > 0 {
		set.Err = s.placed(x, name, e)
	}
	return set, true
}

// find is macros.raw with the one more place that a direct question has.
func (s *Snapshot) find(name string) (raw string, e *entry, ok bool) {
	hash := hashName("", name)
	if e := s.entry(hash, name); e != nil {
		return e.raw, e, true
	}
	raw, ok = s.m.unset(knobAtHash(hash, name), name)
	return raw, nil, ok
}

// entry returns the entry that answers a direct question, nil for none.
func (s *Snapshot) entry(hash uint32, name string) *entry {
	if s.m.both != "" {
		if e := s.m.table.find(s.m.both, name); e != nil {
			return e
		}
	}
	return s.m.set(hash, name)
}

func (s *Snapshot) expansion(about string) *expansion {
	return &expansion{macros: s.m, about: about}
}

func (s *Snapshot) placed(x *expansion, name string, e *entry) Problems {
	ps := make(Problems, len(x.problems))
	for i, p := range x.problems {
		ps[i] = s.m.place(p, name, e)
	}
	return ps
}

// value returns the expanded text of a name and its entry, nil for a default.
// The error is a Problems.
func (s *Snapshot) value(name string) (text string, e *entry, err error) {
	var raw string
	var place *place
	hash := hashName("", name)
	if e = s.entry(hash, name); e != nil {
		raw, place = e.raw, &s.memory.places[e.at]
	} else {
		at := knobAtHash(hash, name)
		if raw, _ = s.m.unset(at, name); raw == "" {
			raw, _ = impliedAt(at, name, s.m.windows)
		}
		place = s.memory.knobPlace(at)
	}
	if place != nil && !place.used.Load() {
		place.used.Store(true)
	}
	if strings.IndexByte(raw, '$') < 0 {
		return raw, e, nil
	}
	if place != nil {
		if known := place.value.Load(); known != nil && equalFold(known.name, name) {
			return known.text, e, nil
		}
	}
	text, err = s.expandValue(name, raw, e, &s.memory)
	if place != nil && err == nil {
		place.value.Store(&expanded{name, text})
	}
	return text, e, err
}

// peek is the value of a name without a note that it was asked for.
func (s *Snapshot) peek(name string) string {
	raw, e, _ := s.find(name)
	if e == nil && raw == "" {
		raw, _ = impliedOf(name, s.m.windows)
	}
	text, _ := s.expandValue(name, raw, e, nil)
	return text
}

// setValue is value for knobs that cannot be nothing: one set to nothing has
// its default.
func (s *Snapshot) setValue(name string) (text string, e *entry, err error) {
	text, e, err = s.value(name)
	if err != nil || e == nil || trim(text) != "" {
		return trim(text), e, err
	}
	raw, ok := defaultOf(name, s.m.windows)
	if !ok || raw == "" {
		raw, _ = impliedOf(name, s.m.windows)
	}
	text, err = s.expandValue(name, raw, nil, &s.memory)
	return trim(text), nil, err
}

func (s *Snapshot) expandValue(name, raw string, e *entry, notes *memory) (string, error) {
	if !strings.Contains(raw, "$") {
		return raw, nil
	}
	x := s.expansion(name)
	x.names = append(x.names, name)
	x.memory = notes
	text := x.expand(raw)
	if len(x.problems) > 0 {
		return text, s.placed(x, name, e)
	}
	return text, nil
}

// String returns the expanded value of name, "" when it is not set. What could
// not be expanded is missing from it; Lookup tells.
func (s *Snapshot) String(name string) string {
	text, _, _ := s.value(name)
	return text
}

// Text returns the value of a knob that is a text, without blanks around it. One
// that is set to nothing has its default, as with the other types; String tells the
// two apart.
func (s *Snapshot) Text(name string) (string, error) {
	text, _, err := s.setValue(name)
	return text, err
}

// List returns the value of name split at commas and blanks.
func (s *Snapshot) List(name string) []string { return splitList(s.String(name)) }

// Bool returns the value of a boolean knob, false when it has none. A knob that is set to
// nothing has its default; so it is for the other types.
func (s *Snapshot) Bool(name string) (bool, error) {
	text, e, err := s.setValue(name)
	if err != nil || text == "" {
		return false, err
	}
	b, ok := evalBool(text)
	if !ok {
		return false, s.bad(name, e, text, "is not a boolean", "True or False")
	}
	return b, nil
}

// Int returns the value of an integer knob, 0 when it has none.
func (s *Snapshot) Int(name string) (int64, error) {
	text, e, err := s.setValue(name)
	if err != nil || text == "" {
		return 0, err
	}
	n, ok := evalInt(text)
	if !ok {
		return 0, s.bad(name, e, text, "is not an integer", "a whole number")
	}
	return n, s.inRange(name, e, text, float64(n))
}

// Float returns the value of a knob that is a number, 0 when it has none.
func (s *Snapshot) Float(name string) (float64, error) {
	text, e, err := s.setValue(name)
	if err != nil || text == "" {
		return 0, err
	}
	f, ok := evalReal(text)
	if !ok {
		return 0, s.bad(name, e, text, "is not a number", "a number")
	}
	return f, s.inRange(name, e, text, f)
}

// Duration returns the value of a knob that is a number of seconds, 0 when it
// has none. Periods of cron jobs may have a suffix s, m or h.
func (s *Snapshot) Duration(name string) (time.Duration, error) {
	text, e, err := s.setValue(name)
	if err != nil || text == "" {
		return 0, err
	}
	n, ok := evalInt(text)
	if !ok && isCronPeriod(name) {
		n, ok = cronPeriod(text)
	}
	if !ok {
		return 0, s.bad(name, e, text, "is not a time", "a whole number of seconds")
	}
	if n > math.MaxInt64/int64(time.Second) || n < math.MinInt64/int64(time.Second) {
		return 0, s.bad(name, e, text, "is too long a time", "a number of seconds")
	}
	return time.Duration(n) * time.Second, s.inRange(name, e, text, float64(n))
}

func isCronPeriod(name string) bool {
	return len(name) > len("_PERIOD") && equalFold(name[len(name)-len("_PERIOD"):], "_PERIOD")
}

func cronPeriod(text string) (int64, bool) {
	if text == "" {
		return 0, false
	}
	unit := int64(1)
	switch lower(text[len(text)-1]) {
	case 's':
	case 'm':
		unit = 60
	case 'h':
		unit = 3600
	default:
		return 0, false
	}
	n, ok := evalInt(text[:len(text)-1])
	if !ok || n < 0 || n > math.MaxInt64/unit {
		return 0, false
	}
	return n * unit, true
}

func (s *Snapshot) bad(name string, e *entry, value, message, want string) *Problem {
	return s.m.place(&Problem{Class: BadValue, Value: value, Message: message, Want: want}, name, e)
}

// inRange checks a number against the range of the knob table.
func (s *Snapshot) inRange(name string, e *entry, text string, f float64) error {
	if k := findKnob(name); k != nil && s.outOfRange(k, name, f) {
		return s.bad(name, e, text, "is out of range", rangeText(k))
	}
	return nil
}

// outOfRange reports whether a number is outside the range of its knob. A cron
// job that is not started by the clock may have the period 0.
func (s *Snapshot) outOfRange(k *Knob, name string, f float64) bool {
	if f == 0 && isCronPeriod(name) {
		mode := s.peek(name[:len(name)-len("PERIOD")] + "MODE")
		if mode != "" && !equalFold(mode, "Periodic") {
			return false
		}
	}
	return k.Min.Set && f < k.Min.Value || k.Max.Set && f > k.Max.Value
}

func rangeText(k *Knob) string {
	switch {
	case k.Min.Set && k.Max.Set:
		return fmt.Sprintf("%v to %v", k.Min.Value, k.Max.Value)
	case k.Min.Set:
		return fmt.Sprintf("%v or more", k.Min.Value)
	}
	return fmt.Sprintf("%v or less", k.Max.Value)
}

// Expand replaces the macros in a text as if it were a value. The error is a
// Problems; the text then lacks what could not be expanded.
func (s *Snapshot) Expand(text string) (string, error) {
	x := s.expansion("")
	x.memory = &s.memory
	out := x.expand(text)
	if len(x.problems) > 0 {
		return out, Problems(x.problems)
	}
	return out, nil
}

// ExpandMacros is Expand without its last step: $(DOLLAR) stays as it is.
func (s *Snapshot) ExpandMacros(text string) (string, error) {
	x := s.expansion("")
	x.keepDollar = true
	out := x.expand(text)
	if len(x.problems) > 0 {
		return out, Problems(x.problems)
	}
	return out, nil
}

// Names returns the names that are set, in order, as they were first written.
func (s *Snapshot) Names() []string {
	names := make([]string, len(s.m.table.entries))
	for i := range names {
		names[i] = s.m.table.entries[i].name
	}
	slices.SortFunc(names, compareFold)
	return names
}

// Met returns what was met in reading that is no error: warning statements,
// function macros that could not be evaluated, colons for equals signs.
func (s *Snapshot) Met() Problems { return slices.Clone(s.warnings) }

// SetTwice returns the knobs that one file sets twice to different values. That
// is how macros and files of others are changed, so only who checks a
// configuration wants to hear of it.
func (s *Snapshot) SetTwice() []Problem { return slices.Clone(s.twice) }

// Sources returns the files and commands that were read, in order. A command
// ends in "|" unless the statement that named it says it is one.
func (s *Snapshot) Sources() []string { return slices.Clone(s.sources) }
