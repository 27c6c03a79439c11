// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package submit

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestGoldenMacros holds submit descriptions against what HTCondor's
// configuration makes of macros: both are one language.
func TestGoldenMacros(t *testing.T) {
	t.Parallel()
	lines(t, "macros.jsonl", func(line []byte) {
		var e struct {
			ID, Text, Out, Class string
			Env                  map[string]string
		}
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		o := Options{}
		for k, v := range e.Env {
			o.Env = append(o.Env, k+"="+v)
		}
		p := &parser{d: &Description{name: "x", opts: o}}
		p.parse(e.Text)
		if p.problems.Failed() {
			t.Errorf("%s: %v", e.ID, p.problems)
			return
		}
		s := p.table.now().find("a")
		if s == nil {
			t.Errorf("%s: no A in %q", e.ID, e.Text)
			return
		}
		b := p.d.builder(&queue{view: p.table.now()})
		got := b.expand(s)
		if b.problems.Failed() {
			got = "error"
		}
		want := e.Out
		if e.Class == "macro-function" || e.Class == "macro-function+not-defined" {
			want = "error" // HTCondor prints an error and goes on
		}
		if got != strings.Trim(want, blanks) { // blanks around a command's value do not count
			t.Errorf("%s: %s: got %q, want %q", e.ID, s.raw, got, want)
		}
	})
}

// TestMacrosOfPlaces shows what a submit description knows beyond a
// configuration: the directory that paths are relative to.
func TestMacrosOfPlaces(t *testing.T) {
	t.Parallel()
	for macro, want := range map[string]string{
		"$Ff(a/b.c)": "/here/a/b.c", "$Ffp(P)": "/here/d/", "$Ffn(/x/y.z)": "y", "$Fn(P)": "e", "$F(P)": "d/e.f", "$Ffq(P)": `"/here/d/e.f"`,
	} {
		p := &parser{d: &Description{name: "x", opts: Options{Cwd: "/here"}}}
		p.parse("P = d/e.f\nA = " + macro + "\n")
		b := p.d.builder(&queue{view: p.table.now()})
		if got := b.expand(p.table.now().find("a")); got != want || b.problems.Failed() {
			t.Errorf("%s is %q, want %q; %v", macro, got, want, b.problems)
		}
	}
}
