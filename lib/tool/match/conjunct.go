// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package match

import (
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
)

// maxPath bounds how far an explanation follows attributes into each other.
const maxPath = 16

// explainer finds the parts of an expression of one ad that do not hold.
type explainer struct {
	my     *classad.Ad
	env    classad.Env
	failed []Conjunct
}

// explain looks at an expression that stands in the last attribute of path.
func (x *explainer) explain(e *classad.Expr, path []string) {
	parts := conjuncts(e)
	for _, part := range parts {
		if name, ok := x.ownAttr(part); ok && len(path) < maxPath && !containsFold(path, name) {
			if inner, ok := x.my.Lookup(name); ok && !x.my.Eval(name, &x.env).IsTrue() {
				if _, constant := inner.LiteralValue(); !constant {
					x.explain(inner, append(slices.Clip(path), name))
					continue
				}
			}
		}
		var reads []Read
		env := x.env
		env.OnRead = func(r classad.Read) { reads = x.addRead(reads, r) }
		v := part.Eval(&env)
		if v.IsTrue() {
			continue
		}
		c := Conjunct{Expr: strings.TrimSpace(part.String()), Value: TypedOf(v), value: v.Text(classad.Old), Reads: reads}
		for _, name := range slices.Backward(path[1:]) {
			c.In = append(c.In, name)
		}
		x.failed = append(x.failed, c)
	}
}

// addRead notes an attribute once, with the first value it had.
func (x *explainer) addRead(reads []Read, r classad.Read) []Read {
	for _, have := range reads {
		if have.Scope == r.Scope && strings.EqualFold(have.Name, r.Name) {
			return reads
		}
	}
	a := Read{Scope: r.Scope, Name: r.Name, Value: TypedOf(r.Value), value: r.Value.Text(classad.Old)}
	if r.Value.IsUndefined() {
		_, mine := x.my.Lookup(r.Name)
		_, theirs := x.env.Target.Lookup(r.Name)
		a.Missing = !(mine && r.Scope != "TARGET" || theirs && r.Scope != "MY")
	}
	return append(reads, a)
}

// ownAttr returns the name if an expression is nothing but an attribute of the
// explained ad.
func (x *explainer) ownAttr(e *classad.Expr) (string, bool) {
	name, ok := e.AttrName()
	if !ok {
		scope, rest, dot := strings.Cut(e.Text(classad.New), ".")
		if !dot || !strings.EqualFold(scope, "MY") {
			return "", false
		}
		bare, err := classad.ParseExpr(rest, classad.New)
		if err != nil {
			return "", false
		}
		if name, ok = bare.AttrName(); !ok {
			return "", false
		}
	}
	_, ok = x.my.Lookup(name)
	return name, ok
}

func containsFold(names []string, name string) bool {
	return slices.ContainsFunc(names, func(s string) bool { return strings.EqualFold(s, name) })
}

// conjuncts returns the operands of the && operators at the top of an
// expression, parentheses taken off, in order; an expression without any is
// its only Conjunct. It works on the printed text, which has no comments and
// one way to write a string.
func conjuncts(e *classad.Expr) []*classad.Expr {
	parts := splitAnd(e.Text(classad.New))
	if len(parts) == 1 {
		parts[0] = strings.TrimSpace(parts[0])
	}
	var all []*classad.Expr
	for _, text := range parts {
		inner, wrapped := unwrap(text)
		if len(parts) == 1 && !wrapped {
			return []*classad.Expr{e}
		}
		part, err := classad.ParseExpr(inner, classad.New)
		if err != nil {
			// Printed wrongly, as a quoted name behind a dot is.
			return []*classad.Expr{e}
		}
		all = append(all, conjuncts(part)...)
	}
	return all
}

// unwrap takes parentheses off that stand around a whole text.
func unwrap(text string) (inner string, wrapped bool) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "(") {
		return text, false
	}
	closed := -1
	scanTop(text, func(i, depth int) bool {
		if depth == 0 && text[i] == ')' {
			closed = i
			return false
		}
		return true
	})
	if closed != len(text)-1 {
		return text, false
	}
	return text[1:closed], true
}

// splitAnd cuts a text at the && at its top, unless an operator that binds
// less tightly stands there as well.
func splitAnd(text string) []string {
	var parts []string
	start, loose := 0, false
	scanTop(text, func(i, depth int) bool {
		if depth > 0 {
			return true
		}
		switch rest := text[i:]; {
		case strings.HasPrefix(rest, "||"):
			loose = true
		case rest[0] == '?' && !strings.HasPrefix(rest, "?:") && (i == 0 || text[i-1] != '='):
			loose = true
		case strings.HasPrefix(rest, "&&"):
			parts = append(parts, text[start:i])
			start = i + len("&&")
		}
		return !loose
	})
	if loose {
		return []string{text}
	}
	return append(parts, text[start:])
}

// scanTop calls visit with each byte of a text that stands in no string and no
// quoted name, and with how many brackets are open there, the one at i left
// out. It ends when visit returns false.
func scanTop(text string, visit func(i, depth int) bool) {
	depth := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; c {
		case '"', '\'':
			for i++; i < len(text) && text[i] != c; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			continue
		case ')', ']', '}':
			depth--
		}
		if !visit(i, depth) {
			return
		}
		switch text[i] {
		case '(', '[', '{':
			depth++
		}
	}
}
