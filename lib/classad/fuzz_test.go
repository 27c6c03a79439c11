// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"testing"
	"time"
)

// seedExprs adds expressions of every golden group.
func seedExprs(f *testing.F, add func(string)) {
	f.Helper()
	seen := map[string]int{}
	for _, v := range vectors(f) {
		if v.Expr == "" || len(v.Expr) > 400 {
			continue
		}
		if seen[v.Group]++; seen[v.Group] <= 12 {
			add(v.Expr)
		}
	}
}

// stable reports whether a tree prints as a text that must read as the same
// tree: no quoted names behind a dot and no times.
func stable(n node) bool {
	switch n := n.(type) {
	case *literal:
		return n.form == formPlain && n.v.kind != KindAbsTime && n.v.kind != KindRelTime
	case *selection:
		return !needsQuotes(n.name.text) && stable(n.of)
	case *paren:
		return stable(n.x)
	case *unary:
		// A minus before a number reads as part of it.
		return stable(n.x) && (n.op != opMinus || !beginsWithNumber(n.x))
	case *binary:
		return stable(n.x) && stable(n.y)
	case *ternary:
		return stable(n.cond) && stable(n.yes) && stable(n.no)
	case *call:
		for _, arg := range n.args {
			if !stable(arg) {
				return false
			}
		}
		return !needsQuotes(n.spelled)
	case *listNode:
		for _, e := range n.elems {
			if !stable(e) {
				return false
			}
		}
	case *adNode:
		for _, at := range n.body.visible() {
			if !stable(at.node()) {
				return false
			}
		}
	}
	return true
}

func beginsWithNumber(n node) bool {
	switch n := n.(type) {
	case *literal:
		return true
	case *selection:
		return beginsWithNumber(n.of)
	case *binary:
		return beginsWithNumber(n.x)
	}
	return false
}

// checkReread parses text and, where it can, what it prints as.
func checkReread(t *testing.T, text string, d Dialect) {
	e, err := ParseExpr(text, d)
	if err != nil {
		if err.(*SyntaxError).Caret() == "" {
			t.Error("no caret")
		}
		return
	}
	printed := e.Text(New)
	e.Text(Old)
	if !stable(e.n) {
		return
	}
	again, err := ParseExpr(printed, New)
	if err != nil {
		return // a negative constant under a selector, say
	}
	if got := again.Text(New); got != printed {
		t.Errorf("%q prints %q, which prints %q", text, printed, got)
	}
}

func FuzzParseExprOld(f *testing.F) {
	seedExprs(f, func(s string) { f.Add(s) })
	f.Fuzz(func(t *testing.T, text string) { checkReread(t, text, Old) })
}

func FuzzParseExprNew(f *testing.F) {
	seedExprs(f, func(s string) { f.Add(s) })
	f.Fuzz(func(t *testing.T, text string) { checkReread(t, text, New) })
}

func FuzzParseAd(f *testing.F) {
	for _, v := range readLines[struct{ Old, New *string }](f, "testdata/classad.jsonl", nil) {
		if v.Old != nil {
			f.Add(*v.Old)
		}
		if v.New != nil {
			f.Add(*v.New)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, d := range []Dialect{Old, New} {
			a, err := ParseAd(text, d)
			if err != nil {
				continue
			}
			a.Text(Old)
			a.XML()
			a.JSON()
			if a.Clone().TextAll(New) != a.TextAll(New) {
				t.Error("a clone prints otherwise")
			}
		}
	})
}

func FuzzParseJSON(f *testing.F) {
	for _, v := range readLines[struct {
		In   *string `json:"json_in"`
		JSON *string `json:"json"`
	}](f, "testdata/classad.jsonl", nil) {
		if v.In != nil {
			f.Add(*v.In)
		}
		if v.JSON != nil {
			f.Add(*v.JSON)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ParseJSON(text)
		if err != nil {
			return
		}
		for _, at := range a.visible() {
			if !stable(at.node()) {
				return
			}
		}
		printed := a.JSONAll()
		again, err := ParseJSON(printed)
		if err != nil {
			return // an expression that prints as none
		}
		if got := again.JSONAll(); got != printed {
			t.Errorf("%q prints %q, which prints %q", text, printed, got)
		}
	})
}

func FuzzUserMap(f *testing.F) {
	f.Add("* alice a,b\n* /^(.)x/i \\1\n# c\n* \"d q\" z\n", "alice")
	f.Fuzz(func(t *testing.T, text, input string) {
		for _, kind := range []MapKind{MapExact, MapPrefix} {
			m, _ := ParseUserMap(text, kind)
			m.Lookup("*", input)
		}
	})
}

// FuzzEval evaluates a text as an ad and as an expression on it: whatever it
// is, it ends within its budget and without a panic.
func FuzzEval(f *testing.F) {
	for _, text := range hostileAds() {
		if len(text) < 4000 {
			f.Add(text, "A0")
		}
	}
	seedExprs(f, func(s string) { f.Add("A = 1\nB = A + TARGET.A\nL = {A,[x=B]}\n", s) })
	f.Fuzz(func(t *testing.T, ad, text string) {
		my, err := ParseAd(ad, Old)
		if err != nil {
			my = NewAd()
		}
		e, err := ParseExpr(text, Old)
		if err != nil {
			return
		}
		reads := 0
		env := &Env{
			My: my, Target: mustAd(t, "A = TARGET.B\nX = { 1,2 }\nAd = [ q = A ]\n"), MaxSteps: 20_000,
			Now: time.Unix(1700000000, 0), Rand: func() float64 { return 0.5 }, OnRead: func(Read) { reads++ },
		}
		v, ok := e.TryEval(env)
		if !ok && !v.IsError() {
			t.Errorf("given up with %v", v)
		}
		if reads > 20_000 {
			t.Errorf("%d reads in 20000 steps", reads)
		}
		v.Text(New)
		e.Refs(my)
		env.OnRead = nil
		if rest, ok := e.Flatten(env); ok {
			rest.Text(Old)
		}
		Match(my, env.Target, env)
	})
}
