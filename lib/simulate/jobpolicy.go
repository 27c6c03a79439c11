// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/jobpolicy"
	"github.com/execpoint/execpoint/lib/reason"
)

// jobStatuses are the values of JobStatus. A job that is matched is idle still.
var jobStatuses = [...]int64{waiting: 1, matched: 1, active: 2, done: 4, onHold: 5, removed: 3}

// suspendedStatus is that of a job that runs, but for being suspended.
const suspendedStatus = 7

// enters notes in the job's ad what it is from now on.
func (q *queued) enters(s jobState, at time.Time) {
	q.ad.SetInt("JobStatus", jobStatuses[s])
	q.ad.SetInt("EnteredCurrentStatus", at.Unix())
}

// watch evaluates a job's policy after a second and then as often as the schedd
// and the shadow do, while still is true. The shadow evaluates it for a running job,
// from its start on.
func (p *accessPoint) watch(q *queued, still func() bool) {
	every, err := p.w.snap.Duration("PERIODIC_EXPR_INTERVAL")
	if err != nil || every <= 0 {
		every = time.Minute
	}
	shadow := q.state == active
	var look func()
	look = func() {
		if !still() {
			return
		}
		if !p.silent && (q.state == active) == shadow && q.state != matched && p.policy(q) && shadow {
			return // its shadow ends with the run
		}
		p.w.after(every, look)
	}
	p.w.after(min(every, time.Second), look)
}

// limitPeriod is how often the durations that a job allows itself are looked at.
const limitPeriod = 10 * time.Second

// watchRun asks the policy of a job that runs from now on until its end, as its
// shadow does.
func (p *accessPoint) watchRun(q *queued) {
	start := q.record.starts
	still := func() bool { return q.state == active && q.record.starts == start && !q.outcome.decided() }
	if p.system.Has(q.ad) {
		p.watch(q, still)
	}
	_, job := q.ad.Lookup("AllowedJobDuration")
	_, execute := q.ad.Lookup("AllowedExecuteDuration")
	if !job && !execute {
		return
	}
	var look func()
	look = func() {
		if !still() || !p.silent && p.over(q) && p.policy(q) {
			return
		}
		p.w.after(limitPeriod, look)
	}
	p.w.after(limitPeriod+200*time.Millisecond, look)
}

// over reports whether a job runs for longer than it allows itself.
func (p *accessPoint) over(q *queued) bool {
	at, ok := jobpolicy.Limit(q.ad, p.env())
	return ok && !p.w.now.Wall.Before(at)
}

// executing notes that a job's program runs.
func (p *accessPoint) executing(a *actor) {
	if q := p.running[a.id]; q != nil {
		n, _ := q.ad.EvalInt("NumJobStarts", nil)
		q.ad.SetInt("NumJobStarts", n+1)
		q.ad.SetInt("JobRunCount", n+1)
		q.ad.SetInt("JobCurrentStartExecutingDate", p.w.now.Wall.Unix())
	}
}

// paused notes that a running job was suspended, or goes on.
func (p *accessPoint) paused(a *actor, is bool) {
	q := p.running[a.id]
	if q == nil {
		return
	}
	q.enters(active, p.w.now.Wall)
	if is {
		n, _ := q.ad.EvalInt("TotalSuspensions", nil)
		q.ad.SetInt("TotalSuspensions", n+1)
		q.ad.SetInt("LastSuspensionTime", p.w.now.Wall.Unix())
		q.ad.SetInt("JobStatus", suspendedStatus)
	}
}

// policy does what a job's own policy or the owner's says, and reports whether
// that is anything.
func (p *accessPoint) policy(q *queued) bool {
	v := p.system.Periodic(q.ad, p.env())
	why := command(v.Attr)
	switch v.Action {
	case jobpolicy.Stay:
		return false
	case jobpolicy.Remove:
		p.remove(q, ep.Gracefully, removed, why)
	case jobpolicy.Hold:
		q.outcome.code = v.Code
		p.remove(q, ep.Gracefully, onHold, why)
	case jobpolicy.Vacate:
		p.remove(q, ep.Gracefully, waiting, why)
	case jobpolicy.Release:
		p.requeue(q)
	}
	return true
}

// exited is what becomes of a job whose program has ended, with its status.
func (p *accessPoint) exited(q *queued, status int) jobpolicy.Verdict {
	q.ad.SetBool("ExitBySignal", false)
	q.ad.SetInt("ExitCode", int64(status))
	jobpolicy.Ended(q.ad)
	return p.system.Exit(q.ad, p.env())
}

// byOwner holds a job as a person does, who alone releases it then.
func (p *accessPoint) byOwner(q *queued, why string) {
	q.outcome.code = reason.UserRequest
	p.remove(q, ep.Gracefully, onHold, why)
}

// command is the submit command of an attribute: periodic_hold of PeriodicHold.
// A setting of the owner's has no capital of its own to begin a word with.
func command(attr string) string {
	if attr == strings.ToUpper(attr) {
		return attr
	}
	var b strings.Builder
	for i, r := range attr {
		if r >= 'A' && r <= 'Z' {
			if i > 0 {
				b.WriteByte('_')
			}
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}
