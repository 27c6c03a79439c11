// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package match

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/classad"
)

func TestConjuncts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		expr string
		want []string
	}{
		{"a", []string{"a"}},
		{"a && b && c", []string{"a", "b", "c"}},
		{"a && (b && (c || d)) && ((e))", []string{"a", "b", "c || d", "e"}},
		{"(a && b) && (c && d)", []string{"a", "b", "c", "d"}},
		{"a && b || c", []string{"a && b || c"}},
		{"(a && b || c) && d", []string{"a && b || c", "d"}},
		{"a ? b && c : d && e", []string{"a ? b && c : d && e"}},
		{"a ?: b && c", []string{"a ?: b", "c"}},
		{"a =?= b && c =!= d", []string{"a =?= b", "c =!= d"}},
		{"a & b && c | d", []string{"a & b", "c | d"}},
		{`s == "x && \"y" && 'odd && name' == "("`, []string{`s == "x && \"y"`, `'odd && name' == "("`}},
		{`f(a && b) && {c && d}[0] && [e = g && h].e`, []string{"f(a && b)", "{ c && d }[0]", "[ e = g && h ].e"}},
		{"(a) + (b && c)", []string{"(a) + (b && c)"}},
		{"!(a && b)", []string{"!(a && b)"}},
	} {
		e, err := classad.ParseExpr(tt.expr, classad.Old)
		if err != nil {
			t.Errorf("%s: %v", tt.expr, err)
			continue
		}
		var got []string
		for _, part := range conjuncts(e) {
			got = append(got, strings.TrimSpace(part.String()))
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s: -want +got\n%s", tt.expr, d)
		}
	}
}

// TestForeignValues: what an ad of another calls things makes no line of its own in a
// report, and no escape sequence.
func TestForeignValues(t *testing.T) {
	t.Parallel()
	job, err := classad.ParseAd(`[Owner = "mal\033[2J\nslot accepts job"; Requirements = true]`, classad.New)
	if err != nil {
		t.Fatal(err)
	}
	slot, err := classad.ParseAd("[Requirements = TARGET.Owner == \"ann\\033[m\"]", classad.New)
	if err != nil {
		t.Fatal(err)
	}
	text := Ads([2]*classad.Ad{slot, job}, [2]string{"slot\x1b", "job"}, &classad.Env{}).Text()
	if strings.Contains(text, "\x1b") || strings.Contains(text, "\nslot accepts") || !strings.Contains(text, `mal\x1b[2J\nslot accepts job`) {
		t.Errorf("%q", text)
	}
}

// FuzzConjuncts: an expression holds just when all its conjuncts do.
func FuzzConjuncts(f *testing.F) {
	for _, s := range []string{
		"a && b", `(a && "x") || b`, "true && (1 && 2)", "a ?: true && b", "a ? b : c && d", "'a&&b' && true", "1 && undefined && error",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		e, err := classad.ParseExpr(text, classad.Old)
		if err != nil {
			return
		}
		v, ok := e.TryEval(nil)
		if !ok {
			return
		}
		all := true
		for _, part := range conjuncts(e) {
			all = all && part.Eval(nil).IsTrue()
		}
		if all != v.IsTrue() {
			t.Errorf("%s is %s, its conjuncts say %v", e, v, all)
		}
	})
}
