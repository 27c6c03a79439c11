// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import "strings"

// isSpace is the C locale's isspace: the language knows no other blanks.
func isSpace(c byte) bool {
	return c == ' ' || ('\t' <= c && c <= '\r')
}

func trimLeft(s string) string {
	for len(s) > 0 && isSpace(s[0]) {
		s = s[1:]
	}
	return s
}

func trimRight(s string) string {
	for len(s) > 0 && isSpace(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}

func trim(s string) string { return trimLeft(trimRight(s)) }

// joint is where a physical line begins in a logical one.
type joint struct {
	off, line, col int
}

// line is a logical line: physical lines joined at trailing backslashes, each
// without the blanks around it.
type line struct {
	text        string
	first, last int
	joints      []joint // at least one
}

// at returns the physical line and column of a byte of the text.
func (l *line) at(off int) (ln, col int) {
	j := l.joints[0]
	for _, next := range l.joints[1:] {
		if next.off > off {
			break
		}
		j = next
	}
	return j.line, j.col + off - j.off
}

// lineReader cuts a text into logical lines.
type lineReader struct {
	rest string
	num  int
	buf  []byte

	// oldComments is the treatment of comments before 8.1: a comment goes on
	// after a backslash, and inside a continued value # is ordinary text.
	oldComments bool

	// cutBy is called for a comment that ends a continued value because it
	// does not itself end in a backslash.
	cutBy func(line, col int)
}

// next reads a logical line into l, reusing its joints. It returns false at
// the end of the text. Comments come as lines beginning with #.
func (r *lineReader) next(l *line) bool {
	l.joints, l.text = l.joints[:0], ""
	r.buf = r.buf[:0]
	for piece := 0; ; piece++ {
		if r.rest == "" {
			// The text ends after a backslash.
			l.text, l.last = string(r.buf), r.num
			return len(r.buf) > 0
		}
		phys, rest, _ := strings.Cut(r.rest, "\n")
		r.rest = rest
		r.num++
		right := trimRight(phys)
		text := trimLeft(right)
		at := joint{off: len(r.buf), line: r.num, col: 1 + len(right) - len(text)}
		comment := strings.HasPrefix(text, "#")
		if piece == 0 {
			l.first = r.num
		} else if comment && !r.oldComments {
			if strings.HasSuffix(text, `\`) {
				text = `\`
			} else {
				text = ""
				if r.cutBy != nil {
					r.cutBy(at.line, at.col)
				}
			}
			comment = false
		}
		l.joints = append(l.joints, at)

		more := strings.HasSuffix(text, `\`)
		switch {
		case more:
			text = text[:len(text)-1]
		case text == "" && len(r.buf) > 0 && r.buf[len(r.buf)-1] == '\\':
			// A doubled backslash leaves one behind, and an empty line after
			// it counts as ending in that one.
			more = true
			r.buf = r.buf[:len(r.buf)-1]
		}
		if comment && !r.oldComments {
			more = false
		}
		if piece == 0 && !more {
			l.text, l.last = text, r.num
			return true
		}
		r.buf = append(r.buf, text...)
		if !more {
			l.text, l.last = string(r.buf), r.num
			return true
		}
	}
}
