// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"fmt"
	"path"
	"strings"

	"github.com/execpoint/execpoint/lib/config"
)

// Macro expands a text and prints it, as a path in its shortest form if that is
// wanted. It reports whether there is a value.
func (p *Printer) Macro(snap *config.Snapshot, text string, asPath bool) bool {
	value, err := snap.ExpandMacros(text)
	if p.ReportAll(err) {
		return false
	}
	if asPath && value != "" {
		value = path.Clean(value)
	}
	if p.Verbose {
		fmt.Fprintf(p.Out, "%s expands to: %s\n", text, value)
		return true
	}
	fmt.Fprintln(p.Out, value)
	return true
}

// Answer is what is known of one name.
type Answer struct {
	Name       string // as it is written where it is set or declared, else in capitals
	Raw        string // as it stands in the file
	Value      string // with macros expanded
	At         string // file and line, or what else it comes from
	Known      bool   // it is set or has a default
	Default    string
	HasDefault bool
	Err        error // why Value could not be expanded
}

// Look asks for a name as HTCondor's tools see it: what only restates a
// default is the default, and defaults that the macro language does not see
// are none.
func Look(snap *config.Snapshot, name string) Answer {
	set, ok := snap.Lookup(name)
	s := Answer{Name: set.Name, Raw: set.Raw, Value: set.Value, At: set.Origin.Location(), Known: ok && !set.Implied, Err: set.Err}
	if !s.Known {
		s = Answer{Name: strings.ToUpper(name)}
	}
	s.Default, s.HasDefault = snap.DefaultText(name)
	if s.Known && set.Restated && s.HasDefault {
		s.Raw, s.At = s.Default, config.Origin{}.Location()
		s.Value, s.Err = snap.Expand(s.Raw)
		if k, ok := config.LookupKnob(name); ok {
			s.Name = k.Name
		}
	}
	return s
}

// Print prints what was found out of a name and reports whether it is defined; if
// not, Err says so.
func (p *Printer) Print(name string, s Answer) bool {
	value, defined := s.Value, s.Known && s.Value != ""
	switch {
	case p.Default:
		value, defined = s.Default, s.HasDefault
	case p.Raw:
		value, defined = s.Raw, s.Known
	default:
		if p.ReportAll(s.Err) {
			return false
		}
	}
	switch {
	case !defined:
		fmt.Fprintf(p.Err, "Not defined: %s\n", s.Name)
	case p.Verbose:
		fmt.Fprintf(p.Out, "%s %s\n", s.Name, assigned(value, "   "))
	default:
		fmt.Fprintln(p.Out, value)
	}
	if p.Verbose {
		if p.Info {
			p.description(name)
		}
		if s.At != "" {
			fmt.Fprintf(p.Out, " # at: %s\n", s.At)
		}
		if s.Known && !p.Raw {
			fmt.Fprintf(p.Out, " # raw: %s\n", indented(s.Name+" = "+s.Raw, " #   "))
		}
		if p.Info {
			p.knob(name)
		}
		fmt.Fprintln(p.Out)
	}
	return defined
}

// assigned prints "= value", or a here-document for a value of several lines.
func assigned(value, indent string) string {
	if !strings.Contains(value, "\n") {
		return "= " + value
	}
	return "@=end" + indented(value, indent) + "\n@end"
}

// indented puts each line of a value of several lines on a line of its own.
func indented(value, indent string) string {
	if !strings.Contains(value, "\n") {
		return value
	}
	var b strings.Builder
	for line := range strings.SplitSeq(value, "\n") {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString("\n" + indent + line)
		}
	}
	return b.String()
}

func (p *Printer) description(name string) {
	if k, ok := config.LookupKnob(name); ok && k.Doc != "" {
		fmt.Fprintf(p.Out, " # description: %s\n", k.Doc)
	}
}

// knob prints what the table says of values and reloading.
func (p *Printer) knob(name string) {
	k, ok := config.LookupKnob(name)
	if !ok {
		return
	}
	if k.Reconfig == config.ReconfigRestarts {
		fmt.Fprintln(p.Out, " # restart required : true")
	}
	limits := ""
	if k.Min.Set {
		limits += fmt.Sprintf(" from %v", k.Min.Value)
	}
	if k.Max.Set {
		limits += fmt.Sprintf(" to %v", k.Max.Value)
	}
	fmt.Fprintf(p.Out, " # expected values : %s%s\n", strings.ToUpper(k.Type), limits)
	fmt.Fprintf(p.Out, " # used by: %s\n", k.Owner)
}
