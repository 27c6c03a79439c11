// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"runtime"
	"strings"
	"testing"
)

func callOf(fn string, args ...string) Value {
	nodes := make([]node, len(args))
	for i, s := range args {
		nodes[i] = newLiteral(String(s))
	}
	return (&Expr{n: newCall(fn, nodes)}).Eval(nil)
}

func TestPatternsOfPCRE(t *testing.T) {
	t.Parallel()
	tests := []struct {
		pattern, text, options string
		want                   Value
	}{
		{`^a$`, "a\n", "", Bool(true)}, // before a last newline
		{`^a$`, "a\nb", "", Bool(false)},
		{`^a$`, "a\nb", "m", Bool(true)},
		{`a\Z`, "a\n", "", Bool(true)},
		{`a\z`, "a\n", "", Bool(false)},
		{`a\sb`, "a\vb", "", Bool(true)}, // \s has the vertical tab
		{`[\s]`, "\v", "", Bool(true)},
		{`a\hb`, "a\tb", "", Bool(true)},
		{`a\Rb`, "a\r\nb", "", Bool(true)},
		{`a b # c`, "ab", "x", Bool(true)},
		{`[a b]#`, " #", "", Bool(true)},
		{`a(?#comment)b`, "ab", "", Bool(true)},
		{`\Qa.b\E+`, "a.bb", "", Bool(true)},
		{`\Qa.b`, "a.b", "", Bool(true)},
		{`(?'n'a)b`, "ab", "", Bool(true)},
		{`[[:digit:]]+\.`, "12.", "", Bool(true)},
		{`[[]`, "[", "", Bool(true)},
		{`[]a]`, "]", "", Bool(true)},
		{`[\b]`, "\b", "", Bool(true)},
		{`^.$`, "\xe9", "", Bool(true)}, // a byte is a character
		{`^..$`, "é", "", Bool(true)},
		{`é`, "caf\u00e9", "", Bool(true)},
		{`a++b`, "aaab", "", Bool(true)},
		{`a++`, "aaa", "", Bool(true)},
		{`a*+a`, "aaa", "", Bool(false)},                  // possessive where it matters
		{`(a)\1`, "aa", "", Bool(true)},                   // back reference
		{`a(?=b)`, "ab", "", Bool(true)},                  // look ahead
		{`(?<=a)b`, "ab", "", Bool(true)},                 // look behind
		{`(?>a+)b`, "ab", "", Bool(true)},                 // atomic group
		{`(x)?(?(1)a|b)`, "b", "", Bool(true)},            // condition
		{`(?(1)a|b)`, "a", "", ErrorValue()},              // of a group that is not there
		{`^a(?R)?$`, "aa", "", ErrorValue()},              // recursion
		{`a{1001}`, "a", "", Bool(false)},                 // more repetitions than RE2 takes
		{`[\H]`, "a", "", ErrorValue()},                   // no such class in a class
		{`a\`, "a", "", ErrorValue()},                     // ends in a backslash
		{`[a`, "a", "", ErrorValue()},                     // class is not closed
		{`(?#a`, "a", "", ErrorValue()},                   // comment is not closed
		{`(?'na)`, "a", "", ErrorValue()},                 // name is not closed
		{`(((a{99}){99}){99}){9}`, "a", "", ErrorValue()}, // too large
	}
	for _, c := range tests {
		if got := callOf("regexp", c.pattern, c.text, c.options); !got.Equal(c.want) {
			t.Errorf("regexp(%q, %q, %q) is %v, want %v", c.pattern, c.text, c.options, got, c.want)
		}
	}
}

func TestSubstitution(t *testing.T) {
	t.Parallel()
	tests := []struct {
		pattern, text, with, options string
		want                         Value
	}{
		{"b", "abcb", "X", "fg", String("aXcX")},
		{`\bb`, "bb b", "X", "fg", String("Xb X")}, // what stands before counts
		{"^a", "aaa", "X", "fg", String("Xaa")},
		{"^", "abc", "x", "fg", String("xabc")},
		{"^a", "a\nab", "X", "fgm", String("X\nXb")},
		{"(?i)B(C)?", "abd", `<\0>`, "f", String("a<b>d")},
		{"(a)(x)?(b)", "ab", `[\1\2\3]`, "", String("[ab]")},
		{"x*", "axb", "-", "fg", ErrorValue()},
		{"é", "caféé", "e", "fg", String("cafee")},
		{".", "é", "x", "fg", String("xx")}, // byte by byte
		{"a", "a", `\`, "", String(`\`)},
		{"no", "abc", "x", "g", String("")},
	}
	for _, c := range tests {
		if got := callOf("regexps", c.pattern, c.text, c.with, c.options); !got.Equal(c.want) {
			t.Errorf("regexps(%q, %q, %q, %q) is %v, want %v", c.pattern, c.text, c.with, c.options, got, c.want)
		}
	}
}

func TestPatternIsKept(t *testing.T) {
	t.Parallel()
	c := newCall("regexp", []node{&attrRef{name: newName("P")}, newLiteral(String("abc"))})
	e := &Expr{n: c}
	for _, step := range []struct {
		pattern string
		want    Value
	}{{"^a", Bool(true)}, {"^a", Bool(true)}, {"^b", Bool(false)}, {"(", ErrorValue()}, {"(", ErrorValue()}, {"c$", Bool(true)}} {
		a := NewAd()
		a.SetString("P", step.pattern)
		before := c.pattern.Load()
		if got := e.Eval(&Env{My: a}); !got.Equal(step.want) {
			t.Errorf("%q: %v, want %v", step.pattern, got, step.want)
		}
		if before != nil && before.text == step.pattern && c.pattern.Load() != before {
			t.Errorf("%q was compiled again", step.pattern)
		}
	}
}

// To replace many matches takes memory in proportion to the text: each search
// goes on in the same text.
func TestReplaceAllInOneText(t *testing.T) {
	const n = 3000
	e := MustParseExpr("replaceAll(\"(?=.)a\", X, \"b\")")
	a := NewAd()
	a.SetString("X", "\xe9"+strings.Repeat("a", n))
	want := "\xe9" + strings.Repeat("b", n-1) + "b"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	v := e.Eval(&Env{My: a})
	runtime.ReadMemStats(&after)
	if got, _ := v.AsString(); got != want {
		t.Errorf("%.20q", got)
	}
	if got := after.TotalAlloc - before.TotalAlloc; got > 3000*n {
		t.Errorf("%d bytes for a text of %d", got, n)
	}
}

// What is put in place of a match is paid for each time it is read.
func TestReplacementIsPaidFor(t *testing.T) {
	t.Parallel()
	a := NewAd()
	const n, size = 100, 64_000
	a.SetString("With", strings.Repeat("\\0", size/2))
	a.SetString("X", strings.Repeat("a", n))
	for _, pattern := range []string{"(?=a)", "()a"} {
		b := NewBudget(1_000_000)
		e := MustParseExpr("replaceAll(\"" + pattern + "\", X, With)")
		e.Eval(&Env{My: a, Budget: b})
		if used := 1_000_000 - b.Left(); used < n*size/64 {
			t.Errorf("%s takes %d steps", pattern, used)
		}
	}
}
