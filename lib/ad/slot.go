// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ad

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// Slot is the ad of one slot. Each method changes the attributes that its
// name says and no others.
type Slot struct {
	m     *Machine
	s     *slot.Slot
	layer *typeLayer
	ad    *classad.Ad
	over  *classad.Ad // what others published, nil as a rule; its parent is ad

	pair           policy.Pair
	entered, began clock.Instant // the state, the activity
	spent          [len(policy.States)][len(policy.Activities)]time.Duration

	offered    bool
	refused    bool    // RefuseStart
	drainStart bool    // Start is that of a drain
	own        []owner // that stand over what the slot says itself

	ownerLoad, condorLoad  float64    // as charged
	shownLoad, shownCondor float64    // as in the ad
	latches                []latch    // parallel to those of the layer
	latchedBy              *typeLayer // whose latches they are; nil shows all of them again
	cpu                    busyness

	ownKeyboard, ownConsole bool               // the ad has idle times of its own
	claimAttrs              []string           // what SetClaim and SetActivation put in
	jobAttrs                []string           // what was copied from the job
	activation              claim.ActivationID // whose job that is, "" for a request's
	claims                  int                // that the owner offers at a time, see Claims
}

// Ad returns the live ad, with the layers it lies on. It must not be changed
// by others, and not be kept: Publish may put another in its place.
func (a *Slot) Ad() *classad.Ad {
	if a.over != nil {
		return a.over
	}
	return a.ad
}

// WithoutJob is Ad as it would be without what is shown of the job, for
// questions about another one: what the job says of itself is not the slot's
// answer to those. It holds until the next change.
func (a *Slot) WithoutJob() *classad.Ad {
	if len(a.jobAttrs) == 0 {
		return a.Ad()
	}
	out := a.ad.Clone()
	for _, name := range append(a.jobAttrs[:len(a.jobAttrs):len(a.jobAttrs)], attrImageSize) {
		if e, ok := a.layer.ad.Lookup(name); ok {
			out.Set(name, e)
		} else {
			out.Delete(name)
		}
	}
	if a.over == nil {
		return out
	}
	over := a.over.Clone()
	over.SetParent(out)
	return over
}

// drop takes an attribute of the slot's own away, so that what the slot type
// says shows again. Delete alone would hide that as well.
func (a *Slot) drop(name string) {
	if e, ok := a.layer.ad.Lookup(name); ok {
		a.ad.Set(name, e)
	} else {
		a.ad.Delete(name)
	}
}

// setInt and its like change the ad only where the value differs, so that a
// refresh of many slots costs little.
func (a *Slot) setInt(name string, v int64) {
	if e, ok := a.ad.Lookup(name); ok {
		if lit, ok := e.LiteralValue(); ok {
			if was, ok := lit.AsInt(); ok && was == v {
				return
			}
		}
	}
	a.ad.SetInt(name, v)
}

func (a *Slot) setReal(name string, v float64) {
	if e, ok := a.ad.Lookup(name); ok {
		if lit, ok := e.LiteralValue(); ok {
			if was, ok := lit.AsReal(); ok && was == v {
				return
			}
		}
	}
	a.ad.SetReal(name, v)
}

// dress writes everything the slot says about itself.
func (a *Slot) dress() {
	a.layer = a.m.layer(a.s.TypeID)
	a.ad.SetParent(a.layer.ad)
	id := a.s.ID
	a.ad.SetString(attrName, a.s.FullName(a.m.set.name))
	a.ad.SetInt("SlotID", int64(id.N))
	a.ad.SetInt("SlotTypeID", int64(a.s.TypeID))
	a.ad.SetString("SlotType", a.s.Kind.String())
	switch a.s.Kind {
	case slot.Partitionable:
		a.ad.SetBool("PartitionableSlot", true)
	case slot.Dynamic:
		a.ad.SetBool("DynamicSlot", true)
		a.ad.SetInt("ParentSlotId", int64(id.N))
		a.ad.SetInt(attrDSlotID, int64(id.Sub))
		if a.s.Data {
			a.ad.SetBool("IsDataSlot", true)
		}
	}
	if a.s.Backfill {
		a.ad.SetBool("BackfillSlot", true)
	}
	if a.s.Kind != slot.Static && a.m.set.hasRollup {
		a.ad.SetBool(attrRollup, true)
	}
	a.volume()
	a.own = a.m.ownOf(a.s)
	a.instances()
	a.consumption()
	a.whole()
	a.setState()
	a.Resources()
}

// volume shows the file system of the slot's execute directory, where that is
// not the one of EXECUTE.
func (a *Slot) volume() {
	for _, v := range a.m.src.Inventory.Volumes {
		if slices.Contains(v.Slots, a.s.ID.N) {
			a.ad.SetString(attrExecuteVolume, v.ID)
			a.ad.SetInt("DetectedDisk", v.TotalKiB)
			return
		}
	}
}

// wear lets the owner's own attributes stand over what the slot says of
// itself.
func (a *Slot) wear() {
	for _, o := range a.own {
		a.ad.Set(o.name, o.expr)
	}
}

// isState reports whether an attribute is about what the slot is doing: the
// owner's settings do not replace it.
func isState(name string) bool {
	for _, n := range [...]string{attrState, attrActivity, attrEnteredState, attrEnteredActivity, attrRequirements} {
		if strings.EqualFold(n, name) {
			return true
		}
	}
	return false
}

// isStatic reports whether dress sets an attribute that the owner's settings
// may replace.
func isStatic(name string) bool {
	for _, n := range [...]string{
		attrName, "SlotID", "SlotTypeID", "SlotType", attrCpus, attrMemory, attrDisk, attrVirtualMemory, attrTotalDisk,
		"TotalSlotCpus", "TotalSlotMemory", "TotalSlotDisk",
	} {
		if strings.EqualFold(n, name) {
			return true
		}
	}
	return false
}

// Resources shows what the slot has and has left, as the ledger has it now.
func (a *Slot) Resources() {
	s := a.s
	open := a.m.src.Ledger.Open(s)
	a.ad.SetInt(attrTotalDisk, s.VolumeDiskKiB)
	a.setCpus(attrCpus, open.Cpus)
	a.setCpus("TotalSlotCpus", s.Total.Cpus-s.Lost.Cpus)
	a.setInt(attrMemory, open.MemoryMiB)
	a.setInt("TotalSlotMemory", s.Total.MemoryMiB-s.Lost.MemoryMiB)
	disk, swap := open.DiskKiB, open.SwapKiB
	if s.Broken != nil {
		// Like HTCondor, which takes away only what a job cannot do without.
		disk, swap = s.Total.DiskKiB, s.Total.SwapKiB
	}
	a.setInt(attrDisk, disk)
	a.setReal("TotalSlotDisk", float64(s.Total.DiskKiB-s.Lost.DiskKiB))
	a.setInt(attrVirtualMemory, swap)
	for _, c := range s.Total.Custom {
		a.custom(c, open)
	}
	if s.Kind == slot.Partitionable {
		a.setInt(attrNumDynamicSlots, int64(s.Children))
	}
	a.brokenness()
	a.wear()
	a.share()
}

// setCpus shows a number of processors, as an integer when it is one.
func (a *Slot) setCpus(name string, v float64) {
	if v == float64(int64(v)) {
		a.setInt(name, int64(v))
	} else {
		a.setReal(name, v)
	}
}

// custom shows one custom resource: a partitionable slot keeps its whole list
// of instances, and only the number and the list of available ones shrink.
func (a *Slot) custom(c slot.Custom, open slot.Quantities) {
	free, _ := open.Find(c.Name)
	lost, _ := a.s.Lost.Find(c.Name)
	if a.s.Asked != nil {
		// A slot that found too few instances shows those that it found.
		free = c
		for _, asked := range a.s.Asked {
			if strings.EqualFold(asked.Name, c.Name) {
				c.Count = asked.Count
			}
		}
	}
	a.setInt(c.Name, free.Count)
	a.setInt("TotalSlot"+c.Name, c.Count-lost.Count)
	if len(c.Assets) > 0 {
		a.ad.SetString("Assigned"+c.Name, strings.Join(c.Assets, ","))
	}
	if !a.named(c.Name) {
		return
	}
	refs := make([]*classad.Expr, 0, len(free.Assets))
	for _, id := range free.Assets {
		if e, err := classad.ParseExpr(c.Name+"_"+attrSafe(id), classad.Old); err == nil {
			refs = append(refs, e)
		}
	}
	a.ad.SetValue("Available"+c.Name, classad.List(refs...))
}

// named reports whether the instances of a resource have names.
func (a *Slot) named(resource string) bool {
	for _, r := range a.m.src.Ledger.Resources() {
		if strings.EqualFold(r.Name, resource) {
			return r.Assets != nil
		}
	}
	return false
}

// attrSafe turns the name of an instance into the end of an attribute's name.
func attrSafe(id string) string {
	return strings.Map(func(r rune) rune {
		if r == '_' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
			return r
		}
		return '_'
	}, id)
}

// brokenness shows why the slot, or what was once carved from it, cannot be
// used. Requirements of a broken slot are the reason: nothing matches that.
func (a *Slot) brokenness() {
	if b := a.s.Broken; b != nil {
		a.ad.SetInt("SlotBrokenCode", int64(b.Code))
		a.ad.SetString("SlotBrokenReason", b.Reason)
	} else {
		a.drop("SlotBrokenCode")
		a.drop("SlotBrokenReason")
	}
	lost := func(name string, v int64) {
		if v > 0 {
			a.ad.SetInt("BrokenSlot"+name, v)
		} else {
			a.drop("BrokenSlot" + name)
		}
	}
	lost(attrCpus, int64(a.s.Lost.Cpus))
	lost(attrMemory, a.s.Lost.MemoryMiB)
	lost(attrDisk, a.s.Lost.DiskKiB)
	for _, c := range a.s.Lost.Custom {
		lost(c.Name, c.Count)
	}
	a.require()
}

// Offer says whether the slot can be matched as far as its state goes. While
// it cannot, Requirements are false and a Snapshot shows neither Start nor
// WithinResourceLimits.
func (a *Slot) Offer(offered bool) {
	a.offered = offered
	a.require()
}

func (a *Slot) require() {
	if d := a.m.drain; d.On && d.Start != nil {
		a.ad.Set(attrStart, d.Start)
		a.drainStart = true
	} else if a.drainStart {
		a.drop(attrStart)
		a.drainStart = false
	}
	switch {
	case a.s.Broken != nil:
		a.ad.SetString(attrRequirements, a.s.Broken.Reason)
	case !a.matchable():
		a.ad.SetBool(attrRequirements, false)
	default:
		a.ad.Set(attrRequirements, a.layer.offered[a.s.Kind])
	}
}

// SetPair puts the slot into a state and activity. The time spent in the last
// pair is counted.
func (a *Slot) SetPair(p policy.Pair, now clock.Instant) {
	if p == a.pair {
		return
	}
	a.spent[a.pair.State][a.pair.Activity] += now.Sub(a.began)
	if p.State != a.pair.State {
		a.entered = now
	}
	a.began, a.pair = now, p
	a.setState()
	a.share()
}

func (a *Slot) setState() {
	a.ad.SetString(attrState, a.pair.State.String())
	a.ad.SetString(attrActivity, a.pair.Activity.String())
	a.ad.SetInt(attrEnteredState, a.entered.Wall.Unix())
	a.ad.SetInt(attrEnteredActivity, a.began.Wall.Unix())
}

// SetRetirement shows how long the running job is still promised.
func (a *Slot) SetRetirement(left time.Duration) {
	a.setInt(attrRetirementRemaining, max(0, seconds(left)))
}

// SetCondorLoad tells how much of the machine's load the slot's job makes. It
// shows from the next Refresh on.
func (a *Slot) SetCondorLoad(load float64) { a.condorLoad = max(0, load) }

// share copies attributes of STARTD_SLOT_ATTRS into the shared layer, where
// every slot sees them as slotN_X. Expressions are copied as they are, so that
// names in them mean the ad that is asked.
func (a *Slot) share() {
	for _, n := range a.m.set.slotAttrs {
		under := a.s.Name() + "_" + n
		if e, ok := a.Ad().Lookup(n); ok {
			a.m.ad.Set(under, e)
		} else {
			a.m.ad.Delete(under)
		}
	}
}

// String names the slot and its state.
func (a *Slot) String() string { return fmt.Sprintf("%s %s", a.s.Name(), a.pair) }
