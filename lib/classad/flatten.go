// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

// Flatten evaluates e as far as env allows and returns what is left: a
// constant if nothing depends on what is not known, else an expression in
// which the known parts are replaced by their values. Names that do not come
// down to a value stay. It answers "this would be true if …". ok is false if
// e cannot be flattened: a circle, or too deep.
func (e *Expr) Flatten(env *Env) (rest *Expr, ok bool) { return e.flatten(env, false) }

// FlattenInline is Flatten, and puts the definition of a name that stays in
// its place.
func (e *Expr) FlattenInline(env *Env) (rest *Expr, ok bool) { return e.flatten(env, true) }

func (e *Expr) flatten(env *Env, inline bool) (*Expr, bool) {
	rest, _, ok := e.flattenCounted(env, inline)
	return rest, ok
}

// flattenCounted is flatten and returns how many steps are left of env's.
func (e *Expr) flattenCounted(env *Env, inline bool) (rest *Expr, left int, ok bool) {
	if env == nil {
		env = &noEnv
	}
	f := flattener{inline: inline}
	f.ev.start(env, env.My, env.Target)
	if e.scope != nil {
		f.ev.enter(e.scope)
	}
	f.ev.scope()
	p := f.flatten(e.n, false)
	if !f.ev.end() {
		return nil, f.ev.steps, false
	}
	return &Expr{n: p.node()}, f.ev.steps, true
}

type flattener struct {
	ev     evaluator
	inline bool
}

// part is what a tree came down to: a value if n is nil, the tree n, or, if
// join is set, both of them joined by that operator, the value first.
type part struct {
	v    Value
	n    node
	join op
}

func (p part) node() node {
	switch {
	case p.n == nil:
		return newLiteral(p.v)
	case p.join != opNone:
		return &binary{op: p.join, x: newLiteral(p.v), y: p.n}
	}
	return p.n
}

func value(v Value) part { return part{v: v} }
func tree(n node) part   { return part{n: n} }

func (f *flattener) fail() part {
	f.ev.failed = true
	return part{v: ErrorValue()}
}

// flatten reduces a tree. With split the result may be value and tree apart,
// for an operator above that is the same.
func (f *flattener) flatten(n node, split bool) part {
	f.ev.steps--
	if f.ev.steps < 0 || f.ev.failed {
		return f.fail()
	}
	switch n := n.(type) {
	case *literal:
		return value(f.ev.literal(n))
	case *attrRef:
		return f.reference(n, f.ev.find(n))
	case *selection:
		return f.selection(n)
	case *paren:
		p := f.deeper(n.x)
		if p.n != nil {
			return tree(&paren{x: p.n})
		}
		return p
	case *unary:
		p := f.deeper(n.x)
		if p.n != nil {
			return tree(&unary{op: n.op, x: p.n})
		}
		return value(applyUnary(n.op, p.v))
	case *binary:
		return f.binary(n, split)
	case *ternary:
		return f.ternary(n)
	case *call:
		return f.call(n)
	case *listNode:
		elems := make([]node, len(n.elems))
		for i, e := range n.elems {
			elems[i] = f.deeper(e).node()
		}
		return tree(&listNode{elems: elems})
	case *adNode:
		cur := f.ev.cur
		f.ev.cur = n.body.within(cur)
		body := NewAd()
		for _, at := range n.body.sorted() {
			body.setNode(at.name, f.deeper(at.node()).node())
		}
		f.ev.cur = cur
		return tree(&adNode{body: body})
	}
	return f.fail()
}

func (f *flattener) deeper(n node) part {
	f.ev.depth--
	if f.ev.depth < 0 {
		return f.fail()
	}
	p := f.flatten(n, false)
	f.ev.depth++
	return p
}

// reference goes on in what a name stands for. A name that stands for an ad
// stays.
func (f *flattener) reference(n node, found found) part {
	if !found.ok {
		return tree(n)
	}
	if found.at == nil {
		if found.v.kind == KindAd {
			return tree(n)
		}
		return value(found.v)
	}
	x := nodeOf(*found.at)
	if _, ok := x.(*adNode); ok {
		return tree(n)
	}
	cur := f.ev.cur
	f.ev.cur = found.in
	p := f.deeper(x)
	f.ev.cur = cur
	if p.n != nil && !f.inline {
		return tree(n)
	}
	return p
}

func (f *flattener) selection(n *selection) part {
	of := f.ev.eval(n.of)
	if f.ev.failed {
		return f.fail()
	}
	switch of.kind {
	case KindUndefined:
		if f.inline {
			if p := f.deeper(n.of); p.n != nil {
				return tree(&selection{of: p.n, name: n.name})
			}
		}
		return tree(n)
	case KindAd:
		return f.reference(n, f.ev.climb(of.ad(), &n.name))
	case KindList:
		return value(f.ev.project(of.list(), &n.name))
	}
	return value(ErrorValue())
}

// isAssociative reports whether operands of o may change places and company.
func isAssociative(o op) bool {
	switch o {
	case opAdd, opMul, opAnd, opOr, opBitAnd, opBitOr, opBitXor:
		return true
	}
	return false
}

func (f *flattener) binary(n *binary, split bool) part {
	f.ev.depth--
	if f.ev.depth < 0 {
		return f.fail()
	}
	associative := isAssociative(n.op)
	x := f.flatten(n.x, associative)
	y := f.flatten(n.y, associative)
	f.ev.depth++
	if f.ev.failed {
		return part{}
	}
	if associative {
		p := combine(n.op, x, y)
		if p.join != opNone && !split {
			return tree(p.node())
		}
		return p
	}
	if x.n != nil || y.n != nil {
		return tree(&binary{op: n.op, x: x.node(), y: y.node()})
	}
	switch n.op {
	case opSubscript:
		return value(f.ev.subscript(x.v, y.v))
	case opElvis:
		if x.v.kind == KindUndefined {
			return y
		}
		return x
	}
	f.ev.compares(x.v, y.v)
	return value(applyBinary(n.op, x.v, y.v))
}

// combine joins two operands of an associative operator, so that the values
// on both sides come together in front of what is left.
func combine(o op, x, y part) part {
	logic := o == opAnd || o == opOr
	if logic && (x.n == nil) != (y.n == nil) {
		known := &x
		rest := y
		if x.n != nil {
			known, rest = &y, x
		}
		if b, ok := known.v.truth(); ok {
			known.v = Bool(b)
			if b == (o == opOr) {
				return value(known.v)
			}
			if o == opAnd {
				rest.join = opNone
				return part{n: rest.n}
			}
		}
	}
	switch {
	case x.n == nil && y.n == nil:
		return value(applyBinary(o, x.v, y.v))
	case x.n == nil && y.join == opNone:
		return part{v: x.v, n: y.n, join: o}
	case y.n == nil && x.join == opNone:
		return part{v: y.v, n: x.n, join: o}
	case x.join == opNone && y.join == opNone:
		return tree(&binary{op: o, x: x.n, y: y.n})
	case x.join != o && y.join != o:
		return tree(&binary{op: o, x: x.node(), y: y.node()})
	case x.join == o && y.join == o:
		return part{v: applyBinary(o, x.v, y.v), n: &binary{op: o, x: x.n, y: y.n}, join: o}
	case x.join == o && y.n == nil:
		return part{v: applyBinary(o, x.v, y.v), n: x.n, join: o}
	case x.join == o:
		return part{v: x.v, n: &binary{op: o, x: x.n, y: y.node()}, join: o}
	case x.n == nil:
		return part{v: applyBinary(o, x.v, y.v), n: y.n, join: o}
	}
	return part{v: y.v, n: &binary{op: o, x: x.node(), y: y.n}, join: o}
}

func (f *flattener) ternary(n *ternary) part {
	cond := f.deeper(n.cond)
	if cond.n == nil && cond.v.kind != KindUndefined {
		b, ok := cond.v.truth()
		switch {
		case !ok:
			return value(ErrorValue())
		case b:
			return f.deeper(n.yes)
		}
		return f.deeper(n.no)
	}
	yes, no := f.deeper(n.yes), f.deeper(n.no)
	if cond.n == nil {
		cond.n = n.cond
	}
	return tree(&ternary{cond: cond.n, yes: yes.node(), no: no.node()})
}

// call evaluates a function of which all arguments are known. An unknown
// function is error whatever its arguments.
func (f *flattener) call(n *call) part {
	if n.fn == fnUnknown {
		return value(ErrorValue())
	}
	args := make([]node, len(n.args))
	known := true
	for i, arg := range n.args {
		p := f.deeper(arg)
		known = known && p.n == nil
		args[i] = p.node()
	}
	if f.ev.failed {
		return part{}
	}
	if known {
		return value(f.ev.call(n))
	}
	return tree(&call{fn: n.fn, spelled: n.spelled, args: args})
}
