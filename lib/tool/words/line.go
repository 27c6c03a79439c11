// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package words

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Printable is s in one line, and without what a terminal would obey: names and
// arguments of jobs, paths and what programs say of their failures may hold
// escape sequences, line ends and characters that turn the direction of a line.
// They are shown as Go writes them: \x1b.
func Printable(s string) string {
	if strings.IndexFunc(s, strange) < 0 && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		if strange(r) || r == utf8.RuneError && n == 1 {
			quoted := strconv.Quote(s[:n])
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteString(s[:n])
		}
		s = s[n:]
	}
	return b.String()
}

// Lines is Printable for a text of several lines, which stay; a tab is a blank.
func Lines(s string) string {
	lines := strings.Split(s, "\n")
	for i, line := range lines {
		lines[i] = Printable(strings.ReplaceAll(line, "\t", " "))
	}
	return strings.Join(lines, "\n")
}

func strange(r rune) bool { return !strconv.IsPrint(r) }

// Columns is how many columns of a terminal s may take at most. Which characters
// of other scripts are wide, narrow or drawn over the one before is not the same
// in all terminals: each counts as wide, so that a line that fits never wraps.
func Columns(s string) (n int) {
	for _, r := range s {
		if n++; r >= utf8.RuneSelf {
			n++
		}
	}
	return n
}

// Fit is the beginning of s that takes no more than so many columns.
func Fit(s string, most int) string {
	n := 0
	for i, r := range s {
		if n += Columns(string(r)); n > most {
			return s[:i]
		}
	}
	return s
}
