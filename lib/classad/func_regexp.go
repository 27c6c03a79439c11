// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import "regexp"

// Options of a regular expression, as bits of a set.
type patternFlags uint8

const (
	flagCaseless patternFlags = 1 << iota
	flagMultiline
	flagDotAll
	flagExtended
	flagFull // result is the whole text with the match replaced
	flagAll  // replace every match
)

// patternOptions reads option letters; unknown ones are ignored.
func patternOptions(s string) patternFlags {
	var f patternFlags
	for i := range len(s) {
		switch s[i] {
		case 'i':
			f |= flagCaseless
		case 'm':
			f |= flagMultiline
		case 's':
			f |= flagDotAll
		case 'x':
			f |= flagExtended
		case 'f':
			f |= flagFull
		case 'g':
			f |= flagAll
		}
	}
	return f
}

// compiled is one regular expression with the text and options it was made
// from. re is nil if the pattern is not valid or not supported.
type compiled struct {
	text  string
	flags patternFlags
	re    *regexp.Regexp
	// lookback tells that a match may depend on what stands before it.
	lookback bool
}

// pattern compiles a regular expression, or takes it from the call if it is
// the one compiled there last.
func (ev *evaluator) pattern(n *call, text string, flags patternFlags) *compiled {
	flags &= flagCaseless | flagMultiline | flagDotAll | flagExtended
	if c := n.pattern.Load(); c != nil && c.text == text && c.flags == flags {
		return c
	}
	ev.spend(64 * len(text))
	c := &compiled{text: text, flags: flags}
	if len(text) <= maxPattern {
		c.re, c.lookback = compilePattern(text, flags)
	}
	n.pattern.Store(c)
	return c
}

// maxPattern bounds the text of a regular expression.
const maxPattern = 32 << 10

// regexp is regexp(pattern, text[, options]).
func (ev *evaluator) regexp(n *call) Value {
	var a arguments
	if !ev.take(n, 2, 3, &a) {
		return ErrorValue()
	}
	if v, done := a.strict(); done {
		return v
	}
	if a.v[0].kind != KindString || a.v[1].kind != KindString || a.n == 3 && a.v[2].kind != KindString {
		return ErrorValue()
	}
	var flags patternFlags
	if a.n == 3 {
		flags = patternOptions(a.v[2].str())
	}
	c := ev.pattern(n, a.v[0].str(), flags)
	if c.re == nil {
		return ErrorValue()
	}
	ev.spend(8 * int(a.v[1].num))
	return Bool(c.re.MatchString(widen(a.v[1].str())))
}

// regexpMember is regexpMember(pattern, list[, options]).
func (ev *evaluator) regexpMember(n *call) Value {
	var a arguments
	if !ev.take(n, 2, 3, &a) {
		return ErrorValue()
	}
	if v, done := a.strict(); done {
		return v
	}
	if a.v[0].kind != KindString || a.v[1].kind != KindList || a.n == 3 && a.v[2].kind != KindString {
		return ErrorValue()
	}
	var flags patternFlags
	if a.n == 3 {
		flags = patternOptions(a.v[2].str())
	}
	c := ev.pattern(n, a.v[0].str(), flags)
	undefined := false
	l := a.v[1].list()
	for i := range l.elems {
		v := ev.at(l, i)
		switch v.kind {
		case KindUndefined:
			undefined = true
			continue
		case KindString:
		default:
			ev.failed = ev.steps < 0
			return ErrorValue()
		}
		ev.spend(8 * int(v.num))
		if c.re != nil && c.re.MatchString(widen(v.str())) {
			return Bool(true)
		}
	}
	if undefined {
		return Undefined()
	}
	return Bool(false)
}

// substitute is regexps(pattern, text, replacement[, options]); replace and
// replaceAll have options f and fg.
func (ev *evaluator) substitute(n *call) Value {
	var a arguments
	if !ev.take(n, 3, 4, &a) {
		return ErrorValue()
	}
	if v, done := a.strict(); done {
		return v
	}
	for i := range a.n {
		if a.v[i].kind != KindString {
			return ErrorValue()
		}
	}
	var flags patternFlags
	if a.n == 4 {
		flags = patternOptions(a.v[3].str())
	}
	switch n.fn {
	case fnReplace:
		flags |= flagFull
	case fnReplaceAll:
		flags |= flagFull | flagAll
	}
	c := ev.pattern(n, a.v[0].str(), flags)
	if c.re == nil {
		return ErrorValue()
	}
	s, ok := ev.rewrite(c, widen(a.v[1].str()), widen(a.v[2].str()), flags)
	if !ok {
		return ErrorValue()
	}
	return ev.text(narrow(s))
}

// rewrite replaces matches in s. Like the original it fails when a pattern
// that can match nothing is to be replaced everywhere, at the end of the text,
// and when the replacement names a group beyond the last that took part.
func (ev *evaluator) rewrite(c *compiled, s, with string, flags patternFlags) (string, bool) {
	var out []byte
	at := 0
	matches := c.each(s, flags&flagAll != 0)
	for {
		m := matches()
		ev.spend(8 * (len(s) - at))
		if m == nil || ev.failed {
			break
		}
		if flags&flagFull != 0 {
			out = append(out, s[at:m[0]]...)
		}
		groups := 0 // one more than the last group that matched
		for g := 0; g < len(m); g += 2 {
			if m[g] >= 0 {
				groups = g/2 + 1
			}
		}
		for i := 0; i < len(with); i++ {
			if with[i] != '\\' || i+1 == len(with) || !isDigit(int(with[i+1])) {
				out = append(out, with[i])
				continue
			}
			i++
			g := int(with[i] - '0')
			if g >= groups {
				return "", false
			}
			if m[2*g] >= 0 {
				out = append(out, s[m[2*g]:m[2*g+1]]...)
			}
		}
		at = m[1]
		if len(out) > maxText {
			ev.failed = true
			return "", false
		}
		if flags&flagAll == 0 {
			break
		}
		if m[0] == m[1] && m[1] == len(s) {
			return "", false
		}
	}
	if flags&flagFull != 0 {
		out = append(out, s[at:]...)
	}
	return string(out), true
}

// each returns a function that yields the matches one after the other, nil at
// the end; without all it yields at most the first.
func (c *compiled) each(s string, all bool) func() []int {
	if !all {
		done := false
		return func() []int {
			if done {
				return nil
			}
			done = true
			return c.re.FindStringSubmatchIndex(s)
		}
	}
	if c.lookback {
		// The search may not be cut into pieces.
		found, i := c.re.FindAllStringSubmatchIndex(s, -1), 0
		return func() []int {
			if i == len(found) {
				return nil
			}
			i++
			return found[i-1]
		}
	}
	at, skip := 0, 0
	return func() []int {
		if at+skip > len(s) {
			return nil
		}
		m := c.re.FindStringSubmatchIndex(s[at+skip:])
		if m == nil {
			return nil
		}
		for i := range m {
			if m[i] >= 0 {
				m[i] += at + skip
			}
		}
		at, skip = m[1], 0
		if m[0] == m[1] {
			// After an empty match go on behind the next character.
			skip = 1
			for at+skip < len(s) && s[at+skip]&0xC0 == 0x80 {
				skip++
			}
		}
		return m
	}
}
