// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import "strings"

// SyntaxKind is the sort of an expression's outermost part.
type SyntaxKind uint8

// The sorts of expressions.
const (
	SyntaxOther   SyntaxKind = iota // a list, an element of a list or an ad, a selection from something else than MY and TARGET
	SyntaxScoped                    // an ad, or .name: its names are not looked up where those around it are
	SyntaxLiteral                   // a constant
	SyntaxName                      // an attribute by name, bare or behind MY. or TARGET.
	SyntaxUnary                     // -x, !x
	SyntaxBinary                    // x + y, x ?: y, x =?= y
	SyntaxChoice                    // c ? x : y
	SyntaxCall                      // f(x, y)
)

// Syntax is the outermost part of an expression as it is written, parentheses
// aside, and what it consists of.
type Syntax struct {
	Kind SyntaxKind
	// Word is the operator's sign, the function's or the attribute's name as
	// it is spelled. "is" and "isnt" are =?= and =!=.
	Word string
	// Scope is "MY" or "TARGET" for an attribute that is asked of one ad, and
	// "" for a bare name.
	Scope string
	Args  []*Expr // operands, in order
	// Held are the parts of a SyntaxOther: the elements of a list, the list
	// and the index, what is selected from. They are no operands: what becomes
	// of their values is not said.
	Held []*Expr
}

// Bare returns e without the parentheses around it.
func (e *Expr) Bare() *Expr {
	n := e.n
	for {
		p, ok := n.(*paren)
		if !ok {
			break
		}
		n = p.x
	}
	if n == e.n {
		return e
	}
	return &Expr{n: n, scope: e.scope}
}

// Syntax takes e apart, one level. The parts are expressions of the same ad.
func (e *Expr) Syntax() Syntax {
	part := func(ns ...node) []*Expr {
		out := make([]*Expr, len(ns))
		for i, n := range ns {
			out[i] = &Expr{n: n, scope: e.scope}
		}
		return out
	}
	switch n := e.Bare().n.(type) {
	case *literal:
		return Syntax{Kind: SyntaxLiteral}
	case *attrRef:
		if n.absolute {
			return Syntax{Kind: SyntaxScoped}
		}
		return Syntax{Kind: SyntaxName, Word: n.name.text}
	case *adNode, *bound:
		return Syntax{Kind: SyntaxScoped}
	case *selection:
		if of, ok := n.of.(*attrRef); ok && !of.absolute {
			switch of.name.role {
			case roleMy:
				return Syntax{Kind: SyntaxName, Word: n.name.text, Scope: "MY"}
			case roleTarget:
				return Syntax{Kind: SyntaxName, Word: n.name.text, Scope: "TARGET"}
			}
		}
		return Syntax{Kind: SyntaxOther, Held: part(n.of)}
	case *listNode:
		return Syntax{Kind: SyntaxOther, Held: part(n.elems...)}
	case *unary:
		return Syntax{Kind: SyntaxUnary, Word: strings.TrimSpace(opText[n.op]), Args: part(n.x)}
	case *binary:
		if n.op == opSubscript {
			return Syntax{Kind: SyntaxOther, Held: part(n.x, n.y)}
		}
		word := strings.TrimSpace(opText[n.op])
		switch n.op {
		case opIs:
			word = "=?="
		case opIsnt:
			word = "=!="
		}
		return Syntax{Kind: SyntaxBinary, Word: word, Args: part(n.x, n.y)}
	case *ternary:
		return Syntax{Kind: SyntaxChoice, Word: "?", Args: part(n.cond, n.yes, n.no)}
	case *call:
		return Syntax{Kind: SyntaxCall, Word: n.spelled, Args: part(n.args...)}
	}
	return Syntax{Kind: SyntaxOther}
}
