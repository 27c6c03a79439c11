// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import "slices"

// sameNode reports whether two trees are written the same. Names are compared
// by their letters, functions without case.
func sameNode(x, y node) bool {
	if x == y {
		return true
	}
	switch x := x.(type) {
	case *literal:
		y, ok := y.(*literal)
		return ok && x.form == y.form && x.v.Equal(y.v)
	case *attrRef:
		y, ok := y.(*attrRef)
		return ok && x.absolute == y.absolute && x.name.text == y.name.text
	case *selection:
		y, ok := y.(*selection)
		return ok && x.name.text == y.name.text && sameNode(x.of, y.of)
	case *paren:
		y, ok := y.(*paren)
		return ok && sameNode(x.x, y.x)
	case *unary:
		y, ok := y.(*unary)
		return ok && x.op == y.op && sameNode(x.x, y.x)
	case *binary:
		y, ok := y.(*binary)
		return ok && x.op == y.op && sameNode(x.x, y.x) && sameNode(x.y, y.y)
	case *ternary:
		y, ok := y.(*ternary)
		return ok && sameNode(x.cond, y.cond) && sameNode(x.yes, y.yes) && sameNode(x.no, y.no)
	case *call:
		y, ok := y.(*call)
		return ok && equalNames(x.spelled, y.spelled) && sameNodes(x.args, y.args)
	case *listNode:
		y, ok := y.(*listNode)
		return ok && sameNodes(x.elems, y.elems)
	case *adNode:
		y, ok := y.(*adNode)
		return ok && sameAds(x.body, y.body)
	case *bound:
		y, ok := y.(*bound)
		return ok && sameNode(x.x, y.x)
	}
	return false
}

func sameNodes(x, y []node) bool { return slices.EqualFunc(x, y, sameNode) }

// sameAttr compares what stands under a name in two ads.
func sameAttr(x, y Value) bool {
	if x.kind != kindExpr && y.kind != kindExpr {
		return x.Equal(y)
	}
	return x == y || sameNode(nodeOf(x), nodeOf(y))
}

// sameAds compares attributes, parents included, not the places the ads stand
// in.
func sameAds(x, y *Ad) bool {
	if x == y {
		return true
	}
	ax := x.visible()
	if len(ax) != len(y.visible()) {
		return false
	}
	for i := range ax {
		at := y.lookup(ax[i].name, ax[i].hash)
		if at == nil || !sameAttr(ax[i].v, *at) {
			return false
		}
	}
	return true
}

// Equal reports whether a and b have the same attributes with expressions
// that are written the same.
func (a *Ad) Equal(b *Ad) bool {
	if a == nil || b == nil {
		return a == b
	}
	return sameAds(a, b)
}
