// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"errors"
	"strings"
	"testing"
)

func TestSyntaxErrors(t *testing.T) {
	t.Parallel()
	tests := []struct{ text, want string }{
		{"", "1:1: expected a value, a name or (, found end of the expression"},
		{"1 +", "1:4: expected a value, a name or (, found end of the expression"},
		{"1 2", `1:3: expected an operator or the end of the expression, found "2"`},
		{"a &&\n  * b", `2:3: expected a value, a name or (, found "*"`},
		{"(1", "1:3: expected ), found end of the expression"},
		{"a[1", "1:4: expected ] after the index, found end of the expression"},
		{"a ? b", "1:6: expected : of the conditional, found end of the expression"},
		{"f(1 2)", `1:5: expected , or ) in the arguments of f, found "2"`},
		{"{1;2}", `1:3: expected , or } in a list, found ";"`},
		{"[a 1]", `1:4: expected = after a, found "1"`},
		{"[a=1 b=2]", `1:6: expected ; or ] after the value of a, found "b"`},
		{"[1=2]", `1:2: expected the name of an attribute or ], found "1"`},
		{"a.1", `1:2: expected an operator or the end of the expression, found ".1"`},
		{"a. + 1", `1:4: expected a name after the dot, found "+"`},
		{"010", "1:1: number with a leading zero: octal and hexadecimal integers are not supported"},
		{"1. + 2", "1:1: expected a digit after the decimal point"},
		{"1e", "1:1: expected a digit in the exponent"},
		{"0xg", "1:1: 0x without hexadecimal digits"},
		{`x == "abc`, `1:6: string is not closed: expected "`},
		{"x == 'abc", "1:6: quoted name is not closed: expected '"},
		{"1 /* two", "1:3: comment is not closed: expected */"},
		{"a =? b", "1:3: =? must be =?="},
		{"5K", `1:2: expected an operator or the end of the expression, found "K"`},
		{"a é", `1:3: unexpected character 'é'`},
		{"a $", `1:3: unexpected character '$'`},
		{`absTime("yesterday")`, `1:1: not a date: "yesterday"`},
		{`1 + relTime("x")`, `1:5: not a duration: "x"`},
		{strings.Repeat("(", 200), "1:167: nested too deep: more than 500 levels"},
		{strings.Repeat("1+", 120_000) + "1", "1:200003: expression too long"},
	}
	for _, c := range tests {
		_, err := ParseExpr(c.text, Old)
		if err == nil || err.Error() != c.want {
			t.Errorf("%.40q: %v, want %s", c.text, err, c.want)
		}
		var e *SyntaxError
		if !errors.As(err, &e) || e.Text != c.text || !strings.HasSuffix(e.Caret(), "^") {
			t.Errorf("%.40q: %#v", c.text, err)
		}
	}
}

func TestAdSyntaxErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text string
		d    Dialect
		want string
	}{
		{"A = 1\nB\n", Old, "2:1: expected Name = expression"},
		{"A = 1\n\n  = 2\n", Old, "3:3: expected a name before ="},
		{"A = 1\nB = (2\nC = 3\n", Old, "2:7: expected ), found end of the expression (attribute B)"},
		{"[ A = 1 ] x", New, `1:11: expected the end of the text after ], found "x"`},
		{"A = 1", New, `1:1: expected [, found "A"`},
		{"[ A = \"a\\0\" ]", New, `1:7: string with \0: a string cannot hold a NUL byte`},
	}
	for _, c := range tests {
		_, err := ParseAd(c.text, c.d)
		if err == nil || err.Error() != c.want {
			t.Errorf("%q: %v, want %s", c.text, err, c.want)
		}
	}
	for text, want := range map[string]string{
		`{"a":1`:                `1:7: expected , or } after the value of a, found end of the expression`,
		`{"a":[1 2]}`:           `1:9: expected , or ] in a list, found "2"`,
		`{"a" 1}`:               `1:6: expected : after the name, found "1"`,
		`{a:1}`:                 `1:2: expected the name of an attribute in quotes, found "a"`,
		`{"a":x}`:               `1:6: expected a value, found "x"`,
		`{"a":"\u00"}`:          `1:6: string with a \u escape that is no character`,
		`[]`:                    `1:1: expected {, found "["`,
		`{} {}`:                 `1:4: expected the end of the text after }, found "{"`,
		`{"a":"\/Expr(1 +)\/"}`: `1:6: not an expression: expected a value, a name or (, found end of the expression`,
	} {
		_, err := ParseJSON(text)
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

func TestCaret(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text   string
		offset int
		want   string
	}{
		{"1 +\n\tx $ y\nz", 7, "\tx $ y\n\t  ^"},
		{"äö $", 5, "äö $\n   ^"},
		{"", 0, "\n^"},
		{strings.Repeat("a", 100) + "$" + strings.Repeat("b", 100), 100,
			"..." + strings.Repeat("a", 60) + "$" + strings.Repeat("b", 29) + "...\n" + strings.Repeat(" ", 63) + "^"},
	}
	for _, c := range tests {
		if got := newSyntaxError(c.text, c.offset, "").Caret(); got != c.want {
			t.Errorf("%.20q: got\n%s\nwant\n%s", c.text, got, c.want)
		}
	}
}

func TestMustParseExprPanics(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	MustParseExpr("1 +")
}

func TestJSONStrings(t *testing.T) {
	t.Parallel()
	a, err := ParseJSON(`{"s": "\u00e9\u4e2d\ud83d\ude00\ud800x \/ \b", "n": null, "u": -1.5e3, "l": [true, {"x": []}]}`)
	if err != nil {
		t.Fatal(err)
	}
	if s, _ := a.EvalString("s", nil); s != "é中😀\uFFFDx / \b" {
		t.Errorf("s is %q", s)
	}
	want := `[ l = { true,[ x = {  } ] }; n = undefined; ` + `s = "`
	if got := a.Text(New); !strings.HasPrefix(got, want) {
		t.Errorf("got %s", got)
	}
}
