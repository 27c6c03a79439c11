// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/slot"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// activation is the run's side of one starter.
type activation struct {
	handle Starter        // nil until it runs
	dir    string         // its scratch directory, "" until it has one
	job    host.ProcID    // the job's main process, zero until it runs
	user   *host.Identity // who it runs as, nil for the user of this program
	record *protocol.ExitRecord
	gid    uint32           // by which its processes are told, 0 for none
	cores  []int            // that its job is kept on, none for all
	ended  *host.ExitStatus // of the starter, nil while it is there

	start   ep.StartStarter
	leaving bool             // it was told to end its job
	orders  []protocol.Order // given before it ran
	kill    bool
}

// start begins an activation. The ads are written out here, since they may not
// be read by two goroutines; the rest happens beside the owner.
func (n *node) start(e ep.StartStarter) {
	a := &activation{start: e}
	a.start.MachineAd = nil // which nobody needs any more
	n.starter.live[e.Activation] = a
	n.jobBegins(e.Slot)
	a.cores = n.coresOf(e, n.o.Host.Clock.Now())
	shadow := n.member.pool != nil && n.member.pool.HasShadow(e.Activation)
	told := e
	if shadow || e.Fetched {
		told.MachineAd = n.shown(e)
	}
	plan := n.plan(told)
	plan.Limits.Cores = a.cores
	var choose runAs
	if n.serving() {
		var err error
		if plan.Log, err = starterLog(n.starterOf(e.Slot).config, n.o.Config, e.SlotName, e.Job); err != nil {
			n.o.Log.Warn("the starter writes no log", "err", err)
		}
	}
	if shadow {
		plan.Shadow, plan.Keep = n.shadowSide(), false
		if !e.Split.IsZero() {
			plan.Shadow.Split = claim.Secret(e.Split.Wire())
		}
		choose = runAsFrom(n.starterOf(e.Slot).config, e.Slot, e.MachineAd, e.Job)
	} else if e.Fetched {
		plan.Submit = protocol.SubmitSide{Local: true} // nobody hears what the job says by Chirp
		choose = runAsFetched(n.starterOf(e.Slot).config, e.Slot, e.MachineAd, e.Job)
	} else if n.o.Host.Account != nil {
		choose = runAsHere(n.starterOf(e.Slot).config, e.Slot, e.MachineAd, e.Job, n.o.RunAs)
	}
	var noGroup error
	plan.TrackGID, noGroup = n.starter.gids.take()
	a.gid = plan.TrackGID
	n.mail.around.Go(func() {
		h, err := n.launch(e, plan, shadow, choose, noGroup)
		if err != nil {
			n.mail.post(func(now clock.Instant) {
				n.starter.gids.give(a.gid)
				delete(n.starter.live, e.Activation)
				n.o.Log.Error("no starter", "slot", e.SlotName, "err", err)
				n.step(now, ep.StarterFailed{Activation: e.Activation, Err: err, Fault: faultOfLaunch(err)})
				n.queue = append(n.queue, n.ap.StarterExited(now, e.Activation, err.Error())...)
				n.moved = true
			})
			return
		}
		n.mail.post(func(now clock.Instant) {
			a.user = plan.RunAs
			n.launched(now, e.Activation, a, h)
		})
		for r := range h.Reports() {
			n.mail.post(func(now clock.Instant) { n.report(now, e.Activation, r) })
		}
		<-h.Exited()
		st, err := h.Exit()
		broken, stays := n.takeVolume(plan)
		n.mail.post(func(now clock.Instant) {
			n.exited(now, e.Activation, st, broken, err)
			if stays {
				n.retryVolume(e.Activation, plan)
			}
		})
	})
}

func (n *node) launched(now clock.Instant, act claim.ActivationID, a *activation, h Starter) {
	a.handle = h
	n.tellActivated(now, a.start, h.Proc().PID)
	n.step(now, ep.StarterStarted{Activation: act, Proc: h.Proc()})
	orders := a.orders
	a.orders = nil
	for _, o := range orders {
		n.send(act, a, o)
	}
	if a.kill {
		n.kill(act)
	}
}

func (n *node) order(now clock.Instant, e ep.OrderStarter) {
	a, ok := n.starter.live[e.Activation]
	if !ok {
		return
	}
	n.tellOrder(now, a, e)
	if e.Late {
		n.logLate(a)
	}
	o := orderOf(e)
	if a.handle == nil {
		a.orders = append(a.orders, o)
		return
	}
	n.send(e.Activation, a, o)
}

// orderOf is an order of the engine in the words of the protocol.
func orderOf(e ep.OrderStarter) protocol.Order {
	why := protocol.Leave{Manner: protocol.MannerVacate, Asked: askedBy(e.Code), Reason: e.Reason, Code: e.Code, Subcode: e.Subcode}
	switch {
	case e.Hold || e.Purpose == ep.ToHold:
		why.Manner = protocol.MannerHold
	case e.Purpose == ep.ToRemove:
		why.Manner = protocol.MannerRemove
	}
	switch e.Op {
	case ep.Suspend:
		return protocol.Suspend{}
	case ep.Continue:
		return protocol.Continue{}
	case ep.SoftKill:
		return protocol.SoftKill{Leave: why, Final: e.Final}
	case ep.Checkpoint:
		return protocol.Checkpoint{}
	}
	return protocol.HardKill{Leave: why, OutputLimit: e.OutputLimit}
}

// askedBy is for whom the startd orders what has that vacate code.
func askedBy(code int) string {
	switch reason.Code(code) {
	case reason.ClaimDeactivated:
		return "shadow"
	case reason.StartdReleaseCommand:
		return "schedd"
	case reason.StartdVacateCommand:
		return "administrator"
	}
	return "startd"
}

// immortal counts the processes of a job that live although its starter, or the
// startd after one that died, did all to end them. HTCondor's startd looks three times,
// a second apart, before it believes that; here they were waited for already.
func (n *node) immortal(rec *protocol.ExitRecord, err error) int {
	var named []host.ProcID
	var undying *host.Undying
	if errors.As(err, &undying) {
		named = undying.Procs
	}
	if rec != nil {
		named = append(slices.Clone(named), rec.Left.Undying...)
	}
	living := map[host.ProcID]bool{}
	for _, p := range named {
		if n.o.Host.Census.Alive(p) {
			living[p] = true
		}
	}
	if len(living) > 0 {
		n.o.Log.Error(fmt.Sprintf("Startd has detected %d still-running processes under a starter", len(living)), "processes", fmt.Sprint(slices.Collect(maps.Keys(living))))
	}
	return len(living)
}

// send passes an order on, and waits for nobody. A starter that is gone needs
// none, its exit is on the way; one that does not read is killed by its handle.
func (n *node) send(act claim.ActivationID, a *activation, o protocol.Order) {
	if err := a.handle.Send(o); err != nil && !errs.Is(err, errs.NotFound) {
		n.o.Log.Warn("order not taken", "activation", act, "order", o.Kind(), "err", err)
	}
}

func (n *node) kill(act claim.ActivationID) {
	a, ok := n.starter.live[act]
	if !ok {
		return
	}
	a.kill = true
	if a.handle == nil {
		return
	}
	n.mail.around.Go(func() {
		if err := a.handle.Kill(); err != nil {
			n.o.Log.Warn("starter cannot be killed", "activation", act, "err", err)
		}
	})
}

// report passes a starter's report to the engine, then to the access point.
func (n *node) report(now clock.Instant, act claim.ActivationID, told protocol.Told) {
	a, ok := n.starter.live[act]
	if !ok {
		return
	}
	switch r := told.What.(type) {
	case protocol.Sandbox:
		a.dir = r.Dir
	case protocol.Running:
		a.job = r.Proc
		n.step(now, ep.JobRunning{Activation: act, Proc: r.Proc})
	case protocol.Usage:
		n.step(now, ep.JobUsage{Activation: act, Usage: r.Usage, DiskKiB: r.DiskKiB})
	case protocol.Suspended:
		n.step(now, ep.JobSuspended{Activation: act})
	case protocol.Continued:
		n.step(now, ep.JobContinued{Activation: act})
	case protocol.OutputMoved:
		n.step(now, ep.OutputMoved{Activation: act})
	case protocol.Contact:
		n.step(now, ep.StarterReached{Activation: act, Address: r.Address})
	case protocol.Color:
		if ad, err := n.adOf(act, r.Ad); err == nil {
			n.step(now, ep.SlotColored{Activation: act, Ad: ad})
		}
	case protocol.Catalog:
		ad, err := n.adOf(act, r.Ad)
		if err != nil {
			n.catalogAnswered(ep.CatalogAnswered{Activation: act, Err: err})
			break
		}
		n.step(now, ep.CatalogAnnounced{Activation: act, Ad: ad})
	case protocol.Refused:
		n.o.Log.Warn("the starter refuses an order", "activation", act, "order", r.Order, "why", r.Why)
	case protocol.Ended:
		n.jobEnded(now, act, a, &r.Record)
	}
	n.ap.Report(now, act, told)
	if a.handle != nil {
		a.handle.Heard(told.ID)
	}
}

// adOf reads an ad of a starter, which has it from an access point.
func (n *node) adOf(act claim.ActivationID, text string) (*classad.Ad, error) {
	ad, err := classad.ParseAd(text, classad.Old)
	if err != nil {
		n.o.Log.Warn("an ad of a starter cannot be read", "activation", act, "err", err)
	}
	return ad, err
}

// catalogAnswered tells a starter whether the slots show its catalog.
func (n *node) catalogAnswered(e ep.CatalogAnswered) {
	a, ok := n.starter.live[e.Activation]
	if !ok || a.handle == nil {
		return
	}
	var o protocol.Cataloged
	if e.Err != nil {
		o.Why = e.Err.Error()
		n.o.Log.Warn("a catalog is not shown", "activation", e.Activation, "err", e.Err)
	}
	n.send(e.Activation, a, o)
}

// jobEnded takes the last word of a starter.
func (n *node) jobEnded(now clock.Instant, act claim.ActivationID, a *activation, rec *protocol.ExitRecord) {
	a.record = rec
	if rec.Fault != nil {
		n.faults.failedAs[n.o.executeOf(a.start.Slot)] = a.user
	}
	for _, p := range rec.Problems {
		n.o.Log.Warn("starter", "activation", act, "problem", p)
	}
	if h := rec.Held; h != nil && a.start.Fetched { // no queue holds it
		n.o.Log.Warn("fetched work cannot be run", "slot", a.start.SlotName, "job", jobName(a.start.Job), "code", h.Code, "subcode", h.Subcode, "why", h.Reason)
	}
	n.step(now, ep.JobEnded{Activation: act, Exit: ep.Exit{
		Status: rec.Status, Evicted: rec.Evicted, Held: rec.Held != nil, Usage: rec.Usage,
		BytesIn: rec.BytesIn, BytesOut: rec.BytesOut, Fault: faultOf(rec.Fault),
	}})
}

func (n *node) exited(now clock.Instant, act claim.ActivationID, st host.ExitStatus, broken *slot.BrokenReason, err error) {
	why := ""
	if err != nil {
		n.o.Log.Warn("starter", "activation", act, "err", err)
		why = err.Error()
	}
	if !st.Success() {
		why = errors.Join(fmt.Errorf("the starter %v", st), err).Error()
	}
	gone := ep.StarterExited{Activation: act, Status: st, Broken: broken}
	if a := n.starter.live[act]; a != nil {
		a.ended = &st
		gone.ClientLost, gone.Fault = a.record != nil && a.record.Lost, a.silent(st)
		gone.Immortal = n.immortal(a.record, err)
		n.starter.gids.give(a.gid)
	}
	n.step(now, gone)
	delete(n.starter.live, act)
	n.queue = append(n.queue, n.ap.StarterExited(now, act, why)...)
	n.moved = true
}
