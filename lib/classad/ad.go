// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"iter"
	"slices"
)

// Ad is a set of named expressions. Names keep the case they were first set
// with and are found in any case. An Ad may be read by many goroutines at
// once; changing it needs exclusive use, of its children as well.
//
// An ad may have a parent (see [Ad.SetParent]) whose attributes show through.
// Every method that looks at attributes sees them unless it says otherwise.
type Ad struct {
	attrs []attr
	// index is an open hash table of positions in attrs, plus one; it exists
	// from the first attribute beyond linearAttrs on. Its length is a power
	// of two.
	index  []uint32
	shared bool // attrs and index are in use elsewhere: copy before a change
	parent *Ad  // layer below, see SetParent
	outer  *Ad  // the ad in whose text this one is nested
	view   bool // stands for its parent in another place: has nothing of its own
}

type attr struct {
	name string
	hash uint32
	e    *Expr
}

// linearAttrs is up to how many attributes an ad is searched without an index.
const linearAttrs = 8

// NewAd returns an empty ad.
func NewAd() *Ad { return &Ad{} }

// find returns the attribute in this layer.
func (a *Ad) find(s string, hash uint32) *attr {
	if a.index == nil {
		for i := range a.attrs {
			if at := &a.attrs[i]; at.hash == hash && equalNames(at.name, s) {
				return at
			}
		}
		return nil
	}
	mask := uint32(len(a.index) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		k := a.index[i]
		if k == 0 {
			return nil
		}
		if at := &a.attrs[k-1]; at.hash == hash && equalNames(at.name, s) {
			return at
		}
	}
}

// lookup returns the attribute in this layer or one below.
func (a *Ad) lookup(s string, hash uint32) *attr {
	for ; a != nil; a = a.parent {
		if at := a.find(s, hash); at != nil {
			return at
		}
	}
	return nil
}

func (a *Ad) reindex(size int) {
	a.index = make([]uint32, size)
	for i := range a.attrs {
		a.place(a.attrs[i].hash, uint32(i+1))
	}
}

func (a *Ad) place(hash, k uint32) {
	mask := uint32(len(a.index) - 1)
	i := hash & mask
	for a.index[i] != 0 {
		i = (i + 1) & mask
	}
	a.index[i] = k
}

// own makes attrs and index private to a before a change.
func (a *Ad) own() {
	if a.shared {
		a.attrs = slices.Clone(a.attrs)
		a.index = slices.Clone(a.index)
		a.shared = false
	}
}

func (a *Ad) set(s string, e *Expr) {
	a.own()
	hash := hashName(s)
	if at := a.find(s, hash); at != nil {
		at.e = e
		return
	}
	a.attrs = append(a.attrs, attr{name: s, hash: hash, e: e})
	switch n := len(a.attrs); {
	case a.index != nil && n*2 <= len(a.index):
		a.place(hash, uint32(n))
	case n > linearAttrs:
		a.reindex(max(32, len(a.index)*2))
	}
}

func (a *Ad) setNode(s string, n node) { a.set(s, &Expr{n: n}) }

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
	a.set(name, e)
}

// SetText parses an expression in the old dialect and sets it. On an error,
// a *[SyntaxError], the ad is unchanged.
func (a *Ad) SetText(name, exprText string) error {
	e, err := ParseExpr(exprText, Old)
	if err != nil {
		return err
	}
	a.set(name, e)
	return nil
}

// SetValue sets a constant.
func (a *Ad) SetValue(name string, v Value) {
	e := &struct {
		Expr
		literal
	}{literal: literal{v: v}}
	e.Expr.n = &e.literal
	a.set(name, &e.Expr)
}

// SetInt sets an integer.
func (a *Ad) SetInt(name string, i int64) { a.SetValue(name, Int(i)) }

// SetReal sets a real.
func (a *Ad) SetReal(name string, f float64) { a.SetValue(name, Real(f)) }

// SetBool sets a boolean.
func (a *Ad) SetBool(name string, b bool) { a.setNode(name, newLiteral(Bool(b))) }

// SetString sets a string.
func (a *Ad) SetString(name, s string) { a.SetValue(name, String(s)) }

// Lookup returns the expression of an attribute, of this ad or of a parent.
func (a *Ad) Lookup(name string) (*Expr, bool) {
	if at := a.lookup(name, hashName(name)); at != nil {
		return at.e, true
	}
	return nil, false
}

// Delete removes an attribute and reports whether there was one. An attribute
// of a parent cannot be removed from here: it is hidden by setting undefined
// in this ad.
func (a *Ad) Delete(name string) bool {
	hash := hashName(name)
	there := false
	if at := a.find(name, hash); at != nil {
		there = true
		a.own()
		a.attrs = slices.DeleteFunc(a.attrs, func(x attr) bool { return x.hash == hash && equalNames(x.name, name) })
		if a.index != nil {
			a.reindex(len(a.index))
		}
	}
	if a.parent != nil && a.parent.lookup(name, hash) != nil {
		there = true
		a.setNode(name, litUndefined)
	}
	return there
}

// visible returns the attributes of all layers, those of parents that are not
// replaced included, in no order. It may be the ad's own slice.
func (a *Ad) visible() []attr {
	if a.parent == nil {
		return a.attrs
	}
	n := 0
	for l := a; l != nil; l = l.parent {
		n += len(l.attrs)
	}
	all := append(make([]attr, 0, n), a.attrs...)
	for l := a.parent; l != nil; l = l.parent {
		for _, at := range l.attrs {
			above := a
			for ; above != l; above = above.parent {
				if above.find(at.name, at.hash) != nil {
					break
				}
			}
			if above == l {
				all = append(all, at)
			}
		}
	}
	return all
}

// sorted returns the visible attributes in an order, in a slice of its own.
func (a *Ad) sorted(less func(x, y string) int) []attr {
	all := a.visible()
	if a.parent == nil {
		all = slices.Clone(all)
	}
	slices.SortFunc(all, func(x, y attr) int { return less(x.name, y.name) })
	return all
}

// Len returns the number of attributes.
func (a *Ad) Len() int { return len(a.visible()) }

// Names returns the names of all attributes, the shortest first, names of one
// length alphabetically without case.
func (a *Ad) Names() []string {
	all := a.sorted(canonicalLess)
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
		for _, at := range a.sorted(canonicalLess) {
			if !yield(at.name, at.e) {
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

// Clone returns a copy with the same parent. Expressions are shared. The copy
// and a may be changed independently.
func (a *Ad) Clone() *Ad {
	return &Ad{attrs: slices.Clone(a.attrs), index: slices.Clone(a.index), parent: a.parent, outer: a.outer, view: a.view}
}

// Update sets every attribute that from itself has, not those of its parents.
func (a *Ad) Update(from *Ad) {
	for _, at := range from.attrs {
		a.set(at.name, at.e)
	}
}

// size returns the number of attributes of a itself.
func (a *Ad) size() int {
	if a.view {
		return a.Len()
	}
	return len(a.attrs)
}

// within returns the ad as nested in outer, sharing its attributes. a must
// not be changed any more.
func (a *Ad) within(outer *Ad) *Ad {
	return &Ad{
		attrs: a.attrs[:len(a.attrs):len(a.attrs)], index: a.index, shared: true,
		parent: a.parent, outer: outer,
	}
}

// top returns the outermost ad around a.
func (a *Ad) top() *Ad {
	for a.outer != nil {
		a = a.outer
	}
	return a
}
