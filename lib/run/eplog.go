// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"os"
	"strings"

	"github.com/execpoint/execpoint/lib/ad"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/slot"
)

// tell writes an event of the EP itself into STARTD_EVENTLOG, if there is one.
func (n *node) tell(now clock.Instant, kind observe.EPEventKind, id slot.ID, fill func(*classad.Ad)) {
	path := n.o.Config.String("STARTD_EVENTLOG")
	if path == "" {
		return
	}
	most, err := n.o.Config.Int("STARTD_EVENTLOG_MAX")
	if err != nil {
		most = 1 << 20
	}
	ev := &observe.EPEvent{Kind: kind, Slot: id.N, Sub: id.Sub, At: now.Wall, Attrs: classad.NewAd()}
	fill(ev.Attrs)
	n.write("an event of the Execution Point", func() error { return observe.AppendEPEvent(path, most, ev) })
}

// tellStart says that the slots are there and that the EP is ready.
func (n *node) tellStart(now clock.Instant) {
	slots := 0
	for range n.slots.ledger.Slots() {
		slots++
	}
	n.tell(now, observe.EPStartup, slot.ID{}, func(a *classad.Ad) { a.SetInt("NumSlots", int64(slots)) })
	n.tell(now, observe.EPReady, slot.ID{}, func(a *classad.Ad) { a.SetInt("PID", int64(os.Getpid())) })
}

// tellGranted says who got a claim, and for which job. What was carved for it is
// told of the partitionable slot that was asked for.
func (n *node) tellGranted(now clock.Instant, g *ep.Grant) {
	names := []string{g.Slot.String()}
	for _, more := range g.More {
		names = append(names, more.Slot.String())
	}
	of := g.Slot
	if of.IsDynamic() {
		of = of.Parent()
	}
	n.tell(now, observe.EPRequestClaim, of, func(a *classad.Ad) {
		nameJob(a, g.Job)
		a.SetString("NewSlots", strings.Join(names, ", "))
		a.SetBool("Success", true)
	})
}

// nameJob adds the id of a job and its user.
func nameJob(a, job *classad.Ad) {
	cluster, _ := job.EvalInt("ClusterId", nil)
	proc, _ := job.EvalInt("ProcId", nil)
	a.SetString("JobId", fmt.Sprintf("%d.%d", cluster, proc))
	if user, ok := job.EvalString("User", nil); ok {
		a.SetString("RemoteUser", user)
	}
}

// tellActivated says that the starter of an activation runs.
func (n *node) tellActivated(now clock.Instant, e ep.StartStarter, pid int) {
	n.tell(now, observe.EPActivateClaim, e.Slot, func(a *classad.Ad) {
		nameJob(a, e.Job)
		a.SetInt("StarterPid", int64(pid))
		a.SetBool("Success", true)
	})
}

// tellOrder says that a job was told to leave: by its access point, which
// keeps the claim, or because the claim ends. An order that follows another
// tells nothing new.
func (n *node) tellOrder(now clock.Instant, a *activation, e ep.OrderStarter) {
	if a.leaving || e.Op != ep.SoftKill && e.Op != ep.HardKill {
		return
	}
	a.leaving = true
	if reason.Code(e.Code) == reason.ClaimDeactivated {
		n.tell(now, observe.EPDeactivateClaim, a.start.Slot, func(ad *classad.Ad) {
			ad.SetBool("Force", e.Op == ep.HardKill)
			ad.SetBool("Success", true)
		})
		return
	}
	n.tell(now, observe.EPVacateClaim, a.start.Slot, func(ad *classad.Ad) {
		ad.SetInt("Code", int64(e.Code))
		ad.SetString("Reason", e.Reason)
	})
}

// tellBroke says that a slot is broken, and what it held.
func (n *node) tellBroke(now clock.Instant, e ep.SlotBroke) {
	until := "the Execution Point starts again"
	if e.Why.Code == slot.BrokenVolume {
		until = "its volume is removed"
	}
	n.o.Log.Warn("the slot is broken: what it holds is lost until "+until, "slot", e.Name, "code", int(e.Why.Code), "why", e.Why.Reason)
	n.tell(now, observe.EPResourceBreak, e.Slot, func(a *classad.Ad) {
		a.SetInt("Code", int64(e.Why.Code))
		a.SetString("Reason", e.Why.Reason)
		a.SetValue("Resources", classad.AdValue(ad.HeldBy(e.Held)))
	})
}

// tellMended says that a slot is whole again, and what is of use again.
func (n *node) tellMended(now clock.Instant, e ep.SlotMended) {
	n.o.Log.Info("the slot is whole again", "slot", e.Name)
	n.tell(now, observe.EPResourceMend, e.Slot, func(a *classad.Ad) { a.SetValue("Resources", classad.AdValue(ad.HeldBy(e.Held))) })
}
