// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/ci/source"
)

const someRows = head + `
S0-001	EP	Slots	names	slot1 is called slot1
S0-002	EP	Slots	order	slot2 comes after slot1
S0-003	EP	Slots	<N> | more	three
S1-001	AP	Queue	of the others	not ours
`

func someTable(t *testing.T) table {
	t.Helper()
	rows, err := parseRows("coverage.tsv", someRows)
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func TestParseRowsRefusesBadLines(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, want string }{
		{"", "coverage.tsv:1: the file is empty"},
		{"row\n", `coverage.tsv:1: the first line is not "row\tscope\tsection\tfeature\tfact"`},
		{head + "\nS0-001\tEP\tx\n", "coverage.tsv:2: 3 columns, want 5"},
		{head + "\nS0-1\tEP\ta\tb\tc\n", `coverage.tsv:2: row id "S0-1", want the form S0-001`},
		{head + "\nS0-001\tEP\ta\tb\tc\nS0-001\tEP\ta\tb\tc\n", "coverage.tsv:3: row S0-001 stands there twice"},
		{head + "\nS0-001\tXX\ta\tb\tc\n", `coverage.tsv:2: scope "XX" of S0-001`},
		{head + "\nS0-001\tEP\ta\tb\t\n", "coverage.tsv:2: S0-001 has no feature or no fact"},
	} {
		_, err := parseRows("coverage.tsv", tt.text)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: got %v, want %s", tt.text, err, tt.want)
		}
	}
}

func TestFindProofs(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, path, text string
		proves           string // "S0-001=TestA S0-002=TestA,TestB"
		fault            string
	}{
		{"above the function", "a_test.go", "// TestA is a test.\n// row: S0-001\nfunc TestA(t *testing.T) {}\n", "S0-001=TestA", ""},
		{"several", "a_test.go", "// row: S0-001, S0-002\nfunc TestA(t *testing.T) {}\n", "S0-001=TestA S0-002=TestA", ""},
		{"in a table", "a_test.go", "func TestA(t *testing.T) {\n\tx := []int{\n\t\t// row: S0-003\n\t\t1,\n\t\t2, // row: S0-003\n\t}\n\t_ = x\n}\n", "S0-003=TestA", ""},
		{"a fuzz target", "a_test.go", "// row: S0-001\nfunc FuzzA(f *testing.F) {}\n", "S0-001=FuzzA", ""},
		{"a skip under a condition", "a_test.go", "// row: S0-001\nfunc TestA(t *testing.T) {\n\tif x {\n\t\tt.Skip(\"no x\")\n\t}\n}\n", "S0-001=TestA", ""},
		{"unknown", "a_test.go", "// row: S0-009\nfunc TestA(t *testing.T) {}\n", "", `a_test.go:3: unknown row "S0-009"`},
		{"badly written", "a_test.go", "// row: S0-1\nfunc TestA(t *testing.T) {}\n", "", `a_test.go:3: unknown row "S0-1"`},
		{"empty", "a_test.go", "// row:\nfunc TestA(t *testing.T) {}\n", "", `a_test.go:3: unknown row ""`},
		{"one line off", "a_test.go", "// row: S0-001\n\nfunc TestA(t *testing.T) {}\n", "", "a_test.go:3: the row comment belongs to no test"},
		{"above a helper", "a_test.go", "// row: S0-001\nfunc help(t *testing.T) {}\n", "", "a_test.go:3: the row comment belongs to no test"},
		{"not run by go", "a_test.go", "// row: S0-001\nfunc Testing(t *testing.T) {}\n", "", "a_test.go:3: the row comment belongs to no test"},
		{"a benchmark", "a_test.go", "// row: S0-001\nfunc BenchmarkA(b *testing.B) {}\n", "", "a_test.go:3: the row comment belongs to no test"},
		{"TestMain", "a_test.go", "// row: S0-001\nfunc TestMain(m *testing.M) {}\n", "", "a_test.go:3: the row comment belongs to no test"},
		{"a table of the package", "a_test.go", "var cases = []int{\n\t// row: S0-001\n\t1,\n}\n\nfunc TestA(t *testing.T) {\n\tfor range cases {\n\t}\n}\nfunc TestB(t *testing.T) {}\n", "S0-001=TestA", ""},
		{"a table that no test goes through", "a_test.go", "var cases = []int{\n\t// row: S0-001\n\t1,\n}\n\nfunc TestA(t *testing.T) { _ = cases }\n", "", "a_test.go:4: the row comment belongs to no test"},
		{"beside a table of the package", "a_test.go", "// row: S0-001\nvar cases = []int{1}\n\nfunc TestA(t *testing.T) {\n\tfor range cases {\n\t}\n}\n", "", "a_test.go:3: the row comment belongs to no test"},
		{"always skipped", "a_test.go", "// row: S0-001\nfunc TestA(t *testing.T) {\n\tt.Parallel()\n\tt.Skip(\"some day\")\n}\n", "", "a_test.go:3: TestA skips before it tests anything"},
		{"outside tests", "a.go", "// row: S0-001\nfunc TestA(t *testing.T) {}\n", "", "a.go:3: a row comment outside a test file proves nothing"},
		{"rows instead of row", "a_test.go", "// rows: S0-001\nfunc TestA(t *testing.T) {}\n", "", "a_test.go:3: looks like a row comment but is not one"},
		{"no colon", "a_test.go", "// row S0-001\nfunc TestA(t *testing.T) {}\n", "", "a_test.go:3: looks like a row comment but is not one"},
		{"other comments", "a_test.go", "// the row: first, then S0-001\nfunc TestA(t *testing.T) {}\n", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f, err := source.Parse(tt.path, []byte("package a\n\n"+tt.text))
			if err != nil {
				t.Fatal(err)
			}
			proofs, faults := findProofs(someTable(t), []source.File{f})
			var got []string
			for id, list := range proofs {
				var names []string
				for _, p := range list {
					names = append(names, p.test)
				}
				got = append(got, id+"="+strings.Join(names, ","))
			}
			slices.Sort(got)
			if strings.Join(got, " ") != tt.proves {
				t.Errorf("proves %q, want %q", got, tt.proves)
			}
			if all := strings.Join(faults, "\n"); tt.fault == "" && all != "" || !strings.Contains(all, tt.fault) {
				t.Errorf("faults %q, want %q", all, tt.fault)
			}
		})
	}
}

func TestFindClaims(t *testing.T) {
	t.Parallel()
	said := standings{"S0-001": {{"lib/a", "TestA"}: {ran: true}}, "S0-002": {{"lib/a", "TestB"}: {why: "needs root"}}}
	for _, tt := range []struct {
		text string
		want []string
	}{
		{"S0-001: true", nil},
		{"S0-002 is still open, S0-003 too", nil},
		{"x\nS0-002: true", []string{"d.md:2: S0-002 is called true, but no test that ran carries it"}},
		{"S0-001 and S0-003 are proven.", []string{"d.md:1: S0-003 is called true, but no test that ran carries it"}},
		{"`S0-001…003: true`", []string{"d.md:1: S0-002 is called true, but no test that ran carries it", "d.md:1: S0-003 is called true, but no test that ran carries it"}},
		{"see S0-777", []string{`d.md:1: unknown row "S0-777"`}},
	} {
		if got := findClaims(someTable(t), said, "d.md", tt.text); !slices.Equal(got, tt.want) {
			t.Errorf("%q:\ngot  %q\nwant %q", tt.text, got, tt.want)
		}
	}
}

// TestRepository fails where a comment in this tree names a row that does not
// exist or belongs to no test. Whether docs/coverage.md is up to date is asked
// by ci/check.
func TestRepository(t *testing.T) {
	t.Parallel()
	root, err := source.Root()
	if err != nil {
		t.Fatal(err)
	}
	module, err := source.Module(root)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readTree(root, module); err != nil {
		t.Error(err)
	}
}
