// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strconv"
	"strings"

	"github.com/execpoint/execpoint/lib/errs"
)

// Severity tells what a Problem means for the configuration.
type Severity uint8

// The severities.
const (
	Error   Severity = iota // the configuration cannot be used
	Warning                 // it can, but probably does not say what was meant
)

// String returns "error" or "warning".
func (s Severity) String() string {
	if s == Warning {
		return "warning"
	}
	return "error"
}

// Class is the sort of a Problem, for callers that branch on it.
type Class uint8

// The classes.
const (
	Other            Class = iota
	Syntax                 // a line that cannot be read at all
	IllegalName            // a name with characters that names may not have
	BadCondition           // what stands after if or elif
	IfStructure            // else, elif or endif without if, or too deep
	UnclosedIf             // a file that ends inside an if
	BadInclude             // a file or command that cannot be included
	IncludeKeyword         // a word between include and the colon
	BadUse                 // a template that does not exist or cannot be used
	OpenHereDocument       // a file that ends inside a here-document
	ColonAssignment        // "NAME : value"
	Statement              // an error or warning statement
	BadFunction            // a function macro that could not be evaluated
	Endless                // names that refer to each other, or grow without bound
	BadValue               // a value of the wrong type or out of range
	LocalMissing           // a file of LOCAL_CONFIG_FILE that cannot be read
	RootMissing            // the root file cannot be read
	BadCommand             // a command that failed as a configuration source
	NearMiss               // a name that is almost a knob
	ObsoleteName           // a knob that does nothing any more
	UnsetReference         // $(X) of something that nothing sets
	SetTwice               // a knob that has another value further up in the same file
	Suspicious             // legal, but hardly meant
	TooMuch                // a limit of this package was met
)

var classNames = [...]string{
	Other: "other", Syntax: "syntax", IllegalName: "illegal-name", BadCondition: "if-condition", IfStructure: "if-structure",
	UnclosedIf: "if-unclosed", BadInclude: "include", IncludeKeyword: "include-keyword", BadUse: "use", OpenHereDocument: "heredoc-eof",
	ColonAssignment: "colon", Statement: "statement", BadFunction: "macro-function", Endless: "endless", BadValue: "bad-value",
	LocalMissing: "local-missing", RootMissing: "root-missing", BadCommand: "command", NearMiss: "near-miss", ObsoleteName: "obsolete", UnsetReference: "unset",
	SetTwice: "set-twice", Suspicious: "suspicious", TooMuch: "too-much",
}

// String returns the short name of c.
func (c Class) String() string {
	if int(c) < len(classNames) {
		return classNames[c]
	}
	return "unknown"
}

// Problem is one thing wrong with a configuration. Fields that do not apply
// are empty or zero.
type Problem struct {
	File         string // as it was named, or an Origin in angle brackets
	Line, Column int    // of the offending word, from 1; columns in bytes
	EndLine      int    // last line of the statement
	Knob         string // the name assigned or asked for
	Value        string // the offending text
	Message      string // what is wrong
	Want         string // what would be right
	Severity     Severity
	Class        Class
	Within       []Origin // the include and use statements that led here, outermost first
}

// Error prints "file:line:column: knob X: message (value "…", want …)",
// leaving out what is empty. A warning says so after the place.
func (p *Problem) Error() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			b.WriteString(":" + strconv.Itoa(p.Line))
			if p.Column > 0 {
				b.WriteString(":" + strconv.Itoa(p.Column))
			}
		}
		b.WriteString(": ")
	}
	if p.Severity == Warning {
		b.WriteString("warning: ")
	}
	if p.Knob != "" {
		b.WriteString("knob " + clip(p.Knob) + ": ")
	}
	b.WriteString(clip(p.Message))
	var notes []string
	if p.Value != "" {
		notes = append(notes, "value "+strconv.Quote(clip(p.Value)))
	}
	if p.Want != "" {
		notes = append(notes, "want "+p.Want)
	}
	if len(notes) > 0 {
		b.WriteString(" (" + strings.Join(notes, ", ") + ")")
	}
	for i := len(p.Within) - 1; i >= 0; i-- {
		b.WriteString(", from " + p.Within[i].String())
	}
	return b.String()
}

// Unwrap gives the problem a kind of package errs: NotFound for a file that is
// not there, Invalid for all else.
func (p *Problem) Unwrap() error {
	kind := errs.Invalid
	if p.Class == RootMissing || p.Class == LocalMissing {
		kind = errs.NotFound
	}
	return errs.E("config", kind, p.File, nil)
}

// clip shortens a value for a message: a value may be a page long.
func clip(s string) string {
	const most = 500
	if len(s) <= most {
		return s
	}
	return s[:most] + "…"
}

// Problems is every problem of one reading, in the order met. As an error it
// holds at least one of severity Error; warnings may stand among them.
type Problems []*Problem

// Error prints one problem per line.
func (ps Problems) Error() string {
	lines := make([]string, len(ps))
	for i, p := range ps {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As reach the single problems.
func (ps Problems) Unwrap() []error {
	errs := make([]error, len(ps))
	for i, p := range ps {
		errs[i] = p
	}
	return errs
}

// Failed reports whether any of the problems is an error.
func (ps Problems) Failed() bool {
	for _, p := range ps {
		if p.Severity == Error {
			return true
		}
	}
	return false
}
