// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// place is a small repository to run the command in.
type place struct {
	*testing.T
	root string
}

func newPlace(t *testing.T) place {
	p := place{t, t.TempDir()}
	p.write("go.mod", "module "+testModule+"\n")
	p.write("docs/coverage.tsv", someRows)
	p.write("lib/a/a_test.go", "package a\n\n// row: S0-001\nfunc TestA(t *testing.T) {}\n")
	return p
}

func (p place) write(name, text string) {
	p.Helper()
	full := filepath.Join(p.root, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		p.Fatal(err)
	}
}

func (p place) report() string {
	p.Helper()
	text, err := os.ReadFile(filepath.Join(p.root, "docs", "coverage.md"))
	if err != nil {
		p.Fatal(err)
	}
	return string(text)
}

// says runs the command, which must print something with want in it.
func (p place) says(want, stdin string, args ...string) {
	p.Helper()
	var out bytes.Buffer
	if err := run(strings.NewReader(stdin), &out, append([]string{"-root", p.root}, args...)); err != nil || !strings.Contains(out.String(), want) {
		p.Errorf("%v: got %q, %v; want %q", args, out.String(), err, want)
	}
}

// refuses runs the command, which must fail with want and print nothing.
func (p place) refuses(want, stdin string, args ...string) {
	p.Helper()
	var out bytes.Buffer
	if err := run(strings.NewReader(stdin), &out, append([]string{"-root", p.root}, args...)); err == nil || !strings.Contains(err.Error(), want) || out.Len() > 0 {
		p.Errorf("%v: got %q, %v; want %s", args, out.String(), err, want)
	}
}

// has fails unless the report has each of the lines.
func (p place) has(lines ...string) {
	p.Helper()
	for _, line := range lines {
		if text := p.report(); !strings.Contains(text, line+"\n") {
			p.Errorf("the report lacks %q:\n%s", line, text)
		}
	}
}

// TestRun goes through the command as a person would, who adds a test to a
// tree: the report follows the comments at once, and says that the test ran
// when results say so.
func TestRun(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	a := whole("pass", passOf("TestA")...)
	p.refuses("S0-001: lib/a TestA carries it, but docs/coverage.md does not say so; run: go run ./ci/rows", "", "-check")
	p.says("0 of 3 rows of the execution point are proven by tests that ran: 0 in the core, 0 through a program of ours, 0 with a real pool; 1 need what did not run, 2 are open\n", "")
	p.has("| S0-001 | EP | Slots | names | lacking |  |  |  | lib/a TestA: not yet run |")
	p.says("0 of 3", "", "-check")
	p.refuses("lib/a TestA ran, but docs/coverage.md says that it did not (not yet run) for S0-001", a, "-check", "-results", "-")
	p.says("1 of 3", a, "-results", "-")
	p.says("1 of 3", "", "-check")
	p.says("1 of 3", a, "-check", "-results", "-")
	p.has("| 0 EP policy configuration, 23.9 | 3 | 3 | 1 | 1 | 0 | 0 | 0 | 2 |", "| all | 4 | 3 | 1 | 1 | 0 | 0 | 0 | 2 |",
		"| S0-001 | EP | Slots | names | proven | lib/a TestA |  |  |  |", "| S1-001 | AP | Queue | of the others |  |  |  |  |  |")

	p.write("lib/b/b_test.go", "package b\n\n// row: S0-001, S0-002\nfunc TestB(t *testing.T) {}\n")
	p.refuses("S0-002: lib/b TestB carries it", "", "-check")
	before := p.report()
	p.says("S0-001 in the core: lib/a TestA\ndocs/coverage.md is not written: the results lack 1 tests that carry rows, such as lib/b TestB; -add adds what ran\n", a, "-results", "-")
	if p.report() != before {
		t.Error("results of a part have changed the report")
	}
	p.says("1 of 3", "")
	p.has("| S0-001 | EP | Slots | names | proven | lib/a TestA |  |  | lib/b TestB: not yet run |", "| S0-002 | EP |  | order | lacking |  |  |  | lib/b TestB: not yet run |")
	b := stream("start lib/b", "run lib/b TestB", "pass lib/b TestB", "pass lib/b")
	p.says("2 of 3", b, "-results", "-", "-add")
	p.has("| S0-001 | EP | Slots | names | proven | lib/a TestA<br>lib/b TestB |  |  |  |", "| S0-002 | EP |  | order | proven | lib/b TestB |  |  |  |")
	p.says("2 of 3", whole("pass", skipOf("TestA", "needs root")...), "-results", "-", "-add") // another machine skips it; this one is believed
	p.refuses("lib/a TestA was skipped (needs root)", whole("pass", skipOf("TestA", "needs root")...)+b, "-check", "-results", "-")
	p.says("2 of 3", whole("pass", skipOf("TestA", "needs root")...)+b, "-results", "-")
	p.has("| S0-001 | EP | Slots | names | proven | lib/b TestB |  |  | lib/a TestA: needs root |")
	p.says("needs root\n    lib/a TestA\n1 tests", whole("pass", skipOf("TestA", "needs root")...), "-skipped", "-results", "-")

	p.write("lib/b/b_test.go", "package b\n")
	p.refuses("S0-002: docs/coverage.md says that lib/b TestB carries it, but no comment does", "", "-check")
	p.says("0 of 3", "")
	p.write("README.md", "S0-001: true\n")
	p.refuses("README.md:1: S0-001 is called true, but no test that ran carries it", "", "-check")
	p.refuses("README.md:1: S0-001 is called true, but no test that ran carries it", "")
	p.says("1 of 3", a, "-results", "-")
	p.write("docs/coverage.md", strings.ReplaceAll(p.report(), "names", "other words"))
	p.refuses("docs/coverage.md is not up to date; run: go run ./ci/rows", "", "-check")
	p.write("docs/coverage.md", p.report()+p.report())
	p.refuses("stands there twice", "", "-check")
	p.says("1 of 3", a, "-results", "-")
	p.write("docs/coverage.md", strings.ReplaceAll(p.report(), "\n", "\r\n"))
	p.says("1 of 3", "", "-check")
}

func TestOptions(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for _, tt := range []struct {
		args string
		want string
	}{
		{"all", `unexpected argument "all"`},
		{"-add", "-add and -skipped want -results"},
		{"-skipped", "-add and -skipped want -results"},
		{"-skipped -check -results x", "only one of -check, -add and -skipped"},
		{"-add -check -results x", "only one of -check, -add and -skipped"},
		{"-required x -results x", "-required wants -skipped"},
		{"-results none.json", "no such file"},
		{"-skipped -results - -required (", "rows: -required: error parsing regexp"},
	} {
		p.refuses(tt.want, whole("pass"), strings.Fields(tt.args)...)
	}
}
