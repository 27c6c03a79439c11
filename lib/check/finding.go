// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/config"
)

// Severity tells what a finding means for the Execution Point.
type Severity uint8

// The severities.
const (
	Error   Severity = iota // the configuration is refused, or what it says cannot happen
	Warning                 // it can be used, but hardly does what was meant
)

// String returns "error" or "warning".
func (s Severity) String() string {
	if s == Warning {
		return "warning"
	}
	return "error"
}

// Finding is one thing wrong with a configuration. Fields that do not apply
// are empty or zero.
type Finding struct {
	Code     Code
	Severity Severity

	// File, Line and Column are where the statement stands, or the word in it
	// that is wrong; counted from 1, columns in bytes. With a Template the
	// place is that of the use statement. File is an origin in angle brackets
	// for what no file says.
	File         string
	Line, Column int
	Template     string // CATEGORY:NAME whose text made the setting

	Knob    string
	Value   string // as expanded
	Message string // what is wrong, one clause
	Instead string // what to write
}

// Place returns "file:line:column" as far as it is known.
func (f *Finding) Place() string {
	p := f.File
	if f.Line > 0 {
		p += ":" + strconv.Itoa(f.Line)
		if f.Column > 0 {
			p += ":" + strconv.Itoa(f.Column)
		}
	}
	return p
}

// String prints the finding: the place and what is wrong on one line, and
// below it, indented, what was written and what to write instead.
func (f Finding) String() string {
	var b strings.Builder
	if p := f.Place(); p != "" {
		b.WriteString(p + ": ")
	}
	b.WriteString(f.Severity.String() + " " + string(f.Code) + ": ")
	if f.Knob != "" {
		b.WriteString(f.Knob + " ")
	}
	b.WriteString(f.Message)
	if f.Template != "" {
		b.WriteString(" (in template " + f.Template + ")")
	}
	if f.Value != "" {
		b.WriteString("\n    value    " + oneLine(f.Value))
	}
	if f.Instead != "" {
		b.WriteString("\n    instead  " + f.Instead)
	}
	return b.String()
}

// MarshalJSON gives the fields their names in lower case, with the
// explanation that the table has for the code.
func (f Finding) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Code        Code   `json:"code"`
		Severity    string `json:"severity"`
		File        string `json:"file,omitempty"`
		Line        int    `json:"line,omitempty"`
		Column      int    `json:"column,omitempty"`
		Template    string `json:"template,omitempty"`
		Knob        string `json:"knob,omitempty"`
		Value       string `json:"value,omitempty"`
		Message     string `json:"message"`
		Explanation string `json:"explanation"`
		Instead     string `json:"instead,omitempty"`
	}{f.Code, f.Severity.String(), f.File, f.Line, f.Column, f.Template, f.Knob, f.Value, f.Message, ruleOf(f.Code).Why, f.Instead})
}

// oneLine shortens a value for a message: it may be a page long.
func oneLine(s string) string {
	const longest = 200
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > longest {
		s = s[:longest] + "…"
	}
	return s
}

// Sorted returns the findings by place, each once.
func Sorted(list []Finding) []Finding {
	out := slices.Clone(list)
	slices.SortStableFunc(out, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.File, b.File), a.Line-b.Line, strings.Compare(a.Template, b.Template), a.Column-b.Column,
			strings.Compare(string(a.Code), string(b.Code)), strings.Compare(a.Knob, b.Knob))
	})
	return slices.CompactFunc(out, func(a, b Finding) bool { return a == b })
}

// found makes a finding of a rule about a setting.
func found(code Code, s config.Setting, message, instead string) Finding {
	f := Finding{Code: code, Severity: ruleOf(code).Severity, Knob: s.Name, Value: s.Value, Message: message, Instead: instead}
	f.at(s.Origin)
	return f
}

// at places the finding.
func (f *Finding) at(o config.Origin) {
	switch o.Kind {
	case config.File, config.Template:
		f.File, f.Line, f.Column, f.Template = o.File, o.Line, o.Column, o.Template
	default:
		f.File = o.String()
	}
}
