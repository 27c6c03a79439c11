// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ad

import (
	"math"
	"slices"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// Refresh takes a new sample into the shared layer, and into the ads of the
// few slots that differ from it: those that feel the keyboard or console, and
// those that the machine's load is charged to. It also looks at latches.
func (m *Machine) Refresh(s machine.Sample, now clock.Instant) {
	m.sample = s
	m.Tell(now)
	m.ad.SetReal(attrTotalLoadAvg, hundredths(s.LoadAvg))
	m.ad.SetInt(attrTotalSlots, int64(len(m.slots)))
	m.counts(m.ad, now)
	m.idle(s, now)
	m.load()
	env := &m.refreshing
	*env = classad.Env{Now: now.Wall, Location: m.src.Location}
	for _, a := range m.slots {
		a.latch(env, now)
		a.timeBusy(env, now)
		a.share()
		m.names.Join(a.ad)
	}
}

// Tell shows the time of day in the shared layer. It is told apart from the
// readings, for the clock goes on while a reading takes its time.
func (m *Machine) Tell(now clock.Instant) {
	m.ad.SetInt(attrMyCurrentTime, now.Wall.Unix())
	local := now.Wall.UTC()
	if m.src.Location != nil {
		local = now.Wall.In(m.src.Location)
	}
	m.ad.SetInt("ClockMin", int64(local.Hour()*60+local.Minute()))
	m.ad.SetInt("ClockDay", int64(local.Weekday()))
}

// env is what expressions of the machine's own ads may ask for.
func (m *Machine) env(now clock.Instant) *classad.Env {
	return &classad.Env{Now: now.Wall, Location: m.src.Location}
}

// hundredths rounds as loads are published.
func hundredths(v float64) float64 { return math.RoundToEven(v*100) / 100 }

func seconds(d time.Duration) int64 { return int64(d / time.Second) }

// idle publishes idle times. A slot that no keyboard is connected to has been
// idle since a while before the EP began. When all slots are connected, or
// none, their idle time stands in the shared layer alone.
func (m *Machine) idle(s machine.Sample, now clock.Instant) {
	m.away = seconds(now.Sub(m.started) + m.set.idleBoost)
	last := int64(0)
	if n := len(m.slots); n > 0 {
		last = int64(m.slots[n-1].s.ID.N)
	}
	put := func(name string, idle time.Duration, connected int64, known bool) (mixed bool) {
		switch {
		case !known:
			m.ad.Delete(name)
		case connected >= last:
			m.ad.SetInt(name, seconds(idle))
		default:
			m.ad.SetInt(name, m.away)
			return connected > 0
		}
		return false
	}
	m.mixedKeyboard = put(attrKeyboardIdle, s.KeyboardIdle, m.set.keyboardSlots, true)
	m.mixedConsole = put(attrConsoleIdle, s.ConsoleIdle, m.set.consoleSlots, s.HasConsole)
	for _, a := range m.slots {
		if a.ownKeyboard || a.ownConsole || int64(a.s.ID.N) <= max(m.set.keyboardSlots, m.set.consoleSlots) {
			a.idle()
		}
	}
}

// idle shows the idle times of the slot where they are not those of all.
func (a *Slot) idle() {
	put := func(name string, idle time.Duration, connected int64, mixed bool, has *bool) {
		switch {
		case mixed && int64(a.s.ID.N) <= connected:
			a.setInt(name, seconds(idle))
			*has = true
		case *has:
			// What once was the slot's own must go on to be told.
			if e, ok := a.m.ad.Lookup(name); ok {
				a.ad.Set(name, e)
			} else {
				a.ad.Delete(name)
			}
		}
	}
	put(attrKeyboardIdle, a.m.sample.KeyboardIdle, a.m.set.keyboardSlots, a.m.mixedKeyboard, &a.ownKeyboard)
	put(attrConsoleIdle, a.m.sample.ConsoleIdle, a.m.set.consoleSlots, a.m.mixedConsole, &a.ownConsole)
}

// load charges the machine's load to slots. What jobs do not make is the
// owner's; each slot in turn takes as much of it as it has processors: slots
// in Owner first, then unclaimed ones, then the others. A partitionable slot
// passes on to its dynamic slots what is more than it has idle processors.
func (m *Machine) load() {
	m.condorLoad = 0
	for _, a := range m.slots {
		m.condorLoad += a.condorLoad
	}
	m.condorLoad = min(m.condorLoad, m.sample.LoadAvg)
	m.ad.SetReal(attrTotalCondorLoadAvg, hundredths(m.condorLoad))
	m.ad.SetReal(attrLoadAvg, 0)
	m.ad.SetReal(attrCondorLoadAvg, 0)
	left := max(0, m.sample.LoadAvg-m.condorLoad)
	for _, turn := range [...]func(policy.State) bool{
		func(s policy.State) bool { return s == policy.Owner },
		func(s policy.State) bool { return s == policy.Unclaimed },
		func(s policy.State) bool { return s != policy.Owner && s != policy.Unclaimed },
	} {
		for _, a := range m.slots {
			if a.s.Kind != slot.Dynamic && a.s.Broken == nil && turn(a.pair.State) {
				a.ownerLoad = min(left, a.s.Total.Cpus)
				left -= a.ownerLoad
			}
		}
	}
	var parent *Slot
	for _, a := range m.slots {
		if a.s.Kind != slot.Dynamic {
			parent = a
			continue
		}
		a.ownerLoad = 0
		if over := parent.ownerLoad - parent.s.Free.Cpus; over > 0.05 && a.s.Broken == nil {
			a.ownerLoad = min(over, a.s.Total.Cpus)
			parent.ownerLoad -= a.ownerLoad
		}
	}
	for _, a := range m.slots {
		show := func(name string, shown *float64, load float64) {
			if load = hundredths(load); load != *shown {
				a.ad.SetReal(name, load)
				*shown = load
			}
		}
		show(attrCondorLoadAvg, &a.shownCondor, a.condorLoad)
		show(attrLoadAvg, &a.shownLoad, a.ownerLoad+a.condorLoad)
	}
}

// index returns where the ad of a slot stands, or would stand.
func (m *Machine) index(id slot.ID) int {
	i, _ := slices.BinarySearchFunc(m.slots, id, func(a *Slot, id slot.ID) int { return a.s.ID.Compare(id) })
	return i
}

// Add puts a slot of the ledger among the ads, in Owner/Idle since now, and
// shows its parent's remainder. The slot's ad reads from s whenever Resources
// is called.
func (m *Machine) Add(s *slot.Slot, now clock.Instant) *Slot {
	a := &Slot{m: m, s: s, ad: classad.NewAd(), entered: now, began: now, offered: true}
	if i := m.index(s.ID); i < len(m.slots) && m.slots[i].s.ID == s.ID {
		m.slots[i] = a
	} else {
		m.slots = slices.Insert(m.slots, i, a)
	}
	m.byID[s.ID] = a
	m.ad.SetInt(attrTotalSlots, int64(len(m.slots)))
	a.dress()
	a.overlay()
	a.idle()
	a.latch(m.env(now), now)
	a.timeBusy(m.env(now), now)
	if parent, ok := m.byID[s.ID.Parent()]; ok && parent != a {
		parent.Resources()
	}
	return a
}

// Remove takes a slot's ad away and shows its parent's remainder.
func (m *Machine) Remove(id slot.ID) {
	a, ok := m.byID[id]
	if !ok {
		return
	}
	delete(m.byID, id)
	i := m.index(id)
	m.slots = slices.Delete(m.slots, i, i+1)
	m.ad.SetInt(attrTotalSlots, int64(len(m.slots)))
	for _, n := range m.set.slotAttrs {
		m.ad.Delete(a.s.Name() + "_" + n)
	}
	if parent, ok := m.byID[id.Parent()]; ok {
		parent.Resources()
	}
}
