// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import "strings"

// evalText is eval(): the argument as text is read in the new dialect and
// evaluated where the call stands.
func (ev *evaluator) evalText(n *call) Value {
	if len(n.args) != 1 {
		return ErrorValue()
	}
	v := ev.eval(n.args[0])
	if ev.failed {
		return ErrorValue()
	}
	s, _, ok := ev.asText(v)
	if !ok {
		return ErrorValue()
	}
	if ev.depth <= 0 {
		return ev.fail()
	}
	ev.spend(64 * len(s))
	if ev.failed {
		return ErrorValue()
	}
	x := newParser(s, New).expression(true)
	if x == nil {
		return ErrorValue()
	}
	ev.depth--
	v = ev.eval(x)
	ev.depth++
	return v
}

// unparse is the text of an attribute of the ad at hand.
func (ev *evaluator) unparse(n *call) Value {
	if len(n.args) != 1 {
		return ErrorValue()
	}
	p := printer{dialect: New}
	switch n.args[0].(type) {
	case *attrRef, *selection:
		p.node(n.args[0])
	default:
		return ErrorValue()
	}
	a := ev.scope()
	if a == nil {
		return String("")
	}
	text := string(p.b)
	at := a.lookup(text, hashName(text))
	if at == nil {
		return String("")
	}
	p = printer{dialect: New, pretty: true, limit: ev.room()}
	p.attrValue(*at)
	return ev.text(string(p.b))
}

// debug tells the observer what its argument is worth and returns it.
func (ev *evaluator) debug(n *call) Value {
	if len(n.args) != 1 {
		return ErrorValue()
	}
	v := ev.eval(n.args[0])
	if ev.env.OnDebug != nil && !ev.failed {
		ev.env.OnDebug(&Expr{n: n.args[0], scope: ev.cur}, v)
	}
	return v
}

// eachContext is evalInEachContext(expr, list) and countMatches(expr, list):
// expr is evaluated as if it stood in each ad of the list. An expr that is
// nothing but a name stands for the attribute of that name, if there is one
// where the call stands.
func (ev *evaluator) eachContext(n *call) Value {
	if len(n.args) != 2 {
		return ErrorValue()
	}
	count := n.fn == fnCountMatches
	expr := n.args[0]
	switch ref := expr.(type) {
	case *attrRef, *selection:
		at, failed := ev.deref(ref)
		if ev.failed {
			return ErrorValue()
		}
		if at != nil && !failed {
			expr = at
		}
	}
	in := ev.eval(n.args[1])
	if ev.failed && ev.steps >= 0 {
		ev.failed = false
		in = ErrorValue()
	}
	switch in.kind {
	case KindUndefined:
		if count {
			return Int(0)
		}
		return in
	case KindList:
	default:
		return ErrorValue()
	}
	l := in.list()
	var elems []node
	matches := int64(0)
	for i := range l.elems {
		v := ev.inContext(expr, l, i)
		if ev.failed {
			return ErrorValue()
		}
		if count {
			if v.IsTrue() {
				matches++
			}
			continue
		}
		elems = append(elems, newLiteral(v))
	}
	if count {
		return Int(matches)
	}
	return listValue(elems, nil)
}

// inContext evaluates expr in element i of l, which must be an ad.
func (ev *evaluator) inContext(expr node, l *list, i int) Value {
	v := ev.at(l, i)
	if ev.failed && ev.steps >= 0 {
		ev.failed = false
		return ErrorValue()
	}
	switch v.kind {
	case KindUndefined:
		return v
	case KindAd:
	default:
		return ErrorValue()
	}
	if ev.depth <= 0 {
		return ErrorValue()
	}
	nested := v.ad()
	cur, context := ev.cur, ev.context
	ev.cur, ev.context = nested, nested
	ev.depth--
	v = ev.eval(expr)
	ev.depth++
	ev.cur, ev.context = cur, context
	if ev.failed && ev.steps >= 0 {
		ev.failed = false
		return ErrorValue()
	}
	return v
}

// deref finds the expression a reference stands for, without evaluating it.
// It is nil if there is none. The scope becomes the ad it was found in, or
// the one where the search ended, and stays there until the evaluation of the
// attribute at hand ends. That is what HTCondor does, and it shows: behind
// countMatches(TARGET.x, …) the names MY and TARGET have changed places.
func (ev *evaluator) deref(ref node) (n node, failed bool) {
	var f found
	switch ref := ref.(type) {
	case *attrRef:
		f = ev.find(ref)
	case *selection:
		of := ev.eval(ref.of)
		switch of.kind {
		case KindAd:
			f = ev.climb(of.ad(), &ref.name)
		case KindList:
			return newLiteral(ev.project(of.list(), &ref.name)), false
		default:
			return nil, of.kind != KindUndefined
		}
	}
	if !f.ok {
		if ev.right != nil {
			ev.cur = nil
		} else if ev.cur != nil {
			ev.cur = ev.cur.top()
		}
		return nil, false
	}
	if f.at == nil {
		return newLiteral(f.v), false
	}
	ev.cur = f.in
	return nodeOf(*f.at), false
}

// unresolved is unresolved(attribute[, pattern]): the names the attribute
// needs and does not find, or whether one of them matches.
func (ev *evaluator) unresolved(n *call) Value {
	if len(n.args) < 1 || len(n.args) > 2 {
		return ErrorValue()
	}
	switch n.args[0].(type) {
	case *attrRef, *selection:
	default:
		return ErrorValue()
	}
	x, _ := ev.deref(n.args[0])
	if ev.failed {
		return ErrorValue()
	}
	if x == nil {
		return Undefined()
	}
	var c *compiled
	if len(n.args) == 2 {
		v := ev.eval(n.args[1])
		if v.kind != KindString {
			return ev.fail()
		}
		if c = ev.pattern(n, v.str(), flagCaseless); !c.usable() {
			return ErrorValue()
		}
	}
	w := refWalk{refs: nameSet{}}
	var names []string
	if ev.externalRefs(x, &w) {
		names = w.refs.sorted()
	}
	for i, s := range names {
		const prefix = "target."
		if len(s) >= len(prefix) && equalNames(s[:len(prefix)], prefix) {
			names[i] = s[len(prefix):]
		}
		if c != nil {
			search := searcher{c: c, s: names[i]}
			if ev.scan(c, len(names[i])); ev.failed {
				return ErrorValue()
			}
			if m := search.next(ev); m != nil && m[0] < m[1] {
				return Bool(true)
			}
		}
	}
	if c != nil {
		return Bool(false)
	}
	return ev.text(strings.Join(names, ","))
}
