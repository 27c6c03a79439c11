// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/observe"
)

func (n *node) performAll(now clock.Instant, effects []ep.Effect) {
	for _, eff := range effects {
		n.perform(now, eff)
	}
}

// perform carries out one effect.
func (n *node) perform(now clock.Instant, eff ep.Effect) {
	if r, ok := eff.(ep.Reply); ok && r.Granted != nil {
		n.tellGranted(now, r.Granted)
	}
	if n.member.pool != nil && n.member.pool.Perform(now, eff) {
		return
	}
	switch e := eff.(type) {
	case ep.Reply:
		switch e.Ref.By {
		case ep.ControlSocket: // one request at a time
			n.control.reply = &e
		case ep.OwnQueue:
			if e.Err != nil {
				n.o.Log.Info("request refused", "err", e.Err)
			}
			n.queue = append(n.queue, n.ap.Reply(now, e)...)
		}
	case ep.StartStarter:
		n.start(e)
	case ep.OrderStarter:
		n.order(now, e)
	case ep.CatalogAnswered:
		n.catalogAnswered(e)
	case ep.ColorRefused:
		n.o.Log.Warn("the color of a slot is not shown", "slot", e.Name, "err", e.Err)
	case ep.KillStarter:
		n.o.Log.Warn("killing the starter", "activation", e.Activation, "why", e.Reason)
		n.kill(e.Activation)
	case ep.ClaimEnded:
		if e.ByClient {
			n.tell(now, observe.EPReleaseClaim, e.Slot, func(a *classad.Ad) { a.SetBool("Success", true) })
		}
		n.cron.claimEnds(e.Slot)
		n.queue = append(n.queue, n.ap.ClaimEnded(now, e)...)
		n.moved = true
	case ep.Transitioned:
		n.logMove(e)
		n.moved = true
		n.cron.slotsChanged()
	case ep.ClaimWaits:
		n.logWaiting(e)
	case ep.KeptAlive:
		n.logAlive(e)
	case ep.AdWithdrawn:
		n.moved = true
		n.cron.slotsChanged()
	case ep.ClaimIDChanged:
		n.claimIDChanged(e)
	case ep.SlotBroke:
		n.tellBroke(now, e)
	case ep.SlotMended:
		n.moved = true
		n.tellMended(now, e)
		n.cron.slotsChanged()
	case ep.RunBenchmarks:
		n.runBenchmarks(now)
	case ep.StopBenchmarks:
		n.stopBenchmarks()
	case ep.StartBackfill:
		n.startBackfill(e.Slot)
	case ep.StopBackfill:
		n.stopBackfill(now, e.Deadline)
	case ep.FetchWork:
		n.fetchWork(e)
	case ep.WorkDecided:
		n.workDecided(e)
	case ep.WorkEvicted:
		n.workEvicted(e)
	case ep.WakeAt:
		n.wakes.wakeAt = e.At
	case ep.ActivationEnded:
		n.keep(now, e)
	case ep.DrainBegun:
		n.logDrain(e)
	case ep.DrainFinal:
		n.o.Log.Info("Initiating final draining (all original jobs complete).", "id", e.ID)
	case ep.DrainCompleted:
		n.drained(e)
	case ep.ShutdownBegun:
		n.ending(e)
	case ep.PolicyWarning:
		n.policyOdd(e)
	case ep.TestExecute:
		n.testExecute(e.Place)
	case ep.FaultChanged:
		n.faultChanged(e)
	case ep.ShutdownComplete:
		n.leave.complete = true
	}
}
