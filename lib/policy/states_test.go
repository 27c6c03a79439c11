// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

//go:generate go test . -run ^TestStatesPage$ -update

var update = flag.Bool("update", false, "write docs/states.md anew")

const statesPage = "../../docs/states.md"

// TestStatesPage holds docs/states.md against the table.
func TestStatesPage(t *testing.T) {
	t.Parallel()
	want := statesText()
	if *update {
		if err := os.WriteFile(statesPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(statesPage)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("docs/states.md is not what the table says; run: go generate ./lib/policy")
	}
}

func statesText() string {
	var b strings.Builder
	b.WriteString(`# States, activities and transitions

Written by ` + "`go generate ./lib/policy`" + ` from the table in lib/policy/table.go, which is what the engine moves by; do not edit.

A slot is always in one state and, within it, in one activity. Numbers and letters are those of the HTCondor manual's
policy chapter; a row without a number is one that the manual does not number. Rows that share a number are the same
transition, brought about differently. "policy evaluated" is every POLLING_INTERVAL while a slot is claimed, every
UPDATE_INTERVAL otherwise, and at once wherever a row says "evaluate again".

## The states

` + "```mermaid\nstateDiagram-v2\n    direction LR\n    [*] --> Owner\n")
	for _, line := range stateArrows() {
		b.WriteString("    " + line + "\n")
	}
	b.WriteString("```\n\n## The activities\n\n```mermaid\nstateDiagram-v2\n    direction LR\n")
	for _, s := range States {
		fmt.Fprintf(&b, "    state %v {\n", s)
		for _, p := range allPairs() {
			if p.State == s && Legal(p) {
				fmt.Fprintf(&b, "        %s: %v\n", node(p), p.Activity)
			}
		}
		b.WriteString("    }\n")
	}
	for _, line := range activityArrows() {
		b.WriteString("    " + line + "\n")
	}
	b.WriteString("```\n")
	for _, s := range States {
		fmt.Fprintf(&b, "\n## From %v\n\n| No. | From | When | To | What is done |\n|---|---|---|---|---|\n", s)
		for _, row := range Table() {
			if row.From.State != s {
				continue
			}
			when := row.On.String()
			if row.Guard != "" {
				when += ": " + row.Guard
			}
			fmt.Fprintf(&b, "| %s | %v | %s | %v | %v |\n", label(&row), row.From, when, row.To, row.Duties)
		}
	}
	return b.String()
}

func node(p Pair) string { return p.State.String() + p.Activity.String() }

// label is the number and letter of a row as the documents write them.
func label(row *Transition) string {
	s := ""
	if row.Number != 0 {
		s = fmt.Sprint(row.Number)
	}
	if row.Letter != 0 {
		s = strings.TrimSpace(s + " " + string(row.Letter))
	}
	return s
}

// stateArrows are the changes of state with their letters, each once.
func stateArrows() []string {
	var out []string
	for _, row := range Table() {
		if row.From.State == row.To.State {
			continue
		}
		line := fmt.Sprintf("%v --> %v", row.From.State, row.To.State)
		if row.Letter != 0 {
			line += ": " + string(row.Letter)
		}
		if !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	return out
}

// activityArrows are all moves, the numbers of each pair of ends together.
func activityArrows() []string {
	type ends struct{ from, to Pair }
	numbers := map[ends][]string{}
	var order []ends
	for _, row := range Table() {
		e := ends{row.From, row.To}
		if _, seen := numbers[e]; !seen {
			order = append(order, e)
			numbers[e] = nil
		}
		if n := fmt.Sprint(row.Number); row.Number != 0 && !slices.Contains(numbers[e], n) {
			numbers[e] = append(numbers[e], n)
		}
	}
	var out []string
	for _, e := range order {
		line := node(e.from) + " --> " + node(e.to)
		if len(numbers[e]) > 0 {
			line += ": " + strings.Join(numbers[e], ", ")
		}
		out = append(out, line)
	}
	return out
}
