// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"slices"
	"strings"
)

// Refs are the attributes an expression needs. Each list is sorted without
// regard to case and names an attribute once.
type Refs struct {
	// Internal are attributes of the ad itself that the expression needs,
	// directly or through others.
	Internal []string
	// External are the names the ad does not have, reduced to what to ask the
	// other ad for: TARGET. and the like are taken off, and of a.b.c it is a.
	External []string
	// ExternalFull are the same as they are written: TARGET.Memory.
	ExternalFull []string
}

// Refs finds the attributes that e needs when it stands in ad. ok is false
// if that cannot be told: a reference leads in a circle or selects from
// something that is no ad.
func (e *Expr) Refs(ad *Ad) (r Refs, ok bool) {
	full, ok := collect(e.n, ad, externalNames)
	if !ok {
		return Refs{}, false
	}
	internal, ok := collect(e.n, ad, internalNames)
	if !ok {
		return Refs{}, false
	}
	r.ExternalFull = full.sorted()
	first, own := nameSet{}, nameSet{}
	for _, s := range r.ExternalFull {
		first.add(firstName(s, true))
	}
	for _, s := range internal.sorted() {
		own.add(firstName(s, false))
	}
	r.External, r.Internal = first.sorted(), own.sorted()
	return r, true
}

// firstName reduces a reference to the name to look up.
func firstName(s string, external bool) string {
	if external {
		for _, prefix := range [...]string{"target.", "other.", ".left.", ".right."} {
			if len(s) >= len(prefix) && equalNames(s[:len(prefix)], prefix) {
				s = "." + s[len(prefix):]
				break
			}
		}
	}
	s = strings.TrimPrefix(s, ".")
	if i := strings.IndexAny(s, ".["); i >= 0 {
		s = s[:i]
	}
	return s
}

// nameSet is a set of names without regard to case; the first spelling stays.
type nameSet map[string]string

func (s nameSet) add(name string) {
	key := foldString(name)
	if _, ok := s[key]; !ok {
		s[key] = name
	}
}

func (s nameSet) sorted() []string {
	all := make([]string, 0, len(s))
	for _, name := range s {
		all = append(all, name)
	}
	slices.SortFunc(all, compareFold)
	return all
}

// wanted says which names a search collects.
type wanted uint8

const (
	externalNames wanted = iota // those that are not found
	internalNames               // attributes of the outermost ad
)

// refWalk is one search for references.
type refWalk struct {
	refs nameSet
	want wanted
	// scopeOnly is set while the left side of a selection is searched: an ad
	// found there is not searched itself.
	scopeOnly bool
	// level counts how deep the search has descended, since an operator costs
	// no depth here.
	level int
}

// Limits of a search: how deep it may descend, and its steps.
const (
	maxSearch   = 20_000
	maxRefSteps = 100_000
)

func collect(n node, ad *Ad, want wanted) (nameSet, bool) {
	var ev evaluator
	ev.start(&Env{MaxSteps: maxRefSteps}, ad, nil)
	w := refWalk{refs: nameSet{}, want: want}
	ok := ev.search(n, &w)
	return w.refs, ok && !ev.failed
}

func (ev *evaluator) search(n node, w *refWalk) bool {
	if w.level++; w.level > maxSearch {
		return false
	}
	defer func() { w.level-- }()
	if w.want == internalNames {
		return ev.internalRefs(n, w)
	}
	return ev.externalRefs(n, w)
}

// externalRefs adds the names in n that are not found.
func (ev *evaluator) externalRefs(n node, w *refWalk) bool {
	ev.steps--
	if ev.steps < 0 {
		return false
	}
	var nm *name
	start := ev.scope()
	switch n := n.(type) {
	case *attrRef:
		nm = &n.name
		if n.absolute {
			start = ev.root
		}
	case *selection:
		nm = &n.name
		v := ev.eval(n.of)
		if ev.failed {
			return false
		}
		if v.kind == KindUndefined {
			p := printer{dialect: New}
			p.node(n.of)
			w.refs.add(string(p.b) + "." + n.name.text)
			return true
		}
		if v.kind != KindAd {
			return false
		}
		start = v.ad()
	default:
		return ev.eachChild(n, w)
	}
	if start == nil {
		w.refs.add(nm.text)
		return true
	}
	f := ev.climb(start, nm)
	if !f.ok {
		w.refs.add(nm.text)
		return true
	}
	return ev.searchFound(f, w)
}

// internalRefs adds the names in n that are attributes of the outermost ad.
func (ev *evaluator) internalRefs(n node, w *refWalk) bool {
	ev.steps--
	if ev.steps < 0 {
		return false
	}
	var nm *name
	start := ev.scope()
	switch n := n.(type) {
	case *attrRef:
		nm = &n.name
		if n.absolute {
			start = ev.root
		}
	case *selection:
		nm = &n.name
		scopeOnly := w.scopeOnly
		w.scopeOnly = true
		ok := ev.internalRefs(n.of, w)
		w.scopeOnly = scopeOnly
		if !ok {
			return false
		}
		v := ev.eval(n.of)
		if ev.failed {
			return false
		}
		if v.kind == KindUndefined {
			return true
		}
		if v.kind != KindAd {
			return false
		}
		start = v.ad()
	case *adNode:
		if w.scopeOnly {
			return true
		}
		return ev.eachChild(n, w)
	default:
		return ev.eachChild(n, w)
	}
	if start == nil {
		return true
	}
	f := ev.climb(start, nm)
	if !f.ok {
		return true
	}
	if f.at != nil && f.in == ev.root {
		w.refs.add(nm.text)
	}
	return ev.searchFound(f, w)
}

// searchFound goes on in what a name stands for.
func (ev *evaluator) searchFound(f found, w *refWalk) bool {
	if ev.depth <= 0 {
		return false
	}
	ev.depth--
	defer func() { ev.depth++ }()
	cur := ev.cur
	defer func() { ev.cur = cur }()
	if f.at != nil {
		ev.cur = f.in
		return ev.search(nodeOf(*f.at), w)
	}
	if f.v.kind == KindAd {
		if w.scopeOnly {
			return true
		}
		return ev.eachAttr(f.v.ad(), w)
	}
	return true
}

func (ev *evaluator) eachAttr(a *Ad, w *refWalk) bool {
	for _, at := range a.sorted() {
		if !ev.deeper(at.node(), w) {
			return false
		}
	}
	return true
}

func (ev *evaluator) deeper(n node, w *refWalk) bool {
	if ev.depth <= 0 {
		return false
	}
	ev.depth--
	ok := ev.search(n, w)
	ev.depth++
	return ok
}

// eachChild goes on in the parts of a node that is no reference.
func (ev *evaluator) eachChild(n node, w *refWalk) bool {
	switch n := n.(type) {
	case *paren:
		return ev.search(n.x, w)
	case *unary:
		return ev.search(n.x, w)
	case *binary:
		return ev.search(n.x, w) && ev.search(n.y, w)
	case *ternary:
		return ev.search(n.cond, w) && ev.search(n.yes, w) && ev.search(n.no, w)
	case *call:
		for _, arg := range n.args {
			if !ev.deeper(arg, w) {
				return false
			}
		}
	case *listNode:
		for _, e := range n.elems {
			if !ev.deeper(e, w) {
				return false
			}
		}
	case *adNode:
		return ev.eachAttr(n.body, w)
	case *bound:
		return ev.search(n.x, w)
	}
	return true
}
