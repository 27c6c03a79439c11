// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package local

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/eventlog"
	"github.com/execpoint/execpoint/lib/jobpolicy"
	"github.com/execpoint/execpoint/lib/slot"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// Config is what an AP is made of.
type Config struct {
	// Jobs are the job ads in the order of the submit file, each with
	// ClusterId and ProcId. The AP owns and changes them from New on.
	Jobs []*classad.Ad
	// User owns the jobs: "alice@host".
	User string
	// Host is the name of this machine, Address its sinful string as event
	// logs show it.
	Host, Address string
	// Interval is how often the periodic expressions of jobs are asked
	// (PERIODIC_EXPR_INTERVAL); 0 is a minute.
	Interval time.Duration
	// System is what the owner of this machine says of every job.
	System jobpolicy.System
	// Log appends an event to the job event log at path (never ""). An error
	// is returned once through Problem; the job goes on.
	Log func(path string, h eventlog.Header, ev eventlog.Event) error
	// Env gives the evaluation its clock and chance; My and Target are set by
	// the AP. nil leaves time() undefined.
	Env func(now clock.Instant) *classad.Env
	// Changed is told each change of a job that a person would want to see.
	Changed func(Change)
	// Problem is told what went wrong beside the jobs themselves.
	Problem func(error)
}

// Change is one step of a job.
type Change struct {
	Job    ID
	At     time.Time
	Status Status
	Others int    // more jobs to which the same happened
	What   string // "started", "suspended", "continued", "evicted", "held", "released", "removed", "waits", "completed", "impossible"
	Slot   string // slot1_1@host
	Detail string // why, or how it ended
	Output string // where its standard output is, when completed
	Wall   time.Duration
	// Exit code or signal, when completed.
	ExitCode, ExitSignal int
}

// Offer is a slot that can be claimed, with its ad.
type Offer struct {
	Slot slot.ID
	Ad   *classad.Ad
	// Open says that programs of the owner publish attributes of the slot: one
	// that is not there may come.
	Open bool
}

// AP is the embedded access point. It belongs to one goroutine.
type AP struct {
	cfg     Config
	jobs    []*job
	idle    []*job // best first
	leases  map[string]*lease
	runs    map[claim.ActivationID]*run
	asked   map[uint64]ask
	ref     uint64
	counts  Counts
	stopped bool
	pending int // claim requests without an answer
	own     int // signatures given to jobs that changed their ads

	policed       []*job        // that something is to be asked about
	nextCheck     clock.Instant // when the first of them is to be asked
	mayBeReleased int           // held jobs that may be released by their own policy

	unlogged map[string]bool // event logs that could not be written, and were told of
}

// ask is a request that waits for its reply.
type ask struct {
	kind  byte // 'c' claim, 'a' activate, 'd' deactivate, 'r' release
	job   *job
	lease *lease
}

// New builds the queue. named tells whether the machine's policy mentions an
// attribute of a job; see signature.
func New(cfg Config, named func(attr string) bool) (*AP, error) {
	a := &AP{
		cfg: cfg, leases: make(map[string]*lease), runs: make(map[claim.ActivationID]*run), asked: make(map[uint64]ask),
		unlogged: make(map[string]bool),
	}
	sigs := make(map[string]int)
	for i, ad := range cfg.Jobs {
		cluster, ok1 := ad.EvalInt("ClusterId", nil)
		proc, ok2 := ad.EvalInt("ProcId", nil)
		if !ok1 || !ok2 {
			return nil, errs.E("local.New", errs.Invalid, "", fmt.Errorf("job ad %d has no ClusterId or ProcId", i))
		}
		prio, _ := ad.EvalInt("JobPrio", nil)
		text := signature(ad, named)
		sig, ok := sigs[text]
		if !ok {
			sig = len(sigs)
			sigs[text] = sig
		}
		j := &job{id: ID{int(cluster), int(proc)}, ad: ad, place: place{order: i, prio: prio, sig: sig}, status: Idle}
		a.jobs = append(a.jobs, j)
	}
	a.findPoliced()
	a.counts = Counts{Total: len(a.jobs), Idle: len(a.jobs)}
	a.idle = slices.Clone(a.jobs)
	slices.SortFunc(a.idle, func(x, y *job) int { return x.place.compare(y.place) })
	return a, nil
}

// Submit enters every job in its event log. Call it once, before anything else.
func (a *AP) Submit(now clock.Instant) {
	for _, j := range a.jobs {
		onHold, reason, code := submittedOnHold(j.ad)
		a.setStatus(j, Idle, now)
		a.log(now.Wall, j, eventlog.Submit{Host: a.cfg.Address})
		if onHold {
			a.unqueue(j)
			a.holdJob(now, j, protocol.Hold{Code: code, Reason: reason})
		}
	}
}

// Stop ends matchmaking: running jobs may end, nothing new starts.
func (a *AP) Stop() { a.stopped = true }

// Negotiate looks for the next idle job that one of the offers accepts and
// returns the request for that claim. The caller carries it out, hands the
// reply to Reply, and asks again with the changed offers until it gets false.
func (a *AP) Negotiate(now clock.Instant, offers []Offer) (ep.Event, bool) {
	if a.stopped || len(a.idle) == 0 || len(offers) == 0 {
		return nil, false
	}
	failed := make(map[int]string)
	for i, j := range a.idle {
		if j.restart.waits(now) {
			continue
		}
		if why, ok := failed[j.place.sig]; ok {
			j.wait.refused = why
			continue
		}
		best, why := a.pick(now, j, offers)
		if best < 0 {
			failed[j.place.sig], j.wait.refused = why, why
			continue
		}
		a.idle = slices.Delete(a.idle, i, i+1)
		a.pending++
		lease, _ := j.ad.EvalInt("JobLeaseDuration", nil)
		return ep.ClaimRequested{
			Ref: a.newRef(ask{kind: 'c', job: j}), Slot: offers[best].Slot, Job: j.ad.Clone(),
			Client: claim.Client{User: a.cfg.User, Owner: a.cfg.User, Host: a.cfg.Host, Address: a.cfg.Address},
			Lease:  time.Duration(lease) * time.Second,
		}, true
	}
	return nil, false
}

// pick returns the index of the offer that the job likes best among those that
// match, -1 and the reason when none does.
func (a *AP) pick(now clock.Instant, j *job, offers []Offer) (int, string) {
	best, bestRank, bestSlotRank, why := -1, 0.0, 0.0, ""
	env := a.env(now)
	m := classad.NewMatcher(j.ad, env)
	for i, o := range offers {
		if !m.Matches(o.Ad) {
			if why == "" {
				why = refusal(classad.Match(j.ad, o.Ad, env), o)
			}
			continue
		}
		rank, slotRank := m.Rank(o.Ad), m.RankOf(o.Ad)
		if best < 0 || rank > bestRank || rank == bestRank && slotRank > bestSlotRank {
			best, bestRank, bestSlotRank = i, rank, slotRank
		}
	}
	return best, why
}

// refusal says which side of a match refused.
func refusal(m classad.MatchResult, o Offer) string {
	name, _ := o.Ad.EvalString("Name", nil)
	if !m.LeftOK {
		return fmt.Sprintf("the job's requirements are %s for %s", m.LeftReq, name)
	}
	return fmt.Sprintf("%s refuses the job: its requirements are %s", name, m.RightReq)
}

func (a *AP) env(now clock.Instant) *classad.Env {
	if a.cfg.Env == nil {
		return &classad.Env{}
	}
	return a.cfg.Env(now)
}

func (a *AP) newRef(q ask) ep.Ref {
	a.ref++
	a.asked[a.ref] = q
	return ep.Ref{By: ep.OwnQueue, N: a.ref}
}

// Reply takes the engine's answer to an earlier event of this access point. Those
// to requests of others are not for it.
func (a *AP) Reply(now clock.Instant, r ep.Reply) []ep.Event {
	q, ok := a.asked[r.Ref.N]
	if !ok || r.Ref.By != ep.OwnQueue {
		return nil
	}
	delete(a.asked, r.Ref.N)
	switch q.kind {
	case 'c':
		a.pending--
		if r.Err != nil {
			q.job.wait.refused = r.Err.Error()
			q.job.restart.notBefore = now.Add(firstRetry) // the ad promised what the slot does not keep
			a.requeue(q.job)
			return nil
		}
		l := &lease{id: r.Granted.Claim, slot: r.Granted.Slot, name: r.Granted.Name, ad: r.Granted.Ad}
		a.leases[l.id.Public] = l
		return a.activate(now, l, q.job)
	case 'a':
		if r.Err != nil {
			q.job.wait.refused = r.Err.Error()
			a.requeue(q.job)
			switch {
			case r.Closing:
				q.lease.going = true
			case errs.Is(r.Err, errs.Denied):
				// The job itself is refused; a claim that is over says nothing
				// about it.
				q.job.restart.notBefore = now.Add(firstRetry)
			}
			return a.release(q.lease)
		}
		a.begin(now, q.lease, q.job, r.Activation)
	case 'd':
		// A claim that closes is taken away when the job has left.
		q.lease.going = q.lease.going || r.Closing
	case 'r':
		if r.Err != nil && !errs.Is(r.Err, errs.NotFound) {
			a.problem(r.Err)
		}
	}
	return nil
}

// activate starts the job under the claim. One that asks for something that
// the machine does not have goes on hold, and another is tried.
func (a *AP) activate(now clock.Instant, l *lease, j *job) []ep.Event {
	for j != nil {
		ad, err := matched(j.ad, l.ad, a.env(now))
		if err == nil {
			return []ep.Event{ep.ActivateRequested{Ref: a.newRef(ask{kind: 'a', job: j, lease: l}), Claim: l.id, Job: ad}}
		}
		a.holdJob(now, j, protocol.Hold{Reason: err.Error()})
		j = a.nextFor(now, l)
	}
	return a.release(l)
}

func (a *AP) release(l *lease) []ep.Event {
	if l.going {
		return nil
	}
	l.going = true
	return []ep.Event{ep.ReleaseRequested{Ref: a.newRef(ask{kind: 'r', lease: l}), Claim: l.id}}
}

// begin notes that an activation was granted.
func (a *AP) begin(now clock.Instant, l *lease, j *job, act claim.ActivationID) {
	r := &run{job: j, lease: l, act: act, activated: now}
	l.run, j.run, j.wait.refused = r, r, ""
	a.runs[act] = r
	j.policy.verdict = nil
	j.starts++
	a.setStatus(j, Running, now)
	j.ad.SetInt("NumShadowStarts", j.starts)
	j.ad.SetInt("NumJobMatches", j.starts)
	j.ad.SetString("RemoteHost", l.name)
	j.ad.SetInt("JobCurrentStartDate", now.Wall.Unix())
	j.ad.SetInt("ShadowBday", now.Wall.Unix())
	if j.starts == 1 {
		j.ad.SetInt("JobStartDate", now.Wall.Unix())
	}
}

// requeue puts a job back among the idle ones, at its old place.
func (a *AP) requeue(j *job) {
	i, _ := slices.BinarySearchFunc(a.idle, j, func(x, y *job) int { return x.place.compare(y.place) })
	a.idle = slices.Insert(a.idle, i, j)
}

// ClaimEnded takes the news that a claim is gone, whoever ended it.
func (a *AP) ClaimEnded(now clock.Instant, e ep.ClaimEnded) []ep.Event {
	l, ok := a.leases[e.Claim.Public]
	if !ok {
		return nil
	}
	delete(a.leases, e.Claim.Public)
	if r := l.run; r != nil && !r.ended {
		// The starter's last report will not come any more.
		a.evict(now, r, eviction{code: e.Code, reason: e.Reason})
	}
	return nil
}

// StarterExited takes the end of a starter, after its last report. The claim
// gets the next job that fits, or is given back.
func (a *AP) StarterExited(now clock.Instant, act claim.ActivationID, why string) []ep.Event {
	r, ok := a.runs[act]
	if !ok {
		return nil
	}
	delete(a.runs, act)
	if !r.ended {
		a.evict(now, r, eviction{reason: cmp.Or(why, "the starter ended without a word"), crashed: true})
	}
	l := r.lease
	l.run = nil
	if _, alive := a.leases[l.id.Public]; !alive || l.going {
		return nil
	}
	if j := a.nextFor(now, l); j != nil {
		return a.activate(now, l, j)
	}
	return a.release(l)
}

// nextFor takes the best idle job that the claimed slot can run as it is.
func (a *AP) nextFor(now clock.Instant, l *lease) *job {
	if a.stopped {
		return nil
	}
	failed := make(map[int]bool)
	m := classad.NewMatcher(l.ad, a.env(now))
	for i, j := range a.idle {
		if failed[j.place.sig] || j.restart.waits(now) {
			continue
		}
		if !m.Matches(j.ad) {
			failed[j.place.sig] = true
			continue
		}
		a.idle = slices.Delete(a.idle, i, i+1)
		return j
	}
	return nil
}

// Alive lists the claims to be kept alive.
func (a *AP) Alive() []claim.ID {
	ids := make([]claim.ID, 0, len(a.leases))
	for _, l := range a.leases {
		ids = append(ids, l.id)
	}
	slices.SortFunc(ids, func(x, y claim.ID) int { return strings.Compare(x.Public, y.Public) })
	return ids
}

// JobOf returns the job that runs on a slot.
func (a *AP) JobOf(act claim.ActivationID) (ID, bool) {
	r, ok := a.runs[act]
	if !ok {
		return ID{}, false
	}
	return r.job.id, true
}

// Quiet reports whether nothing is running or being asked for.
func (a *AP) Quiet() bool { return len(a.leases) == 0 && len(a.runs) == 0 && a.pending == 0 }

// Finished reports whether no job will ever run again by itself and all claims
// are given back. A run waits for a held job while its periodic_release can become
// true, and never for a periodic_remove.
func (a *AP) Finished() bool {
	c := &a.counts
	return a.Quiet() && (a.stopped || c.Done+c.Held-a.mayBeReleased+c.Removed+c.Impossible == c.Total)
}

// Counts counts the jobs by what they do.
type Counts struct {
	Total, Idle, Running, Suspended, Held, Removed int

	Done       int // completed, well or not
	Failed     int // completed with another status than 0
	Impossible int // idle jobs that no slot here can ever run
}

// Counts counts the jobs.
func (a *AP) Counts() Counts { return a.counts }

// count returns where jobs of a status are counted.
func (c *Counts) count(s Status) *int {
	switch s {
	case Running, Transferring:
		return &c.Running
	case Suspended:
		return &c.Suspended
	case Held:
		return &c.Held
	case Removed:
		return &c.Removed
	case Completed:
		return &c.Done
	}
	return &c.Idle
}

// setStatus moves the job and notes it in its ad.
func (a *AP) setStatus(j *job, s Status, now clock.Instant) {
	last := j.status
	*a.counts.count(last)--
	*a.counts.count(s)++
	j.status, j.since = s, now
	j.ad.SetInt("LastJobStatus", int64(last))
	j.ad.SetInt("JobStatus", int64(s))
	j.ad.SetInt("EnteredCurrentStatus", now.Wall.Unix())
	a.checkSoon(j, now)
}

// JobState is what there is to say about a job.
type JobState struct {
	ID      ID
	Status  Status
	Since   time.Time
	Slot    slot.ID // where it runs; zero when it does not
	Waiting string  // why it is not running, when known
}

// Job returns the state of one job.
func (a *AP) Job(id ID) (JobState, bool) {
	for _, j := range a.jobs {
		if j.id != id {
			continue
		}
		st := JobState{ID: id, Status: j.status, Since: j.since.Wall, Waiting: j.wait.why()}
		if j.run != nil {
			st.Slot = j.run.lease.slot
		}
		if j.hold != nil {
			st.Waiting = j.hold.Reason
		}
		return st, true
	}
	return JobState{}, false
}

// Ad returns the ad of one job. It is the AP's own: read it before anything
// else happens and do not change it.
func (a *AP) Ad(id ID) (*classad.Ad, bool) {
	for _, j := range a.jobs {
		if j.id == id {
			return j.ad, true
		}
	}
	return nil, false
}

func (a *AP) changed(c Change) {
	if a.cfg.Changed != nil {
		a.cfg.Changed(c)
	}
}

func (a *AP) problem(err error) {
	if a.cfg.Problem != nil && err != nil {
		a.cfg.Problem(err)
	}
}

// log appends to the job's event log, if it has one. That one cannot be written
// is said once, until it can be.
func (a *AP) log(at time.Time, j *job, ev eventlog.Event) {
	path, ok := j.ad.EvalString("UserLog", nil)
	if !ok || path == "" || a.cfg.Log == nil {
		return
	}
	err := a.cfg.Log(path, eventlog.Header{Cluster: j.id.Cluster, Proc: j.id.Proc, Time: at}, ev)
	switch {
	case err == nil:
		delete(a.unlogged, path)
	case !a.unlogged[path]:
		a.unlogged[path] = true
		a.problem(fmt.Errorf("job %s: the event log lacks what happens: %w", j.id, err))
	}
}
