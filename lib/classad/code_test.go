// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"testing"
	"time"
)

// TestCodeAgreesWithTree evaluates every recorded expression as a tree and
// compiled, alone and as an attribute of its ad.
func TestCodeAgreesWithTree(t *testing.T) {
	t.Parallel()
	compiled := 0
	for _, v := range vectors(t) {
		if v.Expr == "" || v.MyB64 != nil {
			continue
		}
		env := Env{My: NewAd(), Now: time.Unix(1700000000, 0), Rand: func() float64 { return 0.5 }}
		var err error
		if v.My != nil {
			if env.My, err = ParseAd(*v.My, Old); err != nil {
				continue
			}
		}
		if v.Target != nil {
			if env.Target, err = ParseAd(*v.Target, Old); err != nil {
				continue
			}
		}
		e, err := ParseExpr(v.Expr, v.dialect())
		if err != nil {
			continue
		}
		env.My.Set("TheExpression", e)
		watched := env
		watched.OnRead = func(Read) {}
		check := func(how string, eval func(*Env) (Value, bool)) {
			want, wantOK := eval(&watched)
			for range 3 { // the third time everything is compiled
				got, ok := eval(&env)
				if got.Text(New) != want.Text(New) || got.Kind() != want.Kind() || ok != wantOK {
					t.Errorf("%s: %s, %s: compiled %v (%v), tree %v (%v)", v.ID, v.Expr, how, got, ok, want, wantOK)
				}
			}
		}
		check("alone", e.TryEval)
		check("as an attribute", func(env *Env) (Value, bool) { return env.My.TryEval("TheExpression", env) })
		if c := e.code.Load(); c != nil && c != warm && c.op != codeTree {
			compiled++
		}
	}
	if compiled < 4000 {
		t.Errorf("only %d expressions were compiled", compiled)
	}
}

// TestCodeNearTheDepthLimit evaluates with every number of levels left around
// what an expression needs.
func TestCodeNearTheDepthLimit(t *testing.T) {
	t.Parallel()
	my := mustAd(t, "A = B + 1\nB = (MY.C) * 2\nC = ifThenElse(D > 1 && E && isUndefined(F), -G, {1,2}[0])\nD = 2\nE = true\nG = TARGET.X ?: 4\n")
	target := mustAd(t, "X = Y\nY = 9\n")
	e := MustParseExpr("((A + B)) > 0 && (TARGET.X == 9 || C < 3) && !(D is 3) && member(B, { 1, C, TARGET.X })")
	seen := map[bool]bool{}
	for depth := range 40 {
		eval := func(env *Env) (Value, bool) {
			var ev evaluator
			ev.start(env, my, target)
			ev.depth = depth
			v := ev.expr(e)
			return v, !ev.failed
		}
		want, wantOK := eval(&Env{OnRead: func(Read) {}})
		for range 3 {
			got, ok := eval(&Env{})
			if ok != wantOK || ok && !got.Equal(want) {
				t.Errorf("%d levels: compiled %v (%v), tree %v (%v)", depth, got, ok, want, wantOK)
			}
		}
		seen[wantOK] = true
	}
	if len(seen) != 2 {
		t.Errorf("no depth where it fails, or none where it does not: %v", seen)
	}
}

// FuzzCode holds compiled code against the tree on any ad and expression:
// unless one of them runs out of steps, value and failure are the same.
func FuzzCode(f *testing.F) {
	for _, ad := range []string{
		"A = B + 1\nB = (MY.C) * 2\nC = ifThenElse(D > 1 && E && isUndefined(F), -G, {1,2}[0])\nD = 2\nE = true\nG = TARGET.X ?: 4\n",
		"A = [ x = B; y = MY.B; z = TARGET.X; p = parent.B ]\nB = A.x || 1\n", "My = 3\nTarget = [ X = 4 ]\nA = MY.B\n",
		"A = countMatches(TARGET.Y, { [ X = 1 ],[ X = 2 ] })\nB = A + X\n", "A = split(\"a b\")[TARGET.X - 8]\n",
	} {
		for _, expr := range []string{"A", "MY.A + TARGET.X", "(A && B || !C) is true", "split(\"a, b\")[1] == TARGET.Z && A.x == A.y", "member(A, { 1,B,X })", "-(A) >= ((B)) ? C : D"} {
			f.Add(ad, expr)
		}
	}
	seedExprs(f, func(s string) { f.Add("A = 1\nB = A + TARGET.X\nL = {A,[x=B]}\nR = "+s+"\n", s) })
	f.Fuzz(func(t *testing.T, ad, text string) {
		my, err := ParseAd(ad, Old)
		if err != nil {
			my = NewAd()
		}
		layered := NewAd()
		layered.SetParent(my)
		layered.SetInt("B", 3)
		target := mustAd(t, "X = Y\nY = 9 + A\nZ = \"b\"\nN = [ X = A ]\n")
		e, err := ParseExpr(text, Old)
		if err != nil {
			return
		}
		eval := func(my, target *Ad, onRead func(Read)) (v Value, ok, spent bool) {
			var ev evaluator
			ev.start(&Env{
				Now: time.Unix(1700000000, 0), Rand: func() float64 { return 0.5 }, MaxSteps: 20_000, OnRead: onRead,
			}, my, target)
			v = ev.expr(e)
			if ev.failed {
				v = ErrorValue()
			}
			return v, !ev.failed, ev.steps < 5_000
		}
		for _, side := range []struct{ my, target *Ad }{{my, target}, {layered, target}, {my, nil}, {target, my}, {my, my}} {
			want, wantOK, spent := eval(side.my, side.target, func(Read) {})
			for range 3 {
				got, ok, codeSpent := eval(side.my, side.target, nil)
				if spent || codeSpent {
					break
				}
				if ok != wantOK || got.Text(New) != want.Text(New) {
					t.Fatalf("%q in %q: compiled %v (%v), tree %v (%v)", text, ad, got, ok, want, wantOK)
				}
			}
		}
	})
}
