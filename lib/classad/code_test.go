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
