// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"math"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/slot"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// plan tells a starter what to do for an activation.
func (n *node) plan(e ep.StartStarter) *protocol.Plan {
	return &protocol.Plan{
		Activation:   string(e.Activation),
		SlotName:     e.SlotName,
		SlotFullName: e.FullName,
		Execute:      n.o.executeOf(e.Slot),
		JobAd:        e.Job.TextAll(classad.Old),
		MachineAd:    e.MachineAd.Text(classad.Old),
		Cpus:         cpusOf(e.Given),
		Limits:       n.slotLimits(e.Given),
		Orphan:       protocol.OrphanDie,
		Submit:       protocol.SubmitSide{Local: true, Chirp: true},
		Settings:     n.starterOf(e.Slot).settings,
		Keep:         n.o.Keep,
		MaxVacate:    e.MaxVacate,
	}
}

// cpusOf is how many whole cores a slot has.
func cpusOf(q slot.Quantities) int { return max(1, int(math.Ceil(q.Cpus))) }

// slotLimits are what a slot with these amounts has, but for the cores.
func (n *node) slotLimits(q slot.Quantities) protocol.SlotLimits {
	return protocol.SlotLimits{Cpus: cpusOf(q), MemoryMiB: q.MemoryMiB, SwapKiB: q.SwapKiB, WholeMiB: n.o.Inventory.UsableMemoryMiB}
}

// executeOf is the directory in which the sandboxes of a slot are made; a
// dynamic slot's are where those of its parent would be.
func (o *Places) executeOf(id slot.ID) string {
	for _, x := range o.SlotExecutes {
		if x.Slot == id.N {
			return x.Path
		}
	}
	return o.Execute
}
