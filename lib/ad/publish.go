// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ad

import (
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/slot"
)

// published is what one source said about one slot or all of them.
type published struct {
	source string
	slot   slot.ID
	attrs  *classad.Ad
}

// Publish lays attributes that a source outside found, such as the output of
// a periodic job, over the ads of a slot and its dynamic slots, or of all
// slots if id is zero. They replace all that the same source said for the same
// slots before; nil or empty takes that away. They stand over everything but
// the name and the amounts of the slot, the time and the number of slots; idle
// times and loads may be replaced, and policies then see those. What is said
// of one slot counts before what is said of all, and a source that came later
// before an earlier one. The machine keeps attrs.
func (m *Machine) Publish(source string, id slot.ID, attrs *classad.Ad) {
	i := slices.IndexFunc(m.published, func(p published) bool { return p.source == source && p.slot == id })
	empty := attrs == nil || attrs.Len() == 0
	switch {
	case i < 0 && empty:
		return
	case i < 0:
		m.published = append(m.published, published{source, id, attrs})
	case empty:
		m.published = slices.Delete(m.published, i, i+1)
	default:
		m.published[i].attrs = attrs
	}
	for _, a := range m.slots {
		if id.IsZero() || id == a.s.ID || id == a.s.ID.Parent() {
			a.overlay()
			a.share()
		}
	}
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
	for _, ofAll := range [...]bool{true, false} {
		for _, p := range a.m.published {
			if p.slot.IsZero() != ofAll || !ofAll && p.slot != a.s.ID && p.slot != a.s.ID.Parent() {
				continue
			}
			for name, e := range p.attrs.All() {
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
