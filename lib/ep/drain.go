// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/execpoint/execpoint/lib/ad"
	"github.com/execpoint/execpoint/lib/cedar/command"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/slot"
)

// Haste says how much of a job's time a drain honours.
type Haste uint8

// The hastes.
const (
	DrainGraceful Haste = iota // retirement and vacate time
	DrainQuick                 // vacate time only
	DrainFast                  // neither
)

var hasteNames = [...]string{"graceful", "quick", "fast"}

// String returns the lower-case name.
func (h Haste) String() string {
	if int(h) < len(hasteNames) {
		return hasteNames[h]
	}
	return fmt.Sprintf("haste %d", uint8(h))
}

// Completion says what follows when every slot is drained.
type Completion uint8

// The completions, numbered as the field does.
const (
	ThenStay        Completion = iota // until the drain is cancelled
	ThenResume                        // take jobs again
	ThenExit                          // end the EP gracefully
	ThenRestart                       // end the EP gracefully, to be started again
	ThenReconfigure                   // read the configuration again and take jobs again
)

var completionNames = [...]string{"stay drained", "resume", "exit", "restart", "reconfigure"}

// String names what follows.
func (c Completion) String() string {
	if int(c) < len(completionNames) {
		return completionNames[c]
	}
	return fmt.Sprintf("completion %d", uint8(c))
}

// DrainRequested asks to empty the machine of jobs. The Reply has the DrainID.
// While one drain is under way another is refused, so that none takes the
// place of another's reason.
type DrainRequested struct {
	Ref    Ref
	How    Haste
	Then   Completion
	Reason string // why; empty: "by" and who
	By     string // the user who asks
	// Start is START while draining gracefully; nil for what
	// DEFAULT_DRAINING_START_EXPR says, which admits no job by default.
	Start *classad.Expr
	// Check must be true of every slot, or nothing is drained; nil asks nothing.
	Check *classad.Expr
	// Deadline is when the drainer hopes to be through. It is only published.
	Deadline time.Time
}

// DrainCancelled takes a drain back: the one with that ID, or with an empty ID
// any. To cancel nothing is no error.
type DrainCancelled struct {
	Ref Ref
	ID  string
}

func (DrainRequested) event() {}
func (DrainCancelled) event() {}

// DrainCompleted says that every slot is drained, and what the request asked
// for now. The engine itself has taken jobs again, or begun a graceful
// shutdown; what is left to others is to read the configuration again or to
// start the EP anew.
type DrainCompleted struct {
	ID   string
	Then Completion
}

func (DrainCompleted) effect() {}

// nearEnd is how little time a drain must have left for claims to be refused.
const nearEnd = 20 * time.Second

// drain is where draining stands.
type drain struct {
	on       bool
	ids      int
	how      Haste
	then     Completion
	reason   string
	by       string
	start    *classad.Expr // START meanwhile, nil for none
	deadline time.Time
	final    bool // the jobs that ran at the beginning are gone; those let in meanwhile follow
	over     bool // every slot is Drained/Idle

	started, stopped time.Time
	left             time.Duration // of the retirement of the jobs that ran at the beginning
	ending           bool          // one of them is over, and its claim is not yet
	badput           time.Duration // processor time lost since the EP began
	unclaimed        time.Duration // processor time not used since the EP began
	idle             float64       // processors that are not used now because of the drain
}

func (d *drain) id() string { return strconv.Itoa(d.ids) }

func (e *Engine) drainRequested(ev DrainRequested) {
	const op = "ep.Drain"
	d := &e.drain
	if d.on {
		e.refuse(ev.Ref, command.DrainInProgress, errs.E(op, errs.Conflict, d.id(),
			fmt.Errorf("draining already in progress (since %v: %s)", d.started.UTC().Format(time.RFC3339), d.reason)))
		return
	}
	if err := e.checkDrain(ev.Check); err != nil {
		e.refuse(ev.Ref, command.DrainCheckFailed, errs.E(op, errs.Denied, "", err))
		return
	}
	why := ev.Reason
	if why == "" {
		why = "by " + ev.By
	}
	start := ev.Start
	if start == nil {
		start = e.exprs.drainDefault
	}
	if ev.How != DrainGraceful {
		start = nil
	}
	*d = drain{
		on: true, ids: d.ids + 1, how: ev.How, then: ev.Then, reason: why, by: ev.By, start: start, deadline: ev.Deadline,
		started: e.now.Wall, stopped: d.stopped, badput: d.badput, unclaimed: d.unclaimed,
	}
	if e.schedule.polled == 0 {
		e.schedule.poll = e.now.Boot + e.times.Polling
	}
	if !ev.Ref.IsZero() {
		e.emit(Reply{Ref: ev.Ref, DrainID: d.id()})
	}
	e.emit(DrainBegun{ID: d.id(), How: d.how, Then: d.then, Reason: d.reason, By: d.by})
	e.drainTime()
	e.showDrain()
	code := int(reason.StartdDraining)
	for _, sl := range e.slots.all {
		if ev.How != DrainGraceful && sl.act != nil {
			sl.act.Hurried, sl.act.drained = true, true
		}
		switch {
		case sl.pair == policy.MatchedIdle:
			e.moveOn(sl, policy.OwnerIdle, policy.Commanded, policy.ByDraining, "the machine is to be drained")
		case sl.pair.State == policy.Backfill:
			e.leaveBackfill(sl, policy.ByDraining, "the machine is to be drained")
		case ev.How == DrainFast:
			e.kill(sl, code, policy.ByDraining, "fast draining")
		case ev.How == DrainQuick:
			e.retire(sl, code, Graceful, policy.ByDraining, "quick draining")
		case sl.pair == policy.ClaimedIdle:
			// There is no job to wait for. That a claim may be without one for a
			// while (ActivationDelay) is for those that the drain itself lets in.
			sl.ending.why = e.vacateFor(code)
			e.moveOn(sl, policy.ClaimedRetiring, policy.Commanded, policy.ByDraining, "graceful draining")
		}
	}
	e.evaluateAll()
}

// checkSteps is what a check expression may take in all slots together, 50 ms
// at most, in which the engine decides nothing else.
const checkSteps = 1_000_000

// checkDrain names the first slot for which the expression is not true, nil if it
// is true for all.
func (e *Engine) checkDrain(check *classad.Expr) error {
	if check == nil {
		return nil
	}
	env := e.env()
	env.Budget = classad.NewBudget(checkSteps)
	for _, sl := range e.slots.all {
		env.My = sl.ad.Ad()
		val := check.Eval(env)
		switch ok, is := val.AsBool(); {
		case env.Budget.Spent():
			return fmt.Errorf("draining check expression takes more than %d steps for %d slots: ask with a simpler one", checkSteps, len(e.slots.all))
		case !is:
			return fmt.Errorf("draining check expression does not evaluate to a bool on %s: %v is %v", sl.full, check, val)
		case !ok:
			return fmt.Errorf("draining check expression is false on %s: %v", sl.full, check)
		}
	}
	return nil
}

func (e *Engine) drainCancelled(ev DrainCancelled) {
	d := &e.drain
	if ev.ID != "" && (d.ids == 0 || ev.ID != d.id()) {
		e.refuse(ev.Ref, command.DrainUnknownID, errs.E("ep.CancelDrain", errs.NotFound, ev.ID,
			fmt.Errorf("no matching draining request id %s", ev.ID)))
		return
	}
	if !ev.Ref.IsZero() {
		e.emit(Reply{Ref: ev.Ref, DrainID: ev.ID})
	}
	e.endDrain()
}

// endDrain lets every slot go on.
func (e *Engine) endDrain() {
	d := &e.drain
	if !d.on {
		return
	}
	d.on, d.stopped, d.left, d.idle = false, e.now.Wall, 0, 0
	e.showDrain()
	e.evaluateAll()
}

func (e *Engine) evaluateAll() {
	for _, sl := range e.slots.all {
		e.evaluate(sl)
	}
	for _, sl := range e.slots.all {
		e.emit(AdChanged{Slot: sl.s.ID})
	}
}

// drainTime takes the drain's time, which holds until the next poll.
func (e *Engine) drainTime() { e.drain.left, e.drain.ending = e.drainNow() }

// drainNow finds how long the jobs that ran at the beginning may still take, and
// whether one of them is over and its claim is not yet: its output is being sent,
// or the shadow has not given the claim back. One that was already told to leave
// counts with the vacate time it has left.
func (e *Engine) drainNow() (left time.Duration, ending bool) {
	d := &e.drain
	if !d.on || d.how != DrainGraceful || d.final {
		return 0, false
	}
	for _, sl := range e.slots.all {
		switch a := sl.act; {
		case a == nil:
			ending = ending || sl.pair == policy.ClaimedIdle
		case a.Admitted:
		case a.Phase == claim.Ended:
			ending = true
		case a.Phase >= claim.Vacating:
			left = max(left, a.limits.soft-e.now.Boot)
		default:
			left = max(left, policy.RetirementLeft(e.policyView(sl)))
		}
	}
	return left, ending
}

// drainLeftFor is how long the drain leaves the job of a slot. A job that it let
// in may stay while the claim of one of the first jobs ends, for as long as that
// takes: until then the machine is not empty, and the drain's last part has not
// begun.
func (d *drain) drainLeftFor(a *activation) time.Duration {
	if a != nil && a.Admitted && d.ending && !d.final {
		return max(d.left, unknownEnd)
	}
	return d.left
}

// unknownEnd stands for the end of a drain that has none in sight.
const unknownEnd = 365 * 24 * time.Hour

// drainOn counts what was not used since the last step.
func (e *Engine) drainOn(since time.Duration) {
	if d := &e.drain; d.on {
		d.unclaimed += time.Duration(d.idle * float64(since))
	}
}

// drainStep notices how far a drain is at the end of a step. It may move
// slots.
func (e *Engine) drainStep() {
	d := &e.drain
	if !d.on {
		return
	}
	if d.start != nil && !d.final && e.onlyAdmitted() {
		// The last of the jobs that the drain waited for has just gone: with the
		// time that it had left at the last poll, the others would stay until
		// the next one.
		d.final, d.start, d.left = true, nil, 0
		e.emit(DrainFinal{ID: d.id()})
		e.showDrain()
		for _, sl := range e.slots.all {
			if sl.act != nil {
				sl.act.Hurried = true
			}
			e.retire(sl, int(reason.StartdDraining), Graceful, policy.ByDraining, "all original jobs are gone")
		}
	}
	if !d.over && e.allIn(policy.Drained) {
		d.over = true
		e.showDrain()
		for _, sl := range e.slots.all {
			e.evaluate(sl)
		}
	}
	d.idle = 0
	for _, sl := range e.slots.all {
		if (sl.pair.State == policy.Drained || sl.pair.State == policy.Unclaimed) && !sl.s.Backfill {
			d.idle += sl.s.Free.Cpus
		}
	}
}

// onlyAdmitted reports whether jobs are left, and all came in while draining.
func (e *Engine) onlyAdmitted() bool {
	some := false
	for _, sl := range e.slots.all {
		switch {
		case sl.s.Kind == slot.Partitionable || sl.cur == nil:
		case sl.act == nil || !sl.act.Admitted:
			return false
		default:
			some = true
		}
	}
	return some
}

func (e *Engine) allIn(s policy.State) bool {
	for _, sl := range e.slots.all {
		if sl.pair.State != s {
			return false
		}
	}
	return true
}

// drainPoll does what the drain asked for once it is complete. That is a
// polling interval later, so that others see the machine drained.
func (e *Engine) drainPoll() {
	d := &e.drain
	if !d.over || !d.on || d.then == ThenStay || !e.allIn(policy.Drained) {
		return
	}
	done := DrainCompleted{ID: d.id(), Then: d.then}
	switch d.then {
	case ThenResume, ThenReconfigure:
		e.endDrain()
	case ThenExit, ThenRestart:
		d.then = ThenStay
		e.beginShutdown(Graceful, "graceful shutdown, the machine is drained")
	}
	e.emit(done)
}

// polling reports whether the engine has to look often.
func (e *Engine) polling() bool {
	return e.schedule.polled > 0 || e.drain.on && (!e.drain.over || e.drain.then != ThenStay)
}

// refusesClaims says why a claim would come too late for the drain, nil if not.
func (e *Engine) refusesClaims() error {
	if !e.drain.on {
		return nil
	}
	if e.drain.start == nil {
		return errors.New("the machine is being drained: " + e.drain.reason)
	}
	if left, _ := e.drainNow(); left < nearEnd {
		return fmt.Errorf("the machine is drained in %v", left.Round(time.Second))
	}
	return nil
}

// DrainView is what can be seen of a drain from outside.
type DrainView struct {
	ID         string
	How        Haste
	Then       Completion
	Reason, By string
	Start      *classad.Expr // nil if no job is admitted
	Since      time.Time
	Deadline   time.Time // as the drainer hoped, zero if it did not say
	// Jobs is how many starters are left, and Left how long the last of them
	// may take, longer than a year if it may stay as long as it likes.
	Jobs int
	Left time.Duration
	// Drained says that every slot is drained.
	Drained bool
}

// Drain returns where draining stands; false if the machine is not drained. It
// changes nothing: what is decided until the next poll is so whoever asks.
func (e *Engine) Drain() (DrainView, bool) {
	d := &e.drain
	if !d.on {
		return DrainView{}, false
	}
	left, _ := e.drainNow()
	v := DrainView{
		ID: d.id(), How: d.how, Then: d.then, Reason: d.reason, By: d.by, Start: d.start, Since: d.started,
		Deadline: d.deadline, Drained: d.over, Left: left,
	}
	for _, sl := range e.slots.all {
		a := sl.act
		if a == nil {
			continue
		}
		v.Jobs++
		switch look := e.policyView(sl); {
		case a.Phase >= claim.Vacating:
			v.Left = max(v.Left, a.limits.soft-e.now.Boot, a.limits.hard-e.now.Boot)
		case d.how == DrainQuick || a.Admitted:
			v.Left = max(v.Left, left+policy.MaxVacate(look))
		case d.how == DrainGraceful:
			v.Left = max(v.Left, policy.MaxVacate(look))
		}
	}
	return v, true
}

// showDrain publishes where draining stands and what it would cost.
func (e *Engine) showDrain() {
	d := &e.drain
	show := ad.Drain{
		On: d.on, Start: d.start, Deadline: d.deadline, Started: d.started, Stopped: d.stopped,
		Badput: d.badput, Unclaimed: d.unclaimed,
	}
	if d.on {
		show.ID, show.Reason = d.id(), d.reason
	}
	x := &show.Expected
	var graceful, quick time.Duration
	for _, sl := range e.slots.all {
		if sl.act == nil || sl.act.Phase == claim.Ended {
			continue
		}
		v := e.policyView(sl)
		ran, vacate := sl.act.RunTime(e.now), policy.MaxVacate(v)
		left := max(vacate, policy.RetirementLeft(v))
		graceful, quick = max(graceful, left), max(quick, vacate)
		x.GracefulBadput += processorTime(ran+left, sl.s.Total.Cpus)
		x.QuickBadput += processorTime(ran+vacate, sl.s.Total.Cpus)
	}
	x.GracefulCompletion, x.QuickCompletion = e.now.Wall.Add(graceful), e.now.Wall.Add(quick)
	e.ads.ShowDrain(show)
}

// processorTime is what n processors do in d, as much as can be counted.
func processorTime(d time.Duration, n float64) time.Duration {
	const most = float64(1 << 61)
	return time.Duration(min(float64(d)*n, most))
}
