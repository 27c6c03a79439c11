// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write testdata/coverage.md anew")

// someProofs carry the rows of someRows.
func someProofs() map[string][]proof {
	a, b := testKey{"lib/a", "TestA"}, testKey{"lib/a", "TestB"}
	x, y, z := testKey{"bin/x", "TestX"}, testKey{"integration/y", "TestY"}, testKey{"integration/y", "TestZ"}
	return map[string][]proof{
		"S0-001": {{testKey: x, whole: true}, {testKey: y, whole: true}, {testKey: a, whole: true}, {testKey: b, entries: []string{"one"}}},
		"S0-002": {{testKey: z, whole: true}},
		"S1-001": {{testKey: b, entries: []string{"two"}}},
	}
}

func someKinds() map[testKey]kind {
	return map[testKey]kind{{"bin/x", "TestX"}: program, {"integration/y", "TestY"}: pool, {"integration/y", "TestZ"}: pool}
}

func someStandings() standings {
	yes := standing{ran: true}
	return standings{
		"S0-001": {{"bin/x", "TestX"}: yes, {"integration/y", "TestY"}: yes, {"lib/a", "TestA"}: yes, {"lib/a", "TestB"}: yes},
		"S0-002": {{"integration/y", "TestZ"}: {why: "no | <br> a_b *c* : \\| here"}},
		"S1-001": {{"lib/a", "TestB"}: {why: "needs two"}},
	}
}

func TestRenderGolden(t *testing.T) {
	t.Parallel()
	got, summary := render(someTable(t), someStandings(), someKinds())
	if want := "1 of 3 rows of the execution point are proven by tests that ran: 1 in the core, 1 through a program of ours, 1 with a real pool; 1 need what did not run, 1 are open"; summary != want {
		t.Errorf("got %q, want %q", summary, want)
	}
	name := filepath.Join("testdata", "coverage.md")
	if *update {
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if strings.ReplaceAll(string(want), "\r\n", "\n") != string(got) {
		if err := os.WriteFile(name+".got", got, 0o644); err != nil {
			t.Error(err)
		}
		t.Errorf("see %s.got; -update writes it", name)
	}
	said, err := parseReport("coverage.md", string(got))
	if err != nil {
		t.Fatal(err)
	}
	delete(said, "S0-003") // open, and so without tests
	if want := someStandings(); !reflect.DeepEqual(said, want) {
		t.Errorf("read back:\ngot  %v\nwant %v", said, want)
	}
}

func TestParseReportRefuses(t *testing.T) {
	t.Parallel()
	const good = "| S0-001 | EP | a | b | open |  |  |  |  |\n"
	for _, tt := range []struct{ text, want string }{
		{"", ""},
		{good, ""},
		{good + good, "c.md:2: row S0-001 stands there twice; it is written by: go run ./ci/rows -results FILES"},
		{"\n| S0-001 | EP | a | b | lib/a_test.go:TestA | proven |\n", "c.md:2: 6 columns, want 9"},
		{"| S0-001 | EP | a | b | proven | TestA |  |  |  |\n", `c.md:1: cannot read "TestA"`},
		{"| S0-001 | EP | a | b | proven | lib/a TestA: why |  |  |  |\n", `c.md:1: cannot read "lib/a TestA: why"`},
		{"| S0-001 | EP | a | b | lacking |  |  |  | lib/a TestA |\n", `c.md:1: cannot read "lib/a TestA"`},
		{"<<<<<<< HEAD\n" + good + "=======\n" + good + ">>>>>>> other\n", "c.md:4: row S0-001 stands there twice"},
	} {
		_, err := parseReport("c.md", tt.text)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tt.want)) {
			t.Errorf("%q: got %v, want %s", tt.text, err, tt.want)
		}
	}
}

// FuzzReport: whatever a reason is made of, the report is read back as it was
// written, and anything else is read or refused.
func FuzzReport(f *testing.F) {
	rows, err := parseRows("coverage.tsv", someRows)
	if err != nil {
		f.Fatal(err)
	}
	report, _ := render(rows, someStandings(), someKinds())
	f.Add("needs root", string(report))
	f.Add(`a | b \| c <br> d \_ e: f`, "| S0-001 | EP | a | b | open |")
	f.Fuzz(func(t *testing.T, reason, text string) {
		if said, err := parseReport("c.md", text); err == nil {
			render(rows, said, nil)
		}
		as := standing{why: short(reason)}
		report, _ := render(rows, standings{"S0-001": {{"lib/a", "TestA"}: as}}, nil)
		said, err := parseReport("c.md", string(report))
		if got := said["S0-001"][testKey{"lib/a", "TestA"}]; err != nil || got != as {
			t.Errorf("got %+v, %v; want %+v", got, err, as)
		}
	})
}

func TestCompareAndHold(t *testing.T) {
	t.Parallel()
	all := []string{
		stream("start bin/x", "run bin/x TestX", "pass bin/x TestX", "pass bin/x"),
		stream("start integration/y", "run integration/y TestY", "pass integration/y TestY", "output integration/y TestZ:     y_test.go:3: no pool", "skip integration/y TestZ", "pass integration/y"),
		whole("pass", join(passOf("TestA"), passOf("TestB/one"), skipOf("TestB/two", "needs two"), passOf("TestB"))...),
	}
	const remedy = "run: go run ./ci/rows -results FILES, with those of all runs"
	for _, tt := range []struct {
		name    string
		said    func(standings)
		results []string
		compare []string
		hold    []string
	}{
		{"as it is", func(standings) {}, all, nil, nil},
		{"a test that the report lacks", func(s standings) { delete(s["S0-001"], testKey{"lib/a", "TestA"}) }, all,
			[]string{"S0-001: lib/a TestA carries it, but docs/coverage.md does not say so; run: go run ./ci/rows"}, nil},
		{"a test that carries it no more", func(s standings) { s.set("S0-003", testKey{"lib/a", "TestA"}, standing{ran: true}) }, all,
			[]string{"S0-003: docs/coverage.md says that lib/a TestA carries it, but no comment does; run: go run ./ci/rows"}, nil},
		{"skipped", func(s standings) { s.set("S0-002", testKey{"integration/y", "TestZ"}, standing{ran: true}) }, append(all, stream("start integration/y", "run integration/y TestZ",
			"output integration/y TestZ:     y_test.go:3: no pool", "skip integration/y TestZ", "pass integration/y")), nil,
			[]string{"integration/y TestZ was skipped (no pool), but docs/coverage.md says that it ran for S0-002", remedy}},
		{"an entry skipped", func(s standings) { s.set("S1-001", testKey{"lib/a", "TestB"}, standing{ran: true}) }, all, nil,
			[]string{"lib/a TestB was skipped (needs two), but docs/coverage.md says that it ran for S1-001", remedy}},
		{"failed", func(standings) {}, append(all, whole("fail", "fail lib/a TestB")), nil,
			[]string{"lib/a TestB failed, but docs/coverage.md says that it ran for S0-001", remedy}},
		{"not run", func(standings) {}, all[1:], nil,
			[]string{"bin/x TestX is not in the results (not run), but docs/coverage.md says that it ran for S0-001", remedy}},
		{"ran after all", func(s standings) {
			s.set("S0-001", testKey{"lib/a", "TestA"}, standing{why: notYet})
			s.set("S0-001", testKey{"bin/x", "TestX"}, standing{why: "needs x"})
		}, all, nil, []string{"bin/x TestX ran, but docs/coverage.md says that it did not (needs x) for S0-001",
			"lib/a TestA ran, but docs/coverage.md says that it did not (not yet run) for S0-001", remedy}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			said := someStandings()
			tt.said(said)
			r := newResults(testModule)
			for _, run := range tt.results {
				if err := r.read("x.json", strings.NewReader(run)); err != nil {
					t.Fatal(err)
				}
			}
			if got := compare(someTable(t), someProofs(), said); !reflect.DeepEqual(got, tt.compare) {
				t.Errorf("compare:\ngot  %q\nwant %q", got, tt.compare)
			}
			if got := hold(someTable(t), someProofs(), said, r); !reflect.DeepEqual(got, tt.hold) {
				t.Errorf("hold:\ngot  %q\nwant %q", got, tt.hold)
			}
		})
	}
}
