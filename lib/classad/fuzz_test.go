// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"math"
	"strconv"
	"strings"
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
		return n.form == formPlain && n.v.kind != KindAbsTime && n.v.kind != KindRelTime &&
			(n.v.kind != KindReal || survives(n.v.real()))
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

// survives reports whether a real prints as a text that reads as a real with
// the same text. HTCondor prints 16 digits, and for some reals the nearest one
// to those digits is a neighbour that prints otherwise: 1E+23 is read back as
// 9.999999999999999E+22. The largest do not read at all.
func survives(x float64) bool {
	for _, d := range []Dialect{Old, New} {
		text := Real(x).Text(d)
		y, err := strconv.ParseFloat(text, 64)
		if err == nil && Real(y).Text(d) != text || err != nil && !math.IsNaN(x) && !math.IsInf(x, 0) {
			return false
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

// stableIn is stable for what a dialect can print: the old one has no way to
// write a backslash before a quote or at the end of a string.
func stableIn(n node, d Dialect) bool {
	if !stable(n) {
		return false
	}
	p := printer{dialect: d}
	p.node(n)
	return d == New || !strings.ContainsAny(string(p.b), "\\\n")
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
	for _, d := range []Dialect{Old, New} {
		printed := e.Text(d)
		if !stableIn(e.n, d) {
			continue
		}
		again, err := ParseExpr(printed, d)
		if err != nil {
			continue // a negative constant under a selector, say
		}
		if got := again.Text(d); got != printed {
			t.Errorf("%q prints %q, which prints %q", text, printed, got)
		}
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
			for _, d := range []Dialect{Old, New} {
				checkRereadAd(t, a, d)
			}
		}
	})
}

// checkRereadAd prints an ad and reads it back.
func checkRereadAd(t *testing.T, a *Ad, d Dialect) {
	t.Helper()
	for _, at := range a.visible() {
		if !stableIn(at.node(), d) || d == Old && needsQuotes(at.name) {
			return
		}
	}
	printed := a.TextAll(d)
	again, err := ParseAd(printed, d)
	if err != nil {
		return // an expression that prints as none
	}
	if got := again.TextAll(d); got != printed {
		t.Errorf("%q prints as %q", printed, got)
	}
}

// FuzzConstant holds the short way to read a constant against the parser.
func FuzzConstant(f *testing.F) {
	for _, s := range []string{"1", " -5 ", "0", "-0", "007", "1.5", "0.25", "-0.0", "1.", ".5", "1e3", `"a b"`, `"a\\"`, `"a" "b"`, "TRUE", "False",
		"undefined", "999999999999999999", "9999999999999999999", `"a"b"`, "1 2", "-", "", "0.1.2", "3\r", "\"\x00\""} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, ok := constant(text)
		if !ok {
			return
		}
		n := newParser(text, Old).expression(false)
		lit, ok := n.(*literal)
		if !ok || lit.form != formPlain || !lit.v.Equal(v) {
			t.Errorf("%q is %v, the parser says %v", text, v, n)
		}
	})
}

// FuzzReader reads any text in any form; one ad in the old dialect must come
// out as it does alone.
func FuzzReader(f *testing.F) {
	for _, s := range []string{"A = 1\n\nA = 2\nB = A\n", "[ A = 1 ] [ A = 2 ]", "{[ A = \"]\" ],[]}", `[{"A": 1},{"A": 2}]`,
		`<classads><c><a n="A"><i>1</i></a></c><c></c></classads>`, "// c\n[]", "A = 1\r\n \r\nB = 2"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, form := range []Form{FormOld, FormNew, FormJSON, FormXML} {
			var ads []*Ad
			for a, err := range NewReader(strings.NewReader(text), form).All() {
				if err == nil {
					ads = append(ads, a)
				}
			}
			if form != FormOld || len(ads) != 1 {
				continue
			}
			if a, err := ParseAd(text, Old); err == nil && a.Len() > 0 && a.TextAll(Old) != ads[0].TextAll(Old) {
				t.Errorf("%q reads as %q, alone as %q", text, ads[0].TextAll(Old), a.TextAll(Old))
			}
		}
	})
}

func FuzzParseXML(f *testing.F) {
	for _, v := range readLines[struct{ XML *string }](f, "testdata/classad.jsonl", nil) {
		if v.XML != nil {
			f.Add(*v.XML)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		a, err := ParseXML(text)
		if err != nil {
			return
		}
		for _, at := range a.visible() {
			if !stable(at.node()) || nested(at.node()) {
				return
			}
		}
		printed := a.XMLAll()
		again, err := ParseXML(printed)
		if err != nil {
			return // an expression that prints as none
		}
		if got := again.XMLAll(); got != printed {
			t.Errorf("%q prints as %q", printed, got)
		}
	})
}

// nested reports whether a tree is an ad or a list, in which anything may be.
func nested(n node) bool {
	switch n.(type) {
	case *adNode, *listNode:
		return true
	}
	return false
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
