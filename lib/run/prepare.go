// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"time"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/machine"
)

// Platform is the operating system as Prepare needs it.
type Platform interface {
	// Scanners find the machine, in this order.
	Scanners() []machine.Scanner
	// Volume looks at the file systems of EXECUTE and of SLOT<N>_EXECUTE.
	Volume(execute string, snap *config.Snapshot) machine.Scanner
	// Host is what a run needs of the system.
	Host(execute string, snap *config.Snapshot) (Host, error)
}

// Prepare finds the machine, reads the configuration for it, makes sure that jobs
// can work in EXECUTE, and returns the Options that follow. The caller adds the
// program of the starter, Version, User, Jobs and Log. found is what could not be
// found out of the machine, which keeps nothing from running.
//
// load is called more than once: the configuration reads facts of the machine,
// and says which of them count.
func Prepare(ctx context.Context, p Platform, load func(*machine.Inventory) (*config.Snapshot, error)) (o Options, found []error, err error) {
	now := time.Now()
	inv, found := machine.Scan(ctx, now, p.Scanners()...)
	snap, err := load(inv)
	if err != nil {
		return o, found, err
	}
	changed, err := inv.Prefer(snap)
	if err == nil && changed {
		snap, err = load(inv)
	}
	if err != nil {
		return o, found, err
	}
	execute := snap.String("EXECUTE")
	elsewhere, err := machine.SlotExecutes(snap)
	if err != nil {
		return o, found, err
	}
	if err := CheckExecute(execute); err != nil {
		return o, found, err
	}
	for _, e := range inv.Apply(ctx, now, p.Volume(execute, snap), machine.ConfigScanner(snap)) {
		if errs.Is(e, errs.Invalid) {
			return o, found, e
		}
		found = append(found, e)
	}
	h, err := p.Host(execute, snap)
	if err != nil {
		return o, found, err
	}
	return Options{
		Config: snap, Inventory: inv, Host: h, Places: Places{Execute: execute, SlotExecutes: CheckSlotExecutes(elsewhere, h.Errno)},
		Reloading: Reloading{Load: func(context.Context) (*config.Snapshot, error) { return load(inv) }},
	}, found, nil
}
