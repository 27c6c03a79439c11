// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// documentedTemplate is a section of templates.md: "SETTING = VALUE" and "use
// OTHER" per row, with the condition of the row before it.
type documentedTemplate struct {
	name string
	rows []string
}

func documentedTemplates(t *testing.T) []documentedTemplate {
	t.Helper()
	text, err := os.ReadFile("testdata/templates.md")
	if err != nil {
		t.Fatal(err)
	}
	heading := regexp.MustCompile("^### `use (\\w+) : (\\w+)`")
	cell := regexp.MustCompile(`(?:^|[^\\])\|`)
	code := func(s string) string {
		s = strings.ReplaceAll(strings.TrimSpace(s), `\|`, "|")
		if s == "(empty)" {
			return ""
		}
		return strings.TrimSuffix(strings.TrimPrefix(s, "`"), "`")
	}
	var out []documentedTemplate
	for line := range strings.SplitSeq(string(text), "\n") {
		if m := heading.FindStringSubmatch(line); m != nil {
			out = append(out, documentedTemplate{name: m[1] + ":" + m[2]})
			continue
		}
		if len(out) == 0 || !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| Setting") {
			continue
		}
		var cells []string
		for rest := line[2:]; ; {
			at := cell.FindStringIndex(rest)
			if at == nil {
				break
			}
			cells = append(cells, code(rest[:at[1]-1]))
			rest = rest[at[1]:]
		}
		row := cells[0] + " = " + cells[1]
		switch cells[0] {
		case "(uses another template)":
			row = "use " + cells[1]
		case "(configuration error)":
			row = "error"
		}
		if len(cells) > 2 && cells[2] != "" {
			row = "[" + cells[2] + "] " + row
		}
		last := &out[len(out)-1]
		last.rows = append(last.rows, strings.TrimSpace(row))
	}
	return out
}

// rowsOf reads the text of a template back into rows.
func rowsOf(text string) []string {
	var rows []string
	condition, here := "", ""
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		word, rest, _ := strings.Cut(line, " ")
		switch {
		case line == "" || word[0] == '#':
			continue
		case here != "" && line == "@end":
			line, here = strings.TrimSuffix(here, " / "), ""
		case here != "":
			here += line + " / "
			continue
		case strings.HasPrefix(rest, "@="):
			here = word + " = "
			continue
		case word == "if":
			condition = "[" + rest + "] "
			continue
		case word == "else":
			condition = "[not (" + strings.Trim(condition, "[] ") + ")] "
			continue
		case word == "endif":
			condition = ""
			continue
		case word == "error":
			line = "error"
		}
		rows = append(rows, condition+line)
	}
	return rows
}

// TestTemplates compares every template with its documentation, row by row.
func TestTemplates(t *testing.T) {
	t.Parallel()
	documented := documentedTemplates(t)
	if len(documented) < 50 {
		t.Fatalf("only %d templates documented", len(documented))
	}
	for _, want := range documented {
		category, name, _ := strings.Cut(want.name, ":")
		got, ok := findTemplate(category, strings.ToUpper(name))
		if !ok || !strings.EqualFold(got.name, want.name) {
			t.Errorf("%s: found %q", want.name, got.name)
			continue
		}
		if d := cmp.Diff(want.rows, rowsOf(got.text)); d != "" {
			t.Errorf("%s: %s", want.name, d)
		}
	}
	n := 0
	for range Templates() {
		n++
	}
	if n != len(documented) {
		t.Errorf("%d templates, %d documented", n, len(documented))
	}
}

// TestTemplatesRead uses every template once; what it sets must hold.
func TestTemplatesRead(t *testing.T) {
	t.Parallel()
	args := map[string]string{
		"FEATURE:Monitor": "(A, Periodic, 60, /x, SUM:A)", "FEATURE:OneShotCronHook": "(STARTD_CRON, a, /x)",
		"FEATURE:PeriodicCronHook": "(STARTD_CRON, a, 60, /x)", "FEATURE:ContinuousCronHook": "(STARTD_CRON, a, /x)",
		"FEATURE:StartdCronOneShot": "(a, /x)", "FEATURE:StartdCronPeriodic": "(a, 60, /x)", "FEATURE:StartdCronContinuous": "(a, /x)",
		"FEATURE:ScheddCronOneShot": "(a, /x)", "FEATURE:ScheddCronPeriodic": "(a, 60, /x)", "FEATURE:ScheddCronContinuous": "(a, /x)",
		"POLICY:PREEMPT_IF": "(T)", "POLICY:WANT_HOLD_IF": "(T, 7, why)",
	}
	for name := range Templates() {
		text := "T = (X > 1)\nCONDOR_HOST = cm\nuse " + name + args[name] + "\n"
		s, err := Parse("test.conf", text, Options{Subsystem: "STARTD", Facts: goldenFacts})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, p := range s.Check() {
			t.Errorf("%s: %v", name, p)
		}
		for i := range s.m.table.entries {
			if o := s.m.table.entries[i].origin; o.Kind == Template && (o.Line != 3 || o.File != "test.conf") {
				t.Errorf("%s: %s comes from %v", name, s.m.table.entries[i].name, o)
			}
		}
	}
}

func TestExpandArguments(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, args, want string }{
		{"$(1)-$(2)-$(3)", "a, b c ", "a-b c-"},
		{"$(1:x)", "", "x"},
		{"$(1:x)", " , ", "x"},
		{"$(2+)", "a, b ,c", "b ,c"},
		{"$(2+:all)", "a", "all"},
		{"$(1+)", " a,b ", "a,b"},
		{"$(0)", " a, b ", "a, b"},
		{"$(0#) $(0?)", "a,b,,c", "3 1"},
		{"$(0#) $(0?)", "  ", "0 0"},
		{"$(1?)$(2?)", "a", "10"},
		{"$(1:$(NUM_CPUS))", "", "$(NUM_CPUS)"},
		{"$(2:1/$(N_$(1:1)))", "7", "1/$(N_7)"},
		{"$($(1))", "X", "$(X)"},
		{"$(X) $(1x) $(1", "a", "$(X) $(1x) $(1"},
		{"$(1)", "$(1)", "$(1)"},
		{"$(99999999999999999999)", "a", "$(99999999999999999999)"},
	} {
		if got := expandArguments(tt.text, tt.args); got != tt.want {
			t.Errorf("%q with (%s): %q, want %q", tt.text, tt.args, got, tt.want)
		}
	}
}
