// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/eventlog"
	"github.com/execpoint/execpoint/lib/jobpolicy"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// firstCheck is how soon a job is asked after its status has changed.
const firstCheck = time.Second

// Due is when Look has something to do; zero is never.
func (a *AP) Due() clock.Instant {
	if a.stopped {
		return clock.Instant{}
	}
	return a.nextCheck
}

// Configure takes over how often the jobs are asked, and what the owner says of
// all of them.
func (a *AP) Configure(now clock.Instant, interval time.Duration, system jobpolicy.System) {
	a.cfg.Interval, a.cfg.System = interval, system
	a.findPoliced()
	for _, j := range a.jobs {
		a.checkSoon(j, now)
		if j.hold != nil {
			a.noteRelease(j, now)
		}
	}
}

// findPoliced finds the jobs that something is to be asked about.
func (a *AP) findPoliced() {
	if a.cfg.Interval <= 0 {
		a.cfg.Interval = time.Minute
	}
	a.policed = a.policed[:0]
	for _, j := range a.jobs {
		if j.policy.applies = a.cfg.System.Has(j.ad); j.policy.applies {
			a.policed = append(a.policed, j)
		}
	}
}

// checkSoon has a job asked a moment after something about it has changed.
func (a *AP) checkSoon(j *job, now clock.Instant) {
	if j.policy.applies {
		a.checkIn(j, now, min(firstCheck, a.cfg.Interval))
	}
}

// checkIn has a job asked after d, or earlier when it has then run for longer
// than it allows.
func (a *AP) checkIn(j *job, now clock.Instant, d time.Duration) {
	if j.run != nil {
		if at, ok := jobpolicy.Limit(j.ad, a.env(now)); ok && at.After(now.Wall) {
			d = min(d, at.Sub(now.Wall))
		}
	}
	j.policy.next = now.Add(d)
	a.sooner(j.policy.next)
}

func (a *AP) sooner(at clock.Instant) {
	if a.nextCheck.IsZero() || at.Boot < a.nextCheck.Boot {
		a.nextCheck = at
	}
}

// Look asks the periodic expressions and the limits of the jobs whose turn it
// is, and does what they say. A schedd asks those that wait or are held, a shadow
// its own; here it is one queue.
func (a *AP) Look(now clock.Instant) []ep.Event {
	due := a.Due()
	if due.IsZero() || due.Boot > now.Boot {
		return nil
	}
	var out []ep.Event
	a.nextCheck = clock.Instant{}
	for _, j := range a.policed {
		if j.status == Completed || j.status == Removed || j.wait.impossible != "" {
			continue
		}
		if j.policy.next.Boot > now.Boot {
			a.sooner(j.policy.next)
			continue
		}
		a.checkIn(j, now, a.cfg.Interval)
		if v := a.cfg.System.Periodic(j.ad, a.env(now)); v.Action != jobpolicy.Stay && j.policy.verdict == nil {
			out = append(out, a.act(now, j, v)...)
		}
	}
	return out
}

// act begins what a verdict says. A job that runs has to leave its slot first.
func (a *AP) act(now clock.Instant, j *job, v jobpolicy.Verdict) []ep.Event {
	r := j.run
	if r == nil {
		if j.status == Idle && !a.unqueue(j) {
			a.checkSoon(j, now) // a claim is being asked for
			return nil
		}
		a.carryOut(now, j, v)
		return nil
	}
	j.policy.verdict = &v
	if r.lease.going {
		return nil
	}
	how := ep.Gracefully
	if want, said := j.ad.EvalBool("WantGracefulRemoval", a.env(now)); said && !want && v.Action != jobpolicy.Vacate {
		how = ep.Forcibly
	}
	return []ep.Event{ep.DeactivateRequested{Ref: a.newRef(ask{kind: 'd', job: j, lease: r.lease}), Claim: r.lease.id, How: how, Purpose: purposes[v.Action]}}
}

// purposes are what the engine is told of verdicts: with them the starter chooses the
// job's signal and tells its hook how the job leaves.
var purposes = map[jobpolicy.Action]ep.Purpose{jobpolicy.Remove: ep.ToRemove, jobpolicy.Hold: ep.ToHold}

// carryOut does to a job that does not run what a verdict says.
func (a *AP) carryOut(now clock.Instant, j *job, v jobpolicy.Verdict) {
	switch v.Action {
	case jobpolicy.Hold:
		a.holdJob(now, j, protocol.Hold{Code: int(v.Code), Subcode: v.Subcode, Reason: v.Why})
	case jobpolicy.Release:
		a.releaseJob(now, j, v.Why)
	case jobpolicy.Remove:
		a.removeJob(now, j, v.Why)
	}
}

// unqueue takes a job from the idle ones, and reports whether it was there.
func (a *AP) unqueue(j *job) bool {
	i := slices.Index(a.idle, j)
	if i < 0 {
		return false
	}
	a.idle = slices.Delete(a.idle, i, i+1)
	return true
}

// submittedOnHold reports whether a job was submitted with hold = true.
func submittedOnHold(ad *classad.Ad) (yes bool, why string, code int) {
	status, _ := ad.EvalInt("JobStatus", nil)
	why, _ = ad.EvalString("HoldReason", nil)
	n, _ := ad.EvalInt("HoldReasonCode", nil)
	return Status(status) == Held, why, int(n)
}

func (a *AP) holdJob(now clock.Instant, j *job, h protocol.Hold) {
	j.hold = &h
	a.setStatus(j, Held, now)
	j.ad.SetString("HoldReason", h.Reason)
	j.ad.SetInt("HoldReasonCode", int64(h.Code))
	j.ad.SetInt("HoldReasonSubCode", int64(h.Subcode))
	n, _ := j.ad.EvalInt("NumHolds", nil)
	j.ad.SetInt("NumHolds", n+1)
	a.noteRelease(j, now)
	a.log(now.Wall, j, eventlog.Held{Reason: h.Reason, ReasonCode: h.Code, ReasonSubcode: h.Subcode})
	a.changed(Change{Job: j.id, At: now.Wall, Status: Held, What: "held", Detail: fmt.Sprintf("%s (code %d subcode %d)", h.Reason, h.Code, h.Subcode)})
}

// noteRelease notes whether a held job may be released by a policy, for which the run
// does not end.
func (a *AP) noteRelease(j *job, now clock.Instant) {
	if j.policy.mayBeReleased {
		a.mayBeReleased--
	}
	if j.policy.mayBeReleased = a.cfg.System.MayBeReleased(j.ad, a.env(now)); j.policy.mayBeReleased {
		a.mayBeReleased++
	}
}

// unhold ends the hold of a job that has one.
func (a *AP) unhold(j *job) {
	if j.policy.mayBeReleased {
		j.policy.mayBeReleased = false
		a.mayBeReleased--
	}
	if j.hold == nil {
		return
	}
	j.ad.SetString("LastHoldReason", j.hold.Reason)
	j.ad.SetInt("LastHoldReasonCode", int64(j.hold.Code))
	j.ad.SetInt("LastHoldReasonSubCode", int64(j.hold.Subcode))
	for _, name := range [...]string{"HoldReason", "HoldReasonCode", "HoldReasonSubCode"} {
		j.ad.Delete(name)
	}
	j.hold = nil
}

func (a *AP) releaseJob(now clock.Instant, j *job, why string) {
	a.unhold(j)
	j.ad.SetString("ReleaseReason", why)
	a.setStatus(j, Idle, now)
	a.log(now.Wall, j, eventlog.Released{Reason: why})
	a.changed(Change{Job: j.id, At: now.Wall, Status: Idle, What: "released", Detail: why})
	if j.wait.impossible = j.wait.never; j.wait.impossible != "" {
		a.reportImpossible(now, j)
		return
	}
	a.requeue(j)
}

func (a *AP) removeJob(now clock.Instant, j *job, why string) {
	a.unhold(j)
	j.ad.SetString("RemoveReason", why)
	a.setStatus(j, Removed, now)
	a.log(now.Wall, j, eventlog.Aborted{Reason: why})
	a.changed(Change{Job: j.id, At: now.Wall, Status: Removed, What: "removed", Detail: why})
}

// slowDown has a job wait that starts again and again and gets nowhere.
func (a *AP) slowDown(now clock.Instant, r *run) {
	j := r.job
	wait := j.restart.ended(r.activated, now)
	if wait == 0 {
		return
	}
	why := fmt.Sprintf("it started %d times within a minute and got no further; its next start waits %v", jobpolicy.MostStarts, wait)
	j.wait.refused = cmp.Or(j.wait.refused, why)
	a.changed(Change{Job: j.id, At: now.Wall, Status: Idle, What: "waits", Detail: why})
}
