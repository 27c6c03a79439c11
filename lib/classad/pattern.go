// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"regexp"
	"regexp/syntax"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/execpoint/execpoint/lib/backtrack"
)

// HTCondor uses PCRE on bytes; here it is the RE2 engine of Go, which takes
// time in proportion to the text whatever the pattern. Patterns are
// translated where the two spell the same thing differently. What RE2 refuses
// goes to lib/backtrack, whose work is counted in steps of the evaluation:
// back references, assertions that look around, atomic groups, possessive
// repetition and conditions. Recursion and \K are refused.

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

// compilePattern compiles a pattern, which is not usable when it is wrong, not
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
	source, ok := translate(c.text, flags, endOfText)
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
	if tree, err := syntax.Parse(c.source, syntax.Perl); err == nil {
		c.size = programSize(tree)
		return c.size <= maxProgram
	}
	c.source, c.refused = "", true
	c.source, ok = translate(c.text, flags, beforeEndOfText)
	c.size = len(c.source)
	return ok
}

// compile makes the program of a pattern that was parsed.
func (c *compiled) compile() {
	if c.refused {
		c.back, _ = backtrack.Compile(c.source, backtrackOptions(c.flags))
		return
	}
	c.re, _ = regexp.Compile(c.source)
}

func backtrackOptions(f patternFlags) (o backtrack.Options) {
	if f&flagCaseless != 0 {
		o |= backtrack.Caseless
	}
	if f&flagMultiline != 0 {
		o |= backtrack.Multiline
	}
	if f&flagDotAll != 0 {
		o |= backtrack.DotAll
	}
	return o
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
	end                 string // what $ and \Z become
	extended, multiline bool
	outer               []bool // extended and multiline of each group around
	groups              int    // that were opened so far
	properties          int
}

// What $ and \Z mean in PCRE: the end, or before a last newline. RE2 cannot look
// ahead, so that for it the newline belongs to the match.
const (
	endOfText       = `(?:\n?\z)`
	beforeEndOfText = `(?=\n?\z)`
)

// translate rewrites a pattern, with end for $ and \Z.
func translate(text string, flags patternFlags, end string) (string, bool) {
	t := translator{s: widen(text), end: end, extended: flags&flagExtended != 0, multiline: flags&flagMultiline != 0}
	return t.run()
}

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
			t.out.WriteString(t.end)
			t.i++
		case strings.HasPrefix(t.s[t.i:], "(?#"):
			end := strings.IndexByte(t.s[t.i:], ')')
			if end < 0 {
				return "", false
			}
			t.i += end + 1
		case c == '(':
			if !t.open() {
				return "", false
			}
		case c == ')':
			if n := len(t.outer); n > 0 {
				t.extended, t.multiline = t.outer[n-2], t.outer[n-1]
				t.outer = t.outer[:n-2]
			}
			t.out.WriteByte(c)
			t.i++
		case c == '+' && t.possessive():
			t.i++
		case c == '{' && t.repetition():
		default:
			t.out.WriteByte(c)
			t.i++
		}
	}
	return t.out.String(), true
}

// open translates the beginning of a group at i, and follows the options x and
// m, which decide about blanks and $ up to the group's end.
func (t *translator) open() bool {
	rest := t.s[t.i:]
	switch {
	case strings.HasPrefix(rest, "(?'"), strings.HasPrefix(rest, "(?P="):
		name, _, closed := strings.Cut(rest[3:], rest[2:3])
		if rest[2] == 'P' {
			name, _, closed = strings.Cut(rest[4:], ")")
		}
		if !closed {
			return false
		}
		if rest[2] == 'P' {
			t.out.WriteString(`\k<` + name + ">")
			t.i += len("(?P=") + len(name) + 1
			return true
		}
		t.groups++
		t.out.WriteString("(?P<" + name + ">")
		t.enter()
		t.i += len("(?'") + len(name) + 1
		return true
	case strings.HasPrefix(rest, "(?(<"), strings.HasPrefix(rest, "(?('"):
		end := map[byte]string{'<': ">)", '\'': "')"}[rest[3]]
		name, _, closed := strings.Cut(rest[4:], end)
		t.out.WriteString("(?(" + name + ")")
		t.enter()
		t.i += len("(?(<") + len(name) + len(end)
		return closed
	case strings.HasPrefix(rest, "(?(") && !strings.HasPrefix(rest, "(?(?"):
		name, _, closed := strings.Cut(rest[len("(?("):], ")")
		t.out.WriteString("(?(" + t.absolute(name) + ")")
		t.enter()
		t.i += len("(?(") + len(name) + 1
		return closed
	case strings.HasPrefix(rest, "(?"):
		return t.options(rest)
	case !strings.HasPrefix(rest, "(*"):
		t.groups++
	}
	t.out.WriteByte('(')
	t.enter()
	t.i++
	return true
}

// absolute returns the number of a group that is named by how far away it is, as
// -1 is the last one before this place and +1 the next. Any other name stays.
func (t *translator) absolute(name string) string {
	n, err := strconv.Atoi(name)
	switch {
	case err != nil || name[0] != '-' && name[0] != '+':
		return name
	case n < 0:
		n++
	}
	if n += t.groups; n <= 0 {
		return name // which no engine has
	}
	return strconv.Itoa(n)
}

// enter remembers what the options are outside of a group.
func (t *translator) enter() { t.outer = append(t.outer, t.extended, t.multiline) }

// options translates what begins with (? and may set options. The option x is
// carried out here, because RE2 does not have it.
func (t *translator) options(rest string) bool {
	extended, multiline, on := t.extended, t.multiline, true
	letters := ""
	i := 2
	for ; i < len(rest) && strings.IndexByte("imsxU-", rest[i]) >= 0; i++ {
		switch rest[i] {
		case '-':
			on = false
		case 'm':
			multiline = on
		case 'x':
			extended = on
			continue
		}
		letters += rest[i : i+1]
	}
	if i == len(rest) {
		return false
	}
	letters = strings.TrimSuffix(letters, "-")
	switch end := rest[i]; {
	case end == ')' && i > 2:
		if letters != "" {
			t.out.WriteString("(?" + letters + ")")
		}
		t.i += i + 1
	case end == ':':
		t.out.WriteString("(?" + letters + ":")
		t.enter()
		t.i += i + 1
	case i > 2:
		return false
	default:
		if end == '<' && len(rest) > 3 && rest[3] != '=' && rest[3] != '!' || strings.HasPrefix(rest, "(?P<") {
			t.groups++
		}
		t.out.WriteString("(?")
		t.enter()
		t.i += 2
	}
	t.extended, t.multiline = extended, multiline
	return true
}

// reference translates \g and \k, which name a group in several ways.
func (t *translator) reference() bool {
	rest := t.s[t.i+2:]
	if rest == "" {
		return false
	}
	name, size := "", 0
	if end := map[byte]byte{'{': '}', '<': '>', '\'': '\''}[rest[0]]; end != 0 {
		n := strings.IndexByte(rest[1:], end)
		if n < 0 || rest[0] != '{' && t.s[t.i+1] == 'g' {
			return false // \g<n> calls the group again
		}
		name, size = rest[1:1+n], n+2
	} else {
		for size < len(rest) && (isDigit(int(rest[size])) || size == 0 && rest[0] == '-') {
			size++
		}
		name = rest[:size]
	}
	if n, err := strconv.Atoi(name); err == nil {
		if n < 0 {
			n += t.groups + 1
		}
		if n <= 0 {
			return false
		}
		t.out.WriteString(`(?:\` + strconv.Itoa(n) + ")")
	} else {
		t.out.WriteString(`\k<` + name + ">")
	}
	t.i += 2 + size
	return name != ""
}

// repetition translates a repetition in the two ways of writing it that PCRE has
// since 10.43 and RE2 takes for text, {,2} and { 1, 2 }.
func (t *translator) repetition() bool {
	inner, _, closed := strings.Cut(t.s[t.i+1:], "}")
	least, most, two := strings.Cut(inner, ",")
	least, most = strings.Trim(least, " \t"), strings.Trim(most, " \t")
	number := func(s string) bool { return s == "" || strings.Trim(s, "0123456789") == "" }
	if !closed || !number(least) || !number(most) || least+most == "" || least == "" && !two {
		return false
	}
	if two {
		least += ","
	}
	if least == "," {
		least = "0,"
	}
	t.out.WriteString("{" + least + most + "}")
	t.i += len(inner) + len("{}")
	return true
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
	'h': {`[\t \xa0]`, `\t \xa0`},
	'H': {`[^\t \xa0]`, ``},
	'v': {`[\n-\r\x85]`, `\n-\r\x85`},
	'V': {`[^\n-\r\x85]`, ``},
	'S': {`[^\t-\r ]`, `\S`},
	'R': {`(?:\r\n|[\n-\r\x85])`, ``},
	'N': {`[^\n]`, ``},
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
	if c == 'Z' {
		t.out.WriteString(t.end)
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
	if c == 'g' || c == 'k' {
		return t.reference()
	}
	if isAlpha(int(c)) && strings.IndexByte("dDwWbBAzGnrtfaxpP", c) < 0 {
		return false
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
