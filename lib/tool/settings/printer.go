// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/execpoint/execpoint/lib/config"
)

// Printer prints answers. It is for one goroutine.
type Printer struct {
	Out io.Writer // answers; its errors are not told
	Err io.Writer // what is not defined, and problems of a configuration

	Raw      bool // as it stands in the file, macros unexpanded
	Expand   bool // in a dump: with macros expanded; of a template: with those that it uses
	Default  bool // what it would be if nothing were set
	Evaluate bool // of a saved configuration: as an expression
	Verbose  bool // with the place, the raw text and the name
	Info     bool // with what the table of knobs says; goes with Verbose

	// Used and Unused leave out of a dump what was not asked for, or what was.
	Used, Unused bool

	Reported config.Problems // as printed on Err, in that order
}

// Report prints a problem.
func (p *Printer) Report(problem *config.Problem) {
	p.Reported = append(p.Reported, problem)
	fmt.Fprintln(p.Err, problem.Error())
}

// ReportAll prints the problems of an error and reports whether one of them
// leaves no value behind.
func (p *Printer) ReportAll(err error) (fatal bool) {
	var many config.Problems
	var one *config.Problem
	switch {
	case errors.As(err, &many):
	case errors.As(err, &one):
		many = config.Problems{one}
	case err != nil:
		many = config.Problems{&config.Problem{Message: err.Error()}}
	}
	for _, one := range many {
		p.Report(one)
		fatal = fatal || one.Class == config.Endless || one.Class == config.TooMuch
	}
	return fatal
}

// compile reads patterns, compared without regard to case. One that is none
// is nil and matches nothing.
func compile(patterns []string) []*regexp.Regexp {
	out := make([]*regexp.Regexp, len(patterns))
	for i, p := range patterns {
		if re, err := regexp.Compile("(?i)" + p); err == nil {
			out[i] = re
		}
	}
	return out
}

// Sources prints the files that a configuration was read from: headings on Err and
// names on Out, so that the names can be piped on.
func (p *Printer) Sources(snap *config.Snapshot) {
	sources := snap.Sources()
	fmt.Fprintln(p.Err, "Configuration source:")
	if len(sources) == 0 {
		fmt.Fprintln(p.Out, "\t")
		return
	}
	fmt.Fprintf(p.Out, "\t%s\n", sources[0])
	if len(sources) == 1 {
		return
	}
	plural := "s"
	if len(sources) == 2 {
		plural = ""
	}
	fmt.Fprintf(p.Err, "Local configuration source%s:\n", plural)
	for _, s := range sources[1:] {
		fmt.Fprintf(p.Out, "\t%s\n", s)
	}
	fmt.Fprintln(p.Err)
}

// Condition prints what a condition, as behind if, comes to.
func (p *Printer) Condition(snap *config.Snapshot, condition string) {
	result, why := snap.Condition(condition)
	if why != "" {
		fmt.Fprintf(p.Out, "# not supported: %q %s\n", condition, why)
	} else {
		fmt.Fprintf(p.Out, "# ok: %q \n%v\n", condition, result)
	}
}

// Tracer returns what config.Options.Trace wants: it prints each setting of one of
// the names that is replaced by a later one. As patterns the names are regular
// expressions, compared without regard to case, too.
func (p *Printer) Tracer(names []string, patterns bool) func(name, before string, at config.Origin) {
	var matching []*regexp.Regexp
	if patterns {
		matching = compile(names)
	}
	return func(name, before string, at config.Origin) {
		wanted := false
		for _, n := range names {
			wanted = wanted || strings.EqualFold(n, name)
		}
		for _, re := range matching {
			wanted = wanted || re != nil && re.MatchString(name)
		}
		if wanted {
			fmt.Fprintf(p.Out, " # trace: %s\n  # was: %s\n  # set at: %s\n", name, before, at.Location())
		}
	}
}
