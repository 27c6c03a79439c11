// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"slices"
	"strings"
)

// macros is what an expansion looks names up in.
type macros struct {
	table         table
	subsys, local string
	both          string // "subsys.local" if there is a local name
	env           []string
	seed          uint64
	windows       bool

	lookup   func(name string) (string, bool) // if not nil, the only place to look in
	absolute func(path string) string         // nil leaves paths as they are
}

// raw returns the unexpanded text that name stands for, as seen from the
// daemon reading: LOCALNAME.name, then SUBSYSTEM.name, then name, then the
// default. An entry set to nothing is found and hides those after it. The
// entry is nil for a default.
func (m *macros) raw(name string) (text string, e *entry, ok bool) {
	if m.lookup != nil {
		text, ok = m.lookup(name)
		return text, nil, ok
	}
	hash := hashName("", name)
	if e := m.set(hash, name); e != nil {
		return e.raw, e, true
	}
	text, ok = m.unset(knobAtHash(hash, name), name)
	return text, nil, ok
}

// set returns the entry that answers for name, nil if nothing sets it. hash is
// that of name alone.
func (m *macros) set(hash uint32, name string) *entry {
	if m.local != "" {
		if e := m.table.find(m.local, name); e != nil {
			return e
		}
	}
	if e := m.table.find(m.subsys, name); e != nil {
		return e
	}
	return m.table.findHash(hash, "", name)
}

// unset returns what a name that nothing sets stands for. at is its place in
// the knob table.
func (m *macros) unset(at int, name string) (text string, ok bool) {
	if len(name) > 2 && hasPrefixFold(name, "Is") && equalFold(name[2:], m.subsys) {
		return "true", true // as $(IsStartd), which only the startd has
	}
	if at > 0 && at <= len(knobTable) {
		return knobTable[at-1].seenDefault(m.windows)
	}
	return "", false
}

func (m *macros) getenv(name string) (string, bool) {
	for _, kv := range m.env {
		if v, ok := strings.CutPrefix(kv, name); ok && strings.HasPrefix(v, "=") && name != "" {
			return v[1:], true
		}
	}
	return "", false
}

// expansion is the work of expanding one value. Its limits are shared by the
// expansions that function macros make inside it.
type expansion struct {
	*macros
	about    string   // the setting this is for, picks random values
	names    []string // names being expanded, outermost first
	depth    int
	steps    int
	draws    uint64
	problems []*Problem
	dead     bool      // a limit was met; everything expands to nothing
	missing  []string  // names that stood for nothing, without a default
	via      *[]string // if not nil, collects the names looked up
	// keepDollar leaves $(DOLLAR) in the outermost text.
	keepDollar bool
	memory     *memory // if not nil, told of the names looked up
}

func (x *expansion) fail(class Class, value, message, want string) {
	if class == Endless || class == TooMuch {
		x.dead = true
	}
	if len(x.problems) < maxProblems {
		x.problems = append(x.problems, &Problem{Class: class, Value: value, Message: message, Want: want})
	}
}

// region is a stretch of the text that came from expanding name.
type region struct {
	start, end int
	name       string
}

// expand replaces all macros in text, and those in what they stand for. What
// is put in is read again together with what stands around it, so that names
// can be put together from parts, and then $(DOLLAR) becomes $.
func (x *expansion) expand(text string) string {
	if !strings.Contains(text, "$") {
		return text
	}
	if x.depth >= maxExpandDepth {
		x.fail(TooMuch, text, "function macros are nested too deep", "")
	}
	if x.dead {
		return ""
	}
	x.depth++
	defer func() { x.depth-- }()

	buf := []byte(text)
	outer := len(x.names)
	defer func() { x.names = x.names[:outer] }()
	var regions []region
	from := 0
	for {
		m, first, ok := nextMacro(buf, from, func(m macro) bool { return !isDollar(m, buf) })
		if !ok {
			break
		}
		for len(regions) > 0 {
			r := regions[len(regions)-1]
			if r.start <= m.dollar && m.dollar < r.end {
				break
			}
			regions = regions[:len(regions)-1]
			x.names = x.names[:len(x.names)-1]
		}
		x.steps++
		if x.steps > maxExpandSteps {
			x.fail(Endless, text, "the value does not end expanding", "names that do not refer back to themselves")
			return ""
		}
		name, value := x.evaluate(m, buf)
		if x.dead {
			return ""
		}
		if len(buf)+len(value)-(m.end-m.dollar) > maxValueBytes {
			x.fail(TooMuch, text, "the expanded value is too long", "")
			return ""
		}
		grown := m.dollar + len(value) - m.end
		for i := range regions {
			regions[i].end = max(regions[i].end+grown, m.dollar+len(value))
		}
		buf = slices.Replace(buf, m.dollar, m.end, []byte(value)...)
		if strings.Contains(value, "$") {
			regions = append(regions, region{m.dollar, m.dollar + len(value), name})
			x.names = append(x.names, name)
		}
		from = min(first, m.dollar)
	}
	if x.keepDollar && x.depth == 1 {
		return string(buf)
	}
	return string(undollar(buf))
}

// undollar turns $(DOLLAR) into $. A $ made so can be that of another
// $(DOLLAR), but of nothing else.
func undollar(buf []byte) []byte {
	from := 0
	for {
		m, first, ok := nextMacro(buf, from, func(m macro) bool { return isDollar(m, buf) })
		if !ok {
			return buf
		}
		buf = slices.Delete(buf, m.dollar+1, m.end)
		from = min(first, m.dollar)
	}
}

// evaluate returns what the macro stands for, and for a plain one its name.
func (x *expansion) evaluate(m macro, text []byte) (name, value string) {
	body := string(m.body(text))
	if m.fn != fnName {
		return "", x.call(m.fn, string(text[m.dollar+1:m.open]), body)
	}
	name, def, hasDefault := strings.Cut(body, ":")
	for i, n := range x.names {
		if equalFold(n, name) && n != "" {
			chain := append(slices.Clone(x.names[i:]), name)
			chain = slices.DeleteFunc(chain, func(s string) bool { return s == "" })
			x.fail(Endless, "$("+name+")", "refers to itself: "+strings.Join(chain, " → "), "names that do not refer back to themselves")
			return name, ""
		}
	}
	if len(x.names) >= maxNameDepth {
		x.fail(TooMuch, "$("+name+")", "names are nested too deep", "")
		return name, ""
	}
	value, e, ok := x.raw(name)
	if x.memory != nil {
		x.memory.use(e, name)
	}
	if x.via != nil && ok && !slices.Contains(*x.via, name) {
		*x.via = append(*x.via, name)
	}
	if x.lookup != nil && !ok && !hasDefault {
		x.missing = append(x.missing, name)
	}
	if value == "" {
		return "", def // the default belongs to this place, not to the name
	}
	if e != nil {
		// An entry found through a prefix is the same one under either name.
		name = e.name[len(e.name)-len(name):]
	}
	return name, value
}

// expandSelf replaces in text only the references to the setting called self,
// by its value so far, which is how "A = $(A) more" is read. self may carry
// the prefix of this daemon, then the name without it counts too. The second
// result reports whether there was such a reference.
func (x *expansion) expandSelf(text, self string) (string, bool) {
	if !strings.Contains(text, "$") {
		return text, false
	}
	bare := self
	for _, prefix := range [...]string{x.local, x.subsys} {
		if prefix != "" && len(self) > len(prefix)+1 && self[len(prefix)] == '.' && hasPrefixFold(self, prefix) {
			bare = self[len(prefix)+1:]
			break
		}
	}
	buf := []byte(text)
	isSelf := func(m macro) bool {
		if m.fn != fnName && m.fn != fnFile {
			return false
		}
		name, _, _ := bytes.Cut(m.body(buf), []byte(":"))
		return equalFold(string(name), self) || equalFold(string(name), bare)
	}
	from, found := 0, false
	for {
		m, first, ok := nextMacro(buf, from, isSelf)
		if !ok {
			return string(buf), found
		}
		found = true
		x.steps++
		if x.steps > maxExpandSteps {
			x.fail(Endless, text, "refers to itself without end", "")
			return "", true
		}
		_, value := x.evaluate(m, buf)
		if len(buf)+len(value) > maxValueBytes {
			x.fail(TooMuch, clip(text), "the value is too long", "")
			return "", true
		}
		buf = slices.Replace(buf, m.dollar, m.end, []byte(value)...)
		from = min(first, m.dollar)
	}
}
