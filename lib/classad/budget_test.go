// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"strings"
	"testing"
)

// Evaluations that share a budget take it off together, also when one is given
// up, and those that come after it get nothing.
func TestSharedBudget(t *testing.T) {
	t.Parallel()
	a := mustAd(t, "A = B + B\nB = C + C\nC = 1 + 1\nX = 5\nRequirements = A > TARGET.X\n")
	e := MustParseExpr("A + A")
	env := func(b *Budget) *Env { return &Env{My: a, Budget: b} }
	for _, way := range []struct {
		name string
		do   func(*Budget) Value
	}{
		{"expression", func(b *Budget) Value { return e.Eval(env(b)) }},
		{"attribute", func(b *Budget) Value { return a.Eval("A", env(b)) }},
		{"match", func(b *Budget) Value { return Bool(NewMatcher(a, env(b)).Accepts(a)) }},
		{"flatten", func(b *Budget) Value {
			f, ok := e.Flatten(env(b))
			if !ok {
				return ErrorValue()
			}
			v, _ := f.LiteralValue()
			return v
		}},
	} {
		b := NewBudget(1000)
		first := way.do(b)
		used := 1000 - b.Left()
		if used < 10 || first.IsError() || first.IsUndefined() || b.Spent() {
			t.Errorf("%s: %v in %d steps", way.name, first, used)
		}
		b = NewBudget(10*used + used/2)
		ended := 0
		for range 20 {
			if v := way.do(b); v.Equal(first) && !b.Spent() {
				ended++
			}
		}
		// What is compiled counts a little more or less.
		if ended < 8 || ended > 13 || !b.Spent() || b.Left() < -20*used {
			t.Errorf("%s: %d evaluations of %d steps ended, with %d left of %d", way.name, ended, used, b.Left(), 10*used+used/2)
		}
	}
}

// A pattern is paid for before it is compiled, and a text before it is looked
// at, whatever PCRE would make of them.
func TestHostilePatternsArePaidFor(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 4000)
	for name, pattern := range map[string]string{
		"a large program":   `(.{1,30}){1,30}!`,
		"nested repetition": `((a+)+)+(((.*)*)*)*` + strings.Repeat("(.*a)", 40) + "b",
		"long ranges":       "(?i)[" + strings.Repeat(`\x00-\xff`, 3000) + "]",
		"long":              strings.Repeat("x", maxPattern),
	} {
		b := NewBudget(100_000)
		ad := NewAd()
		ad.SetString("P", pattern)
		ad.SetString("S", long)
		v, ok := MustParseExpr(`regexp(P, S)`).TryEval(&Env{My: ad, Budget: b})
		if ok || !v.IsError() || !b.Spent() {
			t.Errorf("%s: %v %v with %d steps left", name, v, ok, b.Left())
		}
	}
	for name, pattern := range map[string]string{
		"beyond bytes": `(?i)[b-\x{1e942}]`, "beyond bytes outside a class": `\x{100}`, "unclosed": `\x{41`,
		"properties": strings.Repeat(`\pL`, maxProperties+1), "properties in a class": "[" + strings.Repeat(`\PL`, maxProperties+1) + "]",
	} {
		if got := callOf("regexp", pattern, "c"); !got.IsError() {
			t.Errorf("%s: %v", name, got)
		}
	}
	for _, pattern := range []string{`^[\x{63}\x{64}]$`, `^\x{63}\z`, `^\pL$`, `(?i)^\x43$`} {
		if got := callOf("regexp", pattern, "c"); !got.IsTrue() {
			t.Errorf("%s: %v", pattern, got)
		}
	}
	b := NewBudget(10_000)
	ad := NewAd()
	ad.SetString("S", "slot1_12@worker17.example.org")
	if v := MustParseExpr(`regexp("^slot[0-9]+(_[0-9]+)?@worker(1[0-9]|2[0-9])\.", S)`).Eval(&Env{My: ad, Budget: b}); !v.IsTrue() || b.Left() < 8000 {
		t.Errorf("an everyday pattern: %v with %d steps left of 10000", v, b.Left())
	}
}
