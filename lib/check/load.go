// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"errors"
	"strings"

	"github.com/execpoint/execpoint/lib/config"
)

// mostReadings bounds how often Load reads a configuration with mistakes.
const mostReadings = 8

// Load reads a configuration and returns what is wrong with the reading. With
// mistakes in it config.Load gives nothing at all; here the lines that cannot
// be read are left out, so that the rest can be checked as well. partial says
// that lines were left out. The Snapshot is nil if there is nothing to be had.
func Load(o config.Options) (s *config.Snapshot, partial bool, list []Finding) {
	read := o.ReadFile
	out := leftOut{}
	o.ReadFile = func(path string) ([]byte, error) {
		text, err := read(path)
		if err != nil {
			return nil, err
		}
		return out.blank(path, text), nil
	}
	for range mostReadings {
		s, err := config.Load(o)
		if err == nil {
			return s, partial, list
		}
		partial = true
		var ps config.Problems
		if !errors.As(err, &ps) {
			return nil, true, append(list, Finding{Code: Unreadable, Message: err.Error()})
		}
		more := false
		for _, p := range ps {
			if p.Severity == config.Warning {
				continue // comes again with the Snapshot
			}
			list = append(list, problem(p))
			more = out.add(p) || more
		}
		if !more {
			return nil, true, list
		}
	}
	return nil, true, list
}

// leftOut is what is not read of each file: lines, and the ifs that are never
// closed.
type leftOut map[string]*fileLeft

type fileLeft struct {
	lines map[int]bool
	ends  int
}

// add leaves out the statement of a problem, and reports whether that was new.
func (l leftOut) add(p *config.Problem) bool {
	if p.Line == 0 {
		return false
	}
	f := l[p.File]
	if f == nil {
		f = &fileLeft{lines: map[int]bool{}}
		l[p.File] = f
	}
	if p.Class == config.UnclosedIf {
		f.ends++
		return true
	}
	added := false
	for n := p.Line; n <= max(p.Line, p.EndLine); n++ {
		added = added || !f.lines[n]
		f.lines[n] = true
	}
	return added
}

// blank empties the lines, so that the others keep their numbers.
func (l leftOut) blank(path string, text []byte) []byte {
	f := l[path]
	if f == nil {
		return text
	}
	lines := strings.Split(string(text), "\n")
	for n := range f.lines {
		if n <= len(lines) {
			lines[n-1] = ""
		}
	}
	for range f.ends {
		lines = append(lines, "endif", "")
	}
	return []byte(strings.Join(lines, "\n"))
}

// codeOf is the rule that a class of problems belongs to.
func codeOf(p *config.Problem) Code {
	switch p.Class {
	case config.Syntax, config.IllegalName, config.OpenHereDocument, config.IncludeKeyword:
		return Unreadable
	case config.ColonAssignment:
		if p.Severity == config.Warning {
			return Doubtful
		}
		return Unreadable
	case config.BadCondition, config.IfStructure, config.UnclosedIf:
		return BadIf
	case config.BadInclude, config.LocalMissing, config.RootMissing, config.BadCommand:
		return BadInclude
	case config.BadUse:
		return BadTemplate
	case config.Statement:
		return Said
	case config.BadFunction, config.Endless, config.TooMuch:
		return BadMacro
	case config.NearMiss:
		return NearMiss
	case config.ObsoleteName:
		if k, ok := config.LookupKnob(p.Knob); !ok || k.Obsolete == "" || strings.HasPrefix(p.Message, "refers to") {
			return OldAttribute
		}
		return Obsolete
	case config.SetTwice:
		return SetTwice
	case config.UnsetReference:
		return Unset
	case config.BadValue:
		if k, ok := config.LookupKnob(p.Knob); ok && k.Type == config.TypeExpr {
			return Unparsable
		}
		if strings.Contains(p.Message, "range") {
			return OutOfRange
		}
		return WrongType
	}
	return Doubtful
}

// problem makes a finding of a problem that package config tells.
func problem(p *config.Problem) Finding {
	code := codeOf(p)
	f := Finding{
		Code: code, Severity: ruleOf(code).Severity, File: p.File, Line: p.Line, Column: p.Column,
		Knob: p.Knob, Value: p.Value, Message: p.Message, Instead: p.Want,
	}
	if p.Severity == config.Warning {
		f.Severity = Warning
	}
	for _, o := range p.Within {
		if o.Template != "" {
			f.Template = o.Template
		}
	}
	if f.Instead == "" {
		f.Instead = ruleOf(code).Instead
	}
	if code == WrongType {
		if right := inUnits(p.Knob, p.Value); right != "" {
			f.Message, f.Instead = f.Message+": it takes no unit", right
		}
	}
	return f
}
