// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// whole wraps the lines of a run of lib/a.
func whole(end string, lines ...string) string {
	return stream(append(append([]string{"start lib/a"}, lines...), end+" lib/a")...)
}

func skipOf(test, reason string) []string {
	return []string{"run lib/a " + test, "output lib/a " + test + ": === RUN   " + test, "output lib/a " + test + ":     a_test.go:7: " + reason,
		"output lib/a " + test + ": --- SKIP: " + test + " (0.00s)", "skip lib/a " + test}
}

func passOf(test string) []string { return []string{"run lib/a " + test, "pass lib/a " + test} }

func join(lists ...[]string) (all []string) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// fateCases are asked of TestA in lib/a.
var fateCases = []struct {
	name    string
	runs    []string
	entries []string // nil: of the whole function
	want    fate
	why     string
}{
	{"passed", []string{whole("pass", passOf("TestA")...)}, nil, ran, ""},
	{"another test", []string{whole("pass", passOf("TestB")...)}, nil, notRun, "not run"},
	{"failed", []string{whole("fail", "run lib/a TestA", "fail lib/a TestA")}, nil, failed, "failed"},
	{"skipped", []string{whole("pass", skipOf("TestA", "needs root")...)}, nil, skipped, "needs root"},
	{"skipped in one run, passed in another", []string{whole("pass", skipOf("TestA", "needs root")...), whole("pass", passOf("TestA")...)}, nil, ran, ""},
	{"passed in one run, failed in another", []string{whole("pass", passOf("TestA")...), whole("fail", "fail lib/a TestA")}, nil, failed, "failed"},
	{"failed, then passed in the same run", []string{whole("fail", "run lib/a TestA", "fail lib/a TestA", "run lib/a TestA", "pass lib/a TestA")}, nil, failed, "failed"},
	{"skipped in two", []string{whole("pass", skipOf("TestA", "no HTCondor")...), whole("pass", skipOf("TestA", "takes long")...)}, nil, skipped, "takes long"},
	{"did not end", []string{whole("fail", "run lib/a TestA", "output lib/a TestA: panic: out of time")}, nil, failed, "failed"},
	{"a package that does not build", []string{whole("fail")}, nil, notRun, "not run"},
	{"a part of another test's name", []string{whole("pass", passOf("TestAB")...)}, nil, notRun, "not run"},
	{"all parts skipped", []string{whole("pass", join([]string{"run lib/a TestA"}, skipOf("TestA/x", "needs x"), skipOf("TestA/y", "needs y"), []string{"pass lib/a TestA"})...)}, nil, skipped, "needs x"},
	{"parts of parts skipped", []string{whole("pass", join(skipOf("TestA/x/1", "needs x"), passOf("TestA/x"), passOf("TestA"))...)}, nil, skipped, "needs x"},
	{"one part skipped", []string{whole("pass", join(skipOf("TestA/x", "needs x"), passOf("TestA/y"), passOf("TestA"))...)}, nil, ran, ""},
	{"parts skipped here, done there", []string{whole("pass", join(skipOf("TestA/x", "needs x"), passOf("TestA"))...), whole("pass", join(passOf("TestA/x"), passOf("TestA"))...)}, nil, ran, ""},
	{"its entry ran", []string{whole("pass", join(passOf("TestA/x"), skipOf("TestA/y", "needs y"), passOf("TestA"))...)}, []string{"x"}, ran, ""},
	{"its entry was skipped", []string{whole("pass", join(passOf("TestA/x"), skipOf("TestA/y", "needs y"), passOf("TestA"))...)}, []string{"y"}, skipped, "needs y"},
	{"one of its entries ran", []string{whole("pass", join(passOf("TestA/x"), skipOf("TestA/y", "needs y"), passOf("TestA"))...)}, []string{"y", "x"}, ran, ""},
	{"its entry is not there", []string{whole("pass", join(passOf("TestA/x"), passOf("TestA"))...)}, []string{"z", "u"}, notRun, "has no part z or u"},
	{"an entry below a part", []string{whole("pass", join(passOf("TestA/ours/x"), passOf("TestA/ours"), passOf("TestA"))...)}, []string{"x"}, ran, ""},
	{"an entry with parts", []string{whole("pass", join(skipOf("TestA/x/1", "needs x"), passOf("TestA/x"), passOf("TestA"))...)}, []string{"x"}, skipped, "needs x"},
	{"an entry with a slash", []string{whole("pass", join(passOf("TestA/x/1"), passOf("TestA/x"), passOf("TestA"))...)}, []string{"x/1"}, ran, ""},
	{"an entry that another one begins with", []string{whole("pass", join(passOf("TestA/xy"), passOf("TestA"))...)}, []string{"x"}, notRun, "has no part x"},
	{"no reason", []string{whole("pass", "skip lib/a TestA")}, nil, skipped, "no reason is given"},
	{"the last word is the reason", []string{whole("pass", "run lib/a TestA", "output lib/a TestA:     a_test.go:3: looking", "output lib/a TestA:     b_test.go:9: no root,",
		"output lib/a TestA:         nobody else", "output lib/a TestA: --- SKIP: TestA (0.00s)", "skip lib/a TestA")}, nil, skipped, "no root, nobody else"},
	{"a hostile reason", []string{whole("pass", skipOf("TestA", "a\x1b[2J | <br>\tb\u0085/tmp/TestA123/001: "+strings.Repeat("x", 5000))...)}, nil, skipped, "a [2J | <br> b /tmp/…: " + strings.Repeat("x", 76) + "…"},
	{"a package of others", []string{stream(`={"Action":"pass","Package":"example.org/lib/a","Test":"TestA"}`, `={"Action":"pass","Package":"example.org/lib/a"}`)}, nil, notRun, "not run"},
}

func TestFates(t *testing.T) {
	t.Parallel()
	for _, tt := range fateCases {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newResults(testModule)
			for _, run := range tt.runs {
				if err := r.read("x.json", strings.NewReader(run)); err != nil {
					t.Fatal(err)
				}
			}
			got, why := r.of(proof{testKey: testKey{"lib/a", "TestA"}, whole: tt.entries == nil, entries: tt.entries})
			if got != tt.want || why != tt.why {
				t.Errorf("got %v %q, want %v %q", got, why, tt.want, tt.why)
			}
		})
	}
}

func TestReadResults(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a := write("a.json", whole("pass", passOf("TestA")...))
	b := write("more/b.json", whole("pass", passOf("TestB")...))
	write("more/note.txt", "not a stream")
	empty, bad := write("empty.json", ""), write("bad.json", "what\n")
	for _, tt := range []struct {
		list, stdin string
		tests       int
		want        string
	}{
		{a, "", 1, ""},
		{a + "," + filepath.Dir(b), "", 2, ""},
		{"-", whole("pass", passOf("TestC")...), 1, ""},
		{a + ",-", whole("pass", passOf("TestC")...), 2, ""},
		{"-", "", 0, "standard input:1: holds no event of go test -json"},
		{empty, "", 0, "empty.json:1: holds no event"},
		{bad, "", 0, "bad.json:1: neither an event"},
		{a + ",", "", 0, "no such file"},
		{filepath.Join(dir, "none"), "", 0, "no such file"},
		{t.TempDir(), "", 0, "there is no *.json in "},
	} {
		r, err := readResults(testModule, tt.list, strings.NewReader(tt.stdin))
		switch {
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: got %v, want %s", tt.list, err, tt.want)
		case tt.want == "" && (err != nil || len(r.tests) != tt.tests):
			t.Errorf("%s: got %v, %v, want %d tests", tt.list, r, err, tt.tests)
		}
	}
}
