// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/classad"
)

// node is one part of an expression. lib/classad reads the expression and
// takes it apart; a node adds what the checks ask of each part again and again.
type node struct {
	op    op
	name  string  // of an attribute or a function; the sign of an operator
	scope string  // of an attribute: "", "MY", "TARGET"
	args  []*node // operands
	text  string  // of a part without operands
	expr  *classad.Expr
}

// op is the sort of a node.
type op uint8

const (
	opLiteral op = iota
	opAttr
	opCall
	opUnary
	opBinary
	opTernary
	opOther // lists, subscripts, selections
)

// ops are the sorts that the language knows.
var ops = map[classad.SyntaxKind]op{
	classad.SyntaxLiteral: opLiteral, classad.SyntaxName: opAttr, classad.SyntaxCall: opCall,
	classad.SyntaxUnary: opUnary, classad.SyntaxBinary: opBinary, classad.SyntaxChoice: opTernary,
	classad.SyntaxOther: opOther,
}

// treeOf returns the tree of an expression, nil for one that holds an ad of its
// own: the checks do not know what the names in there stand for.
func treeOf(e *classad.Expr) *node {
	if e == nil {
		return nil
	}
	e = e.Bare()
	s := e.Syntax()
	sort, ok := ops[s.Kind]
	if !ok {
		return nil
	}
	n := &node{op: sort, name: s.Word, scope: s.Scope, expr: e}
	parts := s.Args
	if sort == opOther {
		parts = s.Held
	}
	for _, part := range parts {
		a := treeOf(part)
		if a == nil {
			return nil
		}
		n.args = append(n.args, a)
	}
	if len(n.args) == 0 {
		n.text = e.String()
	}
	return n
}

// written returns n as the language prints it, without parentheses around it.
// It is printed when it is asked for: the texts of all parts of a long
// expression together are far longer than the expression.
func (n *node) written() string {
	if n.text != "" {
		return n.text
	}
	return strings.TrimSpace(n.expr.String())
}

// all yields n and everything in it, the operands after the operator.
func (n *node) all(yield func(*node) bool) bool {
	if !yield(n) {
		return false
	}
	for _, a := range n.args {
		if !a.all(yield) {
			return false
		}
	}
	return true
}

// isAttr reports whether n is an attribute of this name.
func (n *node) isAttr(name string) bool { return n.op == opAttr && strings.EqualFold(n.name, name) }

// isConstant reports whether n always has the same value.
func (n *node) isConstant() bool {
	constant := true
	n.all(func(m *node) bool {
		constant = m.op != opAttr && (m.op != opCall || !slices.Contains(varying[:], strings.ToLower(m.name)))
		return constant
	})
	return constant
}

// varying are the functions that give another value each time, or look at more
// than their arguments: at the zone of the machine, as those do that take a time apart.
var varying = [...]string{
	"time", "currenttime", "daytime", "timezoneoffset", "formattime", "splittime", "abstime",
	"getyear", "getmonth", "getdayofyear", "getdayofmonth", "getdayofweek", "gethours", "getminutes",
	"random", "eval", "debug", "unparse", "usermap", "userhome",
}

// value returns what a constant is.
func (n *node) value() classad.Value { return n.expr.Eval(nil) }
