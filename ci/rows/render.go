// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"strings"
)

const intro = `# What is proven

Written by ` + "`go run ./ci/rows`" + ` from docs/coverage.tsv, the ` + "`// row:`" + ` comments of the tests and the results of a run of all of
them; do not edit. The fact that each row asks for stands in docs/coverage.tsv. A row is proven when a test
that carries its id ran: it passed in one run at least, failed in none, and was not skipped in all.

- In the core: tests of packages of ours, and of what one operating system does.
- Through a program of ours: tests that start what a user starts, or hand it a command line.
- With a real pool: tests with HTCondor's own daemons and tools.
- Needs what CI lacks: tests that carry the row and did not run, and why. A row with nothing else is counted there.

Rows of the access point (AP) and the central manager (CM) are listed so that nothing is lost; they are not
ours to prove, and count only in the column of all rows. A row may be proven in several ways.

`

// seeds are the documents that the rows come from, by the digit of the id.
var seeds = [...]string{
	"EP policy configuration, 23.9",
	"startd policy, 6.8 manual",
	"policy for EP and AP",
	"special environments",
	"startd configuration options",
}

// count is the figures of a seed. All but the first are of the EP's rows.
type count struct {
	all, ep, proven, lacking, open int
	by                             [kinds]int
}

func (c *count) add(r row, s standings, of map[testKey]kind) {
	c.all++
	if r.scope != "EP" {
		return
	}
	c.ep++
	switch {
	case s.proven(r.id):
		c.proven++
	case len(s[r.id]) > 0:
		c.lacking++
	default:
		c.open++
	}
	for k := range kinds {
		for key, as := range s[r.id] {
			if as.ran && of[key] == k {
				c.by[k]++
				break
			}
		}
	}
}

// render writes the report and one line for the terminal.
func render(rows table, s standings, of map[testKey]kind) (report []byte, summary string) {
	var counts [len(seeds) + 1]count // the last counts all seeds
	for _, r := range rows.list {
		counts[len(seeds)].add(r, s, of)
		if seed := int(r.id[1] - '0'); seed < len(seeds) {
			counts[seed].add(r, s, of)
		}
	}
	var b bytes.Buffer
	b.WriteString(intro)
	b.WriteString("| Seed | Rows | EP | Proven | in the core | through a program of ours | with a real pool | Needs what CI lacks | Open |\n|---|---|---|---|---|---|---|---|---|\n")
	for i, c := range counts {
		name := "all"
		if i < len(seeds) {
			name = fmt.Sprintf("%d %s", i, seeds[i])
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d | %d | %d | %d |\n", name, c.all, c.ep, c.proven, c.by[inCore], c.by[program], c.by[pool], c.lacking, c.open)
	}
	seed, section := byte(0), ""
	for _, r := range rows.list {
		if r.id[1] != seed {
			seed, section = r.id[1], ""
			name := ""
			if i := int(seed - '0'); i < len(seeds) {
				name = ": " + seeds[i]
			}
			fmt.Fprintf(&b, "\n## Seed %c%s\n\n%s", seed, name, tableHead)
		}
		shown := r.section
		if shown == section {
			shown = ""
		}
		section = r.section
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |", r.id, r.scope, cell(shown), cell(r.feature), state(r, s))
		for k := range kinds {
			fmt.Fprintf(&b, " %s |", listed(s[r.id], func(key testKey, as standing) bool { return as.ran && of[key] == k }))
		}
		fmt.Fprintf(&b, " %s |\n", lacking(s[r.id]))
	}
	return b.Bytes(), counts[len(seeds)].String()
}

// columnsBefore are those of a row before the tests.
const columnsBefore = 5

const tableHead = "| Row | Scope | Section | Feature | State | In the core | Through a program of ours | With a real pool | Needs what CI lacks |\n|---|---|---|---|---|---|---|---|---|\n"

// String is the line for the terminal.
func (c count) String() string {
	var by []string
	for k, n := range c.by {
		by = append(by, fmt.Sprintf("%d %s", n, kindNames[k]))
	}
	return fmt.Sprintf("%d of %d rows of the execution point are proven by tests that ran: %s; %d need what did not run, %d are open",
		c.proven, c.ep, strings.Join(by, ", "), c.lacking, c.open)
}

// state is proven where a test that ran carries the row, lacking where one
// that did not run does, open where we owe one, and empty for rows that are not
// the execution point's.
func state(r row, s standings) string {
	switch {
	case s.proven(r.id):
		return "proven"
	case len(s[r.id]) > 0:
		return "lacking"
	case r.scope == "EP":
		return "open"
	default:
		return ""
	}
}

// listed names the wanted tests, those of a folder together.
func listed(tests map[testKey]standing, wanted func(testKey, standing) bool) string {
	var b strings.Builder
	folder := ""
	for _, key := range sortedKeys(tests) {
		switch {
		case !wanted(key, tests[key]):
			continue
		case key.folder == folder:
			b.WriteString(", " + key.test)
			continue
		case folder != "":
			b.WriteString("<br>")
		}
		folder = key.folder
		b.WriteString(key.String())
	}
	return b.String()
}

// lacking names the tests that did not run, each with the reason.
func lacking(tests map[testKey]standing) string {
	var out []string
	for _, key := range sortedKeys(tests) {
		if as := tests[key]; !as.ran {
			out = append(out, key.String()+": "+cell(as.why))
		}
	}
	return strings.Join(out, "<br>")
}

// cell makes a text fit for a cell of a Markdown table.
func cell(s string) string { return cellEscapes.Replace(s) }

var cellEscapes = strings.NewReplacer("|", `\|`, "<", `\<`, "*", `\*`, "_", `\_`)
