// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

// Names lets ads of the same attributes, set in the same order, share one list
// of names. They take less memory then, and an expression that is evaluated in
// one after the other knows where to look. The zero Names is ready for use. It
// and the ads that join belong to one goroutine.
type Names struct {
	last    *layout
	layouts map[uint32]*layout
}

// Join shares the names of the ad itself, not those of layers below, with the
// ads that joined before. It costs next to nothing if they have not changed
// since; a name that is added to the ad afterwards is its own again, with all
// the others, until it joins the next time.
func (n *Names) Join(a *Ad) {
	l := a.layout
	if l == nil || l == n.last || l.joined.Load() {
		return
	}
	key := uint32(len(l.names))
	for i := range l.names {
		key = key*31 + l.names[i].hash
	}
	switch known, ok := n.layouts[key]; {
	case !ok:
		if n.layouts == nil || len(n.layouts) >= maxSharedLayouts {
			n.layouts = make(map[uint32]*layout)
		}
		n.layouts[key] = l
		l.joined.Store(true)
		l.shared.Store(true)
	case known.sameNames(l):
		a.layout, l = known, known
	default:
		return
	}
	n.last = l
}
