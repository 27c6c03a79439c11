// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// FetchWork asks the owner's hook <Keyword>_HOOK_FETCH_WORK for a job of a slot.
// WorkFetched answers. A slot has one such question at a time.
type FetchWork struct {
	Slot    slot.ID
	Name    string // "slot1_1"
	Keyword string
	Kind    slot.Kind
	Ad      *classad.Ad // the slot's ad at that moment, flat
}

// WorkFetched is what a hook had to offer.
type WorkFetched struct {
	Slot slot.ID
	Job  *classad.Ad // nil: there is no work
	// Unfit says why the job can be run in no slot, nil if nothing is known to be wrong.
	Unfit error
	// Fault is as ActivateRequested's.
	Fault *MachineFault
}

// WorkDecided says what becomes of a job that a hook has offered.
type WorkDecided struct {
	Slot    slot.ID // that asked
	Name    string
	Keyword string
	Job     *classad.Ad
	Ad      *classad.Ad // of the slot that asked, flat; nil if it is gone
	Err     error       // why the job is refused, nil if it is accepted
	Rank    float64     // of an accepted job
	Claim   claim.ID    // under which an accepted job runs or will run; zero while backfill has to make room
}

// WorkEvicted says that the claim of fetched work has ended, whatever the cause, or
// that it will never begin although its job was accepted.
type WorkEvicted struct {
	Slot    slot.ID
	Name    string
	Keyword string
	Job     *classad.Ad // that was fetched last
	Ad      *classad.Ad // the slot's, flat
	Claim   claim.ID
}

func (FetchWork) effect()   {}
func (WorkFetched) event()  {}
func (WorkDecided) effect() {}
func (WorkEvicted) effect() {}

// Times of fetching.
const (
	fetchDelay = 300 * time.Second // FetchWorkDelay that is no number
	fetchLeast = time.Second       // between two calls of the hook of a slot with which nothing has happened
)

// fetching is what the configuration says of fetched work.
type fetching struct {
	on    bool // a slot may have a hook, or had one once
	snap  *config.Snapshot
	delay *classad.Expr // FetchWorkDelay, nil where it does not parse

	promised map[Ref]promise // that wait for their slot
}

// fetchState is where one slot stands with its hook.
type fetchState struct {
	asking    bool
	completed clock.Instant // of the last answer, zero for none
	spawned   time.Time
	pair      policy.Pair   // in which the slot was last looked at
	look      time.Duration // boot time of the next look in that pair, 0 for at once
}

// promise is a fetched job that was accepted, and whose claim is not in force yet.
type promise struct {
	slot slot.ID
	work *claim.Work
}

// configure reads a configuration. Without a keyword no slot fetches.
func (f *fetching) configure(s *config.Snapshot) {
	f.snap = s
	if f.promised == nil {
		f.promised = make(map[Ref]promise)
	}
	for _, name := range s.Names() {
		if keyword := strings.ToUpper(name); keyword == "STARTD_JOB_HOOK_KEYWORD" ||
			strings.HasPrefix(keyword, "SLOT") && strings.HasSuffix(keyword, "_JOB_HOOK_KEYWORD") {
			f.on = f.on || strings.TrimSpace(s.String(name)) != ""
		}
	}
	f.delay, _ = s.Expr("FetchWorkDelay")
}

// keyword names the hooks of a slot, "" if it has none that fetches: without
// <Keyword>_HOOK_FETCH_WORK no other hook of the startd runs. A dynamic slot has the
// keyword of its partitionable slot unless it has its own, SLOT1_2_JOB_HOOK_KEYWORD.
// HTCondor's asks for that one alone, and then for STARTD_JOB_HOOK_KEYWORD, so that the
// slots of a partitionable slot with a keyword of its own never fetch a second job.
func (f *fetching) keyword(id slot.ID) string {
	names := []string{"SLOT" + strconv.Itoa(id.N) + "_JOB_HOOK_KEYWORD", "STARTD_JOB_HOOK_KEYWORD"}
	if id.Sub > 0 {
		names = append([]string{"SLOT" + strconv.Itoa(id.N) + "_" + strconv.Itoa(id.Sub) + "_JOB_HOOK_KEYWORD"}, names...)
	}
	for _, name := range names {
		if keyword := strings.TrimSpace(f.snap.String(name)); keyword != "" {
			if strings.TrimSpace(f.snap.String(keyword+"_HOOK_FETCH_WORK")) == "" {
				return ""
			}
			return keyword
		}
	}
	return ""
}

// fetchAll asks the hooks of all slots whose time has come.
func (e *Engine) fetchAll() {
	if !e.fetch.on || !e.cfg.Fetches {
		return
	}
	for _, sl := range e.slots.all {
		e.startFetched(sl, nil)
		e.tryFetch(sl)
	}
}

// tryFetch asks the hook of a slot, if it is to be asked now. As HTCondor's startd
// does it asks for slots that are taken as well, since their machine may like the
// fetched job better; but not for one without anything to give.
//
// The delay counts from the end of the last call. It is evaluated again with each
// move of the slot and every POLLING_INTERVAL.
func (e *Engine) tryFetch(sl *slotState) {
	f := &sl.fetch
	if f.asking || !e.mayFetch(sl) {
		f.look = 0
		return
	}
	now := e.now.Boot
	if f.pair == sl.pair && now < f.look {
		e.schedule.setTimer(f.look)
		return
	}
	f.pair, f.look = sl.pair, now+max(e.times.Polling, fetchLeast)
	keyword := e.fetch.keyword(sl.s.ID)
	if keyword == "" {
		if sl.pair == policy.ClaimedIdle && sl.cur.Work != nil {
			e.workEnded(WorkEnded{Claim: sl.cur.ID}) // nothing would ever use the claim again
		}
		return
	}
	if due := e.fetchDue(sl); now < due {
		f.look = min(f.look, due)
	} else if !policy.StartIsFalse(e.policyViewWith(sl, nil)) {
		f.asking, f.spawned = true, e.now.Wall
		e.showFetch(sl)
		e.emit(FetchWork{Slot: sl.s.ID, Name: sl.name, Keyword: keyword, Kind: sl.s.Kind, Ad: sl.ad.Snapshot(e.now)})
		return
	}
	e.schedule.setTimer(f.look)
}

// mayFetch reports whether a slot is in a state in which it looks for work.
func (e *Engine) mayFetch(sl *slotState) bool {
	switch {
	case e.closed(sl) != nil, sl.removing, sl.waiting != nil, sl.leaving():
		return false
	case sl.s.Kind == slot.Partitionable && (sl.s.Free.Cpus <= 0 || sl.pair.State == policy.Claimed):
		return false
	}
	switch sl.pair.State {
	case policy.Owner, policy.Unclaimed:
		return sl.s.Kind != slot.Dynamic
	case policy.Claimed:
		return sl.pair != policy.ClaimedSuspended && sl.pair != policy.ClaimedCleaning
	case policy.Backfill:
		return sl.pair != policy.BackfillKilling
	}
	return false
}

// fetchDue is the boot time from which the hook of a slot may be asked.
func (e *Engine) fetchDue(sl *slotState) time.Duration {
	f := &sl.fetch
	delay := e.fetchDelay(sl)
	sl.ad.SetNextFetch(delay)
	switch {
	case f.completed.IsZero():
		return 0
	case delay > 0:
		return f.completed.Boot + delay
	case sl.began.Boot > f.completed.Boot:
		return 0 // its job has ended since
	}
	return f.completed.Boot + fetchLeast
}

// fetchDelay evaluates FetchWorkDelay for the slot and the job in it.
func (e *Engine) fetchDelay(sl *slotState) time.Duration {
	if e.fetch.delay == nil {
		return fetchDelay
	}
	env := e.env()
	env.My, env.Target = sl.ad.Ad(), sl.job()
	sec, ok := e.fetch.delay.Eval(env).AsNumber()
	if !ok || math.IsNaN(sec) {
		return fetchDelay
	}
	return time.Duration(math.Trunc(min(max(sec, 0), math.MaxInt32))) * time.Second
}

// workFetched decides about a job that the hook of a slot has offered. A slot that is
// Claimed/Idle for fetched work and gets no more of it gives its claim up.
func (e *Engine) workFetched(ev WorkFetched) {
	decided := WorkDecided{Slot: ev.Slot, Name: ev.Slot.String(), Keyword: e.fetch.keyword(ev.Slot), Job: ev.Job}
	sl, ok := e.slots.byID[ev.Slot]
	if !ok || !sl.fetch.asking {
		if ev.Job != nil {
			decided.Err = errs.E("ep.Fetch", errs.NotFound, ev.Slot.String(), errors.New("the slot is gone"))
			e.emit(decided)
		}
		return
	}
	sl.fetch.asking, sl.fetch.completed, sl.fetch.look = false, e.now, 0
	e.showFetch(sl)
	own := sl.pair == policy.ClaimedIdle && sl.cur.Work != nil
	if ev.Job != nil {
		work := &claim.Work{Keyword: decided.Keyword, Job: ev.Job}
		decided.Ad = sl.ad.Snapshot(e.now)
		if sl.s.Kind == slot.Static {
			// Such jobs said nothing of what they want before static slots had limits.
			for _, name := range [...]string{"RequestCpus", "RequestMemory", "RequestDisk"} {
				if _, said := ev.Job.Lookup(name); !said {
					ev.Job.SetInt(name, 1)
				}
			}
		}
		before := len(e.effects)
		if decided.Err = e.takeWork(sl, ev, work, own); decided.Err == nil {
			work.Accepted = true
			decided.Claim, decided.Rank = e.claimOf(work, sl)
		}
		e.effects = slices.Insert(e.effects, before, Effect(decided)) // and what follows from it
		if decided.Err == nil {
			if own {
				e.startFetched(sl, ev.Fault)
			}
			return
		}
	}
	if own {
		e.workEnded(WorkEnded{Claim: sl.cur.ID})
	}
}

// takeWork gives a fetched job the slot, or a part of it, or the place after the
// present claim, whose rank it has to beat: user priorities do not count here. The
// error says why it is refused.
func (e *Engine) takeWork(sl *slotState, ev WorkFetched, work *claim.Work, own bool) error {
	const op = "ep.Fetch"
	no := func(kind errs.Kind, err error) error { return errs.E(op, kind, sl.name, err) }
	if ev.Unfit != nil {
		return no(errs.Invalid, ev.Unfit)
	}
	if sl.s.Kind != slot.Partitionable {
		if why := e.unacceptable(sl, ev.Job); why != nil {
			return no(errs.Denied, why)
		}
	} else if why := e.unsaid(ev.Job); why != nil {
		return no(errs.Invalid, why)
	}
	if own {
		switch {
		case e.closed(sl) != nil:
			return no(errs.Conflict, e.closed(sl))
		case sl.cur.Closing || sl.waiting != nil:
			return no(errs.Expired, errors.New("the claim takes no more jobs"))
		}
		sl.cur.Work = work
		return nil
	}
	user, _ := ev.Job.EvalString("User", nil)
	owner, _ := ev.Job.EvalString("Owner", nil)
	ref := Ref{By: Fetcher, N: uint64(e.issued.fetch())}
	e.claimRequested(ClaimRequested{
		Ref: ref, Slot: ev.Slot, Job: ev.Job, work: work,
		Client: claim.Client{User: cmp.Or(user, owner), Owner: cmp.Or(owner, user)},
	})
	for _, eff := range e.effects {
		if r, ok := eff.(Reply); ok && r.Ref == ref {
			return r.Err
		}
	}
	e.fetch.promised[ref] = promise{slot: ev.Slot, work: work}
	return nil
}

// breakPromise tells that a fetched job that was accepted does not get its slot.
func (e *Engine) breakPromise(ref Ref) {
	p, ok := e.fetch.promised[ref]
	if !ok {
		return
	}
	delete(e.fetch.promised, ref)
	if sl := e.slots.byID[p.slot]; sl != nil {
		e.evictWork(sl, &claim.Claim{Work: p.work})
	}
}

// unsaid says what a job for a part of a slot has to ask for and does not.
func (e *Engine) unsaid(job *classad.Ad) error {
	for _, name := range [...]string{"RequestCpus", "RequestMemory", "RequestDisk"} {
		if _, said := job.Lookup(name); !said {
			return fmt.Errorf("the job has no %s, which it needs in a partitionable slot", name)
		}
	}
	return nil
}

// claimOf returns the claim that fetched work has got or waits for, and its rank. A
// part of the slot that asked has its hook asked no sooner than that slot itself:
// HTCondor's startd asks for it at once, while its first job begins.
func (e *Engine) claimOf(work *claim.Work, asked *slotState) (claim.ID, float64) {
	for _, sl := range e.slots.all {
		switch {
		case sl.cur != nil && sl.cur.Work == work:
			sl.fetch.completed, sl.fetch.spawned = asked.fetch.completed, asked.fetch.spawned
			e.showFetch(sl)
			return sl.cur.ID, policy.RankOf(e.policyViewWith(sl, work.Job))
		case sl.waiting != nil && sl.waiting.claim.Work == work:
			return sl.waiting.claim.ID, sl.waiting.claim.Rank
		}
	}
	return claim.ID{}, 0
}

// startFetched starts the fetched job of a claim that is in force and has not run it.
func (e *Engine) startFetched(sl *slotState, fault *MachineFault) {
	if sl.pair != policy.ClaimedIdle || sl.cur.Work == nil || sl.cur.Work.Started || !sl.cur.Work.Accepted {
		return
	}
	w := sl.cur.Work
	w.Started = true
	id := sl.cur.ID
	e.activateRequested(ActivateRequested{Ref: Ref{By: Fetcher, N: uint64(e.issued.fetch())}, Claim: id, Job: w.Job, Fault: fault})
	if sl.act == nil {
		e.workEnded(WorkEnded{Claim: id})
	}
}

// evictWork tells that a claim of fetched work is over, or will never be in force.
func (e *Engine) evictWork(sl *slotState, c *claim.Claim) {
	if w := c.Work; w != nil && w.Accepted {
		e.emit(WorkEvicted{Slot: sl.s.ID, Name: sl.name, Keyword: w.Keyword, Job: w.Job, Ad: sl.ad.Snapshot(e.now), Claim: c.ID})
	}
}

// showFetch publishes when the hook of a slot was called last.
func (e *Engine) showFetch(sl *slotState) {
	sl.ad.SetFetched(sl.fetch.spawned, sl.fetch.completed.Wall)
	e.emit(AdChanged{Slot: sl.s.ID})
}
