// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ad

import (
	"time"

	"github.com/execpoint/execpoint/lib/classad"
)

// Drain is what ads say about draining the machine.
type Drain struct {
	On     bool
	ID     string // of the request
	Reason string
	// Start is START while On, nil if no job is admitted.
	Start *classad.Expr
	// Deadline is when the drainer wants to be through, zero if it did not say.
	Deadline time.Time
	// Started and Stopped are of the last drain, zero if there was none.
	Started, Stopped time.Time
	Expected         Expected
	// Badput is what jobs lost to draining since the EP began, Unclaimed what
	// was not used because of it, both in processor time.
	Badput, Unclaimed time.Duration
}

// Expected says what a drain begun now would cost: processor time lost by the
// jobs, and when the last of them would be gone.
type Expected struct {
	GracefulBadput, QuickBadput         time.Duration
	GracefulCompletion, QuickCompletion time.Time
}

// ShowDrain publishes d in all ads.
func (m *Machine) ShowDrain(d Drain) {
	was := m.drain
	m.drain = d
	m.publishDrain()
	if was.On == d.On && was.Start == d.Start {
		return
	}
	for _, a := range m.slots {
		a.require()
	}
}

// publishDrain writes the attributes that all slots and the daemon share.
func (m *Machine) publishDrain() {
	d := m.drain
	set := func(shown bool, name string, put func()) {
		if shown {
			put()
		} else {
			m.ad.Delete(name)
		}
	}
	text := func(name, v string) { set(d.On, name, func() { m.ad.SetString(name, v) }) }
	when := func(name string, t time.Time) { set(!t.IsZero(), name, func() { m.ad.SetInt(name, t.Unix()) }) }
	set(d.On, "Draining", func() { m.ad.SetBool("Draining", true) })
	text("DrainReason", d.Reason)
	text("DrainingRequestId", d.ID)
	when("DrainingDeadline", d.Deadline)
	when("LastDrainStartTime", d.Started)
	when("LastDrainStopTime", d.Stopped)
	m.ad.SetInt("ExpectedMachineGracefulDrainingBadput", seconds(d.Expected.GracefulBadput))
	m.ad.SetInt("ExpectedMachineQuickDrainingBadput", seconds(d.Expected.QuickBadput))
	when("ExpectedMachineGracefulDrainingCompletion", d.Expected.GracefulCompletion)
	when("ExpectedMachineQuickDrainingCompletion", d.Expected.QuickCompletion)
	total := func(name string, v time.Duration) {
		set(seconds(v) > 0, name, func() { m.ad.SetInt(name, seconds(v)) })
	}
	total("TotalMachineDrainingBadput", d.Badput)
	total("TotalMachineDrainingUnclaimedTime", d.Unclaimed)
}

// SetAdmitted says that the job came in while the machine was being drained.
func (a *Slot) SetAdmitted(admitted bool) {
	if admitted {
		a.ad.SetBool(attrAdmitted, true)
	} else {
		a.drop(attrAdmitted)
	}
}

// matchable reports whether the slot offers itself for matches.
func (a *Slot) matchable() bool {
	switch {
	case a.s.Broken != nil, a.refused:
		return false
	case a.m.drain.On:
		return a.m.drain.Start != nil
	}
	return a.offered
}
