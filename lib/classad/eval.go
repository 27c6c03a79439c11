// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import "unsafe"

// evaluator is one evaluation under way. It lives on the stack of the caller:
// nothing may keep a pointer to it, so functions are reached by a switch and
// not through function values.
type evaluator struct {
	env         *Env
	left, right *Ad // MY and TARGET of the expression; right is nil without a match
	cur         *Ad // where bare names are looked up; nil: nowhere
	root        *Ad // the outermost ad when there is no match
	context     *Ad // the ad a function evaluates its argument in, nil most of the time
	depth       int // operators and references that may still be begun
	steps       int
	granted     int   // the steps at the beginning
	pending     *code // the call of which the function is being entered
	failed      bool  // given up; every value computed since is meaningless

	// The attributes being evaluated, to notice a circular reference.
	active int
	frames [12]frame
	more   []frame
}

// frame is an attribute being evaluated and the outermost ad it is evaluated
// in, since one expression may stand in several ads.
type frame struct {
	e   *Expr
	top *Ad
}

// noEnv is the environment of a nil *Env.
var noEnv = Env{MaxSteps: plainSteps}

// start prepares an evaluation of an expression of the ad my.
func (ev *evaluator) start(env *Env, my, target *Ad) {
	ev.env = env
	ev.left, ev.right = my, target
	ev.depth = maxEvalDepth
	ev.steps = env.MaxSteps
	if ev.steps <= 0 {
		ev.steps = DefaultMaxSteps
	}
	if b := env.Budget; b != nil {
		ev.steps = min(ev.steps, max(b.left, 0))
	}
	ev.granted = ev.steps
	if ev.left == nil && ev.right != nil {
		ev.left = NewAd()
	}
	if ev.left != nil {
		ev.enter(ev.left)
	}
}

// enter makes a the scope of bare names.
func (ev *evaluator) enter(a *Ad) {
	ev.cur = a
	ev.root = a.top()
}

// scope returns the ad bare names are looked up in; an evaluation without any
// ad gets an empty one when it first asks.
func (ev *evaluator) scope() *Ad {
	if ev.cur == nil && ev.left == nil {
		ev.left = NewAd()
		ev.enter(ev.left)
	}
	return ev.cur
}

func (ev *evaluator) fail() Value {
	ev.failed = true
	return Value{kind: KindError}
}

// end takes the steps that were used off the budget and reports whether the
// evaluation came to an end by itself.
func (ev *evaluator) end() bool {
	if b := ev.env.Budget; b != nil {
		b.left -= ev.granted - ev.steps
	}
	return !ev.failed && ev.steps >= 0
}

// spend takes steps for work beyond a node: n bytes handled.
func (ev *evaluator) spend(n int) {
	ev.steps -= n / 64
	if ev.steps < 0 {
		ev.failed = true
	}
}

// compares takes the steps for an operator between two texts.
func (ev *evaluator) compares(x, y Value) {
	if x.kind == KindString && y.kind == KindString {
		ev.spend(int(min(x.num, y.num)))
	}
}

func (ev *evaluator) push(e *Expr, top *Ad) {
	if ev.active < len(ev.frames) {
		ev.frames[ev.active] = frame{e, top}
	} else {
		ev.more = append(ev.more[:ev.active-len(ev.frames)], frame{e, top})
	}
	ev.active++
}

func (ev *evaluator) isActive(e *Expr, top *Ad) bool {
	for i := range min(ev.active, len(ev.frames)) {
		if ev.frames[i].e == e && ev.frames[i].top == top {
			return true
		}
	}
	for i := len(ev.frames); i < ev.active; i++ {
		if f := &ev.more[i-len(ev.frames)]; f.e == e && f.top == top {
			return true
		}
	}
	return false
}

// eval evaluates one node. After a failure it returns error at once.
func (ev *evaluator) eval(n node) Value {
	ev.steps--
	if ev.steps < 0 || ev.failed {
		return ev.fail()
	}
	switch n := n.(type) {
	case *literal:
		return ev.literal(n)
	case *attrRef:
		return ev.reference(n)
	case *binary:
		ev.depth--
		v := ev.binary(n)
		ev.depth++
		return v
	case *paren:
		ev.depth--
		if ev.depth < 0 {
			ev.depth++
			return ev.fail()
		}
		v := ev.eval(n.x)
		ev.depth++
		return v
	case *selection:
		return ev.selection(n)
	case *call:
		return ev.call(n)
	case *unary:
		ev.depth--
		v := ev.unary(n)
		ev.depth++
		return v
	case *ternary:
		ev.depth--
		v := ev.ternary(n)
		ev.depth++
		return v
	case *listNode:
		if n.fixed != nil {
			return Value{kind: KindList, ptr: unsafe.Pointer(n.fixed)}
		}
		return listValue(n.elems, ev.scope())
	case *adNode:
		return AdValue(n.body.within(ev.scope()))
	case *bound:
		cur := ev.cur
		ev.cur = n.scope
		v := ev.eval(n.x)
		ev.cur = cur
		return v
	}
	return ev.fail()
}

func (ev *evaluator) literal(n *literal) Value {
	switch n.form {
	case formSpan:
		return Real(n.v.real())
	case formLocal:
		return civil{secs: n.v.int()}.in(ev.env.Location)
	}
	if n.v.kind == KindAd && n.v.ad().outer == nil && ev.cur != nil && !ev.isSide(n.v.ad()) {
		// An ad put in as a value belongs where it was put. It may still be
		// changed, so it is laid under an empty one.
		return AdValue(&Ad{parent: n.v.ad(), outer: ev.cur, view: true})
	}
	return n.v
}

// isSide reports whether a is one of the two ads of the evaluation.
func (ev *evaluator) isSide(a *Ad) bool { return a == ev.left || a == ev.right }

func (ev *evaluator) unary(n *unary) Value {
	if ev.depth < 0 {
		return ev.fail()
	}
	v := ev.eval(n.x)
	if ev.failed {
		return ErrorValue()
	}
	return applyUnary(n.op, v)
}

func (ev *evaluator) binary(n *binary) Value {
	if ev.depth < 0 {
		return ev.fail()
	}
	x := ev.eval(n.x)
	if ev.failed {
		return ErrorValue()
	}
	switch n.op {
	case opOr, opAnd:
		if b, ok := x.truth(); ok && b == (n.op == opOr) {
			return Bool(b)
		}
		if x.kind == KindError {
			return x
		}
	case opElvis:
		if x.kind != KindUndefined {
			return x
		}
		return ev.eval(n.y)
	}
	y := ev.eval(n.y)
	if ev.failed {
		return ErrorValue()
	}
	if n.op == opSubscript {
		return ev.subscript(x, y)
	}
	ev.compares(x, y)
	return applyBinary(n.op, x, y)
}

func (ev *evaluator) ternary(n *ternary) Value {
	if ev.depth < 0 {
		return ev.fail()
	}
	cond := ev.eval(n.cond)
	if ev.failed {
		return ErrorValue()
	}
	if b, ok := cond.truth(); ok {
		if b {
			return ev.eval(n.yes)
		}
		return ev.eval(n.no)
	}
	if cond.kind == KindUndefined {
		return cond
	}
	return ErrorValue()
}

// subscript is x[y]: an element of a list by position or an attribute of an
// ad by name.
func (ev *evaluator) subscript(x, y Value) Value {
	switch {
	case x.kind == KindError || y.kind == KindError:
		return ErrorValue()
	case x.kind == KindUndefined || y.kind == KindUndefined:
		return Undefined()
	case x.kind == KindAd && y.kind == KindString:
		a := x.ad()
		at := a.lookup(y.str(), hashName(y.str()))
		if at == nil {
			return Undefined()
		}
		return ev.inside(at, a)
	case x.kind == KindList && y.kind == KindInteger:
		l := x.list()
		i := int(int32(y.int())) // HTCondor keeps 32 bits of an index
		if i < 0 || i >= len(l.elems) || ev.depth <= 0 {
			return ErrorValue()
		}
		ev.depth--
		v := ev.element(l, i)
		ev.depth++
		return v
	}
	return ErrorValue()
}

// element evaluates one element of a list where the list was written. A
// failure in it is an error value, except that steps stay used.
func (ev *evaluator) element(l *list, i int) Value {
	cur := ev.cur
	ev.cur = l.scope
	v := ev.eval(l.elems[i])
	ev.cur = cur
	if ev.failed && ev.steps >= 0 {
		ev.failed = false
		return ErrorValue()
	}
	return v
}

// inside evaluates an attribute of a; a failure is an error value.
func (ev *evaluator) inside(at *Value, a *Ad) Value {
	v := ev.attribute(at, a)
	if ev.failed && ev.steps >= 0 {
		ev.failed = false
		return ErrorValue()
	}
	return v
}
