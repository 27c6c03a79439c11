// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import "sync/atomic"

// Expr is an expression. It is immutable and safe for concurrent use, so one
// parsed expression may stand in any number of ads and be evaluated in all of
// them at the same time.
type Expr struct {
	n node
	// scope is where bare names are looked up, for an element taken out of a
	// list value. Nil means the ad of the evaluation.
	scope *Ad
	code  atomic.Pointer[code] // see code.go
}

// ParseExpr reads text as one complete expression. The error is a
// *[SyntaxError].
func ParseExpr(text string, d Dialect) (*Expr, error) {
	p := newParser(text, d)
	n := p.expression(true)
	if n == nil {
		return nil, p.err
	}
	return &Expr{n: n}, nil
}

// MustParseExpr reads a constant of the program in the old dialect. It panics
// if text is not an expression.
func MustParseExpr(text string) *Expr {
	e, err := ParseExpr(text, Old)
	if err != nil {
		panic("classad: " + text + ": " + err.Error())
	}
	return e
}

// Literal returns the expression that is the value v.
func Literal(v Value) *Expr { return &Expr{n: newLiteral(v)} }

// Eval evaluates e. env may be nil: then there are no ads, no clock and no
// second ad. An evaluation that has to be given up (too deep, too long) gives
// error; see [Expr.TryEval].
func (e *Expr) Eval(env *Env) Value {
	v, _ := e.TryEval(env)
	return v
}

// TryEval is Eval, and ok tells an evaluation that came to an end from one
// that was given up because it went too deep, took too many steps, or called
// a function that reports failure. The value is error in that case.
func (e *Expr) TryEval(env *Env) (v Value, ok bool) {
	if env == nil {
		env = &noEnv
	}
	var ev evaluator
	ev.start(env, env.My, env.Target)
	if e.scope != nil {
		ev.enter(e.scope)
	}
	v = ev.expr(e)
	if !ev.end() {
		return ErrorValue(), false
	}
	return v, true
}

// freeNode returns the tree of e such that it can stand in another
// expression.
func (e *Expr) freeNode() node {
	if e.scope == nil {
		return e.n
	}
	if _, ok := e.n.(*literal); ok {
		return e.n
	}
	return &bound{x: e.n, scope: e.scope}
}

// LiteralValue returns the value of an expression that is a constant; ok is
// false for any other.
func (e *Expr) LiteralValue() (v Value, ok bool) {
	n := e.n
	for {
		switch x := n.(type) {
		case *paren:
			n = x.x
			continue
		case *literal:
			if x.form != formPlain {
				return Value{}, false
			}
			return x.v, true
		}
		return Value{}, false
	}
}

// AttrName returns the name if e is nothing but a bare attribute name.
func (e *Expr) AttrName() (string, bool) {
	if r, ok := e.n.(*attrRef); ok && !r.absolute {
		return r.name.text, true
	}
	return "", false
}

// Equal reports whether e and f are written the same, layout aside.
func (e *Expr) Equal(f *Expr) bool {
	if e == nil || f == nil {
		return e == f
	}
	return sameNode(e.n, f.n)
}

// Text prints e in a dialect, as HTCondor does: the tree, not the text it
// was read from. Reading the result again gives the same expression, except
// for what HTCondor prints wrongly: quoted names behind a dot lose their
// quotes.
func (e *Expr) Text(d Dialect) string {
	p := printer{dialect: d}
	p.node(e.n)
	return string(p.b)
}

// AppendText appends what Text returns.
func (e *Expr) AppendText(b []byte, d Dialect) []byte {
	p := printer{dialect: d, b: b}
	p.node(e.n)
	return p.b
}

// String prints e in the old dialect.
func (e *Expr) String() string { return e.Text(Old) }
