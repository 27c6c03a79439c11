// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"slices"
	"strconv"
	"time"

	"github.com/execpoint/execpoint/lib/ad"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// slotState is one slot with all that goes on in it.
type slotState struct {
	s          *slot.Slot
	name, full string // "slot1_1", "slot1_1@host"
	exprs      *policy.Expressions
	ad         *ad.Slot
	load       float64 // that the job makes, as the load average has it

	pair     policy.Pair
	entered  clock.Instant // the state
	began    clock.Instant // the activity
	last     policy.Decision
	lastAt   clock.Instant
	start    startSeen          // START as it was last seen
	lastOf   claim.ActivationID // the activation that last was concerned
	removing bool               // a dynamic slot at its end

	cur        *claim.Claim     // nil without a claim
	waiting    *waiting         // nil without a preempting claim
	act        *activation      // nil without a starter
	offer      claim.ID         // by which the slot can be claimed
	further    []claim.ID       // by which it can be claimed as well, see stock
	matchUntil time.Duration    // boot time at which a match is over
	next       next             // where to after the backfill client
	pending    []ClaimRequested // that wait for the end of the backfill client
	commanded  bool             // suspended by command
	vacate     vacate           // why the claim is to end, as far as known
	byClient   bool             // the client ended the claim itself
}

// activation is the engine's side of a claim.Activation.
type activation struct {
	claim.Activation
	proc      host.ProcID
	globalJob string        // GlobalJobId of the job
	job       string        // its number, "7.2"
	address   string        // where the starter is reached, "" if it has not said
	final     bool          // the output is wanted although the job will not run again
	ranFrom   clock.Instant // when the job itself began, zero before
	usage     host.Usage
	usageAt   time.Duration // run time at which usage was measured
	cpus      float64       // processors kept busy between the last two measurements
	measured  bool
	diskKiB   int64
	softUntil time.Duration // boot time at which a soft kill becomes a hard one, 0: none
	hardUntil time.Duration // boot time at which the starter is ended by force, 0: never
	late      bool          // the hard kill comes because the vacate time is over
	flowed    time.Duration // boot time at which the output of the ended job was last seen to move, 0: never
	flowUntil time.Duration // boot time until which it may move after a hard kill
	// checkpointed is when a checkpoint was last ordered, or the job began.
	checkpointed clock.Instant

	drained bool         // draining ends the job before its time
	hold    *policy.Hold // the job was told to go on hold
	told    vacate       // why the job was told to leave
	exit    Exit         // of the job, if exited
	exited  bool
	broken  *slot.BrokenReason
	fault   *MachineFault // why it could not be set up
}

// nameJob notes what the job is called.
func (a *activation) nameJob() {
	a.globalJob, _ = a.Job.EvalString("GlobalJobId", nil)
	cluster, ok := a.Job.EvalInt("ClusterId", nil)
	if proc, ok2 := a.Job.EvalInt("ProcId", nil); ok && ok2 {
		a.job = strconv.FormatInt(cluster, 10) + "." + strconv.FormatInt(proc, 10)
	}
}

// waiting is a request that waits for the slot of a claim to be preempted.
type waiting struct {
	ref    Ref
	claim  *claim.Claim
	reason policy.Waiting
	req    ClaimRequested
	others []*slotState // which the same request got before
	rest   *slotState   // the partitionable slot whose leftovers are wanted
	silent bool         // another slot of the same request replies
}

// vacate says why a claim is to end.
type vacate struct {
	reason        string
	code, subcode int
}

// job returns the ad that expressions see as TARGET.
func (sl *slotState) job() *classad.Ad {
	switch {
	case sl.act != nil:
		return sl.act.Job
	case sl.cur != nil && sl.cur.Activations == 0:
		return sl.cur.Request
	}
	return nil
}

// add takes a slot of the ledger into the engine, in Owner/Idle.
func (e *Engine) add(s *slot.Slot, show *ad.Slot) *slotState {
	sl := &slotState{
		s: s, name: s.Name(), full: s.FullName(e.ads.Name()), ad: show,
		exprs: e.exprs[s.TypeID], entered: e.now, began: e.now,
	}
	i, _ := slices.BinarySearchFunc(e.slots, s.ID, func(x *slotState, id slot.ID) int { return x.s.ID.Compare(id) })
	e.slots = slices.Insert(e.slots, i, sl)
	e.byID[s.ID] = sl
	if e.refusing(sl) != nil {
		e.showFault(sl)
	}
	e.changed()
	return sl
}

// forget takes a slot out of the engine and gives it back to the ledger.
func (e *Engine) forget(sl *slotState) {
	i, found := slices.BinarySearchFunc(e.slots, sl.s.ID, func(x *slotState, id slot.ID) int { return x.s.ID.Compare(id) })
	if found {
		e.slots = slices.Delete(e.slots, i, i+1)
	}
	delete(e.byID, sl.s.ID)
	for _, id := range append(sl.further, sl.offer) {
		delete(e.byOffer, id.Public)
	}
	if err := e.ledger.Return(sl.s.ID); err != nil {
		panic(err) // only a slot that is in the ledger is ever forgotten
	}
	e.ads.Remove(sl.s.ID)
	e.changed()
	if parent := e.byID[sl.s.ID.Parent()]; parent != nil {
		// The load average remembers the job for a while.
		parent.load += sl.load
		e.emit(AdChanged{Slot: parent.s.ID})
	}
}

// remove forgets a dynamic slot that others have seen.
func (e *Engine) remove(sl *slotState) {
	e.emit(AdWithdrawn{Slot: sl.s.ID, Name: sl.name})
	e.forget(sl)
}

// polls reports whether a slot in p makes the engine look often.
func polls(p policy.Pair) bool {
	switch p.State {
	case policy.Claimed, policy.Preempting, policy.Backfill:
		return true
	}
	return false
}

// enter puts the slot into a pair and keeps the times and counts that hang on
// it.
func (e *Engine) enter(sl *slotState, to policy.Pair) {
	if was, is := polls(sl.pair), polls(to); was != is {
		if is {
			if e.polled == 0 {
				e.nextPoll = e.now.Boot + e.times.Polling
			}
			e.polled++
		} else {
			e.polled--
		}
	}
	if sl.pair.State != to.State {
		sl.entered, sl.began = e.now, e.now
	}
	if sl.pair.Activity != to.Activity {
		sl.began = e.now
	}
	sl.pair = to
	if sl.s.Kind == slot.Static {
		if err := e.ledger.Occupy(sl.s.ID, to.State == policy.Claimed || to.State == policy.Preempting); err != nil {
			panic(err) // a static slot of the ledger
		}
		e.changed()
	}
	kept := sl.s.Broken != nil && (e.keepBroken || sl.s.Broken.Code == slot.BrokenHungGroup)
	if sl.s.Kind == slot.Dynamic && (to == policy.OwnerIdle || to == policy.UnclaimedIdle) && !sl.removing && !kept {
		sl.removing = true
		e.gone = append(e.gone, sl)
	}
}

// timer makes sure that the engine looks at its timers at that boot time.
func (e *Engine) timer(at time.Duration) {
	if e.deadline == 0 || at < e.deadline {
		e.deadline = at
	}
}
