// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ad

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/slot"
)

// published is what one source said about one slot or all of them.
type published struct {
	source string
	attrs  *classad.Ad
}

// Publish lays attributes that a source outside found, such as the output of
// a periodic job, over the ad of one slot, or of all slots if id is zero. They
// replace all that the same source said for the same slot before; nil or empty
// takes that away. A dynamic slot shows what the source said of its parent until
// the source has said something of the slot itself, be it that there is nothing; what
// was said of one stands for the next of the same number, until the source says
// something else.
//
// Published attributes stand over everything but the name and the amounts of
// the slot, the time and the number of slots; idle times and loads may be
// replaced, and policies then see those. What is said of one slot counts
// before what is said of all, and a source that came later before an earlier
// one. The machine keeps attrs.
func (m *Machine) Publish(source string, id slot.ID, attrs *classad.Ad) {
	said := m.published[id]
	i := slices.IndexFunc(said, func(p published) bool { return p.source == source })
	empty := attrs == nil || attrs.Len() == 0
	if empty {
		attrs = nil
	}
	gone := empty && !id.IsDynamic()
	switch {
	case i < 0 && gone:
		return
	case i < 0:
		m.published[id] = append(said, published{source, attrs})
	case !gone:
		said[i].attrs = attrs
	case len(said) == 1:
		delete(m.published, id)
	default:
		m.published[id] = slices.Delete(said, i, i+1)
	}
	show := m.slots
	if !id.IsZero() {
		first := m.index(id)
		last := first
		for last < len(m.slots) && (m.slots[last].s.ID == id || m.slots[last].s.ID.Parent() == id) {
			last++
		}
		show = m.slots[first:last]
	}
	for _, a := range show {
		a.overlay()
		a.share()
	}
}

// Extras returns what the sources outside said of all slots and of each, as they
// said it: an ad for each source that has said something, named after it.
func (m *Machine) Extras() []*classad.Ad {
	var out []*classad.Ad
	for _, id := range slices.SortedFunc(maps.Keys(m.published), slot.ID.Compare) {
		for _, p := range m.published[id] {
			if p.attrs == nil {
				continue
			}
			ad := p.attrs.Clone()
			name := p.source
			if !id.IsZero() {
				name += " " + id.String()
			}
			ad.SetString(attrName, name)
			ad.SetString("MyType", "Machine.Extra")
			out = append(out, ad)
		}
	}
	return out
}

// SetLastBenchmark says of the machine and all its slots when benchmarks were
// last complete.
func (m *Machine) SetLastBenchmark(at time.Time) {
	m.benchmarked = at
	m.ad.SetInt(attrLastBenchmark, at.Unix())
	for _, a := range m.slots {
		a.share()
	}
}

// overlay makes the layer of published attributes over the slot's own ad
// anew. Without any there is no such layer.
func (a *Slot) overlay() {
	a.over = nil
	for _, p := range a.m.published[slot.ID{}] {
		a.lay(p.attrs)
	}
	own := a.m.published[a.s.ID]
	if a.s.ID.IsDynamic() {
		for _, p := range a.m.published[a.s.ID.Parent()] {
			if !slices.ContainsFunc(own, func(o published) bool { return o.source == p.source }) {
				a.lay(p.attrs)
			}
		}
	}
	for _, p := range own {
		a.lay(p.attrs)
	}
}

// lay puts attributes over the slot's ad.
func (a *Slot) lay(attrs *classad.Ad) {
	if attrs == nil {
		return
	}
	for name, e := range attrs.All() {
		if isStatic(name) || isShared(name) && !isReading(name) {
			continue
		}
		if a.over == nil {
			a.over = classad.NewAd()
			a.over.SetParent(a.ad)
		}
		a.over.Set(name, e)
	}
}

// isReading reports whether an attribute is measured by the machine, so that
// another source may know it better.
func isReading(name string) bool {
	for _, n := range [...]string{
		attrLoadAvg, attrCondorLoadAvg, attrTotalLoadAvg, attrTotalCondorLoadAvg, attrKeyboardIdle, attrConsoleIdle,
	} {
		if strings.EqualFold(n, name) {
			return true
		}
	}
	return false
}
