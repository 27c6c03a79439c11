// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"strings"
)

const intro = `# What is proven

Written by ` + "`go run ./ci/rows`" + ` from docs/coverage.tsv and the ` + "`// row:`" + ` comments of the tests; do not edit.
A row is proven when a test carries its id. The fact each row asks for stands in docs/coverage.tsv.
Rows of the access point (AP) and the central manager (CM) are listed so that nothing is lost; they are
not ours to prove, and count only in the column of all rows.

`

// seeds are the documents that the rows come from, by the digit of the id.
var seeds = [...]string{
	"EP policy configuration, 23.9",
	"startd policy, 6.8 manual",
	"policy for EP and AP",
	"special environments",
	"startd configuration options",
}

// render writes the report and one line for the terminal.
func render(rows table, proofs map[string][]proof) (report []byte, summary string) {
	type count struct{ all, ep, proven int }
	var counts [len(seeds) + 1]count // the last counts all seeds
	for _, r := range rows.list {
		c := []*count{&counts[len(seeds)]}
		if seed := int(r.id[1] - '0'); seed < len(seeds) {
			c = append(c, &counts[seed])
		}
		for _, c := range c {
			c.all++
			if r.scope == "EP" {
				c.ep++
				if len(proofs[r.id]) > 0 {
					c.proven++
				}
			}
		}
	}
	var b bytes.Buffer
	b.WriteString(intro)
	b.WriteString("| Seed | Rows | EP | Proven | Open |\n|---|---|---|---|---|\n")
	for i, c := range counts {
		name := "all"
		if i < len(seeds) {
			name = fmt.Sprintf("%d %s", i, seeds[i])
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d |\n", name, c.all, c.ep, c.proven, c.ep-c.proven)
	}
	seed, section := byte(0), ""
	for _, r := range rows.list {
		if r.id[1] != seed {
			seed, section = r.id[1], ""
			name := ""
			if i := int(seed - '0'); i < len(seeds) {
				name = ": " + seeds[i]
			}
			fmt.Fprintf(&b, "\n## Seed %c%s\n\n| Row | Scope | Section | Feature | Tests | State |\n|---|---|---|---|---|---|\n", seed, name)
		}
		shown := r.section
		if shown == section {
			shown = ""
		}
		section = r.section
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", r.id, r.scope, cell(shown), cell(r.feature), tests(proofs[r.id]), state(r, proofs[r.id]))
	}
	all := counts[len(seeds)]
	return b.Bytes(), fmt.Sprintf("%d of %d rows of the execution point are proven by a test, %d are open", all.proven, all.ep, all.ep-all.proven)
}

// state is proven where a test carries the row, open where we owe one, and
// empty for rows that are not the execution point's.
func state(r row, p []proof) string {
	switch {
	case len(p) > 0:
		return "proven"
	case r.scope == "EP":
		return "open"
	default:
		return ""
	}
}

func tests(list []proof) string {
	var out []string
	for _, p := range list {
		out = append(out, p.file+":"+p.test)
	}
	return strings.Join(out, "<br>")
}

// cell makes a text fit for a cell of a Markdown table.
var cellEscapes = strings.NewReplacer("|", `\|`, "<", `\<`, "*", `\*`, "_", `\_`)

func cell(s string) string { return cellEscapes.Replace(s) }
