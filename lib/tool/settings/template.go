// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"fmt"
	"strings"

	"github.com/execpoint/execpoint/lib/config"
)

// Template prints a template: which is CATEGORY, CATEGORY:NAME or CATEGORY:NAME(arguments).
func (p *Printer) Template(which string) {
	category, name, named := strings.Cut(which, ":")
	if !named {
		if c, n, ok := strings.Cut(which, "="); ok {
			category, name, named = c, n, true
		} else if c, n, ok := strings.Cut(which, "."); ok {
			fmt.Fprintf(p.Err, "%s is not valid, assuming %s:%s was intended\n", which, c, n)
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
		fmt.Fprintf(p.Out, "use %s accepts\n  %s\n", known, strings.Join(list, "\n  "))
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
		fmt.Fprintf(p.Out, "Not defined: use %s\n", strings.ToUpper(title))
	case p.Expand:
		fmt.Fprintf(p.Out, "use %s:%s expands to\n%s\n\n", known, name, strings.Join(statements(text, nil), "\n"))
	case args != "":
		fmt.Fprintf(p.Out, "use %s:%s is\n%s\n\n", known, name, strings.Join(compact(text), "\n"))
	default:
		fmt.Fprintf(p.Out, "use %s is\n%s\n", full, strings.Join(compact(text), "\n"))
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
func statements(text string, within []string) []string {
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
			out = append(out, statements(inner, append(within, full))...)
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
