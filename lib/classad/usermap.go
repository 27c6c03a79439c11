// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"fmt"
	"strings"
)

// UserMap is one table of the function userMap(). Each line of its text is
//
//	method principal result
//
// where the method is nearly always *, a principal is a word, "several words"
// or a regular expression /…/ with the flags i and U, and the result may
// refer to groups of the expression as \1. Lines that begin with # are
// comments. The first principal that fits wins. A UserMap is immutable.
type UserMap struct {
	kind    MapKind
	methods map[string][]mapping
}

// mapping is one line.
type mapping struct {
	principal string
	re        *compiled // nil: compare principal
	result    string
}

// MapKind says how principals that are no regular expressions compare.
type MapKind uint8

const (
	// MapExact compares whole principals.
	MapExact MapKind = iota
	// MapPrefix lets the longest principal win that the input begins with;
	// there are no regular expressions in such a map.
	MapPrefix
)

// ParseUserMap reads a table. Lines that cannot be used are left out, as the
// original does, and named in problems, one sentence each.
func ParseUserMap(text string, kind MapKind) (m *UserMap, problems []error) {
	m = &UserMap{kind: kind, methods: map[string][]mapping{}}
	for i, line := range strings.Split(text, "\n") {
		problem := func(format string, args ...any) {
			problems = append(problems, fmt.Errorf("line %d: %s", i+1, fmt.Sprintf(format, args...)))
		}
		f := fieldReader{s: line}
		method, _ := f.next(false)
		if method == "" || method[0] == '#' {
			continue
		}
		if method == "@include" {
			problem("@include is not supported here")
			continue
		}
		principal, flags := f.next(kind == MapExact)
		result, _ := f.next(false)
		if principal == "" || result == "" {
			problem("expected: method principal result")
			continue
		}
		entry := mapping{principal: principal, result: result}
		if flags.isPattern {
			var set patternFlags
			if flags.caseless {
				set = flagCaseless
			}
			pattern := principal
			if flags.ungreedy {
				pattern = "(?U)" + pattern
			}
			if entry.re = compilePattern(pattern, set); !entry.re.usable() {
				problem("regular expression %q is wrong or not supported", principal)
				continue
			}
		}
		key := foldString(method)
		m.methods[key] = append(m.methods[key], entry)
	}
	return m, problems
}

// Lookup returns what the table has for an input under a method.
func (m *UserMap) Lookup(method, input string) (string, bool) {
	var best *mapping
	all := m.methods[foldString(method)]
	for i := range all {
		e := &all[i]
		switch {
		case m.kind == MapPrefix:
			if strings.HasPrefix(input, e.principal) && (best == nil || len(e.principal) > len(best.principal)) {
				best = e
			}
		case e.re != nil:
			if groups := e.groups(input); groups != nil {
				return narrow(expand(widen(e.result), groups)), true
			}
		case e.principal == input:
			return expand(e.result, []string{e.principal}), true
		}
	}
	if best == nil {
		return "", false
	}
	return expand(best.result, []string{best.principal}), true
}

// maxMapSteps is what one line may use of a table that is asked without an
// evaluation's count of steps. A line that uses more does not match.
const maxMapSteps = 100_000

// groups returns what a pattern and its groups match of an input, widened, nil
// for no match.
func (e *mapping) groups(input string) []string {
	if e.re.re != nil {
		return e.re.re.FindStringSubmatch(widen(input))
	}
	steps := maxMapSteps
	m, ok := e.re.back.Find(input, 0, &steps)
	if m == nil || !ok {
		return nil
	}
	groups := make([]string, len(m)/2)
	for g := range groups {
		if m[2*g] >= 0 {
			groups[g] = widen(input[m[2*g]:m[2*g+1]])
		}
	}
	return groups
}

// expand replaces \0 to \9 by groups; one that does not exist stays.
func expand(result string, groups []string) string {
	var b strings.Builder
	for i := 0; i < len(result); i++ {
		if result[i] == '\\' && i+1 < len(result) && isDigit(int(result[i+1])) {
			if g := int(result[i+1] - '0'); g < len(groups) {
				b.WriteString(groups[g])
				i++
				continue
			}
		}
		b.WriteByte(result[i])
	}
	return b.String()
}

// UserMaps are tables by name, to be set as [Env.UserMap] with their method
// Lookup. Names are without regard to case.
type UserMaps map[string]*UserMap

// Lookup asks the table called name; name.method asks it for another method
// than *.
func (m UserMaps) Lookup(name, input string) (string, bool) {
	name, method, ok := strings.Cut(name, ".")
	if !ok {
		method = "*"
	}
	for key, table := range m {
		if equalNames(key, name) {
			return table.Lookup(method, input)
		}
	}
	return "", false
}

// fieldReader cuts a line into fields: words, or texts in quotes.
type fieldReader struct {
	s string
	i int
}

// fieldFlags tell how a principal was written.
type fieldFlags struct{ isPattern, caseless, ungreedy bool }

func (f *fieldReader) next(patterns bool) (field string, flags fieldFlags) {
	for f.i < len(f.s) && isSpace(int(f.s[f.i])) {
		f.i++
	}
	if f.i == len(f.s) {
		return "", flags
	}
	end := f.s[f.i]
	if end != '"' && !(end == '/' && patterns) {
		start := f.i
		for f.i < len(f.s) && !isSpace(int(f.s[f.i])) {
			f.i++
		}
		return f.s[start:f.i], flags
	}
	var b []byte
	for f.i++; f.i < len(f.s) && f.s[f.i] != end; f.i++ {
		if f.s[f.i] == '\\' && f.i+1 < len(f.s) {
			// A backslash goes before the end mark or another one.
			f.i++
			if c := f.s[f.i]; c != end && c != '\\' {
				b = append(b, '\\')
			}
		}
		b = append(b, f.s[f.i])
	}
	f.i++
	if end == '/' {
		flags.isPattern = true
		for ; f.i < len(f.s); f.i++ {
			c := f.s[f.i]
			if c != 'i' && c != 'U' {
				break
			}
			flags.caseless = flags.caseless || c == 'i'
			flags.ungreedy = flags.ungreedy || c == 'U'
		}
	}
	f.i = min(f.i, len(f.s))
	return string(b), flags
}
