// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/slot"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// giveVolume makes the file system of an activation's scratch directory, of the size of
// its slot's disk. It takes a part of a second, beside the owner.
func (n *node) giveVolume(e ep.StartStarter, plan *protocol.Plan) error {
	v := n.o.Host.Volumes
	if v == nil {
		return nil
	}
	name, err := v.Make(context.Background(), e.SlotName, e.Given.DiskKiB)
	if err != nil {
		return err
	}
	is := v.Volume(name, e.Given.DiskKiB)
	plan.Volume = &is
	return nil
}

// takeVolume removes the file system of an activation of which nothing runs any more.
// It returns why the slot cannot be used, nil if it can, and whether the volume stays.
func (n *node) takeVolume(plan *protocol.Plan) (broken *slot.BrokenReason, stays bool) {
	v := n.o.Host.Volumes
	if v == nil || plan.Volume == nil {
		return nil, false
	}
	err := v.Remove(context.Background(), plan.Volume.Name)
	if err == nil {
		return nil, false
	}
	n.o.Log.Error("a job's volume cannot be removed; that is tried again later, and at the next start of the startd", "slot", plan.SlotName, "volume", plan.Volume.Name, "err", err)
	if !v.BreakSlots() {
		return nil, true
	}
	return &slot.BrokenReason{Code: slot.BrokenVolume, Reason: "Could not clean up Logical Volume"}, true
}

// retryVolume tries again and again to remove a volume, beside the owner: whoever used
// it may be gone by then, or an administrator may have removed it. Then its slot is whole
// again.
func (n *node) retryVolume(act claim.ActivationID, plan *protocol.Plan) {
	every, err := n.o.Config.Duration("STARTD_CLEANUP_REMINDER_TIMER_INTERVAL")
	if err != nil || every <= 0 {
		return
	}
	if !n.o.Host.Volumes.Unique() {
		return // the slot's next job may have one of that name
	}
	always, _ := n.o.Config.Bool("AGGRESSIVE_CLEANUP_REMINDER") // its error is told of the knob
	v, name := n.o.Host.Volumes, plan.Volume.Name
	n.mail.around.Go(func() {
		ctx, cancel := n.mail.lasting()
		defer cancel()
		for tick := 0; ; {
			next := tick + 1
			if !always {
				next = nextTry(tick)
			}
			timer := time.NewTimer(time.Duration(next-tick) * every)
			tick = next
			select {
			case <-ctx.Done():
				timer.Stop()
				return
			case <-timer.C:
			}
			if err := v.Remove(ctx, name); err != nil {
				n.o.Log.Warn("a job's volume can still not be removed", "slot", plan.SlotName, "volume", name, "err", err)
				continue
			}
			n.o.Log.Info("a job's volume is removed at last", "slot", plan.SlotName, "volume", name)
			n.mail.post(func(now clock.Instant) { n.step(now, ep.VolumeRemoved{Activation: act}) })
			return
		}
	})
}

// nextTry is at which tick of HTCondor's timer it is tried again, after one: at powers of
// two until 32, then at each 60th, and after a day of minutes at each 1440th.
func nextTry(tick int) int {
	const hour, day = 60, 24 * 60
	switch {
	case tick == 0:
		return 1
	case 2*tick <= hour:
		return 2 * tick
	case tick < day:
		return (tick/hour + 1) * hour
	}
	return (tick/day + 1) * day
}

const (
	// lookAtPool is how often a startd looks whether the thin pool is full.
	lookAtPool = 10 * time.Second
	// poolPatience is how long it may be full before jobs leave.
	poolPatience = time.Minute
)

// watchPool has jobs leave when the pool that all their volumes take from is full and
// stays so: their writes stand still, and nobody else gives anything back. HTCondor's
// starters look by themselves, each as root by commands of lvm2.
func (n *node) watchPool(ctx context.Context) {
	tick := time.NewTicker(lookAtPool)
	defer tick.Stop()
	var since time.Time // when the pool was seen full first; zero while it is not
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		full, err := n.o.Host.Volumes.Exhausted(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			n.o.Log.Warn("nobody knows how full the thin pool is", "err", err)
		case !full:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
			n.o.Log.Warn("Thin pool used by startd is out of space; writes will be paused until this is resolved.")
		case time.Since(since) > poolPatience:
			since = time.Time{}
			n.o.Log.Error("Underlying thin pool is out of space and not recovering; evicting the jobs, which are not held.")
			n.mail.post(func(now clock.Instant) { n.leavePool() })
		}
	}
}

// leavePool has every job leave that has a volume. They may run again.
func (n *node) leavePool() {
	for act, a := range n.starter.live {
		n.orderOut(act, a)
	}
}

func (n *node) orderOut(act claim.ActivationID, a *activation) {
	o := protocol.HardKill{Leave: protocol.Leave{
		Manner: protocol.MannerVacate, Asked: "startd", Reason: "Underlying thin pool is out of space and not recovering", Code: int(reason.StarterError),
	}}
	a.leaving = true
	if a.handle == nil {
		a.orders = append(a.orders, o)
		return
	}
	n.send(act, a, o)
}
