// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ad

import (
	"strings"

	"github.com/execpoint/execpoint/lib/slot"
)

// Overlap shows in all backfill slots what the primary slots leave them now,
// and in those in use which resources both have in use (ResourceConflict). It
// returns the backfill slots.
func (m *Machine) Overlap() []slot.ID {
	conflicts := m.src.Ledger.Conflicts()
	var out []slot.ID
	for _, a := range m.slots {
		if !a.s.Backfill {
			continue
		}
		a.Resources()
		if names := conflicts[a.s.ID]; len(names) > 0 {
			a.ad.SetString("ResourceConflict", strings.Join(names, ","))
		} else {
			a.drop("ResourceConflict")
		}
		out = append(out, a.s.ID)
	}
	return out
}
