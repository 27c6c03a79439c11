// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package submit

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/errs"
)

// Problem is one thing wrong with a description.
type Problem struct {
	File         string
	Line, Column int    // of the offending word, from 1; columns in bytes
	Command      string // the submit command it is about, "" for none
	Value        string // the offending text
	Message      string // what is wrong
	Want         string // what would be right
	Kind         errs.Kind
	Warning      bool // nothing is stopped by it
}

// Error prints "file:line:column: command: message (value "…", expected …)",
// leaving out what is empty.
func (p Problem) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s:%d:%d: ", p.File, p.Line, p.Column)
	if p.Warning {
		b.WriteString("warning: ")
	}
	if p.Command != "" {
		b.WriteString(p.Command + ": ")
	}
	b.WriteString(p.Message)
	var notes []string
	if p.Value != "" {
		notes = append(notes, "value "+clip(p.Value))
	}
	if p.Want != "" {
		notes = append(notes, "expected "+p.Want)
	}
	if len(notes) > 0 {
		b.WriteString(" (" + strings.Join(notes, ", ") + ")")
	}
	return b.String()
}

func clip(s string) string {
	const most = 120
	if len(s) > most {
		return strconv.Quote(s[:most]) + "…"
	}
	return strconv.Quote(s)
}

// Problems are all problems of a description, in the order of its lines. As an
// error it holds at least one that is no warning.
type Problems []Problem

// Error prints one problem to a line.
func (ps Problems) Error() string {
	list := make([]string, len(ps))
	for i, p := range ps {
		list[i] = p.Error()
	}
	return strings.Join(list, "\n")
}

// Unwrap gives each problem to errors.Is and errors.As, with its kind.
func (ps Problems) Unwrap() []error {
	var list []error
	for _, p := range ps {
		if !p.Warning {
			list = append(list, errs.E("submit.Parse", p.Kind, p.File, p))
		}
	}
	return list
}

// Failed reports whether one of ps is more than a warning.
func (ps Problems) Failed() bool {
	return slices.ContainsFunc(ps, func(p Problem) bool { return !p.Warning })
}

// unique sorts by line and drops repeats, which come from several jobs having
// the same problem.
func (ps Problems) unique() Problems {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	ps = slices.CompactFunc(ps, func(a, b Problem) bool {
		return a.Line == b.Line && a.Column == b.Column && a.Message == b.Message && a.Command == b.Command
	})
	return ps[:min(len(ps), maxProblems)]
}

// problemList collects problems of one file.
type problemList struct{ problems Problems }

func (l *problemList) fail(p Problem) {
	if p.Kind == errs.Other && !p.Warning {
		p.Kind = errs.Invalid
	}
	if len(l.problems) < maxProblems || !p.Warning && !l.problems.Failed() {
		l.problems = append(l.problems, p)
	}
}
