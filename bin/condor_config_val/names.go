// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"path"
	"strings"

	"github.com/execpoint/execpoint/lib/config"
)

// printNames answers for each name, template or text.
func (r *run) printNames() int {
	status := exitOK
	for _, name := range r.names {
		ok := true
		switch {
		case strings.HasPrefix(name, "^"):
			r.printTemplate(name[1:])
		case r.macro:
			ok = r.printMacro(name)
		default:
			ok = r.printName(name)
		}
		if !ok && !r.info {
			status = exitFailed
		}
	}
	return status
}

// printMacro expands a text.
func (r *run) printMacro(text string) bool {
	value, err := r.snap.ExpandMacros(text)
	if r.reportAll(err) {
		return false
	}
	if r.macroPath && value != "" {
		value = path.Clean(value)
	}
	if r.verbose {
		fmt.Fprintf(r.stdout, "%s expands to: %s\n", text, value)
		return true
	}
	fmt.Fprintln(r.stdout, value)
	return true
}

// shown is what the tool makes of one name.
type shown struct {
	name, raw, value string
	at               string
	known            bool // the name is set or has a default
	def              string
	hasDef           bool
	err              error
}

// look asks for a name as HTCondor's tools see it: what only restates a
// default is the default, and defaults that the macro language does not see
// are none.
func (r *run) look(name string) shown {
	set, ok := r.snap.Lookup(name)
	s := shown{name: set.Name, raw: set.Raw, value: set.Value, at: set.Origin.Location(), known: ok && !set.Implied, err: set.Err}
	if !s.known {
		s = shown{name: strings.ToUpper(name)}
	}
	s.def, s.hasDef = r.snap.DefaultText(name)
	if s.known && set.Restated && s.hasDef {
		s.raw, s.at = s.def, config.Origin{}.Location()
		s.value, s.err = r.snap.Expand(s.raw)
		if k, ok := config.LookupKnob(name); ok {
			s.name = k.Name
		}
	}
	return s
}

// printName prints one setting and reports whether it is defined.
func (r *run) printName(name string) bool { return r.print(name, r.look(name)) }

// print prints what was found out of a name.
func (r *run) print(name string, s shown) bool {
	value, defined := s.value, s.known && s.value != ""
	switch {
	case r.def:
		value, defined = s.def, s.hasDef
	case r.raw:
		value, defined = s.raw, s.known
	default:
		if r.reportAll(s.err) {
			return false
		}
	}
	switch {
	case !defined:
		fmt.Fprintf(r.stderr, "Not defined: %s\n", s.name)
	case r.verbose:
		fmt.Fprintf(r.stdout, "%s %s\n", s.name, assigned(value, "   "))
	default:
		fmt.Fprintln(r.stdout, value)
	}
	if r.verbose {
		if r.info {
			r.printDescription(name)
		}
		if s.at != "" {
			fmt.Fprintf(r.stdout, " # at: %s\n", s.at)
		}
		if s.known && !r.raw {
			fmt.Fprintf(r.stdout, " # raw: %s\n", indented(s.name+" = "+s.raw, " #   "))
		}
		if r.info {
			r.printKnob(name)
		}
		fmt.Fprintln(r.stdout)
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

func (r *run) printDescription(name string) {
	if k, ok := config.LookupKnob(name); ok && k.Doc != "" {
		fmt.Fprintf(r.stdout, " # description: %s\n", k.Doc)
	}
}

// printKnob prints what the table says of values and reloading.
func (r *run) printKnob(name string) {
	k, ok := config.LookupKnob(name)
	if !ok {
		return
	}
	if k.Reconfig == config.ReconfigRestarts {
		fmt.Fprintln(r.stdout, " # restart required : true")
	}
	limits := ""
	if k.Min.Set {
		limits += fmt.Sprintf(" from %v", k.Min.Value)
	}
	if k.Max.Set {
		limits += fmt.Sprintf(" to %v", k.Max.Value)
	}
	fmt.Fprintf(r.stdout, " # expected values : %s%s\n", strings.ToUpper(k.Type), limits)
	fmt.Fprintf(r.stdout, " # used by: %s\n", k.Owner)
}

// printTemplate prints CATEGORY, CATEGORY:NAME or CATEGORY:NAME(arguments).
func (r *run) printTemplate(which string) {
	category, name, named := strings.Cut(which, ":")
	if !named {
		if c, n, ok := strings.Cut(which, "="); ok {
			category, name, named = c, n, true
		} else if c, n, ok := strings.Cut(which, "."); ok {
			fmt.Fprintf(r.stderr, "%s is not valid, assuming %s:%s was intended\n", which, c, n)
			category, name, named = c, n, true
		}
	}
	known := ""
	var list []string
	for full := range config.Templates() {
		if c, n, _ := strings.Cut(full, ":"); strings.EqualFold(c, category) {
			known, list = c, append(list, n)
		}
	}
	if known != "" && (!named || name == "") {
		fmt.Fprintf(r.stdout, "use %s accepts\n  %s\n", known, strings.Join(list, "\n  "))
		return
	}
	bare, args, _ := strings.Cut(name, "(")
	args = strings.TrimSuffix(strings.TrimSpace(args), ")")
	full, text, ok := "", "", false
	if known != "" {
		full, text, ok = config.TemplateText(known, strings.TrimSpace(bare), args)
	}
	switch {
	case !ok:
		title := category
		if known != "" {
			title = known + ":" + name
		}
		fmt.Fprintf(r.stdout, "Not defined: use %s\n", strings.ToUpper(title))
	case r.expand:
		fmt.Fprintf(r.stdout, "use %s:%s expands to\n%s\n\n", known, name, strings.Join(r.statements(text, nil), "\n"))
	case args != "":
		fmt.Fprintf(r.stdout, "use %s:%s is\n%s\n\n", known, name, strings.Join(compact(text), "\n"))
	default:
		fmt.Fprintf(r.stdout, "use %s is\n%s\n", full, strings.Join(compact(text), "\n"))
	}
}

// compact returns the statements of a template, each after a tab, without
// comments and without blanks around the first equals sign.
func compact(text string) []string {
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		bare := strings.TrimSpace(line)
		if bare == "" || strings.HasPrefix(bare, "#") {
			continue
		}
		name, value, ok := strings.Cut(bare, " =")
		if ok && !strings.ContainsAny(name, " :") {
			bare = name + "=" + strings.TrimPrefix(value, " ")
		}
		out = append(out, "\t"+bare)
	}
	return out
}

// statements is compact with the templates that are used put in their places.
// within are those that led here: none is put into itself.
func (r *run) statements(text string, within []string) []string {
	var out []string
	for _, line := range compact(text) {
		full, inner, ok := used(line)
		if !ok {
			out = append(out, line)
			continue
		}
		seen := false
		for _, w := range within {
			seen = seen || w == full
		}
		if !seen {
			out = append(out, r.statements(inner, append(within, full))...)
		}
	}
	return out
}

// used returns the template that a line of a template uses.
func used(line string) (full, text string, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(line), "use ")
	if !ok {
		return "", "", false
	}
	category, name, _ := strings.Cut(rest, ":")
	name, args, _ := strings.Cut(strings.TrimSpace(name), "(")
	return config.TemplateText(strings.TrimSpace(category), strings.TrimSpace(name), strings.TrimSuffix(strings.TrimSpace(args), ")"))
}
