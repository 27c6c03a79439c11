// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

// found is what a name stands for: an attribute of an ad, or a value that is
// no attribute, such as MY.
type found struct {
	at *Value
	in *Ad // the ad whose scope at is evaluated in
	v  Value
	ok bool
}

// reference evaluates a bare or absolute name.
func (ev *evaluator) reference(n *attrRef) Value {
	return ev.resolve(ev.find(n), &n.name, nil)
}

// find looks a bare or absolute name up.
func (ev *evaluator) find(n *attrRef) found {
	if n.absolute {
		return ev.absolute(&n.name)
	}
	start := ev.scope()
	if start == nil {
		return found{}
	}
	f := ev.climb(start, &n.name)
	if f.ok || ev.right == nil {
		return f
	}
	// Only an expression that belongs to one of the two ads itself, not to an
	// ad nested in it, reaches the other one; unless a function put it there.
	side := start
	if start == ev.context && start.outer != nil {
		side = start.outer
	}
	if !ev.isSide(side) {
		return f
	}
	return ev.climb(ev.other(side), &n.name)
}

// selection evaluates of.name. A list gives the list of what each element has
// under that name.
func (ev *evaluator) selection(n *selection) Value {
	if ev.depth <= 0 {
		return ErrorValue()
	}
	cur := ev.cur
	ev.depth--
	of := ev.eval(n.of)
	ev.depth++
	ev.cur = cur
	if ev.failed {
		return ErrorValue()
	}
	return ev.pick(of, &n.name)
}

func (ev *evaluator) pick(of Value, nm *name) Value {
	switch of.kind {
	case KindUndefined:
		return of
	case KindAd:
		return ev.resolve(ev.climb(of.ad(), nm), nm, of.ad())
	case KindList:
		return ev.project(of.list(), nm)
	}
	return ErrorValue()
}

// project applies .name to every element of a list. The results are values:
// they belong to no scope.
func (ev *evaluator) project(l *list, nm *name) Value {
	if ev.depth <= 0 {
		return ev.fail()
	}
	elems := make([]node, 0, len(l.elems))
	for _, e := range l.elems {
		cur := ev.cur
		switch e.(type) {
		case *adNode, *listNode:
			ev.cur = l.scope
		}
		ev.depth--
		v := ev.eval(e)
		ev.depth++
		ev.cur = cur
		if ev.failed {
			return ErrorValue()
		}
		ev.steps--
		v = ev.pick(v, nm)
		if ev.failed {
			return ErrorValue()
		}
		elems = append(elems, newLiteral(v))
	}
	return listValue(elems, nil)
}

// climb looks a name up in an ad and the ads around it, out to the match.
func (ev *evaluator) climb(start *Ad, nm *name) found {
	cur := start
	for {
		if at := cur.lookup(nm.text, nm.hash); at != nil {
			return found{at: at, in: cur, ok: true}
		}
		if nm.role != roleNone && nm.role < firstContextRole {
			return ev.special(cur, nm.role)
		}
		if cur.outer == nil || ev.right != nil && ev.isSide(cur) {
			break
		}
		cur = cur.outer
	}
	if nm.role >= firstContextRole && ev.right != nil && ev.isSide(cur) {
		return ev.around(cur, nm.role)
	}
	return found{}
}

func (ev *evaluator) ad(a *Ad) found { return found{v: AdValue(a), ok: true} }

// special resolves the names that every ad has.
func (ev *evaluator) special(cur *Ad, r role) found {
	switch r {
	case roleMy:
		return ev.ad(cur)
	case roleRoot:
		if ev.right != nil {
			return ev.ad(ev.matchAd())
		}
		return ev.ad(ev.root)
	case roleParent:
		if cur.outer != nil {
			return ev.ad(cur.outer)
		}
		if ev.right != nil && ev.isSide(cur) {
			return ev.ad(ev.contextAd(cur))
		}
	case roleCurrentTime:
		return found{v: ev.now(), ok: true}
	}
	return found{}
}

// other returns the ad opposite to side.
func (ev *evaluator) other(side *Ad) *Ad {
	if side == ev.left {
		return ev.right
	}
	return ev.left
}

// around resolves the names that stand around the two ads of a match. side
// is the ad the search came from.
func (ev *evaluator) around(side *Ad, r role) found {
	switch r {
	case roleTarget:
		return ev.ad(ev.other(side))
	case roleAd:
		return ev.ad(side)
	}
	return ev.matchName(r)
}

// absolute resolves .name: from the outermost ad, which in a match is the
// match itself.
func (ev *evaluator) absolute(nm *name) found {
	if ev.right != nil {
		switch {
		case nm.role == roleMy || nm.role == roleRoot:
			return ev.ad(ev.matchAd())
		case nm.role == roleCurrentTime:
			return found{v: ev.now(), ok: true}
		case nm.role >= roleLeft:
			return ev.matchName(nm.role)
		}
		return found{}
	}
	if ev.scope() == nil || ev.root == nil {
		return found{}
	}
	return ev.climb(ev.root, nm)
}

// resolve evaluates what a name stands for and tells the observer. of is the
// ad that was asked by selection, nil for a bare name.
func (ev *evaluator) resolve(f found, nm *name, of *Ad) Value {
	if !f.ok {
		if ev.env.OnRead != nil && !ev.failed {
			ev.env.OnRead(Read{Scope: ev.scopeName(of), Name: nm.text})
		}
		return Undefined()
	}
	if f.at == nil {
		if ev.depth <= 0 {
			return ev.fail()
		}
		return f.v
	}
	v := ev.attribute(f.at, f.in)
	if ev.env.OnRead != nil && !ev.failed {
		ev.env.OnRead(Read{Scope: ev.scopeName(f.in), Name: f.in.spelling(nm.text, nm.hash), Value: v})
	}
	return v
}

func (ev *evaluator) scopeName(a *Ad) string {
	switch {
	case a == nil:
		return ""
	case a == ev.left:
		return "MY"
	case a == ev.right:
		return "TARGET"
	}
	return ""
}

// attribute evaluates what stands under a name of an ad. What is being
// evaluated already is a circular reference and undefined.
func (ev *evaluator) attribute(at *Value, in *Ad) Value {
	if ev.depth <= 0 {
		return ev.fail()
	}
	if at.kind != kindExpr {
		ev.steps--
		if ev.steps < 0 {
			return ev.fail()
		}
		return *at
	}
	e := at.expr()
	top := in.top()
	if ev.isActive(e, top) {
		return Undefined()
	}
	ev.push(e, top)
	cur := ev.cur
	ev.cur = in
	ev.depth--
	v := ev.expr(e)
	ev.depth++
	ev.cur = cur
	ev.active--
	return v
}
