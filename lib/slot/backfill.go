// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package slot

import (
	"fmt"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/errs"
)

// Occupy says whether a static slot is claimed. What a primary slot has in use
// is not to be had from backfill slots; dynamic slots always count as in use.
func (l *Ledger) Occupy(id ID, occupied bool) error {
	s, ok := l.Slot(id)
	if !ok {
		return errs.E("slot.Occupy", errs.NotFound, id.String(), nil)
	}
	if s.Kind != Static {
		return errs.E("slot.Occupy", errs.Conflict, s.Name(), fmt.Errorf("only a static slot is occupied as a whole"))
	}
	if s.occupied == occupied {
		return nil
	}
	s.occupied = occupied
	if occupied {
		l.use(s, +1)
	} else {
		l.use(s, -1)
	}
	return nil
}

// use counts what a primary slot has as in use, or not any more.
func (l *Ledger) use(s *Slot, sign int) {
	switch {
	case !l.overlapped || s.Backfill:
	case sign > 0:
		l.inUse = plus(l.inUse, s.accounted(s.Total))
	default:
		l.inUse = minus(l.inUse, s.accounted(s.Total))
	}
}

// Open returns what a slot can give to a job or to a new dynamic slot at this
// moment: what is Free, in a backfill slot less what primary slots have in
// use. Of a dynamic backfill slot, whose job goes on, that takes only
// instances with names. Disk and swap are never taken.
func (l *Ledger) Open(s *Slot) Quantities {
	open := s.Free
	if !s.Backfill || s.Broken != nil {
		return open
	}
	whole := s.Kind == Partitionable
	if whole {
		open.Cpus = max(0, roundCpus(open.Cpus-max(0, l.inUse.Cpus)))
		open.MemoryMiB = max(0, open.MemoryMiB-l.inUse.MemoryMiB)
	}
	open.Custom = slices.Clone(open.Custom)
	for i, c := range open.Custom {
		used, _ := l.inUse.Find(c.Name)
		switch {
		case len(c.Assets) > 0:
			c.Assets = without(c.Assets, l.shortFor(c, used))
			c.Count = int64(len(c.Assets))
		case whole && !l.named(c.Name):
			c.Count = max(0, c.Count-used.Count-l.unitsOffline(c.Name))
		}
		open.Custom[i] = c
	}
	return open
}

// shortFor returns the instances of a backfill slot that it cannot have beside
// what the primary slots have in use. Of a name that the machine lists twice
// both may be in use, one here and one there.
func (l *Ledger) shortFor(c, used Custom) []string {
	all, _ := l.total.Find(c.Name)
	return without(c.Assets, without(all.Assets, used.Assets))
}

func (l *Ledger) named(resource string) bool {
	for _, r := range l.resources {
		if strings.EqualFold(r.Name, resource) {
			return r.Assets != nil
		}
	}
	return false
}

func (l *Ledger) unitsOffline(resource string) int64 {
	for k, r := range l.resources {
		if strings.EqualFold(r.Name, resource) {
			return l.outages[k].units
		}
	}
	return 0
}

// Conflicts names, for each backfill slot in use that must give way, the
// resources that it and the primary slots have in use at the same time: those that
// are not enough for all, and instances by their names. Slots
// with a conflict about instances come first, since they have to go in any
// case; the others are the oldest numbers first, until the rest fits.
func (l *Ledger) Conflicts() map[ID][]string {
	if !l.overlapped {
		return nil
	}
	out := make(map[ID][]string)
	var active []*Slot
	var used Quantities
	for s := range l.Slots() {
		if !s.Backfill || s.Kind == Partitionable || s.Kind == Static && !s.occupied {
			continue
		}
		for _, c := range s.Total.Custom {
			primary, _ := l.inUse.Find(c.Name)
			if short := l.shortFor(c, primary); len(short) > 0 {
				out[s.ID] = append(out[s.ID], short...)
			}
		}
		used = plus(used, s.Total)
		active = append(active, s)
	}
	slices.SortStableFunc(active, func(a, b *Slot) int { return min(len(out[b.ID]), 1) - min(len(out[a.ID]), 1) })
	for _, s := range active {
		short := plus(used, l.inUse).shortOf(l.total)
		if len(short) == 0 {
			break
		}
		out[s.ID] = append(short, out[s.ID]...)
		used = minus(used, s.Total)
	}
	return out
}

// shortOf names what is more in q than in has, without instances with names.
func (q Quantities) shortOf(has Quantities) []string {
	var out []string
	if micros(q.Cpus) > micros(has.Cpus) {
		out = append(out, "Cpus")
	}
	if q.MemoryMiB > has.MemoryMiB {
		out = append(out, "Memory")
	}
	if q.DiskKiB > has.DiskKiB {
		out = append(out, "Disk")
	}
	for _, c := range q.Custom {
		if have, _ := has.Find(c.Name); len(c.Assets) == 0 && c.Count > have.Count {
			out = append(out, c.Name)
		}
	}
	return out
}
