// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package slots

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/ad"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/hook"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// Origin is where a division comes from.
type Origin struct {
	// Load reads the configuration, for a machine of which so much is known.
	Load func(*machine.Inventory) (*config.Snapshot, error)

	// Scanners find out what the machine has.
	Scanners []machine.Scanner

	// Volume looks at the file system of EXECUTE; nil if the scanners told its size.
	Volume func(*config.Snapshot) machine.Scanner

	// Programs finds Java and containers by running them; nil does not look.
	Programs func(*config.Snapshot) machine.Scanner

	// Hooks runs inventory scripts, and Beside is the folder where the GPU discovery
	// program may be. Without Hooks none is run, and Found is what they would say.
	Hooks  *hook.Runner
	Beside string
	Found  []slot.Inventory

	Sample   machine.Sample // how busy the machine is
	Now      time.Time
	Location *time.Location // in which expressions tell the hour
}

// Division is a machine divided as a configuration says. It is for one goroutine.
type Division struct {
	Config   *config.Snapshot
	Ledger   *slot.Ledger
	Ads      *ad.Machine
	Policy   map[int]*policy.Expressions // by slot type
	Problems []slot.Problem              // what the daemon would say of slots it cannot make
	Warnings []error                     // what does not keep the daemon from starting
	Now      clock.Instant               // of the ads

	place *time.Location
	owned map[slot.ID]bool // slots that are left to their owner
}

// Divide goes the way of the daemon: what is there, what the owner says of it, the
// slots, their ads. The error is about a configuration with which the daemon would not
// start, among them machine.ErrNoMemory and hook.ErrInventory.
func Divide(ctx context.Context, o Origin) (*Division, error) {
	now := o.Now
	// What a scanner could not find stays unknown. It ends the start only if
	// slots need it; then the configuration's scanner says so.
	inv, doubts := machine.Scan(ctx, now, o.Scanners...)
	snap, err := o.Load(inv)
	if err != nil {
		return nil, err
	}
	changed, err := inv.Prefer(snap)
	if err != nil {
		return nil, err
	}
	if changed {
		if snap, err = o.Load(inv); err != nil {
			return nil, err
		}
	}
	if o.Volume != nil {
		// A file system that cannot be measured has nothing to give.
		doubts = append(doubts, inv.Apply(ctx, now, o.Volume(snap))...)
	}
	if problems := inv.Apply(ctx, now, machine.ConfigScanner(snap)); len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	if o.Programs != nil {
		doubts = append(doubts, inv.Apply(ctx, now, o.Programs(snap))...)
	}
	d := &Division{
		Warnings: doubts, Config: snap, Now: clock.Instant{Wall: now, Boot: time.Hour}, Policy: make(map[int]*policy.Expressions),
		place: o.Location, owned: make(map[slot.ID]bool),
	}
	layout, err := d.layout(ctx, o, inv)
	if err != nil {
		return nil, err
	}
	_, doubtful := snap.Sort()
	for _, p := range doubtful {
		d.Warnings = append(d.Warnings, p)
	}
	d.Ledger, d.Problems = slot.Build(layout, inv)
	for s := range d.Ledger.Slots() {
		if d.Policy[s.TypeID] == nil {
			d.Policy[s.TypeID], _ = policy.ExpressionsFrom(snap, s.TypeID)
		}
	}
	d.Ads, err = ad.New(ad.Source{Config: snap, Inventory: inv, Ledger: d.Ledger, Policy: d.Policy, Location: d.place}, d.Now.Add(-startup))
	if err != nil {
		return nil, err
	}
	d.Owners()
	o.Sample.At = d.Now
	d.Ads.Refresh(o.Sample, d.Now)
	return d, nil
}

// layout reads the Division that the configuration wants, with what inventory
// scripts say of the machine.
func (d *Division) layout(ctx context.Context, o Origin, inv *machine.Inventory) (slot.Layout, error) {
	var f hook.Findings
	found := o.Found
	if o.Hooks != nil {
		f = o.Hooks.Discover(ctx, d.Config, hook.InventoryPatience, o.Beside)
		found = f.Inventories
	} else {
		d.notRun(found)
	}
	layout, err := slot.LayoutFrom(d.Config, inv, found...)
	if err == nil {
		err = f.Fatal(layout.Failure)
	}
	d.Warnings = append(d.Warnings, f.All()...)
	return layout, err
}

// notRun warns of inventory scripts for which the description of the machine
// has nothing to say.
func (d *Division) notRun(found []slot.Inventory) {
	scripts, _ := hook.ScriptsFrom(d.Config)
	for _, s := range scripts {
		described := slices.ContainsFunc(found, func(i slot.Inventory) bool { return strings.EqualFold(i.Resource, s.Resource) })
		if !described && s.Origin.Kind != config.Default {
			d.Warnings = append(d.Warnings, fmt.Errorf("%v: %s is not run for a described machine, which has no %s: describe them among its resources", s.Origin, s.Path, s.Resource))
		}
	}
}

// warn notes what does not keep the daemon from starting, once.
func (d *Division) warn(err error) {
	if !slices.ContainsFunc(d.Warnings, func(have error) bool { return have.Error() == err.Error() }) {
		d.Warnings = append(d.Warnings, err)
	}
}

// Owners puts every slot into the state that IS_OWNER wants for it at d.Now.
// What IS_OWNER does not make out counts as a machine in use, as the engine has
// it.
func (d *Division) Owners() {
	for s := range d.Ledger.Slots() {
		a, _ := d.Ads.Slot(s.ID)
		pair := policy.UnclaimedIdle
		if e := d.Policy[s.TypeID].Get(policy.IsOwner).Expr; e != nil {
			v := e.Eval(&classad.Env{My: a.Ad(), Now: d.Now.Wall, Location: d.place})
			switch n, ok := v.AsNumber(); {
			case !ok:
				pair = policy.OwnerIdle
				d.warn(fmt.Errorf("%s: IS_OWNER = %s is %v, neither true nor false: the slot is left to its owner", s.Name(), e.Text(classad.Old), v))
			case n != 0:
				pair = policy.OwnerIdle
			}
		}
		d.owned[s.ID] = pair == policy.OwnerIdle
		a.SetPair(pair, d.Now)
	}
}

// Each yields the published ad of every slot, in order.
func (d *Division) Each(yield func(*slot.Slot, *classad.Ad) bool) {
	for s := range d.Ledger.Slots() {
		if a, ok := d.Ads.Slot(s.ID); ok && !yield(s, a.Snapshot(d.Now)) {
			return
		}
	}
}
