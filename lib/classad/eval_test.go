// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// row: S1-025
func TestClockIsHandedIn(t *testing.T) {
	t.Parallel()
	env := &Env{Now: time.Unix(1700000000, 999)}
	for _, text := range []string{"time()", "CurrentTime", "currenttime", "MY.CurrentTime"} {
		if got := MustParseExpr(text).Eval(env); !got.Equal(Int(1700000000)) {
			t.Errorf("%s is %v", text, got)
		}
		if got := MustParseExpr(text).Eval(nil); !got.IsError() {
			t.Errorf("%s without a clock is %v", text, got)
		}
	}
	if got := MustParseExpr("random(10)").Eval(nil); !got.IsError() {
		t.Errorf("random without a source is %v", got)
	}
	env.Rand = func() float64 { return 0.999 }
	if got := MustParseExpr("random(10)").Eval(env); !got.Equal(Int(9)) {
		t.Errorf("random(10) is %v", got)
	}
}

func TestEvalWithoutAds(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"1 + 2": "3", "x": "undefined", "MY.x": "undefined", "TARGET.x": "undefined", "MY": "[  ]",
		".x": "undefined", "{ x }[0]": "undefined", "[ a = b; b = 2 ].a": "2", "parent.x": "undefined",
	} {
		if got := MustParseExpr(text).Eval(nil).Text(New); got != want {
			t.Errorf("%s is %s, want %s", text, got, want)
		}
	}
	if got := MustParseExpr("TARGET.x + 1").Eval(&Env{Target: mustAd(t, "x = 1")}); !got.Equal(Int(2)) {
		t.Errorf("with a target only: %v", got)
	}
}

func TestReadsAreTold(t *testing.T) {
	t.Parallel()
	my := mustAd(t, "A = B + 1\nB = TARGET.C\nN = [ q = A; r = 7 ]\n")
	target := mustAd(t, "C = 4\nBack = TARGET.B\n")
	tests := []struct {
		expr string
		want []string
	}{
		{"A", []string{"TARGET C 4", "MY B 4", "MY A 5"}},
		{"a + Missing", []string{"TARGET C 4", "MY B 4", "MY A 5", " Missing undefined"}},
		{"TARGET.nope || MY.nope", []string{"TARGET nope undefined", "MY nope undefined"}},
		{"C", []string{"TARGET C 4"}},
		{"N.r", []string{"MY N [ q = A; r = 7 ]", " r 7"}},
		{"TARGET.Back", []string{"TARGET C 4", "MY B 4", "TARGET Back 4"}},
		{"false && A", nil},
		{"time()", nil},
	}
	for _, c := range tests {
		var got []string
		env := &Env{My: my, Target: target, OnRead: func(r Read) {
			got = append(got, fmt.Sprintf("%s %s %s", r.Scope, r.Name, r.Value))
		}}
		MustParseExpr(c.expr).Eval(env)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.expr, diff)
		}
	}
}

func TestDebugIsTold(t *testing.T) {
	t.Parallel()
	var got string
	env := &Env{My: mustAd(t, "x = 2"), OnDebug: func(e *Expr, v Value) { got = e.String() + " is " + v.String() }}
	if v := MustParseExpr("debug(x * 2) + 1").Eval(env); !v.Equal(Int(5)) || got != "x * 2 is 4" {
		t.Errorf("%v, told %q", v, got)
	}
}

// hostileAds would run for ages, or for ever, or exhaust memory or stack.
func hostileAds() map[string]string {
	double := func(op string) string {
		var b strings.Builder
		for i := range 40 {
			fmt.Fprintf(&b, "A%d = %s\n", i, strings.ReplaceAll(op, "X", fmt.Sprintf("A%d", i+1)))
		}
		b.WriteString("A40 = \"aaaaaaaaaaaaaaaa\"\n")
		return b.String()
	}
	long := strings.Repeat("a", 100_000)
	return map[string]string{
		"doubling work":     double("X || X"),
		"doubling text":     double("strcat(X, X)"),
		"doubling join":     double("join(X, X, X)"),
		"each context":      "A0 = evalInEachContext(A0, { [ x = 1 ], [ x = 2 ] })\n",
		"counting itself":   "A0 = countMatches(A0, { [ x = 1 ], [ y = 2 ] }) + countMatches(A0, { [ x = 1 ] })\n",
		"eval itself":       "A0 = eval(\"A0 || eval(\\\"A0\\\")\")\n",
		"eval text":         "A0 = eval(A1)\nA1 = strcat(\"eval(\", \"A1\", \")\")\n",
		"subscripts":        "A0 = MY[\"A0\"] || MY[\"A0\"]\n",
		"list of itself":    "A0 = { A0, A0 }[0]\nA1 = A0[1]\n",
		"projection":        "A0 = L.v\nL = { [ v = A0 ], [ v = L.v ], [ v = L.v ] }\n",
		"references":        "A0 = unresolved(A1)\n" + strings.ReplaceAll(double("X + X"), "A0 =", "Z ="),
		"deep references":   "A0 = unresolved(A1)\nA1 = A2" + strings.Repeat(" + 1", 50_000) + "\nA2 = A1\n",
		"pattern size":      "A0 = regexp(\"((((a{100}){100}){10}){10}){10}\", \"" + long + "\")\n",
		"pattern work":      "A0 = regexp(\"(a|aa|aaa|aaaa)*(a|aa|aaa)*b\", \"" + long + "\")\n",
		"replace all":       "A0 = replaceAll(\"a.*z|a\", \"" + long + "\", \"bb\")\n",
		"split":             "A0 = size(split(replaceAll(\"a\", \"" + long + "\", \"b,\")))\n",
		"text of a list":    "A0 = strcat(evalInEachContext(S, { " + strings.Repeat("[x=1],", 2000) + "[x=1] }))\nS = \"" + long + "\"\n",
		"mutual":            "A0 = A1 + A1\nA1 = A2 + A2\nA2 = A0 + A0\n",
		"strange times":     "A0 = formatTime(absTime(2147483647) + relTime(1e300), strcat(\"%c%G%U\", 9223372036854775807))\n",
		"quantize overflow": "A0 = quantize(9223372036854775807, -1) + pow(10, 400) + int(1e300) + round(real(\"nan\"))\n",
	}
}

func TestHostileAdsEnd(t *testing.T) {
	t.Parallel()
	for name, text := range hostileAds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := mustAd(t, text)
			env := &Env{My: a, MaxSteps: 200_000, Now: time.Unix(1700000000, 0)}
			first := a.Eval("A0", env)
			if again := a.Eval("A0", env); !again.Equal(first) {
				t.Errorf("%v, then %v", first, again)
			}
			e := MustParseExpr("A0")
			e.Refs(a)
			e.Flatten(env)
			e.FlattenInline(env)
		})
	}
}

func TestBudget(t *testing.T) {
	t.Parallel()
	a := mustAd(t, "A = B + B\nB = C + C\nC = 1 + 1\n")
	v, ok := a.TryEval("A", &Env{MaxSteps: 10})
	if !v.IsError() || ok {
		t.Errorf("10 steps give %v %v", v, ok)
	}
	v, ok = a.TryEval("A", &Env{MaxSteps: 100})
	if !v.Equal(Int(8)) || !ok {
		t.Errorf("100 steps give %v %v", v, ok)
	}
	v, ok = MustParseExpr("1 / 0").TryEval(nil)
	if !v.IsError() || !ok {
		t.Errorf("an ordinary error gives %v %v", v, ok)
	}
}

func TestConcurrentEvaluation(t *testing.T) {
	t.Parallel()
	a := mustAd(t, "Name = \"slot1@h\"\nA = regexp(P, Name) && B.x == 2 && { 1,Q }[1] == 3\nB = [ x = Q - 1 ]\nQ = 3\n"+
		"P = ifThenElse(Odd, \"^slot[0-9]\", \"^SLOT\")\n")
	e := MustParseExpr("A =?= Odd")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			target := NewAd()
			target.SetBool("Odd", i%2 == 1)
			for range 200 {
				if got := e.Eval(&Env{My: a, Target: target}); !got.Equal(Bool(true)) {
					t.Errorf("got %v", got)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestFlattenAsks(t *testing.T) {
	t.Parallel()
	slot := mustAd(t, "KeyboardIdle = 1200\nLimit = 900\nMemory = 2048\n")
	start := MustParseExpr("KeyboardIdle > Limit && TARGET.RequestMemory <= Memory && Extra")
	rest, ok := start.Flatten(&Env{My: slot})
	if want := "TARGET.RequestMemory <= 2048 && Extra"; !ok || rest.String() != want {
		t.Errorf("left %v %v, want %s", rest, ok, want)
	}
	if _, ok := MustParseExpr("A").Flatten(&Env{My: mustAd(t, "A = A")}); ok {
		t.Error("a circle was flattened")
	}
}

func TestExprQueries(t *testing.T) {
	t.Parallel()
	if v, ok := MustParseExpr("((5))").LiteralValue(); !ok || !v.Equal(Int(5)) {
		t.Errorf("((5)) is %v %v", v, ok)
	}
	for _, text := range []string{"x", "-x", `relTime("5")`, `absTime("2024-01-01")`} {
		if v, ok := MustParseExpr(text).LiteralValue(); ok {
			t.Errorf("%s is the constant %v", text, v)
		}
	}
	if s, ok := MustParseExpr("Memory").AttrName(); !ok || s != "Memory" {
		t.Errorf("got %q %v", s, ok)
	}
	for _, text := range []string{".x", "MY.x", "(x)", "x + 1"} {
		if _, ok := MustParseExpr(text).AttrName(); ok {
			t.Errorf("%s is a name", text)
		}
	}
	exprs := []string{"1", "1.0", `"a"`, "x", ".x", "y.x", "z.x", "(x)", "-x", "!x", "x + y", "x - y", "x ? y : z",
		"f(x)", "f(y)", "g(x)", "{ x }", "{ x,y }", "[ a = x ]", "[ a = y ]", "x =?= y", "x[y]", "x ?: y", `relTime("1")`}
	for i, a := range exprs {
		for j, b := range exprs {
			if MustParseExpr(a).Equal(MustParseExpr(b)) != (i == j) {
				t.Errorf("%s equals %s: want %v", a, b, i == j)
			}
		}
	}
	if (*Expr)(nil).Equal(MustParseExpr("1")) || !(*Expr)(nil).Equal(nil) {
		t.Error("nil expressions")
	}
}
