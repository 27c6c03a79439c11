// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"regexp"
	"unicode/utf8"

	"github.com/execpoint/execpoint/lib/backtrack"
)

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

// patternFlagsOfText are the options that change how a pattern is read.
const patternFlagsOfText = flagCaseless | flagMultiline | flagDotAll | flagExtended

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
// from. It has a program of one kind, or none if the pattern is not valid or
// not supported.
type compiled struct {
	text    string
	flags   patternFlags
	re      *regexp.Regexp
	back    *backtrack.Program
	refused bool   // by RE2
	source  string // as RE2 spells it, with its flags; for back without them
	size    int    // about how many instructions re has
}

func (c *compiled) usable() bool { return c.re != nil || c.back != nil }

// matches reports whether the pattern matches in a text. What a program that
// goes back uses is taken from the steps.
func (ev *evaluator) matches(c *compiled, s string) bool {
	switch {
	case ev.failed || !c.usable():
		return false
	case c.re != nil:
		return c.re.MatchString(widen(s))
	}
	return ev.findBack(c, s, 0) != nil
}

// findBack returns the first match of a program that goes back, as
// [regexp.Regexp.FindStringSubmatchIndex] does, from an offset on. Such a program
// reads bytes: the text is not widened.
func (ev *evaluator) findBack(c *compiled, s string, from int) []int {
	m, ok := c.back.Find(s, from, &ev.steps)
	if !ok {
		ev.failed = true
	}
	return m
}

// pattern compiles a regular expression, or takes it from the call if it is
// the one compiled there last. Each part of the work is paid for before it is
// done. Nothing is usable when the steps do not last.
func (ev *evaluator) pattern(n *call, text string, flags patternFlags) *compiled {
	flags &= patternFlagsOfText
	if c := n.pattern.Load(); c != nil && c.text == text && c.flags == flags {
		return c
	}
	c := &compiled{text: text, flags: flags}
	ev.spend(64 * 16 * min(len(text), maxPattern))
	if ev.failed {
		return c
	}
	if c.parse() {
		ev.spend(64 * 8 * c.size)
		if ev.failed {
			return c
		}
		c.compile()
	}
	n.pattern.Store(c)
	return c
}

// scan pays for looking for a match in size bytes of text: RE2 may look at
// every instruction for every byte, and does four of them in the time of a
// step.
// A program that goes back takes its own steps.
func (ev *evaluator) scan(c *compiled, size int) {
	if !c.refused {
		ev.spend(16 * size * (1 + c.size))
	}
}

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
	if !c.usable() {
		return ErrorValue()
	}
	ev.scan(c, int(a.v[1].num))
	return Bool(ev.matches(c, a.v[1].str()))
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
		ev.scan(c, int(v.num))
		if ev.matches(c, v.str()) {
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
	if !c.usable() {
		return ErrorValue()
	}
	if c.back != nil {
		s, ok := ev.rewrite(c, a.v[1].str(), a.v[2].str(), flags)
		if !ok {
			return ErrorValue()
		}
		return ev.text(s)
	}
	s, ok := ev.rewrite(c, widen(a.v[1].str()), widen(a.v[2].str()), flags)
	if !ok {
		return ErrorValue()
	}
	return ev.text(narrow(s))
}

// rewrite replaces matches in s. Like HTCondor it fails when a match of
// nothing at the end of the text is to be replaced along with all others, and
// when the replacement names a group beyond the last that took part.
func (ev *evaluator) rewrite(c *compiled, s, with string, flags patternFlags) (string, bool) {
	full, all := flags&flagFull != 0, flags&flagAll != 0
	search := searcher{c: c, s: s}
	var out []byte
	at := 0
	for {
		ev.scan(c, (len(s)-at)/4+16)
		ev.spend(len(with))
		if ev.failed {
			return "", false
		}
		m := search.next(ev)
		if ev.failed {
			return "", false
		}
		if m == nil {
			break
		}
		if full {
			out = append(out, s[at:m[0]]...)
		}
		var ok bool
		if out, ok = substituteGroups(out, s, with, m); !ok {
			return "", false
		}
		at = m[1]
		if len(out) > maxText {
			ev.failed = true
			return "", false
		}
		if !all {
			break
		}
		if m[0] == m[1] {
			if at == len(s) {
				return "", false
			}
			if !full {
				out = append(out, s[at:at+search.width(at)]...)
			}
		}
	}
	if full {
		out = append(out, s[at:]...)
	}
	return string(out), true
}

// substituteGroups appends with, where \0 to \9 stand for groups of the match
// m in s.
func substituteGroups(out []byte, s, with string, m []int) ([]byte, bool) {
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
			return nil, false
		}
		if m[2*g] >= 0 {
			out = append(out, s[m[2*g]:m[2*g+1]]...)
		}
	}
	return out, true
}

// searcher finds the matches in a text one after the other.
type searcher struct {
	c     *compiled
	s     string
	from  int // where the next match may begin; -1: there is none
	again *regexp.Regexp
}

// width returns the length of the character at i.
func (f *searcher) width(i int) int {
	if f.c.back != nil {
		return 1
	}
	_, size := utf8.DecodeRuneInString(f.s[i:])
	return size
}

// next returns the next match, nil if there is none. A search that does not
// begin at the start of the text sees one character before it, which is all
// that an assertion can ask for.
func (f *searcher) next(ev *evaluator) []int {
	if f.from < 0 || f.from > len(f.s) {
		return nil
	}
	var m []int
	if f.c.back != nil {
		m = ev.findBack(f.c, f.s, f.from)
	} else if f.from == 0 {
		m = f.c.re.FindStringSubmatchIndex(f.s)
	} else {
		if f.again == nil {
			f.again = regexp.MustCompile(`\A(?s:.)(?s:.*?)(` + f.c.source + `)`)
		}
		_, size := utf8.DecodeLastRuneInString(f.s[:f.from])
		base := f.from - size
		m = f.again.FindStringSubmatchIndex(f.s[base:])
		if m != nil {
			m = m[2:]
			for i := range m {
				if m[i] >= 0 {
					m[i] += base
				}
			}
		}
	}
	switch {
	case m == nil:
		f.from = -1
	case m[0] < m[1]:
		f.from = m[1]
	case m[1] < len(f.s):
		f.from = m[1] + f.width(m[1]) // behind a match of nothing
	default:
		f.from = -1
	}
	return m
}
