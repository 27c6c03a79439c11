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
	"github.com/execpoint/execpoint/lib/policy"
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
	// nobody claims what is left of it.
	oneEach bool
	lease   time.Duration // of every claim, 0: what the job says
	silent  bool          // it does not answer, and does nothing
	factors map[string]float64
	left    map[slot.ID]time.Duration // retirement as the matchmaker last heard of it
	waits   func()                    // told when a job waits again; may be nil
	refused map[int]bool              // kinds of jobs that nothing fits in this cycle
}

// jobState is what becomes of a queued job.
type jobState uint8

const (
	waiting jobState = iota
	asking
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
	plays         func() Behaviour // what behaviour is at each start, nil: always the same
	saves         Saving
	state         jobState
	ref           uint64 // of the request that waits
	holding       *holding
	act           claim.ActivationID
	ending        jobState // what it becomes when it has left, waiting: what its end says
	why           string   // of ending
	retry         time.Duration

	arrived    time.Duration
	began, end time.Duration // of the first run, and of the job; -1: not yet
	starts     int
	evictions  int
	kept       time.Duration // run time that was saved
	lost       time.Duration // run time that was not
	suspended  time.Duration
}

// holding is a claim of the access point.
type holding struct {
	id      claim.ID
	slot    slot.ID
	ad      *classad.Ad // the slot's when it was claimed
	job     *queued
	used    bool // a job has run
	closing bool
	gone    bool
}

func newAccessPoint(w *world) *accessPoint {
	return &accessPoint{
		w: w, held: map[string]*holding{}, running: map[claim.ActivationID]*queued{}, asked: map[uint64]*queued{},
		factors: map[string]float64{}, left: map[slot.ID]time.Duration{}, refused: map[int]bool{},
	}
}

// submit puts a job into the queue.
func (p *accessPoint) submit(q *queued) {
	q.order = len(p.all)
	q.arrived, q.began, q.end = p.w.elapsed(), -1, -1
	p.all = append(p.all, q)
	p.idle = append(p.idle, q)
}

// requeue lets a job wait again, at its old place.
func (p *accessPoint) requeue(q *queued) {
	q.state = waiting
	i, _ := slices.BinarySearchFunc(p.idle, q, func(x, y *queued) int { return cmp.Compare(x.order, y.order) })
	p.idle = slices.Insert(p.idle, i, q)
	if p.waits != nil {
		p.waits()
	}
}

func (p *accessPoint) unqueue(q *queued) {
	p.idle = slices.DeleteFunc(p.idle, func(x *queued) bool { return x == q })
}

// env is what expressions of a match may look at.
func (p *accessPoint) env() *classad.Env {
	return &classad.Env{Now: p.w.now.Wall}
}

// negotiate matches idle jobs with slots.
func (p *accessPoint) negotiate() {
	if p.silent || p.w.complete || len(p.idle) == 0 {
		return
	}
	taken := map[slot.ID]bool{}
	clear(p.refused)
	for _, q := range slices.Clone(p.idle) {
		if p.refused[q.sig] || q.state != waiting || q.retry > p.w.now.Boot {
			continue
		}
		if h := p.spare(q); h != nil {
			p.unqueue(q)
			q.state = asking
			p.start(h, q)
			continue
		}
		v, priority, ok := p.match(q, taken)
		var evict []claim.ID
		if !ok {
			v, evict, ok = p.makeRoom(q, taken)
		}
		if !ok {
			p.refused[q.sig] = true
			continue
		}
		if p.oneEach || v.Kind != slot.Partitionable {
			taken[v.ID] = true
		}
		p.unqueue(q)
		p.ref++
		q.state, q.ref = asking, p.ref
		p.asked[p.ref] = q
		if informs, _ := p.w.snap.Bool("NEGOTIATOR_INFORM_STARTD"); informs && v.Kind != slot.Partitionable {
			p.w.step(ep.MatchTold{Slot: v.ID})
		}
		p.w.step(ep.ClaimRequested{Ref: p.ref, Slot: v.ID, Job: q.ad.Clone(), Client: claim.Client{User: q.user, Owner: q.user}, Lease: p.lease, Priority: priority, Evict: evict})
	}
}

// spare returns a claim that is kept for a next job.
func (p *accessPoint) spare(q *queued) *holding {
	var best *holding
	for _, h := range p.held {
		if h.job == nil && h.used && !h.closing && p.w.pair(h.slot) == policy.ClaimedIdle && p.fits(q, h.ad) && (best == nil || h.slot.Compare(best.slot) < 0) {
			best = h
		}
	}
	return best
}

func (p *accessPoint) fits(q *queued, ad *classad.Ad) bool {
	return classad.Match(q.ad, ad, p.env()).OK()
}

// match finds the slot for a job: one that is free, or else one whose claim a
// better rank or priority may preempt.
func (p *accessPoint) match(q *queued, taken map[slot.ID]bool) (found ep.SlotView, priority, ok bool) {
	preempts, _ := p.w.snap.Bool("NEGOTIATOR_CONSIDER_PREEMPTION")
	var bestRank float64
	for v := range p.w.eng.Views() {
		if taken[v.ID] || !v.Claimable() && (!preempts || v.Kind == slot.Partitionable || v.Pair.State != policy.Claimed || v.Activation == "") {
			continue
		}
		byPriority := false
		if !v.Claimable() {
			if ok {
				continue
			}
			may := false
			if may, byPriority = p.preempts(q, &v); !may {
				continue
			}
		}
		m := classad.Match(q.ad, p.w.eng.SlotAd(v.ID), p.env())
		if m.OK() && (!ok || v.Claimable() && (!found.Claimable() || m.LeftRank > bestRank)) {
			found, ok, priority, bestRank = v, true, byPriority, m.LeftRank
		}
	}
	return found, priority, ok
}

// makeRoom finds a partitionable slot in which a job would fit if jobs that the
// machine ranks lower left it, and their claims, the least wanted first.
func (p *accessPoint) makeRoom(q *queued, taken map[slot.ID]bool) (found ep.SlotView, evict []claim.ID, ok bool) {
	may, _ := p.w.snap.Bool("ALLOW_PSLOT_PREEMPTION")
	if consider, _ := p.w.snap.Bool("NEGOTIATOR_CONSIDER_PREEMPTION"); !may || !consider {
		return found, nil, false
	}
	type part struct {
		view ep.SlotView
		rank float64
	}
	env := p.env()
	cpus, _ := q.ad.EvalReal("RequestCpus", env)
	memory, _ := q.ad.EvalInt("RequestMemory", env)
	for parent := range p.w.eng.Views() {
		if parent.Kind != slot.Partitionable || taken[parent.ID] {
			continue
		}
		var parts []part
		for v := range p.w.eng.Views() {
			if v.ID.Parent() != parent.ID || v.Pair.State != policy.Claimed {
				continue
			}
			ad := p.w.eng.SlotAd(v.ID)
			mine := p.env()
			mine.Target = q.ad
			rank, _ := ad.EvalReal("Rank", mine)
			current, _ := ad.EvalReal("CurrentRank", nil)
			if early, _ := p.preempts(q, &v); early && rank > current {
				parts = append(parts, part{v, current})
			}
		}
		slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(a.rank, b.rank) })
		room := parent.Free
		for _, part := range parts {
			room = slot.Sum(room, part.view.Total)
			evict = append(evict, part.view.Claim)
			if room.Cpus >= cpus && room.MemoryMiB >= memory {
				return parent, evict, true
			}
		}
		evict = nil
	}
	return found, nil, false
}

// preempts says whether the matchmaker sends a job to a slot that is claimed.
func (p *accessPoint) preempts(q *queued, v *ep.SlotView) (may, byPriority bool) {
	early, _ := p.w.snap.Bool("NEGOTIATOR_CONSIDER_EARLY_PREEMPTION")
	if left, known := p.left[v.ID]; !early && (!known || left > 0) {
		return false, false
	}
	ad := p.w.eng.SlotAd(v.ID)
	env := p.env()
	env.Target = q.ad
	rank, _ := ad.EvalReal("Rank", env)
	current, _ := ad.EvalReal("CurrentRank", nil)
	if rank > current {
		return true, false
	}
	mine, its := p.factor(q.user), p.factor(v.Client.User)
	if rank < current || q.user == v.Client.User || mine >= its {
		return false, false
	}
	want, err := p.w.snap.Expr("PREEMPTION_REQUIREMENTS")
	if err != nil || want == nil {
		return false, false
	}
	job := q.ad.Clone()
	job.SetReal("SubmitterUserPrio", mine)
	seen := ad.Clone()
	seen.SetReal("RemoteUserPrio", its)
	env.My, env.Target = seen, job
	return want.Eval(env).IsTrue(), true
}

// factor is the priority of a user; less is better.
func (p *accessPoint) factor(user string) float64 {
	name, _, _ := strings.Cut(user, "@")
	if f, ok := p.factors[name]; ok {
		return f
	}
	return 1000
}

// hear is the update that the matchmaker gets now and then.
func (p *accessPoint) hear() {
	clear(p.left)
	for v := range p.w.eng.Views() {
		if v.Activation != "" {
			p.left[v.ID], _ = p.w.eng.RetirementLeft(v.ID)
		}
	}
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
	q, ok := p.asked[r.Ref]
	if !ok {
		return
	}
	delete(p.asked, r.Ref)
	switch {
	case r.Err != nil && q.holding != nil: // an activation was refused
		h := q.holding
		q.holding, h.job = nil, nil
		p.requeue(q)
		h.closing = h.closing || r.Closing
		p.w.after(0, func() { p.release(h) })
	case r.Err != nil:
		p.requeue(q)
	case r.Granted != nil:
		h := &holding{id: r.Granted.Claim, slot: r.Granted.Slot, ad: r.Granted.Ad}
		p.held[h.id.Public] = h
		p.w.after(0, func() { p.start(h, q) })
	case r.Activation != "":
		q.state, q.act = active, r.Activation
		q.holding.used = true
		p.running[r.Activation] = q
		p.begun(q)
	}
}

// begun notes the start of a job, and sets the timers that its ad asks for.
func (p *accessPoint) begun(q *queued) {
	q.starts++
	if q.began < 0 {
		q.began = p.w.elapsed()
	}
	q.ad.SetInt("JobStatus", 2)
	q.ad.SetInt("NumJobStarts", int64(q.starts))
	q.ad.SetInt("JobCurrentStartDate", p.w.now.Wall.Unix())
	start := q.starts
	still := func() bool { return q.state == active && q.starts == start && q.ending == waiting && !p.silent }
	if q.behaviour.Stuck > 0 {
		p.w.after(q.behaviour.Stuck, func() {
			if q.state != active || q.starts != start || p.silent {
				return
			}
			if q.ending == waiting && !q.behaviour.Again {
				q.ending, q.why = onHold, "its program could not be executed"
			}
			p.release(q.holding)
		})
		return
	}
	for _, limit := range []string{"AllowedExecuteDuration", "AllowedJobDuration"} {
		if sec, ok := q.ad.EvalInt(limit, nil); ok && sec >= 0 && sec < 1<<31 {
			// The limit is looked at every ten seconds.
			at := (time.Duration(sec)*time.Second/limitPeriod+1)*limitPeriod + 200*time.Millisecond
			p.w.after(at, func() {
				if still() {
					p.remove(q, ep.Gracefully, onHold, limit+" is over")
				}
			})
		}
	}
	if p.periodic(q) {
		every, err := p.w.snap.Duration("PERIODIC_EXPR_INTERVAL")
		if err != nil || every <= 0 {
			every = time.Minute
		}
		var look func()
		look = func() {
			if !still() {
				return
			}
			env := p.env()
			switch {
			case q.ad.Eval("PeriodicRemove", env).IsTrue():
				p.remove(q, ep.Gracefully, removed, "periodic_remove")
			case q.ad.Eval("PeriodicHold", env).IsTrue():
				p.remove(q, ep.Gracefully, onHold, "periodic_hold")
			case q.ad.Eval("PeriodicVacate", env).IsTrue():
				p.remove(q, ep.Gracefully, waiting, "periodic_vacate")
			default:
				p.w.after(every, look)
			}
		}
		p.w.after(min(every, time.Second), look)
	}
}

// limitPeriod is how often the durations that a job allows itself are looked at.
const limitPeriod = 10 * time.Second

// periodic reports whether a job has expressions to be asked while it runs.
func (p *accessPoint) periodic(q *queued) bool {
	for _, name := range []string{"PeriodicHold", "PeriodicRemove", "PeriodicVacate"} {
		if e, ok := q.ad.Lookup(name); ok && !strings.EqualFold(e.Text(classad.Old), "false") {
			return true
		}
	}
	return false
}

// behaviour is how the job of a new activation will behave.
func (p *accessPoint) behaviour(_ claim.ActivationID, id claim.ID) Behaviour {
	h := p.held[id.Public]
	if h == nil || h.job == nil {
		return Behaviour{}
	}
	b := h.job.behaviour
	b.Runs -= h.job.kept
	return b
}

// told notes with what order a job is made to leave.
func (p *accessPoint) told(a *actor, o ep.OrderStarter) {
	if q := p.running[a.id]; q != nil && o.Hold && q.ending == waiting {
		q.ending, q.why = onHold, o.Reason
	}
}

// start sends a job to a claim.
func (p *accessPoint) start(h *holding, q *queued) {
	if h.gone {
		p.requeue(q)
		return
	}
	if q.state >= done || q.ending >= onHold {
		p.release(h)
		p.finish(q, q.ending)
		return
	}
	p.ref++
	q.holding, h.job = h, q
	if q.plays != nil {
		q.behaviour = q.plays()
	}
	p.asked[p.ref] = q
	p.w.step(ep.ActivateRequested{Ref: p.ref, Claim: h.id, Job: q.ad.Clone()})
}

func (p *accessPoint) release(h *holding) {
	if h != nil && !h.gone && !h.closing && !p.w.complete {
		p.w.step(ep.ReleaseRequested{Claim: h.id})
	}
}

func (p *accessPoint) claimEnded(e ep.ClaimEnded) {
	if h := p.held[e.Claim.Public]; h != nil {
		h.gone = true
		delete(p.held, e.Claim.Public)
	}
}

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
		if q.state == asking || q.state == active {
			q.holding, q.act = nil, ""
			if q.ending != waiting {
				p.finish(q, q.ending)
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
	q.state = s
	if s == done || s == removed {
		q.end = p.w.elapsed()
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
	finished := a.done && !a.Fails && q.ending == waiting
	q.account(a, finished)
	keep := true // the claim, for a next job
	switch {
	case finished && q.ad.Eval("OnExitHold", p.env()).IsTrue():
		q.why = "on_exit_hold"
		p.finish(q, onHold)
	case finished && p.runsAgain(q):
		p.requeue(q)
		keep = false
	case finished:
		p.finish(q, done)
	case a.Fails && !a.Again:
		q.why = "it could not be started"
		p.finish(q, onHold)
	case q.ending != waiting:
		p.finish(q, q.ending)
		q.ending = waiting
	default:
		p.requeue(q)
	}
	if h == nil || h.gone || p.silent || h.closing {
		return
	}
	if finished && keep {
		for _, next := range p.idle {
			if next.state == waiting && p.fits(next, h.ad) {
				p.unqueue(next)
				next.state = asking
				p.w.after(0, func() { p.start(h, next) })
				return
			}
		}
		if q.keepIdle > 0 {
			p.w.after(q.keepIdle, func() {
				if h.job == nil {
					p.release(h)
				}
			})
			return
		}
	}
	p.w.after(0, func() { p.release(h) })
}

// runsAgain reports whether a job that ended says it is not done.
func (p *accessPoint) runsAgain(q *queued) bool {
	if _, ok := q.ad.Lookup("OnExitRemove"); !ok {
		return false
	}
	v := q.ad.Eval("OnExitRemove", p.env())
	return !v.IsTrue() && !v.IsUndefined() && !v.IsError()
}

// account adds one run to what a job has done and lost.
func (q *queued) account(a *actor, finished bool) {
	total := q.kept + a.ran
	q.suspended += a.stopped
	switch {
	case finished || q.saves.OnEviction && a.soft:
		q.kept = total
	case q.saves.Every > 0:
		safe := max(q.kept, total/q.saves.Every*q.saves.Every)
		q.lost += total - safe
		q.kept = safe
	default:
		q.lost += a.ran
	}
	if !finished {
		q.evictions++
	}
}

// remove takes a running or waiting job away, as condor_rm, condor_hold and
// condor_vacate_job do; becomes is what it is afterwards.
func (p *accessPoint) remove(q *queued, how ep.Deactivation, becomes jobState, why string) {
	switch q.state {
	case done, removed:
		return
	case waiting, onHold:
		if becomes != waiting {
			p.unqueue(q)
			q.why = why
			p.finish(q, becomes)
		}
		return
	}
	if q.state == asking && q.holding == nil {
		p.w.step(ep.ClaimWithdrawn{Ref: q.ref})
		delete(p.asked, q.ref)
		if becomes == waiting {
			p.requeue(q)
			return
		}
		q.why = why
		p.finish(q, becomes)
		return
	}
	h := q.holding
	if h == nil || h.gone {
		if becomes != waiting {
			q.ending, q.why = becomes, why
		}
		return
	}
	q.ending, q.why = becomes, why
	p.ref++
	closing := false
	late := p.w.pair(h.slot) == policy.ClaimedSuspended
	for _, eff := range p.deactivate(h, how) {
		if r, ok := eff.(ep.Reply); ok && r.Ref == p.ref {
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
	effects := slices.Clone(p.w.eng.Step(p.w.now, ep.DeactivateRequested{Ref: p.ref, Claim: h.id, How: how}))
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
