// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf8"
)

// HTCondor uses PCRE on bytes; here it is the RE2 engine of Go, which takes
// time in proportion to the text whatever the pattern. Patterns are
// translated where the two spell the same thing differently. What RE2 cannot
// do is refused: back references, assertions that look around, atomic groups,
// possessive repetition where it would matter, recursion and conditions.

// widen maps every byte to the character of that number, so that the engine,
// which reads UTF-8, works on bytes. ASCII stays as it is.
func widen(s string) string {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			var b strings.Builder
			for k := range len(s) {
				b.WriteRune(rune(s[k]))
			}
			return b.String()
		}
	}
	return s
}

// narrow undoes widen.
func narrow(s string) string {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			b := make([]byte, 0, len(s))
			for _, r := range s {
				b = append(b, byte(r))
			}
			return string(b)
		}
	}
	return s
}

// Limits of a regular expression: of its text, of the program made of it, and
// how many properties such as \pL it may name, each of which is a table of some
// hundred ranges.
const (
	maxPattern    = 32 << 10
	maxProgram    = 20_000
	maxProperties = 16
)

// compilePattern compiles a pattern; re stays nil for one that is wrong, not
// supported or too large.
func compilePattern(text string, flags patternFlags) *compiled {
	c := &compiled{text: text, flags: flags}
	if c.parse() {
		c.compile()
	}
	return c
}

// parse finds the spelling of RE2 and how large a program it will be, and
// reports whether there is one.
func (c *compiled) parse() bool {
	flags := c.flags
	if len(c.text) > maxPattern {
		return false
	}
	t := translator{s: widen(c.text), extended: flags&flagExtended != 0, multiline: flags&flagMultiline != 0}
	source, ok := t.run()
	if !ok {
		return false
	}
	letters := ""
	for _, o := range [...]struct {
		flag   patternFlags
		letter string
	}{{flagCaseless, "i"}, {flagMultiline, "m"}, {flagDotAll, "s"}} {
		if flags&o.flag != 0 {
			letters += o.letter
		}
	}
	c.source = "(?" + letters + ":" + source + ")"
	tree, err := syntax.Parse(c.source, syntax.Perl)
	if err != nil {
		return false
	}
	c.size = programSize(tree)
	return c.size <= maxProgram
}

// compile makes the program of a pattern that was parsed.
func (c *compiled) compile() {
	if re, err := regexp.Compile(c.source); err == nil {
		c.re = re
	}
}

// programSize estimates the instructions a tree needs, repetitions written
// out.
func programSize(t *syntax.Regexp) int {
	size := 1 + len(t.Rune)/8
	for _, sub := range t.Sub {
		size += programSize(sub)
		if size > maxProgram {
			return size
		}
	}
	if t.Op == syntax.OpRepeat {
		size *= max(1, t.Min, t.Max)
	}
	return size
}

// translator rewrites a PCRE pattern for RE2.
type translator struct {
	s                   string
	i                   int
	out                 strings.Builder
	extended, multiline bool
	properties          int
}

// endOfText is what $ and \Z mean in PCRE: the end, or before a last newline.
const endOfText = `(?:\n?\z)`

func (t *translator) run() (string, bool) {
	for t.i < len(t.s) {
		c := t.s[t.i]
		switch {
		case t.extended && isSpace(int(c)):
			t.i++
		case t.extended && c == '#':
			for t.i < len(t.s) && t.s[t.i] != '\n' {
				t.i++
			}
		case c == '\\':
			if !t.escape() {
				return "", false
			}
		case c == '[':
			if !t.class() {
				return "", false
			}
		case c == '$' && !t.multiline:
			t.out.WriteString(endOfText)
			t.i++
		case strings.HasPrefix(t.s[t.i:], "(?#"):
			end := strings.IndexByte(t.s[t.i:], ')')
			if end < 0 {
				return "", false
			}
			t.i += end + 1
		case strings.HasPrefix(t.s[t.i:], "(?'"):
			end := strings.IndexByte(t.s[t.i+3:], '\'')
			if end < 0 {
				return "", false
			}
			t.out.WriteString("(?P<" + t.s[t.i+3:t.i+3+end] + ">")
			t.i += end + 4
		case c == '+' && t.possessive():
			t.i++
		default:
			t.out.WriteByte(c)
			t.i++
		}
	}
	return t.out.String(), true
}

// possessive reports whether the + here makes the repetition before it
// possessive and may be dropped, because what follows is a literal that the
// repeated single literal cannot match, or nothing.
func (t *translator) possessive() bool {
	i := t.i
	if i < 2 || strings.IndexByte("*+?", t.s[i-1]) < 0 {
		return false
	}
	atom := t.s[i-2]
	if !isAlnum(int(atom)) || i >= 3 && t.s[i-3] == '\\' {
		return false
	}
	if i+1 == len(t.s) {
		return true
	}
	next := t.s[i+1]
	return isAlnum(int(next)) && lower(next) != lower(atom) &&
		(i+2 == len(t.s) || strings.IndexByte("*?{", t.s[i+2]) < 0)
}

// escapeFor says what an escape of PCRE becomes where RE2 has another
// spelling; the second text is for use inside a class, empty if there is none.
var escapeFor = map[byte][2]string{
	's': {`[\t-\r ]`, `\t-\r `},
	'h': {`[\t ]`, `\t `},
	'H': {`[^\t ]`, ``},
	'v': {`[\n-\r]`, `\n-\r`},
	'V': {`[^\n-\r]`, ``},
	'S': {`[^\t-\r ]`, `\S`},
	'R': {`(?:\r\n|[\n-\r])`, ``},
	'N': {`[^\n]`, ``},
	'Z': {endOfText, ``},
	'e': {`\x1b`, `\x1b`},
	'_': {`_`, `_`},
}

// escape translates the escape at i outside a class.
func (t *translator) escape() bool {
	if t.i+1 >= len(t.s) {
		return false
	}
	c := t.s[t.i+1]
	if to, ok := escapeFor[c]; ok {
		t.out.WriteString(to[0])
		t.i += 2
		return true
	}
	if c == 'Q' {
		end := strings.Index(t.s[t.i:], `\E`)
		if end < 0 {
			end = len(t.s) - t.i
		}
		t.out.WriteString(regexp.QuoteMeta(t.s[t.i+2 : t.i+end]))
		t.i = min(len(t.s), t.i+end+2)
		return true
	}
	if c == 'E' {
		t.i += 2
		return true
	}
	if !t.narrowEscape(c) {
		return false
	}
	t.out.WriteString(t.s[t.i : t.i+2])
	t.i += 2
	return true
}

// narrowEscape reports whether the escape of c at i stays within what a byte
// can be. Beyond it PCRE refuses \x{100} too, and RE2 would spend a tenth of a
// second on each range like [b-\x{1e942}] that is to match in either case.
func (t *translator) narrowEscape(c byte) bool {
	switch c {
	case 'p', 'P':
		t.properties++
		return t.properties <= maxProperties
	case 'x':
		hex, braced := strings.CutPrefix(t.s[t.i+2:], "{")
		if !braced {
			return true
		}
		hex, _, closed := strings.Cut(hex, "}")
		n, err := strconv.ParseUint(hex, 16, 64)
		return closed && err == nil && n <= 0xff
	}
	return true
}

// class copies a bracket expression, translating escapes inside.
func (t *translator) class() bool {
	t.out.WriteByte('[')
	t.i++
	if t.i < len(t.s) && t.s[t.i] == '^' {
		t.out.WriteByte('^')
		t.i++
	}
	for first := true; t.i < len(t.s); first = false {
		c := t.s[t.i]
		switch {
		case c == ']' && !first:
			t.out.WriteByte(']')
			t.i++
			return true
		case c == '[' && t.i+1 < len(t.s) && t.s[t.i+1] == ':':
			end := strings.Index(t.s[t.i:], ":]")
			if end < 0 {
				t.out.WriteString(`\[`)
				t.i++
				continue
			}
			t.out.WriteString(t.s[t.i : t.i+end+2])
			t.i += end + 2
		case c == '[':
			t.out.WriteString(`\[`)
			t.i++
		case c == '\\' && t.i+1 < len(t.s):
			e := t.s[t.i+1]
			if to, ok := escapeFor[e]; ok {
				if to[1] == "" {
					return false
				}
				t.out.WriteString(to[1])
			} else if e == 'b' {
				t.out.WriteString(`\x08`)
			} else if !t.narrowEscape(e) {
				return false
			} else {
				t.out.WriteString(t.s[t.i : t.i+2])
			}
			t.i += 2
		default:
			t.out.WriteByte(c)
			t.i++
		}
	}
	return false
}
