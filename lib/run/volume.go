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
// It returns why the slot cannot be used again, nil if it can.
func (n *node) takeVolume(plan *protocol.Plan) *slot.BrokenReason {
	v := n.o.Host.Volumes
	if v == nil || plan.Volume == nil {
		return nil
	}
	err := v.Remove(context.Background(), plan.Volume.Name)
	if err == nil {
		return nil
	}
	n.o.Log.Error("a job's volume cannot be removed; the next start of the startd tries again", "slot", plan.SlotName, "volume", plan.Volume.Name, "err", err)
	if !v.BreakSlots() {
		return nil
	}
	return &slot.BrokenReason{Code: slot.BrokenVolume, Reason: "Could not clean up Logical Volume"}
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
