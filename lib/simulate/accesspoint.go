// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/jobpolicy"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/slot"
)

// accessPoint is the rest of the pool: the queue of jobs, the matchmaker, and
// who holds the claims. It is the same in scenarios and in recorded runs.
type accessPoint struct {
	w       *world
	idle    []*queued // that wait, in the order of their arrival
	all     []*queued
	held    map[string]*holding // by public claim id
	running map[claim.ActivationID]*queued
	asked   map[uint64]*queued
	ref     uint64
	// oneEach says that a partitionable slot is matched once a cycle, as where
	// leftovers are not claimed.
	oneEach  bool
	lease    time.Duration // of every claim, 0: what the job says
	silent   bool          // it does not answer, and does nothing
	missed   []func()      // what came due while it was silent
	factors  map[string]float64
	left     map[slot.ID]time.Duration // retirement as the matchmaker last heard of it
	requeued func()                    // called when a job waits again; may be nil
	system   jobpolicy.System          // what the owner says of every job
	refused  map[int]bool              // kinds of jobs that nothing fits in this cycle
}

// jobState is what becomes of a queued job.
type jobState uint8

const (
	waiting jobState = iota
	matched
	active
	done
	onHold
	removed
)

var jobStateNames = [...]string{"idle", "matched", "running", "completed", "held", "removed"}

func (s jobState) String() string { return jobStateNames[s] }

// queued is one job in the queue.
type queued struct {
	cluster, proc int
	order         int
	sig           int // jobs with the same sig fit the same slots
	name          string
	ad            *classad.Ad
	user          string
	keepIdle      time.Duration
	behaviour     Behaviour
	watched       bool             // its policy is asked while it is in the queue
	plays         func() Behaviour // what behaviour is at each start, nil: always the same
	saves         Saving
	fetched       bool // by the slot itself: it is in no queue
	state         jobState
	ref           uint64 // of the request that waits
	holding       *holding
	act           claim.ActivationID
	outcome       outcome
	record        jobRecord
}

// outcome is what was decided about a job: of one that runs, what it becomes when
// it has left, and waiting if its end says that; of one that does not, why it is
// what it is.
type outcome struct {
	becomes jobState
	why     string
	code    reason.Code // of a hold
}

// decided reports whether a job that runs has to leave, for another reason than
// its end.
func (o *outcome) decided() bool { return o.becomes != waiting }

// decide says what a job that runs becomes. The code of a hold is set apart.
func (o *outcome) decide(becomes jobState, why string) { o.becomes, o.why = becomes, why }

// hold puts a job that runs on hold when it has left.
func (o *outcome) hold(why string, code reason.Code) { o.becomes, o.why, o.code = onHold, why, code }

// jobRecord is what a job did, for the result.
type jobRecord struct {
	arrived    time.Duration
	began, end time.Duration // of the first run, and of the job; -1: not yet
	starts     int
	evictions  int
	kept       time.Duration // run time that was saved
	lost       time.Duration // run time that was not
	suspended  time.Duration
}

// started counts a start.
func (r *jobRecord) started(at time.Duration) {
	r.starts++
	if r.began < 0 {
		r.began = at
	}
}

// account adds one run to what a job has done and lost.
func (r *jobRecord) account(a *actor, finished bool, saves Saving) {
	total := r.kept + a.ran
	r.suspended += a.stopped
	switch {
	case finished || saves.OnEviction && a.soft:
		r.kept = total
	case saves.Every > 0:
		safe := max(r.kept, total/saves.Every*saves.Every)
		r.lost += total - safe
		r.kept = safe
	default:
		r.lost += a.ran
	}
	if !finished {
		r.evictions++
	}
}

// holding is a claim of the access point.
type holding struct {
	id      claim.ID
	slot    slot.ID
	ad      *classad.Ad // the slot's when it was claimed
	job     *queued
	uses    int  // how many jobs have run
	fetched bool // the slot's own, for work that it fetches
	closing bool
	gone    bool
}

// own names a request of the access point.
func own(n uint64) ep.Ref { return ep.Ref{By: ep.OwnQueue, N: n} }

func newAccessPoint(w *world) *accessPoint {
	return &accessPoint{
		w: w, held: map[string]*holding{}, running: map[claim.ActivationID]*queued{}, asked: map[uint64]*queued{},
		factors: map[string]float64{}, left: map[slot.ID]time.Duration{}, refused: map[int]bool{},
	}
}

// submit puts a job into the queue.
func (p *accessPoint) submit(q *queued) {
	q.order = len(p.all)
	q.record = jobRecord{arrived: p.w.elapsed(), began: -1, end: -1}
	p.all = append(p.all, q)
	if status, _ := q.ad.EvalInt("JobStatus", nil); status == jobStatuses[onHold] {
		q.outcome.code, q.outcome.why = reason.SubmittedOnHold, "hold"
		p.finish(q, onHold)
	} else {
		p.idle = append(p.idle, q)
	}
	p.watchQueued(q)
}

// watchQueued asks the policy of a job that waits or is held, all the time, as the
// schedd does.
func (p *accessPoint) watchQueued(q *queued) {
	if !q.watched && p.system.Has(q.ad) {
		q.watched = true
		p.watch(q, func() bool { return q.state != done && q.state != removed })
	}
}

// configured reads what the owner says of every job, for the first time or again.
func (p *accessPoint) configured() {
	p.system = jobpolicy.SystemFrom(p.w.snap)
	for _, q := range p.all {
		if q.state == done || q.state == removed || q.fetched {
			continue
		}
		p.watchQueued(q)
		if q.state == active && !q.stuck() {
			p.watchRun(q)
		}
	}
}

// unlessSilent does something now, or when the access point answers again.
func (p *accessPoint) unlessSilent(do func()) {
	if p.silent {
		p.missed = append(p.missed, do)
		return
	}
	do()
}

// speak ends a silence.
func (p *accessPoint) speak() {
	p.silent = false
	for _, do := range p.missed {
		p.w.after(0, func() { p.unlessSilent(do) })
	}
	p.missed = nil
}

// requeue lets a job wait again, at its old place.
func (p *accessPoint) requeue(q *queued) {
	if q.fetched {
		p.finish(q, removed)
		return
	}
	if q.state == onHold {
		q.unhold()
	}
	q.state = waiting
	q.enters(waiting, p.w.now.Wall)
	i, _ := slices.BinarySearchFunc(p.idle, q, func(x, y *queued) int { return cmp.Compare(x.order, y.order) })
	p.idle = slices.Insert(p.idle, i, q)
	if p.requeued != nil {
		p.requeued()
	}
}

func (p *accessPoint) unqueue(q *queued) {
	p.idle = slices.DeleteFunc(p.idle, func(x *queued) bool { return x == q })
}

// env is what expressions of a match may look at.
func (p *accessPoint) env() *classad.Env {
	return &classad.Env{Now: p.w.now.Wall}
}

// renew is the sign of life for every claim.
func (p *accessPoint) renew() {
	if p.silent {
		return
	}
	for _, h := range p.claims() {
		p.w.step(ep.LeaseRenewed{Claim: h.id})
	}
}

// claims are the claims that are held, in a fixed order.
func (p *accessPoint) claims() []*holding {
	out := make([]*holding, 0, len(p.held))
	for _, h := range p.held {
		out = append(out, h)
	}
	slices.SortFunc(out, func(a, b *holding) int { return strings.Compare(a.id.Public, b.id.Public) })
	return out
}

// replied takes an answer of the Execution Point.
func (p *accessPoint) replied(r ep.Reply) {
	q, ok := p.asked[r.Ref.N]
	if !ok || r.Ref.By != ep.OwnQueue {
		return
	}
	delete(p.asked, r.Ref.N)
	switch {
	case r.Err != nil && q.holding != nil: // an activation was refused
		h := q.holding
		q.holding = nil
		if h.job == q {
			h.job = nil
		}
		p.requeue(q)
		h.closing = h.closing || r.Closing
		p.w.after(0, func() { p.release(h) })
	case r.Err != nil:
		p.requeue(q)
	case r.Granted != nil:
		h := &holding{id: r.Granted.Claim, slot: r.Granted.Slot, ad: r.Granted.Ad, fetched: q.fetched}
		p.held[h.id.Public] = h
		p.w.after(0, func() { p.start(h, q) })
	case r.Activation != "":
		q.state, q.act = active, r.Activation
		q.holding.uses++
		p.running[r.Activation] = q
		p.begun(q)
	}
}

// begun notes the start of a job, and sets the timers that its ad asks for.
func (p *accessPoint) begun(q *queued) {
	q.record.started(p.w.elapsed())
	q.enters(active, p.w.now.Wall)
	if q.record.starts == 1 {
		q.ad.SetInt("JobStartDate", p.w.now.Wall.Unix())
	}
	q.ad.SetInt("NumShadowStarts", int64(q.record.starts))
	q.ad.SetInt("NumJobMatches", int64(q.record.starts))
	q.ad.SetInt("JobCurrentStartDate", p.w.now.Wall.Unix())
	q.ad.SetInt("ShadowBday", p.w.now.Wall.Unix())
	if !q.stuck() {
		p.watchRun(q)
		return
	}
	start := q.record.starts
	p.w.after(q.behaviour.Stuck, func() {
		p.unlessSilent(func() {
			if q.state != active || q.record.starts != start {
				return
			}
			if !q.outcome.decided() && !q.behaviour.Again {
				q.outcome.hold("its program could not be executed", reason.FailedToCreateProcess)
			}
			p.release(q.holding)
		})
	})
}

// stuck reports whether the job's program cannot be executed.
func (q *queued) stuck() bool { return q.behaviour.Stuck > 0 }

// behaviour is how the job of a new activation will behave.
func (p *accessPoint) behaviour(_ claim.ActivationID, id claim.ID) Behaviour {
	h := p.held[id.Public]
	if h == nil || h.job == nil {
		return Behaviour{}
	}
	b := h.job.behaviour
	b.Runs -= h.job.record.kept
	return b
}

// noteOrder notes with what order a job is made to leave.
func (p *accessPoint) noteOrder(a *actor, o ep.OrderStarter) {
	if q := p.running[a.id]; q != nil && o.Hold && !q.outcome.decided() {
		q.outcome.hold(o.Reason, reason.StartdHeldJob)
	}
}

// start sends a job to a claim.
func (p *accessPoint) start(h *holding, q *queued) {
	if q.state != matched { // it was held or removed meanwhile
		if h.job == q {
			h.job = nil
		}
		p.release(h)
		return
	}
	if h.gone {
		p.requeue(q)
		return
	}
	p.ref++
	q.holding, h.job = h, q
	if q.plays != nil {
		q.behaviour = q.plays()
	}
	p.asked[p.ref] = q
	p.w.step(ep.ActivateRequested{Ref: own(p.ref), Claim: h.id, Job: q.ad.Clone()})
}

func (p *accessPoint) release(h *holding) {
	if h != nil && !h.gone && !h.closing && !p.w.life.over {
		p.w.step(ep.ReleaseRequested{Claim: h.id})
	}
}

func (p *accessPoint) claimEnded(e ep.ClaimEnded) {
	if h := p.held[e.Claim.Public]; h != nil {
		h.gone = true
		delete(p.held, e.Claim.Public)
	}
}
