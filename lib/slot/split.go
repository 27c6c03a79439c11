// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package slot

import (
	"fmt"

	"github.com/execpoint/execpoint/lib/errs"
)

// mostPrefix bounds the beginning of a slot's name in bytes.
const mostPrefix = 32

// validPrefix refuses what cannot begin the name of a slot, which stands in ads and in
// the names of files: letters, digits and signs between them, and no digit at the end,
// where the number of the slot begins.
func validPrefix(s string) error {
	for i := range len(s) {
		letter := 'a' <= s[i]|0x20 && s[i]|0x20 <= 'z'
		inner := i > 0 && i < len(s)-1 && ('0' <= s[i] && s[i] <= '9' || s[i] == '_' || s[i] == '-')
		if !letter && !inner {
			return fmt.Errorf("%.40q cannot begin the name of a slot", s)
		}
	}
	if s == "" || len(s) > mostPrefix {
		return fmt.Errorf("%d bytes cannot begin the name of a slot, which has 1 to %d before its number", len(s), mostPrefix)
	}
	return nil
}

// Split takes r out of a dynamic slot and makes another one of it, for a job, with the
// lowest number that is free. It belongs to the same partitionable slot, to which Return
// gives back what each has by then. A request that does not fit is refused as by Carve
// and changes nothing.
func (l *Ledger) Split(donor ID, r Request) (*Slot, error) {
	return l.split(donor, r, func(part *Slot) error {
		part.Part = true
		return nil
	})
}

// SplitData is Split for a slot that will hold files which jobs share. Its name begins
// with prefix, "" for that of the partitionable slot, as others have it.
func (l *Ledger) SplitData(donor ID, r Request, prefix string) (*Slot, error) {
	return l.split(donor, r, func(part *Slot) error {
		part.Data = true
		if prefix == "" {
			return nil
		}
		part.Prefix = prefix
		return validPrefix(prefix)
	})
}

// split splits a slot, as dress makes the new one.
func (l *Ledger) split(donor ID, r Request, dress func(*Slot) error) (*Slot, error) {
	const op = "slot.Split"
	d, ok := l.Slot(donor)
	if !ok {
		return nil, errs.E(op, errs.NotFound, donor.String(), nil)
	}
	switch {
	case d.Kind != Dynamic:
		return nil, errs.E(op, errs.Conflict, d.Name(), fmt.Errorf("it is not dynamic"))
	case d.Broken != nil:
		return nil, errs.E(op, errs.Broken, d.Name(), fmt.Errorf("%s", d.Broken.Reason))
	}
	open := l.Open(d)
	if err := l.Fits(open, r); err != nil {
		return nil, errs.E(op, errs.Other, d.Name(), err)
	}
	sh := l.share(donor)
	sub := sh.lowest()
	if sub > MaxDynamicSlots {
		return nil, errs.E(op, errs.Exhausted, d.Name(), fmt.Errorf("%d dynamic slots are the most", MaxDynamicSlots))
	}
	given, err := l.take(open, r)
	if err != nil {
		return nil, errs.E(op, errs.Exhausted, d.Name(), err)
	}
	child := &Slot{
		ID: ID{N: d.ID.N, Sub: sub}, Kind: Dynamic, TypeID: d.TypeID, Prefix: sh.slot.Prefix,
		Total: given, Free: given, Backfill: d.Backfill, Sliver: d.Sliver, VolumeDiskKiB: d.VolumeDiskKiB,
	}
	if err := dress(child); err != nil {
		return nil, errs.E(op, errs.Invalid, d.Name(), err)
	}
	l.use(d, -1)
	d.Total, d.Free = minus(d.Total, given), minus(d.Free, given)
	l.use(d, +1)
	l.use(child, +1)
	sh.slot.Children++
	sh.put(child)
	return child, nil
}
