// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package slot

import (
	"fmt"

	"github.com/execpoint/execpoint/lib/errs"
)

// Regained returns what a partitionable slot could give (see Open) once the
// named dynamic slots of it had been returned. It changes nothing.
func (l *Ledger) Regained(parent ID, returned []ID) (Quantities, error) {
	const op = "slot.Regained"
	sh := l.share(parent)
	if sh == nil || parent.IsDynamic() {
		return Quantities{}, errs.E(op, errs.NotFound, parent.String(), nil)
	}
	p := *sh.slot
	if p.Kind != Partitionable || p.Broken != nil {
		return Quantities{}, errs.E(op, errs.Conflict, p.Name(), fmt.Errorf("the slot cannot be divided"))
	}
	for _, id := range returned {
		c, ok := l.Slot(id)
		if !ok || c.Kind != Dynamic || id.Parent() != parent || c.Broken != nil {
			return Quantities{}, errs.E(op, errs.Conflict, id.String(), fmt.Errorf("it gives nothing to %s", p.Name()))
		}
		p.Free = plus(p.Free, minus(c.Total, c.Offline)).ordered(p.Total)
	}
	return l.Open(&p), nil
}

// Fits says why r could not be taken from q, as Carve would say it; nil if it
// could.
func (l *Ledger) Fits(q Quantities, r Request) error {
	const op = "slot.Fits"
	if err := r.valid(); err != nil {
		return errs.E(op, errs.Invalid, "", err)
	}
	if misfit := r.Misfit(q); misfit != "" {
		return errs.E(op, errs.Exhausted, "", fmt.Errorf("%s", misfit))
	}
	if _, err := l.take(q, r); err != nil {
		return errs.E(op, errs.Exhausted, "", err)
	}
	return nil
}
