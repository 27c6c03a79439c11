// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package commands

import (
	"fmt"
	"slices"
	"strings"
)

// Page is docs/commands.md.
func Page() []byte {
	var b strings.Builder
	b.WriteString("# Commands\n\nWritten by `go generate ./bin/internal/commands` from the table there; do not edit.\n\n" +
		"Every program prints the text that stands here for `-help`, each command of `condor_ep` its own (`condor_ep run -help`), and two lines for `-version`:\n" +
		"the version of HTCondor that it behaves as with its own, and the platform.\n\n" +
		"- [Exit statuses](#exit-statuses)\n")
	for _, p := range All() {
		fmt.Fprintf(&b, "- [%s](#%s): %s\n", p.Name, p.Name, p.Does)
	}
	b.WriteString("\n## Exit statuses\n\n" +
		"`condor_ep`, `condor_mips` and `condor_kflops` have one set: " + fmt.Sprintf("%d yes, %d no, %d the command line or a file that it names cannot be used, %d never, %d start me again", OK, No, Misused, Never, Restart) +
		".\nThe other programs have those of HTCondor's programs of the same name. `go run` shows every status but 0 as 1: build the programs where it matters.\n\n")
	b.WriteString(statuses())
	for _, p := range All() {
		fmt.Fprintf(&b, "\n## %s\n", p.Name)
		for _, c := range p.Commands {
			if c.Name != "" {
				fmt.Fprintf(&b, "\n### %s %s\n", p.Name, c.Name)
			}
			b.WriteByte('\n')
			for line := range strings.Lines(p.Help(c.Name)) {
				if line != "\n" {
					b.WriteString("    ")
				}
				b.WriteString(line)
			}
		}
	}
	return []byte(b.String())
}

// statuses is the table of all exit statuses.
func statuses() string {
	var codes []int
	for _, p := range All() {
		for _, c := range p.Commands {
			for _, s := range c.Statuses {
				if !slices.Contains(codes, s.Code) {
					codes = append(codes, s.Code)
				}
			}
		}
	}
	slices.Sort(codes)
	var b strings.Builder
	head, rule := "| |", "|---|"
	for _, code := range codes {
		head += fmt.Sprintf(" %d |", code)
		rule += "---|"
	}
	b.WriteString(head + "\n" + rule + "\n")
	for _, p := range All() {
		for _, c := range p.Commands {
			fmt.Fprintf(&b, "| `%s` |", strings.TrimSpace(p.Name+" "+c.Name))
			for _, code := range codes {
				says := ""
				if i := slices.IndexFunc(c.Statuses, func(s Status) bool { return s.Code == code }); i >= 0 {
					says = c.Statuses[i].Says
				}
				fmt.Fprintf(&b, " %s |", says)
			}
			b.WriteByte('\n')
		}
	}
	return b.String()
}
