// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"fmt"
	"strings"

	"github.com/execpoint/execpoint/lib/config"
)

// Dump prints all settings whose names match a pattern, for each pattern; without
// patterns all settings. Patterns are regular expressions, compared without regard to
// case; one that is none matches nothing.
func (p *Printer) Dump(snap *config.Snapshot, patterns []string) {
	host := snap.String("FULL_HOSTNAME")
	if host == "" {
		host = "<unknown hostname>"
	}
	fmt.Fprintf(p.Out, "# Configuration from machine: %s\n", host)
	if len(patterns) == 0 {
		patterns = []string{""}
	}
	rows := snap.Rows()
	asked := p.asked(snap, rows)
	for i, re := range compile(patterns) {
		if patterns[i] != "" {
			fmt.Fprintf(p.Out, "\n# Parameters with names that match %s:\n", patterns[i])
		}
		last := ""
		for _, row := range rows {
			if !re.matches(row.Name) || strings.EqualFold(row.Name, last) {
				continue
			}
			last = row.Name
			if isUsed := asked[strings.ToLower(row.Name)]; p.Used && !isUsed || p.Unused && isUsed {
				continue
			}
			p.dumpOne(snap, row.Name)
		}
	}
	if !p.Verbose {
		fmt.Fprintln(p.Out, "# Contributing configuration file(s):")
		for _, s := range snap.Sources() {
			fmt.Fprintf(p.Out, "#\t%s\n", s)
		}
	}
}

// asked returns, in lower case, the names that some default refers to: without
// a running daemon that is all there is to know of use.
func (p *Printer) asked(snap *config.Snapshot, rows []config.Row) map[string]bool {
	if !p.Used && !p.Unused {
		return nil
	}
	for _, row := range rows {
		if row.Origin.Kind == config.Default {
			_, _ = snap.Expand(row.Raw) // what cannot be expanded refers to what it could reach
		}
	}
	out := map[string]bool{}
	for _, row := range snap.Rows() {
		if row.Used {
			out[strings.ToLower(row.Name)] = true
		}
	}
	return out
}

func (p *Printer) dumpOne(snap *config.Snapshot, name string) {
	s := Look(snap, name)
	if !s.Known {
		return
	}
	switch {
	case p.Default:
		fmt.Fprintf(p.Out, "%s %s\n", name, assigned(s.Default, "   "))
	case p.Expand:
		p.ReportAll(s.Err)
		fmt.Fprintf(p.Out, "%s %s\n", name, assigned(s.Value, "   "))
	default:
		fmt.Fprintf(p.Out, "%s %s\n", s.Name, assigned(s.Raw, "   "))
	}
	if !p.Verbose {
		return
	}
	if p.Info {
		p.description(name)
	}
	fmt.Fprintf(p.Out, " # at: %s\n", s.At)
	if p.Expand {
		fmt.Fprintf(p.Out, " # raw: %s\n", indented(s.Raw, " #     "))
	} else {
		p.ReportAll(s.Err)
		fmt.Fprintf(p.Out, " # expanded: %s\n", indented(s.Value, " #     "))
	}
	if s.HasDefault {
		fmt.Fprintf(p.Out, " # default: %s\n", indented(s.Default, " #     "))
	}
	if p.Info {
		p.knob(name)
	}
}
