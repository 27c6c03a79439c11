// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import "strings"

// sharer lets ads that are read one after the other share what is the same in
// them: the names, and expressions that are written the same.
type sharer struct {
	last    *layout // of the ad before: what the next one is expected to have
	layouts map[uint32]*layout
	before  []Value // the values of the ad before
	exprs   map[string]Value
	text    int // bytes of all keys in exprs
}

// Bounds of what a sharer keeps: beyond them it goes on without.
const (
	maxSharedLayouts = 256
	maxSharedText    = 1 << 20
)

func newSharer() *sharer {
	return &sharer{layouts: map[uint32]*layout{}, exprs: map[string]Value{}}
}

// layout returns a layout like l, the same for all ads that have it.
func (s *sharer) layout(l *layout) *layout {
	if l == nil || l == s.last {
		return l
	}
	key := uint32(len(l.names))
	for i := range l.names {
		key = key*31 + l.names[i].hash
	}
	if known, ok := s.layouts[key]; ok {
		if known.sameNames(l) {
			l = known
		}
	} else if len(s.layouts) < maxSharedLayouts {
		for i := range l.names {
			l.names[i].text = strings.Clone(l.names[i].text) // not to keep the text of the whole ad
		}
		s.layouts[key] = l
	}
	l.shared.Store(true)
	s.last = l
	return l
}

// parse reads an expression in the old dialect, or returns what the same text
// gave before.
func (s *sharer) parse(text string) (Value, *SyntaxError) {
	v, ok := s.exprs[text]
	if ok {
		return v, nil
	}
	keep := s.text+len(text) < maxSharedText
	if keep {
		text = strings.Clone(text)
	}
	p := newParser(text, Old)
	n := p.expression(false)
	if n == nil {
		return Value{}, p.err
	}
	v = nodeValue(n)
	if keep {
		s.exprs[text] = v
		s.text += len(text)
	}
	return v, nil
}

// lines reads the lines of an ad.
type lines struct {
	a     *Ad
	share *sharer // may be nil
	// While the names are those of the ad before, in its order, they need not
	// be looked at again.
	expect *layout
}

// set puts a value under a name.
func (l *lines) set(name string, v Value) {
	if l.expect != nil {
		if n := len(l.a.vals); n < len(l.expect.names) && l.expect.names[n].text == name {
			if v.kind == KindString {
				if b := l.share.before; n < len(b) && b[n].kind == KindString && b[n].str() == v.str() {
					v = b[n] // one string for both
				}
			}
			l.a.vals = append(l.a.vals, v)
			return
		}
		l.depart()
	}
	l.a.set(name, v)
}

// depart gives up expecting: the names so far become the ad's own.
func (l *lines) depart() {
	names := l.expect.names
	l.expect = nil
	l.a.layout = newLayout(len(names))
	for _, at := range names[:len(l.a.vals)] {
		l.a.layout.add(at.text, at.hash)
	}
}

// end returns the ad.
func (l *lines) end() *Ad {
	if l.share != nil {
		defer func() { l.share.before = l.a.vals }()
	}
	if l.expect != nil {
		if len(l.a.vals) == len(l.expect.names) {
			l.a.layout = l.expect
			return l.a
		}
		l.depart()
	}
	if l.share != nil {
		l.a.layout = l.share.layout(l.a.layout)
	}
	return l.a
}
