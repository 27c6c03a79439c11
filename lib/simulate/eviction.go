// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"slices"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/jobpolicy"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/reason"
)

// lost is the end of every claim with the Execution Point. Jobs that ran wait
// again.
func (p *accessPoint) lost() {
	for _, h := range p.held {
		h.gone = true
	}
	clear(p.held)
	clear(p.asked)
	clear(p.running)
	clear(p.left)
	for _, q := range p.all {
		if q.state == matched || q.state == active {
			q.holding, q.act = nil, ""
			if q.outcome.decided() {
				p.finish(q, q.outcome.becomes)
				continue
			}
			p.requeue(q)
		}
	}
}

// finish takes a job out of the queue for good, or until it is released.
func (p *accessPoint) finish(q *queued, s jobState) {
	if q.state == done || q.state == removed {
		return
	}
	q.state, q.outcome.becomes = s, waiting
	q.enters(s, p.w.now.Wall)
	if s == onHold {
		n, _ := q.ad.EvalInt("NumHolds", nil)
		q.ad.SetInt("NumHolds", n+1)
		q.ad.SetInt("HoldReasonCode", int64(q.outcome.code))
	}
	if s == done || s == removed {
		q.record.end = p.w.elapsed()
	}
}

// letGo releases a job that is held, or that leaves its machine to be held.
func (p *accessPoint) letGo(q *queued) {
	switch {
	case q.state == onHold:
		p.requeue(q)
	case q.outcome.becomes == onHold:
		q.outcome.becomes = waiting
	}
}

// unhold takes from a job's ad why it was held, as its release does.
func (q *queued) unhold() {
	code, _ := q.ad.EvalInt("HoldReasonCode", nil)
	q.ad.SetInt("LastHoldReasonCode", code)
	for _, name := range [...]string{"HoldReason", "HoldReasonCode", "HoldReasonSubCode"} {
		q.ad.SetValue(name, classad.Undefined()) // the submit text's ad may say it as well
	}
}

// starterLeft lets a job that was not done go back to the queue, and the claim
// to the next job or back to the machine.
func (p *accessPoint) starterLeft(a *actor) {
	q := p.running[a.id]
	delete(p.running, a.id)
	h := p.held[a.start.Claim.Public]
	if h != nil {
		h.job = nil
	}
	if q == nil {
		return
	}
	q.holding, q.act = nil, ""
	finished := a.done && !q.outcome.decided()
	q.record.account(a, finished, q.saves)
	keep := true // the claim, for a next job
	verdict := jobpolicy.Verdict{}
	if finished {
		if verdict = p.exited(q, a.Code); verdict.Action != jobpolicy.Remove {
			// It is not done: its program begins again from its beginning.
			q.record.lost, q.record.kept = q.record.lost+q.record.kept, 0
		}
	}
	switch {
	case finished && verdict.Action == jobpolicy.Hold:
		q.outcome.why, q.outcome.code = command(verdict.Attr), verdict.Code
		p.finish(q, onHold)
	case finished && verdict.Action == jobpolicy.Stay:
		p.requeue(q)
		keep = false
	case finished:
		p.finish(q, done)
	case q.outcome.decided():
		p.finish(q, q.outcome.becomes)
	case a.failed && !a.Again:
		q.outcome.why, q.outcome.code = "it could not be started", reason.FailedToCreateProcess
		p.finish(q, onHold)
	default:
		p.requeue(q)
	}
	if h == nil || h.gone || p.silent || h.closing || h.fetched {
		return
	}
	if finished && keep {
		for _, next := range p.idle {
			if next.state == waiting && p.fits(next, h.ad) {
				p.unqueue(next)
				next.state, h.job = matched, next
				p.w.after(0, func() { p.start(h, next) })
				return
			}
		}
		if q.keepIdle > 0 {
			uses := h.uses
			p.w.after(q.keepIdle, func() {
				if h.job == nil && h.uses == uses && !p.silent {
					p.release(h)
				}
			})
			return
		}
	}
	p.w.after(0, func() { p.release(h) })
}

// remove takes a running or waiting job away, as condor_rm, condor_hold and
// condor_vacate_job do; becomes is what it is afterwards.
func (p *accessPoint) remove(q *queued, how ep.Deactivation, becomes jobState, why string) {
	switch q.state {
	case done, removed:
		return
	case waiting, onHold:
		if becomes != waiting && becomes != q.state {
			p.unqueue(q)
			q.outcome.why = why
			p.finish(q, becomes)
		}
		return
	}
	if q.state == matched && q.holding == nil {
		p.w.step(ep.ClaimWithdrawn{Ref: own(q.ref)})
		delete(p.asked, q.ref)
		if becomes == waiting {
			p.requeue(q)
			return
		}
		q.outcome.why = why
		p.finish(q, becomes)
		return
	}
	if q.outcome.becomes == removed || q.outcome.becomes == onHold && becomes != removed {
		return // to its schedd it is that already
	}
	h := q.holding
	if h == nil || h.gone {
		if becomes != waiting {
			q.outcome.decide(becomes, why)
		}
		return
	}
	q.outcome.decide(becomes, why)
	p.ref++
	closing := false
	late := p.w.pair(h.slot) == policy.ClaimedSuspended
	for _, eff := range p.deactivate(h, how) {
		if r, ok := eff.(ep.Reply); ok && r.Ref == own(p.ref) {
			closing = r.Closing
		}
	}
	if closing {
		h.closing = true
		return
	}
	// The recorded access point gives the claim back when it hears of the end,
	// mostly before the starter is reaped.
	p.watchEnd(h, late)
}

func (p *accessPoint) deactivate(h *holding, how ep.Deactivation) []ep.Effect {
	effects := slices.Clone(p.w.eng.Step(p.w.now, ep.DeactivateRequested{Ref: own(p.ref), Claim: h.id, How: how}))
	p.w.perform(effects)
	return effects
}

// watchEnd gives a claim back as soon as its job has ended.
func (p *accessPoint) watchEnd(h *holding, late bool) {
	if h.gone {
		return
	}
	if pair := p.w.pair(h.slot); pair == policy.ClaimedCleaning && !late {
		p.release(h)
		return
	}
	if h.job == nil {
		return // the end of the starter has seen to it
	}
	p.w.after(50*time.Millisecond, func() { p.watchEnd(h, late) })
}
