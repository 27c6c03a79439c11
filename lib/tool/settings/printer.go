// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
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

// pattern is a regular expression as HTCondor's tool has them, those of PCRE: the
// expression language has these.
type pattern struct {
	e  *classad.Expr
	ad *classad.Ad // with the text to be matched
}

// compile reads patterns, compared without regard to case. One that is none matches
// nothing.
func compile(patterns []string) []*pattern {
	out := make([]*pattern, len(patterns))
	for i, text := range patterns {
		quoted := classad.Literal(classad.String(text)).Text(classad.New)
		out[i] = &pattern{ad: classad.NewAd()}
		// A literal behind a name is an expression, whatever the text is.
		out[i].e, _ = classad.ParseExpr("regexp("+quoted+", Text, \"i\")", classad.New)
	}
	return out
}

// usable reports whether p is a regular expression.
func (p *pattern) usable() bool { return !p.value("").IsError() }

// matches reports whether a text has a part that p matches.
func (p *pattern) matches(text string) bool { return p.value(text).IsTrue() }

func (p *pattern) value(text string) classad.Value {
	p.ad.SetString("Text", text)
	return p.e.Eval(&classad.Env{My: p.ad})
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
	var matching []*pattern
	if patterns {
		matching = compile(names)
	}
	for i, one := range matching {
		if !one.usable() {
			fmt.Fprintf(p.Err, "warning: failed to compile trace pattern '%s'; ignoring it.\n", names[i])
		}
	}
	return func(name, before string, at config.Origin) {
		wanted := false
		for _, n := range names {
			wanted = wanted || strings.EqualFold(n, name)
		}
		for _, re := range matching {
			wanted = wanted || re.matches(name)
		}
		if wanted {
			fmt.Fprintf(p.Out, " # trace: %s\n  # was: %s\n  # set at: %s\n", name, before, at.Location())
		}
	}
}
