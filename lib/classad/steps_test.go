// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/execpoint/execpoint/lib/rapidtest"
)

// overrun is the panic of a gauge.
type overrun struct{ calls int }

// gauge counts the work of an evaluation from outside: random() asks it for
// numbers, at one step or more a call. It panics where far more is done than
// was allowed, so that no test runs for long.
type gauge struct{ calls, limit int }

func (g *gauge) random() float64 {
	if g.calls++; g.calls > g.limit {
		panic(overrun{g.calls})
	}
	return 0.5
}

// within runs do and reports how many numbers it asked for; ok is false if
// they were more than the limit.
func (g *gauge) within(limit int, do func()) (calls int, ok bool) {
	g.calls, g.limit = 0, limit
	defer func() {
		if r := recover(); r != nil {
			if _, mine := r.(overrun); !mine {
				panic(r)
			}
			calls, ok = g.calls, false
		}
	}()
	do()
	return g.calls, true
}

// doubling is an ad of which the last attribute costs 2^n.
func doubling(t *testing.T, n int) *Ad {
	t.Helper()
	var b strings.Builder
	b.WriteString("A0 = random()\n")
	for i := 1; i <= n; i++ {
		fmt.Fprintf(&b, "A%d = A%d + A%d\n", i, i-1, i-1)
	}
	return mustAd(t, b.String())
}

// A doubling ad costs no more than its steps, however often it is asked: an
// expression that was evaluated before is compiled, and is bounded like any.
func TestStepsHoldWhenCompiled(t *testing.T) {
	t.Parallel()
	for _, way := range []struct {
		name string
		do   func(a *Ad, e *Expr, env *Env)
	}{
		{"expression", func(_ *Ad, e *Expr, env *Env) { e.Eval(env) }},
		{"attribute", func(a *Ad, _ *Expr, env *Env) { a.Eval("A29", env) }},
		{"match", func(a *Ad, _ *Expr, env *Env) { NewMatcher(a, env).Matches(a) }},
		{"flatten", func(_ *Ad, e *Expr, env *Env) { e.Flatten(env) }},
	} {
		for _, budget := range []bool{false, true} {
			a, e := doubling(t, 29), MustParseExpr("A29 < 0")
			if err := a.SetText("Requirements", "A29 < 0"); err != nil {
				t.Fatal(err)
			}
			const steps, all = 20_000, 100_000
			g := &gauge{}
			env := &Env{My: a, Rand: g.random, MaxSteps: steps}
			if budget {
				env.Budget = NewBudget(all)
			}
			sum := 0
			for i := range 10 {
				calls, ok := g.within(4*steps, func() { way.do(a, e, env) })
				if !ok || calls > 2*steps { // a match may be two evaluations
					t.Fatalf("%s, shared %v: call %d asked for %d numbers or more with %d steps", way.name, budget, i, calls, steps)
				}
				if sum += calls; budget && sum > all {
					t.Fatalf("%s: %d numbers with %d steps", way.name, sum, all)
				}
				if !budget && calls == 0 {
					t.Errorf("%s: call %d did nothing", way.name, i)
				}
			}
			if budget && (!env.Budget.Spent() || env.Budget.Left() < -100) {
				t.Errorf("%s: %d left of the budget", way.name, env.Budget.Left())
			}
		}
	}
}

// Without an Env there are few steps; messages of unknown peers are read so.
func TestStepsHoldWithoutEnv(t *testing.T) {
	t.Parallel()
	a := doubling(t, 40)
	for i := range 5 {
		start := time.Now()
		if v := a.Eval("A40", &Env{MaxSteps: plainSteps}); !v.IsError() || time.Since(start) > 5*time.Second {
			t.Fatalf("call %d: %v", i, v)
		}
		if v, ok := a.TryEval("A40", nil); ok || !v.IsError() {
			t.Fatalf("call %d without an Env: %v", i, v)
		}
	}
}

// costly draws an expression over the names of an ad, in which an attribute
// refers to those before it, so that the cost of the last may be enormous.
func costly(t *rapid.T, name string, names []string, depth int) string {
	leaf := func() string {
		return rapid.SampledFrom(append([]string{"random()", "random(5)", "1", `"text"`, "Missing", "undefined"}, names...)).Draw(t, name)
	}
	if depth == 0 {
		return leaf()
	}
	part := func() string { return costly(t, name, names, depth-1) }
	switch rapid.IntRange(0, 20).Draw(t, name+" form") {
	case 0, 1, 2, 3:
		return leaf()
	case 4, 5, 6:
		return part() + " + " + part()
	case 7:
		return "(" + part() + ") < (" + part() + ")"
	case 8:
		return "(" + part() + ") && (" + part() + ")"
	case 9:
		return "(" + part() + ") || (" + part() + ") || (" + part() + ")"
	case 10:
		return "ifThenElse(" + part() + ", " + part() + ", " + part() + ")"
	case 11:
		return "(" + part() + ") ? (" + part() + ") : (" + part() + ")"
	case 12:
		return "{" + part() + ", " + part() + "}[random(2)]"
	case 13:
		return "member(" + part() + ", { " + part() + ", " + part() + " })"
	case 14:
		return "size(strcat(" + part() + ", " + part() + "))"
	case 15:
		return "-(" + part() + ")"
	case 16:
		return "(" + part() + ") ?: (" + part() + ")"
	case 17:
		return "sum({ " + part() + ", " + part() + " })"
	case 18:
		return "[ X = " + part() + "; Y = X + X ].Y"
	case 19:
		return "countMatches(" + part() + ", { [], [] })"
	}
	return "TARGET." + rapid.SampledFrom(append([]string{"Missing"}, names...)).Draw(t, name)
}

// costlyAd draws an ad of up to 25 attributes and the names in it.
func costlyAd(t *rapid.T, side string) (*Ad, []string) {
	a := NewAd()
	names := []string{}
	n := rapid.IntRange(1, 25).Draw(t, side)
	for i := range n {
		name := fmt.Sprintf("A%d", i)
		text := costly(t, side, names, 1)
		if rapid.IntRange(0, 2).Draw(t, side) > 0 && i > 0 {
			text = fmt.Sprintf("A%d + A%d", i-1, i-1)
		}
		if i == 0 {
			text = "random()"
		}
		if err := a.SetText(name, text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		names = append(names, name)
	}
	_ = a.SetText("Requirements", costly(t, side, names, 2))
	_ = a.SetText("Rank", names[n-1])
	return a, names
}

// No evaluation takes more steps than it may, whatever the expression, the ads
// and the Env, and whatever was evaluated before; and what is asked of a spent
// budget ends at once.
func TestNoEvaluationTakesMoreSteps(t *testing.T) {
	t.Parallel()
	rapidtest.Check(t, func(t *rapid.T) {
		my, names := costlyAd(t, "my")
		target, _ := costlyAd(t, "target")
		exprs := []*Expr{
			MustParseExpr(names[len(names)-1] + " < 0"),
			MustParseExpr(costly(t, "expression", names, 2)),
		}
		g := &gauge{}
		var budget *Budget
		if rapid.Bool().Draw(t, "shared") {
			budget = NewBudget(rapid.IntRange(0, 20_000).Draw(t, "budget"))
		}
		matchers := map[int]*Matcher{}
		for i := range rapid.IntRange(1, 12).Draw(t, "calls") {
			env := &Env{My: my, Budget: budget, Rand: g.random, MaxSteps: rapid.SampledFrom([]int{1, 50, 1000, 5000}).Draw(t, "steps")}
			if rapid.Bool().Draw(t, "with target") {
				env.Target = target
			}
			reads, debugs := 0, 0
			if rapid.Bool().Draw(t, "watched") {
				env.OnRead = func(Read) { reads++ }
			}
			if rapid.Bool().Draw(t, "debug") {
				env.OnDebug = func(*Expr, Value) { debugs++ }
			}
			if rapid.Bool().Draw(t, "clock") {
				env.Now = time.Unix(1_700_000_000, 0)
			}
			e := rapid.SampledFrom(exprs).Draw(t, "which")
			evaluations := 1 // of at most MaxSteps each
			var do func()
			switch how := rapid.IntRange(0, 7).Draw(t, "how"); how {
			case 0, 1, 2:
				do = func() { e.Eval(env) }
			case 3:
				do = func() { my.Eval(names[len(names)-1], env) }
			case 4:
				do = func() { e.Flatten(env) }
			case 5:
				do = func() { e.FlattenInline(env) }
			case 6:
				evaluations = 4
				do = func() { Match(my, target, env) }
			case 7:
				evaluations = 6
				if matchers[env.MaxSteps] == nil {
					matchers[env.MaxSteps] = NewMatcher(my, env)
				}
				m := matchers[env.MaxSteps]
				do = func() { m.Matches(target); m.Rank(target); m.RankOf(target) }
			}
			may := env.MaxSteps * evaluations
			before := 0
			if budget != nil {
				before = budget.Left()
				may = min(may, max(before, 0))
			}
			calls, ok := g.within(may, do)
			switch {
			case !ok || calls > may:
				t.Fatalf("call %d asked for %d numbers with %d steps", i, calls, may)
			case reads > 2*may+evaluations || debugs > may:
				t.Fatalf("call %d read %d attributes and showed %d values with %d steps", i, reads, debugs, may)
			case budget != nil && before-budget.Left() > may+100*evaluations:
				// What does not go on is still counted: the first node, folded perhaps.
				t.Fatalf("call %d took %d steps of %d", i, before-budget.Left(), may)
			}
		}
	})
}

// Text is paid for by each function and operator that looks at it, so that a
// step is about as much work everywhere.
func TestTextIsPaidFor(t *testing.T) {
	t.Parallel()
	a := NewAd()
	a.SetString("S", strings.Repeat("x", 1<<18))
	a.SetString("T", strings.Repeat("X", 1<<18))
	a.SetString("D", strings.Repeat("9", 1<<18))
	for _, text := range []string{
		`S == T`, `S =?= "a" || S != T`, `S < T`, `member(S, {T})`, `identicalMember(S, {strcat(S, ""), T})`, `anyCompare("<", {T}, S)`,
		`strcmp(S, T)`, `stricmp(S, T)`, `versioncmp(S, T)`, `version_in_range(S, S, T)`,
		`strcat(S, undefined)`, `join(S, S, error)`, `listToArgs({S, 1})`, `int(D)`, `real(D)`, `round(D)`, `bool(S)`, `interval(D)`,
		`formatTime(0, S)`, `split("a", S)`, `split(S, T)`, `split(S)[9]`, `stringListMember("a", "b", S)`, `stringListIMember(S, T)`,
		`stringListsIntersect("a", "b", S)`, `splitUserName(S)`, `regexp("a", "b", S)`, `pow(D, 2)`, `quantize(1, D)`, `substr(S, 1, 1)`,
		`toUpper(S)`, `argsToList(S)`, `envV1ToV2(S)`, `mergeEnvironment(S)`, `unparse(S)`, `eval(S)`, `size(strcat(S, T))`,
	} {
		e := MustParseExpr(text)
		for i := range 3 {
			b := NewBudget(10_000_000)
			e.Eval(&Env{My: a, Budget: b, MaxSteps: 1 << 40})
			if used := 10_000_000 - b.Left(); used < 1<<18/64 {
				t.Errorf("%s, evaluation %d: %d steps", text, i, used)
			}
		}
	}
}
