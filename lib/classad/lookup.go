// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

// Lookup returns the expression of an attribute, of this ad or of a parent;
// ok is false if there is none. An attribute that is undefined or error is
// there like any other.
func (a *Ad) Lookup(name string) (e *Expr, ok bool) {
	hash := hashName(name)
	for ; a != nil; a = a.parent {
		if p := a.layout.find(name, hash); p >= 0 {
			return a.exprAt(p), true
		}
	}
	return nil, false
}

// made is an expression made for a constant that was looked up: an ad keeps
// the last few, so that looking one up again costs nothing.
type made struct {
	pos  int
	size int // of the chain from here on
	next *made
	expr Expr
	lit  literal
}

// maxMade is how many an ad keeps.
const maxMade = 32

func (a *Ad) exprAt(p int) *Expr {
	v := a.vals[p]
	if v.kind == kindExpr {
		return v.expr()
	}
	chain := a.made.Load()
	for m := chain; m != nil; m = m.next {
		if m.pos == p {
			return &m.expr
		}
	}
	m := &made{pos: p, size: 1, next: chain, lit: literal{v: v}}
	m.expr.n = &m.lit
	if chain != nil {
		m.size = chain.size + 1
	}
	if m.size > maxMade {
		m.next, m.size = nil, 1
	}
	a.made.CompareAndSwap(chain, m)
	return &m.expr
}
