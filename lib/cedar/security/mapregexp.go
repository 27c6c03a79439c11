// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"fmt"
	"regexp"
	"strings"
)

// principalForm is how a principal was written.
type principalForm struct{ regexp, caseless, ungreedy bool }

// mapFields cuts a line of a map file into fields: words, texts in quotes and,
// where they are wanted, expressions between slashes.
type mapFields struct {
	s string
	i int
}

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// next returns the next field, "" at the end. A quoted field ends at its mark
// or with the line; a backslash before the mark or another backslash goes.
func (f *mapFields) next(expressions bool) (field string, h principalForm) {
	for f.i < len(f.s) && blank(f.s[f.i]) {
		f.i++
	}
	if f.i == len(f.s) {
		return "", h
	}
	end := f.s[f.i]
	if end != '"' && (end != '/' || !expressions) {
		start := f.i
		for f.i < len(f.s) && !blank(f.s[f.i]) {
			f.i++
		}
		return f.s[start:f.i], h
	}
	var b []byte
	for f.i++; f.i < len(f.s) && f.s[f.i] != end; f.i++ {
		if f.s[f.i] == '\\' && f.i+1 < len(f.s) {
			f.i++
			if c := f.s[f.i]; c != end && c != '\\' {
				b = append(b, '\\')
			}
		}
		b = append(b, f.s[f.i])
	}
	if f.i < len(f.s) {
		f.i++
	}
	if end == '/' {
		h.regexp = true
		for ; f.i < len(f.s) && (f.s[f.i] == 'i' || f.s[f.i] == 'U'); f.i++ {
			h.caseless = h.caseless || f.s[f.i] == 'i'
			h.ungreedy = h.ungreedy || f.s[f.i] == 'U'
		}
	}
	return string(b), h
}

// pattern is a compiled principal.
type pattern struct{ re *regexp.Regexp }

// find returns the groups of a match, nil for none. A group that took no part
// is empty.
func (p *pattern) find(name string) []string { return p.re.FindStringSubmatch(name) }

// compile reads an expression in the spelling of PCRE, as far as Go's regexp
// can do what it asks.
func compile(text string, h principalForm) (*pattern, error) {
	if len(text) > maxName {
		return nil, fmt.Errorf("the regular expression has %d characters, at most %d are read", len(text), maxName)
	}
	flags := ""
	if h.caseless {
		flags += "i"
	}
	if h.ungreedy {
		flags += "U"
	}
	if flags != "" {
		flags = "(?" + flags + ")"
	}
	re, err := regexp.Compile(flags + translate(text))
	if err != nil {
		return nil, fmt.Errorf("regular expression %q: %s; look-around, back references and recursion cannot be had", clip(text), reason(err))
	}
	return &pattern{re}, nil
}

func reason(err error) string {
	return strings.TrimPrefix(err.Error(), "error parsing regexp: ")
}

// translate respells what PCRE and Go write differently: \h is a blank, \e a
// character, \Z the end, (?'name'...) names a group, and punctuation may be
// escaped. $ and \Z are the very end here: a name that ends in a line break is
// no name, so it must not pass for one.
func translate(text string) string {
	var b strings.Builder
	class := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\\' && i+1 < len(text):
			i++
			switch text[i] {
			case 'h':
				if class {
					b.WriteString(` \t`)
				} else {
					b.WriteString(`[ \t]`)
				}
			case 'e':
				b.WriteString(`\x1b`)
			case 'Z':
				b.WriteString(`\z`)
			case '<', '>', '"', '\'', ' ', '#', '@', '/', ',', ';', ':', '=', '!', '%', '&', '~', '`':
				b.WriteString(regexp.QuoteMeta(text[i : i+1]))
			default:
				b.WriteByte('\\')
				b.WriteByte(text[i])
			}
		case class:
			class = c != ']'
			b.WriteByte(c)
		case c == '[':
			class = true
			b.WriteByte(c)
			// A bracket that comes first stands for itself.
			if i+1 < len(text) && text[i+1] == '^' {
				i++
				b.WriteByte('^')
			}
			if i+1 < len(text) && text[i+1] == ']' {
				i++
				b.WriteString(`\]`)
			}
		case c == '(' && strings.HasPrefix(text[i:], "(?'"):
			if name, rest, ok := strings.Cut(text[i+3:], "'"); ok {
				b.WriteString("(?P<" + name + ">")
				i = len(text) - len(rest) - 1
				continue
			}
			b.WriteByte(c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
