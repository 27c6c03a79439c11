// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// ads keeps the slots' ads as the state changes. Nothing reads state from
// them but the owner's expressions.
type ads struct {
	machine   *classad.Ad // parent of all
	published []Published
}

// slotAd is the ad of one slot, a layer over the machine's.
type slotAd struct{ ad *classad.Ad }

// flat returns a copy that changes no more.
func (a *slotAd) flat() *classad.Ad {
	out := classad.NewAd()
	for name, e := range a.ad.All() {
		out.Set(name, e)
	}
	return out
}

func (x *ads) begin(cfg Config, now clock.Instant) error {
	x.machine = cfg.Inventory.Attrs.Clone()
	x.sampled(cfg.Sample, now)
	return nil
}

func (x *ads) sampled(s machine.Sample, now clock.Instant) {
	x.machine.SetReal("LoadAvg", s.LoadAvg)
	x.machine.SetReal("CondorLoadAvg", 0)
	x.machine.SetInt("KeyboardIdle", int64(s.KeyboardIdle.Seconds()))
	if s.HasConsole {
		x.machine.SetInt("ConsoleIdle", int64(s.ConsoleIdle.Seconds()))
	}
	x.machine.SetInt("MyCurrentTime", now.Wall.Unix())
}

func (x *ads) add(e *Engine, sl *slotState) {
	a := classad.NewAd()
	a.SetParent(x.machine)
	a.SetString("Name", sl.full)
	a.SetInt("SlotID", int64(sl.s.ID.N))
	a.SetString("SlotType", sl.s.Kind.String())
	switch sl.s.Kind {
	case slot.Partitionable:
		a.SetBool("PartitionableSlot", true)
	case slot.Dynamic:
		a.SetBool("DynamicSlot", true)
		a.SetInt("DSlotId", int64(sl.s.ID.Sub))
	}
	a.Set("Requirements", classad.MustParseExpr("Start && WithinResourceLimits"))
	a.Set("WithinResourceLimits", classad.MustParseExpr("TARGET.RequestCpus <= MY.Cpus && TARGET.RequestMemory <= MY.Memory && TARGET.RequestDisk <= MY.Disk"))
	sl.ad.ad = a
	x.reconfigured(sl)
	x.resources(sl)
	x.moved(e, sl)
	for _, p := range x.published {
		x.layer(sl, p)
	}
}

func (x *ads) remove(*slotState) {}

func (x *ads) reconfigured(sl *slotState) {
	sl.ad.ad.Set("Start", sl.exprs.Get(policy.Start).Expr)
	sl.ad.ad.Set("Rank", sl.exprs.Get(policy.Rank).Expr)
}

func (x *ads) resources(sl *slotState) {
	sl.ad.ad.SetInt("Cpus", int64(sl.s.Free.Cpus))
	sl.ad.ad.SetInt("Memory", sl.s.Free.MemoryMiB)
	sl.ad.ad.SetInt("Disk", sl.s.Free.DiskKiB)
}

func (x *ads) moved(e *Engine, sl *slotState) {
	a := sl.ad.ad
	a.SetString("State", sl.pair.State.String())
	a.SetString("Activity", sl.pair.Activity.String())
	a.SetInt("EnteredCurrentState", sl.entered.Wall.Unix())
	a.SetInt("EnteredCurrentActivity", sl.began.Wall.Unix())
	x.job(e, sl)
}

func (x *ads) job(_ *Engine, sl *slotState) {
	a := sl.ad.ad
	if sl.act == nil {
		a.Delete("JobStart")
		a.Delete("JobId")
		return
	}
	a.SetInt("JobStart", sl.act.Began.Wall.Unix())
}

func (x *ads) publish(e *Engine, ev Published) {
	for i := range x.published {
		if p := &x.published[i]; p.Source == ev.Source && p.Slot == ev.Slot {
			if p.Attrs != nil {
				for name := range p.Attrs.All() {
					for _, sl := range e.slots {
						if ev.Slot.IsZero() || sl.s.ID.N == ev.Slot.N {
							sl.ad.ad.Delete(name)
						}
					}
				}
			}
			*p = ev
			for _, sl := range e.slots {
				x.layer(sl, ev)
			}
			return
		}
	}
	x.published = append(x.published, ev)
	for _, sl := range e.slots {
		x.layer(sl, ev)
	}
}

func (x *ads) layer(sl *slotState, p Published) {
	if p.Attrs == nil || !p.Slot.IsZero() && p.Slot.N != sl.s.ID.N {
		return
	}
	for name, expr := range p.Attrs.All() {
		sl.ad.ad.Set(name, expr)
	}
}
