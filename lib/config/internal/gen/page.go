// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// reference writes the table as a page: one row per knob, the parts of the
// Execution Point in order of their names.
func reference(rows []row) []byte {
	var b bytes.Buffer
	b.WriteString(`# Knobs

Written by ` + "`go generate ./lib/config`" + ` from lib/config/knobs.toml; do not edit.

Every setting that means something to an Execution Point. ` + "`<N>`" + ` stands for a number, other words in angle
brackets for a name. Names are compared without regard to case.

- Default: the text before macros are expanded. *(implied)* marks a default that ` + "`$(NAME)`" + ` does not see.
- Range: what is refused outside it.
- Reload: *reconfig* applies at the next reconfig (for the starter: with the next job), *restart* needs one.
- In force: *yes* where the Execution Point acts by it; *macro* where it has no meaning of its own but in a setting
  that says ` + "`$(NAME)`" + `; *obsolete*; the daemon that reads it where that is another one; *no* where nothing reads it
  yet, and what to do instead. ` + "`condor_ep check`" + ` and the log at the start name what is set and not in force. A test
  holds this column and the code together (ci/knobs).
- Seeds: the documents that describe it: 0 EP policy 23.9, 1 the 6.8 manual, 2 policy for EP and AP,
  3 special environments, 4 startd options.
`)
	byOwner := map[string][]row{}
	for _, r := range rows {
		byOwner[r.Owner] = append(byOwner[r.Owner], r)
	}
	owners := make([]string, 0, len(byOwner))
	for owner := range byOwner {
		owners = append(owners, owner)
	}
	slices.Sort(owners)
	for _, owner := range owners {
		fmt.Fprintf(&b, "\n## %s\n\n| Knob | Type | Default | Range | Reload | Platform | In force | Seeds | What it does |\n|---|---|---|---|---|---|---|---|---|\n", owner)
		list := byOwner[owner]
		slices.SortFunc(list, func(x, y row) int { return cmp.Compare(strings.ToLower(x.Name), strings.ToLower(y.Name)) })
		for _, r := range list {
			fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", code(r.Name), r.Type, defaults(r), between(r), reload(r), r.Platform, force(r), seeds(r), about(r))
		}
	}
	return b.Bytes()
}

// code sets s as code within a cell.
func code(s string) string {
	fence := "`"
	if strings.Contains(s, fence) {
		fence = "``"
	}
	return fence + strings.NewReplacer("|", `\|`, "\n", " ⏎ ").Replace(s) + fence
}

func defaults(r row) string {
	var parts []string
	if r.Default != nil {
		text := "*empty*"
		if *r.Default != "" {
			text = code(*r.Default)
		}
		if r.implied {
			text += " *(implied)*"
		}
		parts = append(parts, text)
	} else if r.empty {
		parts = append(parts, "*empty*")
	}
	if r.DefaultWindows != nil {
		parts = append(parts, "Windows: "+code(*r.DefaultWindows))
	}
	return strings.Join(parts, "; ")
}

func between(r row) string {
	number := func(f *float64) string { return strconv.FormatFloat(*f, 'f', -1, 64) }
	switch {
	case len(r.Words) > 0:
		return strings.Join(r.Words, ", ")
	case r.Min != nil && r.Max != nil:
		return number(r.Min) + " to " + number(r.Max)
	case r.Min != nil:
		return "≥ " + number(r.Min)
	case r.Max != nil:
		return "≤ " + number(r.Max)
	}
	return ""
}

func reload(r row) string {
	switch {
	case r.Reconfig == nil:
		return ""
	case *r.Reconfig:
		return "reconfig"
	}
	return "restart"
}

func seeds(r row) string {
	words := make([]string, len(r.Seeds))
	for i, n := range r.Seeds {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, " ")
}

// force says whether something reads the knob.
func force(r row) string {
	switch {
	case r.Obsolete != "":
		return "obsolete"
	case r.Macro:
		return "macro"
	case r.Daemon != "":
		return r.Daemon
	case r.NotYet != "":
		return "**no**"
	}
	return "yes"
}

func about(r row) string {
	text := strings.NewReplacer("|", `\|`, "<", `\<`, "\n", " ").Replace(r.Doc)
	if r.Obsolete != "" {
		text += ". Obsolete; now: " + strings.NewReplacer("|", `\|`, "<", `\<`).Replace(r.Obsolete)
	}
	if r.NotYet != "" {
		text += ". " + strings.NewReplacer("|", `\|`, "<", `\<`).Replace(r.NotYet)
	}
	return text
}
