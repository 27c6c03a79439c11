// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"fmt"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/hook"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/slot"
)

// divide asks the inventory scripts what the machine has and divides it. What
// could not be found or made is logged and told; the error is what the EP
// cannot start with.
func (n *node) divide(ctx context.Context) (*slot.Ledger, error) {
	runner := hooks(n.o)
	over := n.waiting("the programs that say what the machine has (MACHINE_RESOURCE_INVENTORY_<name>, condor_gpu_discovery)")
	found := runner.Discover(ctx, n.o.Config, hook.InventoryPatience, n.o.Programs)
	over()
	for _, err := range found.All() {
		n.problem(err)
	}
	layout, err := slot.LayoutFrom(n.o.Config, n.o.Inventory, found.Inventories...)
	if err != nil {
		return nil, errs.E("run.Run", errs.Invalid, "", err)
	}
	if err := found.Fatal(layout.Failure); err != nil {
		return nil, err
	}
	n.slots.found = found.Inventories
	layout.Unusable = unusable(n.o.SlotExecutes)
	ledger, problems := slot.Build(layout, n.o.Inventory)
	n.slots.problems = problems
	for _, p := range problems {
		n.o.Log.Warn("slot could not be made", "why", p)
		n.problem(fmt.Errorf("%v", p))
		if p.Fatal {
			return nil, errs.E("run.Run", errs.Invalid, "", p)
		}
	}
	return ledger, nil
}

// waiting has it logged and told that something is waited for, if it takes long:
// until the returned function is called.
func (n *node) waiting(what string) (over func()) {
	return observe.Waiting(func() {
		n.o.Log.Info("waiting for " + what)
		if n.o.Waiting != nil {
			n.o.Waiting(what)
		}
	})
}

// unusable is why slots have no directory for sandboxes, by their number.
func unusable(all []machine.SlotExecute) map[int]string {
	out := make(map[int]string)
	for _, x := range all {
		if x.Unusable != "" {
			out[x.Slot] = x.Unusable
		}
	}
	return out
}
