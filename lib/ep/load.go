// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"math"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/policy"
)

// loadWindow is the time constant of the system's load average, which the
// part of it that jobs make has to follow.
const loadWindow = time.Minute

// loadFloor is the load below which a slot without a job counts as quiet.
const loadFloor = 0.005

// sampled takes a reading of the machine into the ads, with the part of the
// load that each slot's job makes.
func (e *Engine) sampled(ev Sampled) {
	gone := e.now.Sub(e.readings.last)
	e.readings.last = e.now
	keep := math.Exp(-gone.Seconds() / loadWindow.Seconds())
	share := e.backfillShare()
	for _, sl := range e.slots.all {
		busy := sl.processors() + share*sl.backfillCpus()
		if busy == 0 && sl.load == 0 {
			continue
		}
		sl.load = sl.load*keep + busy*(1-keep)
		if sl.act == nil && sl.load < loadFloor {
			sl.load = 0
		}
		sl.ad.SetCondorLoad(sl.load)
	}
	e.resize(ev.Sample)
	e.ads.Refresh(ev.Sample, e.now)
	e.showDrain()
}

// resize lets the slots follow the disk, if it is to be measured over and over.
func (e *Engine) resize(s machine.Sample) {
	if !e.readings.followDisk || !s.Has(machine.ReadDisk) || !e.ledger.Resize(e.cfg.Inventory.Execute.Usable(s.FreeDiskKiB)) {
		return
	}
	for _, sl := range e.slots.all {
		sl.ad.Resources()
		e.emit(AdChanged{Slot: sl.s.ID})
	}
}

// processors returns how many processors the slot's job or the benchmarks run
// for it keep busy. Of a job it is what was
// measured, and before anything was measured all that it has, so that a job's
// own load is not taken for the owner's.
func (sl *slotState) processors() float64 {
	a := sl.act
	switch {
	case sl.pair == policy.UnclaimedBenchmarking:
		return benchmarkLoad
	case a == nil || a.Phase == claim.Suspended || a.Phase == claim.Ended:
		return 0
	case a.used.measured:
		return a.used.cpus
	}
	return sl.s.Total.Cpus
}
