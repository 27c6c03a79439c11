// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/execpoint/execpoint/lib/config"
)

// printDump prints all names that match a pattern, for each pattern.
func (r *run) printDump() int {
	host := r.snap.String("FULL_HOSTNAME")
	if host == "" {
		host = "<unknown hostname>"
	}
	fmt.Fprintf(r.stdout, "# Configuration from machine: %s\n", host)
	patterns := r.names
	if len(patterns) == 0 {
		patterns = []string{""}
	}
	rows := r.snap.Rows()
	asked := r.asked(rows)
	for i, re := range compile(patterns) {
		if patterns[i] != "" {
			fmt.Fprintf(r.stdout, "\n# Parameters with names that match %s:\n", patterns[i])
		}
		last := ""
		for _, row := range rows {
			if re == nil || !re.MatchString(row.Name) || strings.EqualFold(row.Name, last) {
				continue
			}
			last = row.Name
			if isUsed := asked[strings.ToLower(row.Name)]; r.used && !isUsed || r.unused && isUsed {
				continue
			}
			r.dumpOne(row.Name)
		}
	}
	if !r.verbose {
		fmt.Fprintln(r.stdout, "# Contributing configuration file(s):")
		for _, s := range r.snap.Sources() {
			fmt.Fprintf(r.stdout, "#\t%s\n", s)
		}
	}
	return exitOK
}

// asked returns, in lower case, the names that some default refers to: without
// a running daemon that is all there is to know of use.
func (r *run) asked(rows []config.Row) map[string]bool {
	if !r.used && !r.unused {
		return nil
	}
	for _, row := range rows {
		if row.Origin.Kind == config.Default {
			_, _ = r.snap.Expand(row.Raw) // what cannot be expanded refers to what it could reach
		}
	}
	out := map[string]bool{}
	for _, row := range r.snap.Rows() {
		if row.Used {
			out[strings.ToLower(row.Name)] = true
		}
	}
	return out
}

func (r *run) dumpOne(name string) {
	s := r.look(name)
	if !s.known {
		return
	}
	switch {
	case r.def:
		fmt.Fprintf(r.stdout, "%s %s\n", name, assigned(s.def, "   "))
	case r.expand:
		r.reportAll(s.err)
		fmt.Fprintf(r.stdout, "%s %s\n", name, assigned(s.value, "   "))
	default:
		fmt.Fprintf(r.stdout, "%s %s\n", s.name, assigned(s.raw, "   "))
	}
	if !r.verbose {
		return
	}
	if r.info {
		r.printDescription(name)
	}
	fmt.Fprintf(r.stdout, " # at: %s\n", s.at)
	if r.expand {
		fmt.Fprintf(r.stdout, " # raw: %s\n", indented(s.raw, " #     "))
	} else {
		r.reportAll(s.err)
		fmt.Fprintf(r.stdout, " # expanded: %s\n", indented(s.value, " #     "))
	}
	if s.hasDef {
		fmt.Fprintf(r.stdout, " # default: %s\n", indented(s.def, " #     "))
	}
	if r.info {
		r.printKnob(name)
	}
}
