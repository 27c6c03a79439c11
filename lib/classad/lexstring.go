// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import "strings"

func quoted(delim byte, start int, text string) token {
	if delim == '"' {
		return token{kind: tokString, start: start, text: text}
	}
	return token{kind: tokIdentifier, start: start, text: text}
}

func (l *lexer) unclosed(delim byte, start int) token {
	l.pos = len(l.text)
	if delim == '"' {
		return l.bad(start, `string is not closed: expected "`)
	}
	return l.bad(start, "quoted name is not closed: expected '")
}

// scanOldString reads a string or quoted name of the old dialect. A backslash
// stands for itself, except before the delimiter; and before a delimiter that
// ends the line or the text it stands for itself again.
func (l *lexer) scanOldString(delim byte) token {
	start := l.pos
	from := start + 1 // of the part not yet copied
	var b []byte
	for i := from; ; i++ {
		switch l.at(i) {
		case eof:
			return l.unclosed(delim, start)
		case int(delim):
			if i > from && l.text[i-1] == '\\' {
				if c := l.at(i + 1); c != eof && c != '\n' {
					b = append(b, l.text[from:i-1]...)
					b = append(b, delim)
					from = i + 1
					continue
				}
			}
			l.pos = i + 1
			if b == nil {
				return quoted(delim, start, l.text[from:i])
			}
			return quoted(delim, start, string(append(b, l.text[from:i]...)))
		}
	}
}

// simpleString reads a string without escapes that stands alone, as most do.
func (l *lexer) simpleString(delim byte) (part string, ok bool) {
	rest := l.text[l.pos+1:]
	end := strings.IndexByte(rest, delim)
	if end < 0 {
		return "", false
	}
	part = rest[:end]
	if strings.IndexByte(part, '\\') >= 0 || strings.IndexByte(part, 0) >= 0 {
		return "", false
	}
	after := l.pos + 1 + end + 1
	next := after
	for isSpace(l.at(next)) {
		next++
	}
	if l.at(next) == int(delim) {
		return "", false
	}
	l.pos = after
	return part, true
}

// scanNewString reads a string or quoted name of the new dialect. Adjacent
// ones are joined.
func (l *lexer) scanNewString(delim byte) token {
	start := l.pos
	if part, ok := l.simpleString(delim); ok {
		return quoted(delim, start, part)
	}
	i := start + 1
	var joined []byte
	for {
		from := i
		escaped, any := false, false
		for c := l.at(i); c != int(delim) || escaped; c = l.at(i) {
			if c == eof {
				return l.unclosed(delim, start)
			}
			escaped = !escaped && c == '\\'
			any = any || escaped
			i++
		}
		part := l.text[from:i]
		i++
		after := i
		for isSpace(l.at(i)) {
			i++
		}
		again := l.at(i) == int(delim)
		if !again && joined == nil && !any {
			l.pos = after
			return quoted(delim, start, part)
		}
		joined = append(joined, part...)
		if !again {
			l.pos = after
			break
		}
		i++
	}
	if l.json {
		text, ok := unescapeJSON(joined)
		if !ok {
			return l.bad(start, `string with a \u escape that is no character`)
		}
		t := quoted(delim, start, text)
		n := len(joined)
		t.mark = n >= 4 && string(joined[:2]) == `\/` && string(joined[n-2:]) == `\/`
		return t
	}
	text, ok := unescape(joined)
	if !ok {
		return l.bad(start, `string with \0: a string cannot hold a NUL byte`)
	}
	return quoted(delim, start, text)
}

const (
	escapeLetters = `abfnrtv`
	escapeBytes   = "\a\b\f\n\r\t\v"
)

// unescape replaces C-like escapes in place. An unknown one stands for its
// letter. ok is false for an escaped NUL.
func unescape(s []byte) (text string, ok bool) {
	ok = true
	out := s[:0]
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c != '\\' || i == len(s)-1 {
			out = append(out, c)
			continue
		}
		i++
		c = s[i]
		if k := strings.IndexByte(escapeLetters, c); k >= 0 {
			c = escapeBytes[k]
		} else if isOctal(int(c)) {
			// Up to three digits, the third only while the value stays small.
			n := int(c - '0')
			if i+1 < len(s) && isOctal(int(s[i+1])) {
				i++
				n = n<<3 + int(s[i]-'0')
				if n < 0x20 && i+1 < len(s) && isOctal(int(s[i+1])) {
					i++
					n = n<<3 + int(s[i]-'0')
				}
			}
			c = byte(n)
			ok = ok && c != 0
		}
		out = append(out, c)
	}
	return string(out), ok
}
