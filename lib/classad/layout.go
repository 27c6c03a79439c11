// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"slices"
	"strings"
	"sync/atomic"
)

// layout is the names of an ad, in the order they were first set, apart from
// their values: ads with the same names, such as the copies of one ad or what
// a [Reader] reads, share one. A layout that is shared is never changed.
type layout struct {
	names []attrName
	// index is an open hash table over names from linearAttrs on. Its length
	// is a power of two; an entry is the position plus one in the low bits,
	// as many as the length has, and bits of the hash above them. 0 is free.
	index   []uint32
	shared  atomic.Bool
	joined  atomic.Bool // is one of a [Names]
	special bool        // holds a name that means something without being an attribute

	// The orders of printing, worked out when first asked for.
	public    atomic.Pointer[[]uint32] // by bytes, private attributes left out
	canonical atomic.Pointer[[]uint32]
}

type attrName struct {
	text string
	hash uint32
}

// linearAttrs is up to how many attributes an ad is searched without an index.
const linearAttrs = 8

// find returns the position of a name, -1 if there is none.
func (l *layout) find(s string, hash uint32) int {
	if l == nil {
		return -1
	}
	if l.index == nil {
		for i := range l.names {
			if at := &l.names[i]; at.hash == hash && equalNames(at.text, s) {
				return i
			}
		}
		return -1
	}
	mask := uint32(len(l.index) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		k := l.index[i]
		if k == 0 {
			return -1
		}
		if (k^hash)&^mask == 0 {
			if p := int(k&mask) - 1; equalNames(l.names[p].text, s) {
				return p
			}
		}
	}
}

// add appends a name that is not there yet.
func (l *layout) add(s string, hash uint32) {
	l.names = append(l.names, attrName{s, hash})
	l.special = l.special || roleOf(s) != roleNone
	if l.public.Load() != nil || l.canonical.Load() != nil {
		l.public.Store(nil)
		l.canonical.Store(nil)
	}
	switch n := len(l.names); {
	case l.index != nil && n*2 <= len(l.index):
		l.place(n-1, hash)
	case n > linearAttrs:
		l.reindex(max(32, len(l.index)*2))
	}
}

// newLayout returns a layout with room for n names.
func newLayout(n int) *layout {
	l := &layout{names: make([]attrName, 0, n)}
	if n > linearAttrs {
		size := 32
		for size < n*2 {
			size *= 2
		}
		l.index = make([]uint32, size)
	}
	return l
}

func (l *layout) reindex(size int) {
	l.index = make([]uint32, size)
	for i := range l.names {
		l.place(i, l.names[i].hash)
	}
}

func (l *layout) place(pos int, hash uint32) {
	mask := uint32(len(l.index) - 1)
	i := hash & mask
	for l.index[i] != 0 {
		i = (i + 1) & mask
	}
	l.index[i] = hash&^mask | uint32(pos+1)
}

// clone returns a copy that nobody else uses.
func (l *layout) clone() *layout {
	return &layout{names: slices.Clone(l.names), index: slices.Clone(l.index), special: l.special}
}

// without returns the layout with one name taken out. A layout that nobody
// else uses gives what it has to the new one; it cannot be changed itself,
// since who remembers where a name was goes by the layout.
func (l *layout) without(pos int) *layout {
	if !l.shared.Load() {
		c := &layout{names: slices.Delete(l.names, pos, pos+1), index: l.index}
		l.names, l.index = nil, nil
		clear(c.index)
		for i, at := range c.names {
			c.special = c.special || roleOf(at.text) != roleNone
			if c.index != nil {
				c.place(i, at.hash)
			}
		}
		return c
	}
	c := newLayout(len(l.names))
	for i, at := range l.names {
		if i != pos {
			c.add(at.text, at.hash)
		}
	}
	return c
}

// sameNames reports whether two layouts hold the same spellings in the same
// order.
func (l *layout) sameNames(m *layout) bool {
	return slices.EqualFunc(l.names, m.names, func(x, y attrName) bool { return x.hash == y.hash && x.text == y.text })
}

// order returns the positions of names sorted as the old dialect prints
// them.
func (l *layout) publicOrder() []uint32 {
	if o := l.public.Load(); o != nil {
		return *o
	}
	o := make([]uint32, 0, len(l.names))
	for i := range l.names {
		if !IsPrivate(l.names[i].text) {
			o = append(o, uint32(i))
		}
	}
	slices.SortFunc(o, func(x, y uint32) int { return strings.Compare(l.names[x].text, l.names[y].text) })
	l.public.Store(&o)
	return o
}

// canonicalOrder returns the positions of names sorted as ads show them.
func (l *layout) canonicalOrder() []uint32 {
	if o := l.canonical.Load(); o != nil {
		return *o
	}
	o := make([]uint32, len(l.names))
	for i := range o {
		o[i] = uint32(i)
	}
	slices.SortFunc(o, func(x, y uint32) int { return canonicalLess(l.names[x].text, l.names[y].text) })
	l.canonical.Store(&o)
	return o
}
