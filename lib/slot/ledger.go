// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package slot

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/execpoint/execpoint/lib/errs"
)

// MaxDynamicSlots bounds the dynamic slots of one partitionable slot.
const MaxDynamicSlots = 1 << 20

// Ledger records who holds what of one machine. It is owned by one goroutine.
// The zero Ledger is a machine with nothing; Build makes real ones.
type Ledger struct {
	total   Quantities // of the machine, assets that are offline included
	offline Quantities // configured out of use from the beginning
	spare   Quantities // of the machine but in no slot
	resting Quantities // of spare, what was taken out of use since

	resources []Resource // as they are at present
	built     []Resource // as they were when the slots were made
	outages   []outage   // parallel to resources
	unlisted  []Resource // described, but not to be had
	diskKiB   int64      // of the volume of EXECUTE when the slots were made
	shares    []*share   // ascending by number, without gaps: shares[n-1] is slot n

	overlapped bool       // there are backfill slots
	inUse      Quantities // what primary slots have in use, kept if overlapped
}

// share is one slot of the layout with the dynamic slots carved from it.
type share struct {
	slot     *Slot
	children []*Slot // children[m-1] is dynamic slot m, nil while m is unused
	low      int     // no index below low is free in children

	dealtKiB, provisionKiB int64 // disk of the slot and TotalDisk as they were when the slots were made
	elsewhere              bool  // its execute directory is on a volume of its own
}

// Slots yields every slot in ascending order of ID. The ledger must not be
// changed during the iteration.
func (l *Ledger) Slots() iter.Seq[*Slot] {
	return func(yield func(*Slot) bool) {
		for _, sh := range l.shares {
			if !yield(sh.slot) {
				return
			}
			for _, c := range sh.children {
				if c != nil && !yield(c) {
					return
				}
			}
		}
	}
}

// Children yields the dynamic slots of a partitionable slot in ascending
// order. The ledger must not be changed during the iteration.
func (l *Ledger) Children(id ID) iter.Seq[*Slot] {
	return func(yield func(*Slot) bool) {
		sh := l.share(id)
		if sh == nil {
			return
		}
		for _, c := range sh.children {
			if c != nil && !yield(c) {
				return
			}
		}
	}
}

// Len returns the number of slots, dynamic ones included.
func (l *Ledger) Len() int {
	n := len(l.shares)
	for _, sh := range l.shares {
		n += sh.slot.Children
	}
	return n
}

// Resources returns the custom resources of the machine, ascending by name.
// The slice is the ledger's.
func (l *Ledger) Resources() []Resource { return l.resources }

// Unlisted returns the resources that were described and that
// MACHINE_RESOURCE_NAMES leaves out: the ads show them, and no slot gets them.
// The slice is the ledger's.
func (l *Ledger) Unlisted() []Resource { return l.unlisted }

// Slot returns the slot with this ID.
func (l *Ledger) Slot(id ID) (*Slot, bool) {
	sh := l.share(id)
	switch {
	case sh == nil:
		return nil, false
	case !id.IsDynamic():
		return sh.slot, true
	case id.Sub < 1 || id.Sub > len(sh.children) || sh.children[id.Sub-1] == nil:
		return nil, false
	}
	return sh.children[id.Sub-1], true
}

func (l *Ledger) share(id ID) *share {
	if id.N < 1 || id.N > len(l.shares) {
		return nil
	}
	return l.shares[id.N-1]
}

// Carve takes r out of a partitionable slot and makes a dynamic slot of it,
// with the lowest number that is free. Instances of a resource with names are
// taken in inventory order, those alone that have what the request requires of
// them. A request that does not fit is refused with the numbers (kind
// Exhausted) and changes nothing.
func (l *Ledger) Carve(parent ID, r Request) (*Slot, error) {
	const op = "slot.Carve"
	sh := l.share(parent)
	if sh == nil || parent.IsDynamic() {
		return nil, errs.E(op, errs.NotFound, parent.String(), nil)
	}
	p := sh.slot
	switch {
	case p.Kind != Partitionable:
		return nil, errs.E(op, errs.Conflict, p.Name(), fmt.Errorf("a %s slot cannot be divided", strings.ToLower(p.Kind.String())))
	case p.Broken != nil:
		return nil, errs.E(op, errs.Broken, p.Name(), fmt.Errorf("%s", p.Broken.Reason))
	}
	if err := r.valid(); err != nil {
		return nil, errs.E(op, errs.Invalid, p.Name(), err)
	}
	open := l.Open(p)
	if misfit := r.Misfit(open); misfit != "" {
		return nil, errs.E(op, errs.Exhausted, p.Name(), fmt.Errorf("%s", misfit))
	}
	sub := sh.lowest()
	if sub > MaxDynamicSlots {
		return nil, errs.E(op, errs.Exhausted, p.Name(), fmt.Errorf("%d dynamic slots are the most", MaxDynamicSlots))
	}
	given, err := l.take(open, r)
	if err != nil {
		return nil, errs.E(op, errs.Exhausted, p.Name(), err)
	}
	child := &Slot{
		ID: ID{N: p.ID.N, Sub: sub}, Kind: Dynamic, TypeID: p.TypeID, Prefix: p.Prefix,
		Total: given, Free: given, Backfill: p.Backfill, Sliver: p.Sliver, VolumeDiskKiB: p.VolumeDiskKiB,
	}
	p.Free = minus(p.Free, given)
	p.Children++
	sh.put(child)
	l.use(child, +1)
	return child, nil
}

// lowest returns the lowest unused number of a dynamic slot.
func (sh *share) lowest() int {
	for sh.low < len(sh.children) && sh.children[sh.low] != nil {
		sh.low++
	}
	return sh.low + 1
}

func (sh *share) put(child *Slot) {
	if child.ID.Sub > len(sh.children) {
		sh.children = append(sh.children, child)
		return
	}
	sh.children[child.ID.Sub-1] = child
}

// Return gives a dynamic slot back to its parent; the ID may be used again at
// once. What a broken slot held does not become free: it goes to the parent's
// Lost until Mend.
func (l *Ledger) Return(id ID) error {
	const op = "slot.Return"
	child, ok := l.Slot(id)
	if !ok {
		return errs.E(op, errs.NotFound, id.String(), nil)
	}
	if child.Kind != Dynamic {
		return errs.E(op, errs.Conflict, child.Name(), fmt.Errorf("only a dynamic slot can be returned"))
	}
	sh := l.share(id)
	p := sh.slot
	l.use(child, -1)
	if child.Broken != nil {
		p.Lost = plus(p.Lost, child.Total).ordered(p.Total)
	} else {
		l.giveBack(p, child)
	}
	sh.children[id.Sub-1] = nil
	for n := len(sh.children); n > 0 && sh.children[n-1] == nil; n-- {
		sh.children = sh.children[:n-1]
	}
	sh.low = min(sh.low, id.Sub-1)
	p.Children--
	return nil
}

// Reclaim gives all that a dynamic slot has back to its parent at once, though
// the slot is still there: it goes on with nothing until Return. That is for
// one whose job is being killed while another already has its place.
func (l *Ledger) Reclaim(id ID) error {
	const op = "slot.Reclaim"
	child, ok := l.Slot(id)
	if !ok {
		return errs.E(op, errs.NotFound, id.String(), nil)
	}
	switch {
	case child.Kind != Dynamic:
		return errs.E(op, errs.Conflict, child.Name(), fmt.Errorf("only a dynamic slot can be reclaimed"))
	case child.Broken != nil:
		return errs.E(op, errs.Broken, child.Name(), fmt.Errorf("%s", child.Broken.Reason))
	}
	l.use(child, -1)
	l.giveBack(l.share(id).slot, child)
	nothing := Quantities{}
	for _, c := range child.Total.Custom {
		nothing.Custom = append(nothing.Custom, Custom{Name: c.Name})
	}
	child.Total, child.Free, child.Offline = nothing, nothing, Quantities{}
	return nil
}

// giveBack moves what a sound dynamic slot has to its parent.
func (l *Ledger) giveBack(p, child *Slot) {
	p.Offline = plus(p.Offline, child.Offline).ordered(p.Total)
	if p.Broken == nil {
		p.Free = plus(p.Free, minus(child.Total, child.Offline)).ordered(p.Total)
	}
	l.settleDebts(p)
}

// Break takes everything the slot has free out of use. The dynamic slots of a
// broken partitionable slot go on.
func (l *Ledger) Break(id ID, why BrokenReason) error {
	s, ok := l.Slot(id)
	if !ok {
		return errs.E("slot.Break", errs.NotFound, id.String(), nil)
	}
	s.Broken = &why
	s.Free = Quantities{}
	return nil
}

// Mend makes the slot sound again, and all that broken dynamic slots took
// from it free again.
func (l *Ledger) Mend(id ID) error {
	s, ok := l.Slot(id)
	if !ok {
		return errs.E("slot.Mend", errs.NotFound, id.String(), nil)
	}
	s.Broken = nil
	s.Lost = Quantities{}
	l.refit(s)
	l.settleDebts(s)
	return nil
}

// Recover makes what one broken dynamic slot took from its parent free again, once that
// slot has been returned. Others that broke stay lost.
func (l *Ledger) Recover(parent ID, q Quantities) error {
	const op = "slot.Recover"
	p, ok := l.Slot(parent)
	if !ok {
		return errs.E(op, errs.NotFound, parent.String(), nil)
	}
	if misfit := q.Misfit(p.Lost); misfit != "" {
		return errs.E(op, errs.Conflict, p.Name(), fmt.Errorf("so much is not lost: %s", misfit))
	}
	p.Lost = minus(p.Lost, q)
	l.refit(p)
	l.settleDebts(p)
	return nil
}

// CouldEverFit reports whether some slot could satisfy the request were the
// machine idle. The error (kind Exhausted) compares with the largest sound
// slot: "RequestMemory 9000000 > 16384 of the largest slot".
func (l *Ledger) CouldEverFit(r Request) error {
	const op = "slot.CouldEverFit"
	if err := r.valid(); err != nil {
		return errs.E(op, errs.Invalid, "", err)
	}
	var (
		largest    Quantities
		sound      int
		unequipped error
	)
	for _, sh := range l.shares {
		if sh.slot.Broken != nil {
			continue
		}
		sound++
		if r.Fits(sh.slot.Total) {
			_, err := l.take(sh.slot.Total, r)
			if err == nil {
				return nil
			}
			unequipped = err
		}
		largest = most(largest, sh.slot.Total)
	}
	if sound == 0 {
		return errs.E(op, errs.Exhausted, "", fmt.Errorf("there is no usable slot"))
	}
	if unequipped != nil {
		return errs.E(op, errs.Exhausted, "", unequipped)
	}
	misfits := r.misfits(largest)
	if len(misfits) == 0 {
		return errs.E(op, errs.Exhausted, "", fmt.Errorf("no slot has all of %s", r))
	}
	parts := make([]string, len(misfits))
	for i, m := range misfits {
		parts[i] = fmt.Sprintf("Request%s %s > %s", m.name, m.want, m.have)
	}
	return errs.E(op, errs.Exhausted, "", fmt.Errorf("%s of the largest slot", strings.Join(parts, ", ")))
}

// Account is where everything of the machine is. The amounts of backfill
// slots, which overlap the others, are not part of it.
type Account struct {
	Total   Quantities // what the machine has
	Free    Quantities // in no slot, or left in partitionable slots
	Carved  Quantities // in static and dynamic slots
	Broken  Quantities // in broken slots, or lost to them
	Offline Quantities // configured out of use
}

// Account adds up the ledger.
func (l *Ledger) Account() Account {
	a := Account{Total: l.total, Free: minus(l.spare, l.resting), Offline: plus(l.offline, l.resting)}
	for _, sh := range l.shares {
		s := sh.slot
		if s.Backfill {
			continue
		}
		add := func(sum *Quantities, q Quantities) { *sum = plus(*sum, s.accounted(q)) }
		add(&a.Offline, s.Offline)
		switch {
		case s.Kind == Partitionable:
			used := plus(s.Lost, s.Offline)
			for _, c := range sh.children {
				if c == nil {
					continue
				}
				used = plus(used, c.Total)
				add(&a.Offline, c.Offline)
				if c.Broken != nil {
					add(&a.Broken, minus(c.Total, c.Offline))
				} else {
					add(&a.Carved, minus(c.Total, c.Offline))
				}
			}
			add(&a.Broken, s.Lost)
			if s.Broken != nil {
				add(&a.Broken, minus(s.Total, used))
			} else {
				add(&a.Free, s.Free)
			}
		case s.Broken != nil:
			add(&a.Broken, minus(s.Total, s.Offline))
		default:
			add(&a.Carved, minus(s.Total, s.Offline))
		}
	}
	return a
}

// Check proves the ledger: nothing of the machine is lost, doubled or
// negative, no asset has two holders, and every partitionable slot has free
// what its dynamic slots left. An error (kind Internal) is a defect here.
func (l *Ledger) Check() error {
	const op = "slot.Check"
	a := l.Account()
	sum := plus(plus(plus(a.Free, a.Carved), a.Broken), a.Offline)
	if d := difference(a.Total, sum); d != "" {
		return errs.E(op, errs.Internal, "machine", fmt.Errorf("free + carved + broken + offline is not the total: %s", d))
	}
	if err := l.checkOutages(a.Offline); err != nil {
		return errs.E(op, errs.Internal, "machine", err)
	}
	for _, sh := range l.shares {
		if err := sh.check(); err != nil {
			return errs.E(op, errs.Internal, sh.slot.Name(), err)
		}
	}
	return nil
}

func (sh *share) check() error {
	s := sh.slot
	used, n := plus(s.Lost, s.Offline), 0
	for i, c := range sh.children {
		if c == nil {
			continue
		}
		n++
		if c.ID != (ID{N: s.ID.N, Sub: i + 1}) {
			return fmt.Errorf("dynamic slot %d is named %s", i+1, c.ID)
		}
		used = plus(used, c.Total)
		if err := c.sound(minus(c.Total, c.Offline)); err != nil {
			return fmt.Errorf("%s: %w", c.Name(), err)
		}
	}
	if n != s.Children {
		return fmt.Errorf("%d dynamic slots, counted %d", n, s.Children)
	}
	if s.Kind != Partitionable && n > 0 {
		return fmt.Errorf("a %s slot has %d dynamic slots", s.Kind, n)
	}
	if i := slices.Index(sh.children[:min(sh.low, len(sh.children))], nil); i >= 0 {
		return fmt.Errorf("number %d is free but will not be found", i+1)
	}
	return s.sound(minus(s.Total, used))
}

// sound checks what the slot has free: what is left of it, or nothing if it is
// broken.
func (s *Slot) sound(left Quantities) error {
	if s.Broken != nil {
		left = Quantities{}
	}
	if d := difference(left, s.Free); d != "" {
		return fmt.Errorf("free is not total less the dynamic slots: %s", d)
	}
	if neg := (Quantities{}).Misfit(s.Free); neg != "" {
		return fmt.Errorf("negative: %s", neg)
	}
	return nil
}
