// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package claims

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/pool/ads"
	"github.com/execpoint/execpoint/lib/pool/engine"
	"github.com/execpoint/execpoint/lib/slot"
)

// reapPatience is how long a shadow whose job is over waits for its starter to
// be gone, so that the next job is not answered TryAgain. Shadows wait
// for 20 seconds.
const reapPatience = 5 * time.Second

// deactivations are the commands that end the job under a claim, or ask
// whether another may follow.
var deactivations = [...]struct {
	number int
	ev     ep.DeactivateRequested
}{
	{command.DeactivateClaim, ep.DeactivateRequested{How: ep.Gracefully}},
	{command.DeactivateClaimForcibly, ep.DeactivateRequested{How: ep.Forcibly}},
	{command.DeactivateClaimJobDone, ep.DeactivateRequested{How: ep.JobDone}},
	{command.ReactivateClaimCheck, ep.DeactivateRequested{How: ep.Asking}},
	{command.DeactivateClaimFinalXfer, ep.DeactivateRequested{How: ep.Gracefully, Final: true}},
}

// deactivate ends the job under a claim, or asks whether another may follow.
func (s *Server) deactivate(ctx context.Context, c *listen.Call) error {
	id, err := claimID(c.Conn, true)
	if err != nil {
		return err
	}
	if err := s.settings.Load().failing.unheeded("claims."+c.Command.Name, id.String()); err != nil {
		return err
	}
	var ev ep.DeactivateRequested
	for _, d := range deactivations {
		if d.number == c.Command.Number {
			ev = d.ev
		}
	}
	gone := false
	if err := s.cfg.Owner.Do(ctx, func(t engine.Turn) {
		v, ok := claimView(t.Engine, id)
		gone = ok && v.Pair.State != policy.Claimed
	}); err != nil {
		return err
	}
	if gone {
		// Closed without an answer, as HTCondor does.
		return errs.E("claims."+c.Command.Name, errs.Conflict, id.String(), errors.New("the claim has ended already"))
	}
	r, err := s.requests.Ask(ctx, func(ref ep.Ref) ep.Event { ev.Ref, ev.Claim = ref, id; return ev })
	if err != nil {
		return err
	}
	ad := classad.NewAd()
	ad.SetBool(ads.AttrStart, r.Err == nil && !r.Closing)
	if ev.How == ep.JobDone && r.Err == nil {
		pid, err := s.reaped(ctx, id)
		if err != nil {
			return err
		}
		if pid != 0 {
			ad.SetBool("StillCleaning", true)
			ad.SetInt("StarterPID", int64(pid))
		}
	}
	c.Conn.PutAd(ad, cedar.AdOptions{})
	return c.Conn.EndMessage()
}

// reaped waits until no starter is left under a claim, and returns the number
// of its process if it is still there after a while. One that never began is
// not waited for.
func (s *Server) reaped(ctx context.Context, id claim.ID) (pid int, err error) {
	limit := time.NewTimer(reapPatience)
	defer limit.Stop()
	for {
		var act claim.ActivationID
		var changed <-chan struct{}
		var stop func()
		if err := s.cfg.Owner.Do(ctx, func(t engine.Turn) {
			v, ok := claimView(t.Engine, id)
			if !ok || v.Activation == "" {
				return
			}
			act, pid = v.Activation, v.Starter.PID
			changed, stop = s.slotWaiters.wait(v.ID)
		}); err != nil {
			return 0, err
		}
		if act == "" {
			return 0, nil
		}
		select {
		case <-changed:
			stop()
		case <-limit.C:
			stop()
			return max(pid, 1), nil
		case <-ctx.Done():
			stop()
			return 0, ctx.Err()
		}
	}
}

// slotWaiters are those who wait for a slot to change.
type slotWaiters struct {
	mu sync.Mutex
	on map[slot.ID]map[chan struct{}]bool
}

func (w *slotWaiters) init() { w.on = make(map[slot.ID]map[chan struct{}]bool) }

// wait returns a channel that is ready when the slot has changed once, and
// ends the watch.
func (w *slotWaiters) wait(id slot.ID) (<-chan struct{}, func()) {
	ch := make(chan struct{}, 1)
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.on[id] == nil {
		w.on[id] = make(map[chan struct{}]bool)
	}
	w.on[id][ch] = true
	return ch, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.on[id], ch)
		if len(w.on[id]) == 0 {
			delete(w.on, id)
		}
	}
}

func (w *slotWaiters) changed(id slot.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ch := range w.on[id] {
		engine.Wake(ch)
	}
}
