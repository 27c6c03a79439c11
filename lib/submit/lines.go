// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package submit

import "strings"

// joint is where a physical line begins in a logical one.
type joint struct{ offset, line, column int }

// line is a logical line: physical lines joined where one ends in a backslash,
// each without the blanks around it.
type line struct {
	text   string
	joints []joint // at least one
}

// at returns the physical line and column of byte offset of the text.
func (l *line) at(offset int) (ln, column int) {
	j := l.joints[0]
	for _, next := range l.joints[1:] {
		if next.offset > offset {
			break
		}
		j = next
	}
	return j.line, j.column + offset - j.offset
}

// lineReader cuts a text into logical lines.
type lineReader struct {
	rest string
	num  int // of the last physical line read
}

// physical returns the next physical line without the blanks around it and the
// column of its first character.
func (r *lineReader) physical() (text string, column int, ok bool) {
	if r.rest == "" {
		return "", 0, false
	}
	whole, rest, _ := strings.Cut(r.rest, "\n")
	r.rest = rest
	r.num++
	text = strings.TrimLeft(whole, blanks)
	return strings.TrimRight(text, blanks), 1 + len(whole) - len(text), true
}

const blanks = " \t\r\v\f"

// next returns the next logical line that is not empty and no comment. A
// comment between joined lines counts as nothing.
func (r *lineReader) next() (*line, bool) {
	var l line
	var b strings.Builder
	for {
		text, column, ok := r.physical()
		switch {
		case !ok:
			l.text = b.String()
			return &l, strings.Trim(l.text, blanks) != ""
		case strings.HasPrefix(text, "#"), text == "" && len(l.joints) == 0:
			continue
		}
		l.joints = append(l.joints, joint{b.Len(), r.num, column})
		part, more := strings.CutSuffix(text, `\`)
		b.WriteString(part)
		if more {
			continue
		}
		if l.text = b.String(); strings.Trim(l.text, blanks) != "" {
			return &l, true
		}
		l.joints = l.joints[:0]
		b.Reset()
	}
}
