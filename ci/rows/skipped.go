// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// skip is a test or a part of one that no run did.
type skip struct{ name, reason string }

// skips lists what was skipped in some run and done in none, by reason and
// name. Of a test with parts they stand there, unless all of it was skipped.
func (r *results) skips() []skip {
	var out []skip
	add := func(folder, test string, o *outcome) {
		if o.skipped && !o.passed && !o.failed {
			out = append(out, skip{folder + " " + test, o.reason})
		}
	}
	for key, s := range r.tests {
		add(key.folder, key.test, &s.outcome)
		if s.skipped && !s.passed {
			continue
		}
		for _, part := range s.leaves() {
			add(key.folder, part, s.parts[part])
		}
	}
	slices.SortFunc(out, func(a, b skip) int {
		return strings.Compare(a.reason+"\x00"+a.name, b.reason+"\x00"+b.name)
	})
	return out
}

// printSkips writes the list. One whose line matches required is an error: CI
// has what it takes.
func printSkips(w io.Writer, r *results, required *regexp.Regexp) error {
	list := r.skips()
	var wrong []string
	reason := ""
	for _, s := range list {
		if s.reason != reason {
			reason = s.reason
			fmt.Fprintln(w, printable(reason))
		}
		fmt.Fprintln(w, "    "+printable(s.name))
		if required != nil && required.MatchString(s.name+": "+s.reason) {
			wrong = append(wrong, printable(s.name+": "+s.reason))
		}
	}
	fmt.Fprintf(w, "%d tests or parts of tests were skipped in every run\n", len(list))
	if len(wrong) > 0 {
		return fmt.Errorf("these had to run here:\n%s", strings.Join(wrong, "\n"))
	}
	return nil
}

// printable keeps a hostile name from moving the cursor.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '?'
		}
		return r
	}, s)
}
