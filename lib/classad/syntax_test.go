// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"strings"
	"testing"
)

func TestSyntax(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"a && b || !c", "||(&&(a, b), !(c))"},
		{"((a))", "a"},
		{"MY.x <= target.y", "<=(MY:x, TARGET:y)"},
		{"self.x is other.y", "=?=(MY:x, TARGET:y)"},
		{"x isnt undefined", "=!=(x, #undefined)"},
		{"c ? 1 : (2 + 3)", "?(c, #1, +(#2, #3))"},
		{"ifThenElse(a, b ?: 1, -2)", "ifThenElse[a, ?:(b, #1), #-2]"},
		{"a.b", "other[a]"},
		{"(a).b", "other[a]"},
		{"a.MY.b", "other[other[a]]"},
		{"a[1 + b]", "other[a, +(#1, b)]"},
		{"{1, c.d}", "other[#1, other[c]]"},
		{"{}", "other[]"},
		{".a", "scoped"},
		{".a.b", "other[scoped]"},
		{"[a = 1].a", "other[scoped]"},
		{"- x", "-(x)"},
	} {
		if got := shown(MustParseExpr(c.text)); got != c.want {
			t.Errorf("%s: got %s, want %s", c.text, got, c.want)
		}
	}
}

// TestBare takes off the parentheses around an expression and no others.
func TestBare(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"a", "a"},
		{"((a + 1))", "a + 1"},
		{"(a) + (b)", "(a) + (b)"},
		{"(a ? b : c) && (d)", "(a ? b : c) && (d)"},
	} {
		e := MustParseExpr(c.text)
		if got := e.Bare().String(); got != c.want {
			t.Errorf("%s: got %s, want %s", c.text, got, c.want)
		}
	}
}

func shown(e *Expr) string {
	s := e.Syntax()
	parts := make([]string, len(s.Args))
	for i, a := range s.Args {
		parts[i] = shown(a)
	}
	switch s.Kind {
	case SyntaxLiteral:
		return "#" + e.String()
	case SyntaxName:
		if s.Scope != "" {
			return s.Scope + ":" + s.Word
		}
		return s.Word
	case SyntaxCall:
		return s.Word + "[" + strings.Join(parts, ", ") + "]"
	case SyntaxScoped:
		return "scoped"
	case SyntaxOther:
		held := make([]string, len(s.Held))
		for i, a := range s.Held {
			held[i] = shown(a)
		}
		return "other[" + strings.Join(held, ", ") + "]"
	}
	return s.Word + "(" + strings.Join(parts, ", ") + ")"
}
