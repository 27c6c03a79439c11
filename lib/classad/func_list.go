// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

// kindOf is what each is… function asks for.
var kindOf = [...]Kind{
	fnIsUndefined: KindUndefined, fnIsError: KindError, fnIsString: KindString, fnIsInteger: KindInteger,
	fnIsReal: KindReal, fnIsList: KindList, fnIsClassad: KindAd, fnIsBoolean: KindBoolean,
	fnIsAbsTime: KindAbsTime, fnIsRelTime: KindRelTime,
}

func (ev *evaluator) isKind(n *call) Value {
	if len(n.args) != 1 {
		return ErrorValue()
	}
	return Bool(ev.eval(n.args[0]).kind == kindOf[n.fn])
}

// ifThenElse is the conditional operator with a function's dress.
func (ev *evaluator) ifThenElse(n *call) Value {
	if len(n.args) != 3 {
		return ErrorValue()
	}
	cond := ev.eval(n.args[0])
	if ev.failed {
		return ErrorValue()
	}
	b, ok := cond.truth()
	switch {
	case ok && b:
		return ev.eval(n.args[1])
	case ok:
		return ev.eval(n.args[2])
	case cond.kind == KindUndefined:
		return cond
	}
	return ErrorValue()
}

// at evaluates element i of a list for a function. Unlike a subscript it looks
// bare names up where the function is called; only lists and ads written in
// the list keep their place.
func (ev *evaluator) at(l *list, i int) Value {
	e := l.elems[i]
	switch e.(type) {
	case *adNode, *listNode:
		cur := ev.cur
		ev.cur = l.scope
		v := ev.eval(e)
		ev.cur = cur
		return v
	}
	return ev.eval(e)
}

// promote makes two operands numbers of one kind, as an operator does. The
// functions below keep the promoted operand, as HTCondor does.
func promote(x, y *Value) {
	if !(isIntegral(*x) || x.kind == KindReal) || !(isIntegral(*y) || y.kind == KindReal) {
		return
	}
	for _, v := range [2]*Value{x, y} {
		if v.kind == KindBoolean {
			*v = Int(v.int())
		}
	}
	if x.kind != y.kind {
		fx, _ := x.AsNumber()
		fy, _ := y.AsNumber()
		*x, *y = Real(fx), Real(fy)
	}
}

func (ev *evaluator) member(n *call) Value {
	identically := n.fn == fnIdenticalMember
	var a arguments
	if !ev.take(n, 2, 2, &a) {
		return ErrorValue()
	}
	x, in := a.v[0], a.v[1]
	switch {
	case in.kind == KindUndefined || !identically && x.kind == KindUndefined:
		return Undefined()
	case in.kind != KindList || !x.isScalar() || !identically && x.kind == KindError:
		return ErrorValue()
	}
	l := in.list()
	for i := range l.elems {
		e := ev.at(l, i)
		if ev.failed {
			return ErrorValue()
		}
		o := opIs
		if !identically {
			o = opEqual
			promote(&e, &x)
		}
		ev.compares(e, x)
		if b, _ := applyBinary(o, e, x).AsBool(); b {
			return Bool(true)
		}
	}
	return Bool(false)
}

// size is the number of elements, of attributes, or of bytes.
func (ev *evaluator) size(n *call) Value {
	if len(n.args) != 1 {
		return ErrorValue()
	}
	v := ev.eval(n.args[0])
	switch v.kind {
	case KindUndefined:
		return v
	case KindList:
		return Int(int64(len(v.list().elems)))
	case KindAd:
		return Int(int64(v.ad().size()))
	case KindString:
		return Int(int64(len(v.str())))
	}
	return ErrorValue()
}

// oneList evaluates the only argument, a list.
func (ev *evaluator) oneList(n *call) (l *list, v Value, ok bool) {
	if len(n.args) != 1 {
		return nil, ErrorValue(), false
	}
	v = ev.eval(n.args[0])
	switch {
	case ev.failed:
		return nil, ErrorValue(), false
	case v.kind == KindUndefined:
		return nil, v, false
	case v.kind != KindList:
		return nil, ErrorValue(), false
	}
	return v.list(), v, true
}

func isNumber(v Value) bool { return isIntegral(v) || v.kind == KindReal }

// sum adds up the numbers of a list, leaving out undefined ones; avg divides
// by how many there were.
func (ev *evaluator) sum(n *call) Value {
	l, v, ok := ev.oneList(n)
	if !ok {
		return v
	}
	total, count := Int(0), 0
	for i := range l.elems {
		e := ev.at(l, i)
		switch {
		case ev.failed:
			return ErrorValue()
		case e.kind == KindUndefined:
			continue
		case !isNumber(e):
			return ErrorValue()
		}
		if count == 0 {
			total = e
		} else {
			total = applyBinary(opAdd, total, e)
		}
		count++
	}
	if n.fn == fnSum || count == 0 {
		return total
	}
	return applyBinary(opDiv, total, Real(float64(count)))
}

// bound is min and max.
func (ev *evaluator) bound(n *call) Value {
	l, v, ok := ev.oneList(n)
	if !ok {
		return v
	}
	o := opLess
	if n.fn == fnMax {
		o = opGreater
	}
	best, first := Undefined(), true
	for i := range l.elems {
		e := ev.at(l, i)
		switch {
		case ev.failed:
			return ErrorValue()
		case e.kind == KindUndefined:
			continue
		case !isNumber(e):
			return ErrorValue()
		case first:
			best, first = e, false
			continue
		}
		promote(&e, &best)
		if b, _ := applyBinary(o, e, best).AsBool(); b {
			best = e
		}
	}
	return best
}

// comparison returns the operator anyCompare and allCompare are told by name.
func comparison(s string) op {
	switch s {
	case "<":
		return opLess
	case "<=":
		return opLessEqual
	case "!=":
		return opNotEqual
	case "==":
		return opEqual
	case ">":
		return opGreater
	case ">=":
		return opGreaterEqual
	case "is":
		return opIs
	case "isnt":
		return opIsnt
	}
	return opNone
}

func (ev *evaluator) compareList(n *call) Value {
	if len(n.args) != 3 {
		return ErrorValue()
	}
	which := ev.eval(n.args[0])
	if which.kind == KindUndefined {
		return which
	}
	if which.kind != KindString {
		return ErrorValue()
	}
	o := comparison(which.str())
	if o == opNone {
		return ErrorValue()
	}
	in := ev.eval(n.args[1])
	if in.kind == KindUndefined {
		return in
	}
	if in.kind != KindList {
		return ErrorValue()
	}
	with := ev.eval(n.args[2])
	all := n.fn == fnAllCompare
	l := in.list()
	for i := range l.elems {
		e := ev.at(l, i)
		if ev.failed {
			return ErrorValue()
		}
		ev.compares(e, with)
		r := applyBinary(o, e, with)
		b, ok := r.AsBool()
		switch {
		case !ok && r.kind == KindUndefined:
			return Bool(false)
		case !ok:
			return ErrorValue()
		case b != all:
			return Bool(b)
		}
	}
	return Bool(all)
}
