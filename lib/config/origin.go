// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strconv"
	"strings"
)

// OriginKind is the sort of place a value came from.
type OriginKind uint8

// The kinds of origins.
const (
	Default     OriginKind = iota // the knob table
	File                          // a line of a file or of a command's output
	Template                      // a line of a template that "use" brought in
	Environment                   // a _CONDOR_ variable
	CommandLine                   // an Override
	Detected                      // a fact about the machine or the process
)

var originNames = [...]string{
	Default: "<default>", File: "<file>", Template: "<template>", Environment: "<environment>",
	CommandLine: "<command line>", Detected: "<detected>",
}

// String returns the kind in angle brackets, as "<default>".
func (k OriginKind) String() string {
	if int(k) < len(originNames) {
		return originNames[k]
	}
	return "<unknown>"
}

// Origin says where a value was given. Slices in it are shared and must not be
// changed.
type Origin struct {
	Kind OriginKind

	// File is the source as it was named: a path, or a command ending in "|".
	// For Template it is the file of the "use"; for CommandLine it is
	// Override.Where.
	File string

	// Line and Column are where the statement (for Template: the "use")
	// begins, counted from 1, columns in bytes. EndLine is its last line,
	// the number that condor_config_val -verbose prints.
	Line, Column, EndLine int

	// Template is "CATEGORY:NAME" of the template whose text holds the
	// statement, TemplateLine the statement's number in it, from 0. Uses are
	// the templates through which that one was reached, outermost first.
	Template     string
	TemplateLine int
	Uses         []string

	// Via are the macros that the value went through when it was expanded,
	// in order of first use. It is filled in by Snapshot.Lookup.
	Via []string
}

// String prints the origin in one word or line: "/etc/x.conf:12",
// "use POLICY:Desktop (/etc/x.conf:3)", "<environment>".
func (o Origin) String() string {
	switch o.Kind {
	case File:
		return o.place()
	case Template:
		var b strings.Builder
		b.WriteString("use ")
		b.WriteString(o.Template)
		for i := len(o.Uses) - 1; i >= 0; i-- {
			b.WriteString(" of ")
			b.WriteString(o.Uses[i])
		}
		if o.File != "" {
			b.WriteString(" (" + o.place() + ")")
		}
		return b.String()
	case CommandLine:
		if o.File != "" {
			return "<command line> " + o.File
		}
	}
	return o.Kind.String()
}

// Location prints the origin as condor_config_val -verbose does: "/etc/x.conf,
// line 12", "/etc/x.conf, line 3, use POLICY:Desktop+5", "<Environment>".
func (o Origin) Location() string {
	switch o.Kind {
	case File:
		return o.File + ", line " + strconv.Itoa(o.EndLine)
	case Template:
		return o.File + ", line " + strconv.Itoa(o.EndLine) + ", use " + o.Template + "+" + strconv.Itoa(o.TemplateLine)
	case Environment:
		return "<Environment>"
	case CommandLine:
		return o.String()
	case Detected:
		return "<Detected>"
	}
	return "<Default>"
}

func (o Origin) place() string {
	if o.Line == 0 {
		return o.File
	}
	return o.File + ":" + strconv.Itoa(o.Line)
}
