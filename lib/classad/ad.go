// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"unsafe"
)

// Ad is a set of named expressions. Names keep the case they were first set
// with and are found in any case. An Ad may be read by many goroutines at
// once, and copied ([Ad.Clone]); changing it needs exclusive use, of its
// children as well.
//
// An ad may have a parent (see [Ad.SetParent]) whose attributes show through.
// Every method that looks at attributes sees them unless it says otherwise.
type Ad struct {
	layout *layout              // the names; nil is none
	vals   []Value              // what stands under each: a constant or a kindExpr
	shared atomic.Bool          // vals are in use elsewhere: copy before a change
	made   atomic.Pointer[made] // see Lookup
	parent *Ad                  // layer below, see SetParent
	outer  *Ad                  // the ad in whose text this one is nested
	view   bool                 // stands for its parent in another place: has nothing of its own
}

// attr is one attribute taken out of an ad.
type attr struct {
	name string
	hash uint32
	v    Value
}

func (at *attr) expr() *Expr { return exprOf(at.v) }
func (at *attr) node() node  { return nodeOf(at.v) }

// exprValue is how an expression is kept in an ad: scalar constants by their
// value alone.
func exprValue(e *Expr) Value {
	if lit, ok := e.n.(*literal); ok && lit.form == formPlain && lit.v.isScalar() {
		return lit.v
	}
	return Value{kind: kindExpr, ptr: unsafe.Pointer(e)}
}

func nodeValue(n node) Value {
	if lit, ok := n.(*literal); ok && lit.form == formPlain && lit.v.isScalar() {
		return lit.v
	}
	return Value{kind: kindExpr, ptr: unsafe.Pointer(&Expr{n: n})}
}

func (v Value) expr() *Expr { return (*Expr)(v.ptr) }

// exprOf undoes exprValue.
func exprOf(v Value) *Expr {
	if v.kind == kindExpr {
		return v.expr()
	}
	return &Expr{n: newLiteral(v)}
}

func nodeOf(v Value) node {
	if v.kind == kindExpr {
		return v.expr().n
	}
	return newLiteral(v)
}

// NewAd returns an empty ad.
func NewAd() *Ad { return &Ad{} }

// find returns what stands under a name in this layer, nil if nothing does.
func (a *Ad) find(s string, hash uint32) *Value {
	if p := a.layout.find(s, hash); p >= 0 {
		return &a.vals[p]
	}
	return nil
}

// lookup returns what stands under a name in this layer or one below.
func (a *Ad) lookup(s string, hash uint32) *Value {
	for ; a != nil; a = a.parent {
		if p := a.layout.find(s, hash); p >= 0 {
			return &a.vals[p]
		}
	}
	return nil
}

// spelling returns a name as the ad has it.
func (a *Ad) spelling(s string, hash uint32) string {
	for ; a != nil; a = a.parent {
		if p := a.layout.find(s, hash); p >= 0 {
			return a.layout.names[p].text
		}
	}
	return s
}

// isSpecial reports whether a or a layer below has a name that means
// something without being an attribute.
func (a *Ad) isSpecial() bool {
	for ; a != nil; a = a.parent {
		if a.layout != nil && a.layout.special {
			return true
		}
	}
	return false
}

// forget drops what Lookup made of values that are no longer there.
func (a *Ad) forget() {
	if a.made.Load() != nil {
		a.made.Store(nil)
	}
}

// own makes the values private to a before a change.
func (a *Ad) own() {
	if a.shared.Load() {
		a.vals = slices.Clone(a.vals)
		a.shared.Store(false)
	}
}

func (a *Ad) set(s string, v Value) {
	a.own()
	hash := hashName(s)
	if p := a.layout.find(s, hash); p >= 0 {
		a.vals[p] = v
		a.forget()
		return
	}
	switch {
	case a.layout == nil:
		a.layout = &layout{}
	case a.layout.shared.Load():
		a.layout = a.layout.clone()
	}
	a.layout.add(s, hash)
	a.vals = append(a.vals, v)
}

func (a *Ad) setNode(s string, n node) { a.set(s, nodeValue(n)) }

// Set puts an expression under a name, replacing what this ad has there. The
// expression is shared. A nil e sets undefined.
func (a *Ad) Set(name string, e *Expr) {
	if e == nil {
		a.setNode(name, litUndefined)
		return
	}
	if e.scope != nil {
		e = &Expr{n: e.freeNode()}
	}
	a.set(name, exprValue(e))
}

// SetText parses an expression in the old dialect and sets it. On an error,
// a *[SyntaxError], the ad is unchanged.
func (a *Ad) SetText(name, exprText string) error {
	e, err := ParseExpr(exprText, Old)
	if err != nil {
		return err
	}
	a.set(name, exprValue(e))
	return nil
}

// SetValue sets a constant.
func (a *Ad) SetValue(name string, v Value) {
	if v.isScalar() {
		a.set(name, v)
		return
	}
	a.setNode(name, &literal{v: v})
}

// SetInt sets an integer.
func (a *Ad) SetInt(name string, i int64) { a.SetValue(name, Int(i)) }

// SetReal sets a real.
func (a *Ad) SetReal(name string, f float64) { a.SetValue(name, Real(f)) }

// SetBool sets a boolean.
func (a *Ad) SetBool(name string, b bool) { a.SetValue(name, Bool(b)) }

// SetString sets a string.
func (a *Ad) SetString(name, s string) { a.SetValue(name, String(s)) }

// Delete removes an attribute and reports whether there was one. An attribute
// of a parent cannot be removed from here: it is hidden by setting undefined
// in this ad.
func (a *Ad) Delete(name string) bool {
	hash := hashName(name)
	p := a.layout.find(name, hash)
	if p >= 0 {
		a.own()
		a.layout = a.layout.without(p)
		a.vals = slices.Delete(a.vals, p, p+1)
		a.forget()
	}
	if a.parent != nil && a.parent.lookup(name, hash) != nil {
		a.set(name, Undefined())
		return true
	}
	return p >= 0
}

// visible returns the attributes of all layers, those of parents that are not
// replaced included, in no order.
func (a *Ad) visible() []attr {
	n := 0
	for l := a; l != nil; l = l.parent {
		n += len(l.vals)
	}
	all := make([]attr, 0, n)
	for l := a; l != nil; l = l.parent {
		for i := range l.vals {
			at := &l.layout.names[i]
			above := a
			for ; above != l; above = above.parent {
				if above.layout.find(at.text, at.hash) >= 0 {
					break
				}
			}
			if above == l {
				all = append(all, attr{at.text, at.hash, l.vals[i]})
			}
		}
	}
	return all
}

// sorted returns the visible attributes in the order of Names.
func (a *Ad) sorted() []attr {
	if a.parent == nil && a.layout != nil {
		return a.inOrder(a.layout.canonicalOrder())
	}
	all := a.visible()
	slices.SortFunc(all, func(x, y attr) int { return canonicalLess(x.name, y.name) })
	return all
}

// public returns the visible attributes that are not private, sorted by the
// bytes of their names.
func (a *Ad) public() []attr {
	if a.parent == nil && a.layout != nil {
		return a.inOrder(a.layout.publicOrder())
	}
	all := withoutPrivate(a.visible())
	slices.SortFunc(all, func(x, y attr) int { return strings.Compare(x.name, y.name) })
	return all
}

func (a *Ad) inOrder(order []uint32) []attr {
	all := make([]attr, len(order))
	for i, p := range order {
		at := &a.layout.names[p]
		all[i] = attr{at.text, at.hash, a.vals[p]}
	}
	return all
}

// Len returns the number of attributes.
func (a *Ad) Len() int {
	if a.parent == nil {
		return len(a.vals)
	}
	return len(a.visible())
}

// Names returns the names of all attributes, the shortest first, names of one
// length alphabetically without case.
func (a *Ad) Names() []string {
	all := a.sorted()
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].name
	}
	return names
}

// All yields names and expressions in the order of Names. The ad may be
// changed while it yields; that does not show.
func (a *Ad) All() iter.Seq2[string, *Expr] {
	return func(yield func(string, *Expr) bool) {
		for _, at := range a.sorted() {
			if !yield(at.name, at.expr()) {
				return
			}
		}
	}
}

// SetParent lays a over p: attributes that a does not have show through from
// p, without copying. They are evaluated as if they stood in a, so a name in
// them finds the attribute of a first. A nil p removes the layer below. p
// must not be a or lie over a.
func (a *Ad) SetParent(p *Ad) {
	for l := p; l != nil; l = l.parent {
		if l == a {
			panic("classad: an ad cannot lie over itself")
		}
	}
	a.parent = p
}

// Parent returns the layer below, nil if there is none.
func (a *Ad) Parent() *Ad { return a.parent }

// Clone returns a copy with the same parent. It costs nothing until one of
// the two is changed, and they may be changed independently: a copy is a
// snapshot. Expressions are shared.
func (a *Ad) Clone() *Ad {
	c := &Ad{layout: a.layout, vals: a.vals[:len(a.vals):len(a.vals)], parent: a.parent, outer: a.outer, view: a.view}
	if a.layout != nil {
		if !a.shared.Load() {
			a.shared.Store(true)
		}
		if !a.layout.shared.Load() {
			a.layout.shared.Store(true)
		}
		c.shared.Store(true)
	}
	return c
}

// Update sets every attribute that from itself has, not those of its parents.
func (a *Ad) Update(from *Ad) {
	for i := range from.vals {
		a.set(from.layout.names[i].text, from.vals[i])
	}
}

// size returns the number of attributes of a itself.
func (a *Ad) size() int {
	if a.view {
		return a.Len()
	}
	return len(a.vals)
}

// within returns the ad as nested in outer, sharing its attributes. a must
// not be changed any more.
func (a *Ad) within(outer *Ad) *Ad {
	n := a.Clone()
	n.outer, n.view = outer, false
	return n
}

// top returns the outermost ad around a.
func (a *Ad) top() *Ad {
	for a.outer != nil {
		a = a.outer
	}
	return a
}
