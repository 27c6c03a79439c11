// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package slot

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/config"
)

// Outage is what of one custom resource is to be out of use.
type Outage struct {
	Resource string
	IDs      []string // of a resource whose instances have names
	Units    int64    // of a resource that is only counted
}

// outage is the ledger's side of it.
type outage struct {
	ids   []string // sorted, all of them instances of the resource
	units int64    // wanted
	owed  int64    // of units, what dynamic slots still hold
}

// OutagesFrom reads which instances the configuration wants out of use by now.
// What was out of use when the slots were made stays so until a restart.
func OutagesFrom(cfg *config.Snapshot, resources []Resource) []Outage {
	var out []Outage
	for _, r := range resources {
		off, ids := countOrNames(cfg.String("OFFLINE_" + resourcePrefix + r.Name))
		o := Outage{Resource: r.Name}
		if r.Assets != nil {
			o.IDs = ids
		} else {
			o.Units = max(0, int64(off-r.Without))
		}
		if len(o.IDs) > 0 || o.Units > 0 {
			out = append(out, o)
		}
	}
	return out
}

// Outages returns what SetOffline has set.
func (l *Ledger) Outages() []Outage {
	var out []Outage
	for k, o := range l.outages {
		if len(o.ids) > 0 || o.units > 0 {
			out = append(out, Outage{Resource: l.resources[k].Name, IDs: slices.Clone(o.ids), Units: o.units})
		}
	}
	return out
}

// SetOffline takes instances out of use, and brings back those that it took
// out before and that are not named any more. Names that the ledger does not
// have are ignored.
//
// An instance stays with the slot that has it, also with one that uses it, but
// is no longer free there, and no dynamic slot gets it. Units of a resource
// that is only counted are taken where they are free; what dynamic slots hold
// is taken when they give it back.
func (l *Ledger) SetOffline(outages []Outage) {
	for k := range l.outages {
		r := &l.built[k]
		var want Outage
		for _, o := range outages {
			if strings.EqualFold(o.Resource, r.Name) {
				want = o
			}
		}
		now := &l.outages[k]
		*now = outage{}
		for _, id := range r.Assets {
			if slices.Contains(want.IDs, id) {
				now.ids = append(now.ids, id)
			}
		}
		slices.Sort(now.ids)
		if r.Assets == nil {
			now.units = min(max(want.Units, 0), int64(math.Floor(r.Count)))
			now.owed = now.units
		}
		l.resources[k] = *r
		l.resources[k].Count -= float64(now.units + int64(len(now.ids)))
		if len(now.ids) > 0 {
			off := slices.Concat(r.Offline, now.ids)
			slices.Sort(off)
			l.resources[k].Offline = off
		}
	}
	l.resting = l.rest(l.spare)
	l.settle(&l.resting, l.spare)
	for _, sh := range l.shares {
		sh.slot.Offline = Quantities{} // owed already
		l.refit(sh.slot)
		for _, c := range sh.children {
			if c != nil {
				l.refit(c)
			}
		}
	}
	for _, kind := range [...]Kind{Partitionable, Static} {
		for _, sh := range l.shares {
			if sh.slot.Kind == kind {
				l.settleDebts(sh.slot)
			}
		}
	}
}

// checkOutages proves that as many units are out of use as were wanted, less
// those that are still owed.
func (l *Ledger) checkOutages(offline Quantities) error {
	for k, o := range l.outages {
		have, _ := offline.Find(l.resources[k].Name)
		from, _ := l.offline.Find(l.resources[k].Name)
		if got := have.Count - from.Count; l.resources[k].Assets == nil && got != o.units-o.owed {
			return fmt.Errorf("%d of %s are out of use, %d wanted and %d of them owed", got, l.resources[k].Name, o.units, o.owed)
		}
	}
	return nil
}

// rest returns the instances of q that are out of use.
func (l *Ledger) rest(q Quantities) Quantities {
	var out Quantities
	for k, r := range l.resources {
		if len(l.outages[k].ids) == 0 {
			continue
		}
		c, _ := q.Find(r.Name)
		off := Custom{Name: r.Name}
		for _, id := range c.Assets {
			if slices.Contains(l.outages[k].ids, id) {
				off.Assets = append(off.Assets, id)
			}
		}
		if off.Count = int64(len(off.Assets)); off.Count > 0 {
			out.Custom = append(out.Custom, off)
		}
	}
	return out
}

// settle takes units that are owed out of what is free.
func (l *Ledger) settle(off *Quantities, free Quantities) {
	for k := range l.outages {
		o := &l.outages[k]
		if o.owed == 0 {
			continue
		}
		c, _ := free.Find(l.resources[k].Name)
		if n := min(o.owed, c.Count); n > 0 {
			o.owed -= n
			*off = plus(*off, Quantities{Custom: []Custom{{Name: l.resources[k].Name, Count: n}}})
		}
	}
}

// settleDebts takes units that are owed out of what a slot has free. Backfill
// slots have nothing of their own to give, dynamic ones keep theirs.
func (l *Ledger) settleDebts(s *Slot) {
	if s.Backfill || s.Broken != nil || s.Kind == Dynamic {
		return
	}
	var off Quantities
	if l.settle(&off, s.Free); len(off.Custom) > 0 {
		s.Offline = plus(s.Offline, off)
		s.Free = minus(s.Free, off)
	}
}

// refit finds out what of a slot is out of use and what is free. Units that
// are only counted are owed again, for settleDebts to take.
func (l *Ledger) refit(s *Slot) {
	for k, r := range l.resources {
		if c, ok := s.Offline.Find(r.Name); ok && r.Assets == nil {
			l.outages[k].owed += c.Count
		}
	}
	left := minus(s.Total, s.Lost)
	if s.Kind == Partitionable {
		for c := range l.Children(s.ID) {
			left = minus(left, c.Total)
		}
	}
	s.Offline = l.rest(left)
	if s.Free = minus(left, s.Offline); s.Broken != nil {
		s.Free = Quantities{}
	}
}
