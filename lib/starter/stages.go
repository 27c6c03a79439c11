// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/hook"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/starter/job"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// The stages in which the source of the job has a part: it is fetched, its access
// point is told how it is, and what it left is delivered. What the source answers
// becomes a step of the life.

// prepare learns the job, makes the sandbox and brings the input.
func (a *activation) prepare() {
	a.holds = job.Holds{Slot: a.plan.SlotFullName, Errno: a.host.Errno, Bare: !a.local()}
	learn := func(ctx context.Context) func() []duty {
		got, err := a.source.Learn(ctx)
		return func() []duty { return a.learned(got, err) }
	}
	if a.local() {
		a.atOnce(learn)
		return
	}
	a.async(learn)
}

// learned goes on with the job's ad.
func (a *activation) learned(got job.Learned, err error) []duty {
	a.gone = got.Lost
	var unfit *job.Unfit
	switch {
	case errors.As(err, &unfit):
		return a.unfitFor(unfit)
	case err != nil:
		return a.life.prepared(a.holds.Broken(fmt.Errorf("job ad: %w", err)))
	}
	if got.User != nil {
		a.plan.RunAs = got.User
	}
	if a.life.evicted != nil {
		return a.life.prepared(nil)
	}
	if hold := a.primaryGroup(got.Ad); hold != nil {
		return a.life.prepared(hold)
	}
	if err := a.canRunAs(); err != nil {
		return a.life.prepared(a.holds.Broken(err))
	}
	if err := a.makeSandbox(); err != nil {
		return a.noSandbox(err)
	}
	if a.job, err = a.source.Read(got.Ad, a.box.Scratch(), a.home()); err != nil {
		return a.life.prepared(a.holds.Broken(err))
	}
	a.logJob(got.Ad)
	if hold := a.chooseRunner(); hold != nil {
		return a.life.prepared(hold)
	}
	a.place = &job.Place{Job: a.job, Box: a.box, User: a.plan.RunAs, AsUser: a.asUser, MachineAd: a.plan.MachineAd, Marker: a.note.Marker}
	if err := a.chooseHooks(); err != nil {
		return a.unfit(err, int(reason.StarterError))
	}
	if a.hooks.chosen.Path(hook.PrepareBeforeTransfer) == "" {
		a.bring()
	} else {
		a.meet()
	}
	return nil
}

// meet has the source know the starter, and the hook run that comes before the input.
func (a *activation) meet() {
	meet := func(ctx context.Context) func() []duty {
		err := a.source.Meet(ctx, a.place)
		return func() []duty {
			if err != nil || a.life.evicted != nil {
				return a.brought(job.Brought{}, err)
			}
			bring := func() []duty {
				a.bring()
				return nil
			}
			if a.runPrepareHook(hook.PrepareBeforeTransfer, bring) {
				return nil
			}
			return bring()
		}
	}
	if a.local() {
		a.atOnce(meet)
		return
	}
	a.async(meet)
}

// bring has the input brought.
func (a *activation) bring() {
	bring := func(ctx context.Context) func() []duty {
		got, err := a.source.Bring(ctx, a.place)
		return func() []duty { return a.brought(got, err) }
	}
	if _, deferred := a.job.Ad.Lookup("DeferralTime"); a.local() && !a.job.Moves && !deferred {
		a.atOnce(bring)
		return
	}
	a.async(bring)
}

// brought goes on with a job whose input is there, or is not.
func (a *activation) brought(got job.Brought, err error) []duty {
	a.input, a.record.BytesIn = got, got.Bytes
	a.record.Ran.Stages.Brought = time.Now()
	a.problem(got.Problem)
	var held *job.Held
	var unfit *job.Unfit
	switch {
	case errors.As(err, &held):
		return a.life.prepared(&held.Hold)
	case errors.As(err, &unfit):
		return a.unfitFor(unfit)
	case err != nil && a.life.evicted == nil:
		return a.unfit(err, int(reason.StarterError))
	}
	a.colorFromJob()
	prepared := func() []duty { return a.life.prepared(nil) } // or it was told to leave, and the life knows why
	if a.life.evicted == nil && a.runPrepareHook(hook.PrepareJob, prepared) {
		return nil
	}
	return prepared()
}

// colorFromJob has the slots show what the job says, where the owner tries colors
// (TESTING_COLOR_FROM_JOB_AD). Otherwise no job does: access points from 25.12 on
// announce catalogs instead.
func (a *activation) colorFromJob() {
	if set := a.plan.Settings; set == nil || set.Pool == nil || !set.Pool.ColorFromJob {
		return
	}
	if color, ok := a.job.Ad.Eval("ColorAd", nil).AsAd(); ok {
		a.say(protocol.Color{Ad: color.Text(classad.Old)})
	}
}

// unfit ends an activation that cannot be set up here, without blame for the
// job.
func (a *activation) unfit(err error, code int) []duty {
	return a.unfitFor(&job.Unfit{Err: err, Eviction: job.Eviction{Reason: err.Error(), Code: code}})
}

// unfitFor is unfit with what is said of it.
func (a *activation) unfitFor(u *job.Unfit) []duty {
	a.blameFor(u.Err)
	a.life.lost = a.life.lost || u.Lost
	if a.life.evicted == nil {
		a.life.evicted = &eviction{asked: job.AskedByStarter, reason: u.Reason, code: u.Code, subcode: u.Subcode, hard: true}
	}
	return a.life.prepared(nil)
}

// state is how the job is.
func (a *activation) state(m job.Moment) job.State {
	s := job.State{Moment: m, Usage: a.record.Usage, Disk: a.disk, Started: a.record.Started, Scripts: a.scripts.ads, Metered: a.metered}
	if e := a.life.evicted; e != nil {
		s.Evicted = &job.Eviction{Asked: e.asked, Reason: e.reason, Code: e.code, Subcode: e.subcode, Hard: e.hard}
	}
	if a.family != nil {
		s.Main, s.Grouped = a.family.Main(), a.family.Grouped()
	}
	if m == job.Exited {
		s.Ended, s.Status = a.exitAt, a.record.Status
	}
	return s
}

// notify tells the access point how the job is, unless it is away or knows that the
// job is to be held.
func (a *activation) notify(m job.Moment) {
	if !a.life.held && !a.life.apart {
		a.source.Changed(a.state(m))
	}
}

// changed tells that the job was suspended or goes on, or what was measured.
func (a *activation) changed() {
	switch {
	case a.family == nil:
	case a.life.suspended:
		a.notify(job.Suspended)
	default:
		a.notify(job.Runs)
	}
}

// rejoined tells a shadow that came back how the job is now. That it has exited is
// told as what it is, not as what happens now: the shadow ends there what it counts
// as execution, and may have heard of it before.
func (a *activation) rejoined() {
	if a.life.phase < finishing || !a.life.ran {
		a.changed()
		return
	}
	if !a.life.held && !a.life.apart {
		s := a.state(job.Exited)
		s.Again = true
		a.source.Changed(s)
	}
}

// output says which output is wanted back.
func (a *activation) output() job.Wanted {
	e := a.life.evicted
	wanted := a.job.WantsOutput(a.record.Status, e != nil)
	switch {
	case e == nil:
		return wanted
	case e.hard || a.life.held:
		return job.Nothing
	case e.final && a.job.Moves:
		return job.All
	}
	return wanted
}

// littleKiB is how much output is sent without listening for orders meanwhile.
const littleKiB = 1024

func (a *activation) sendOutput() []duty {
	a.disk = a.box.Usage()
	if a.record.Status.Core {
		a.nameCore()
	}
	if a.saving() || !a.runExitHook(a.deliver) {
		a.deliver()
	}
	return nil
}

// saving reports whether the job has ended only to have its state saved and to go
// on, where somebody keeps it.
func (a *activation) saving() bool {
	return !a.local() && a.life.evicted == nil && a.life.hold == nil && a.job.Saved(a.record.Status)
}

// deliver tells that the job has exited, and sends its output or saves its state.
func (a *activation) deliver() {
	wanted := a.output()
	switch {
	case a.life.held:
		a.perform(a.life.finished(nil))
		return
	case a.life.apart && wanted == job.Nothing:
		a.perform(a.life.unheard(dutyTell, away))
		return
	case a.life.apart:
		a.perform(a.life.unheard(dutyOutput, away))
		return
	case a.saving():
		a.checkpoint()
		return
	}
	if !a.scripts.after && !a.exitTold { // else the access point knows
		a.exitTold = true
		a.notify(job.Exited)
	}
	e := job.Ending{State: a.state(job.Exited), Wanted: wanted, Final: a.life.evicted == nil || a.life.evicted.final, Before: a.before}
	send := func(ctx context.Context) func() []duty {
		sent, err := a.source.Send(ctx, e)
		return func() []duty { return a.sent(wanted, sent, err) }
	}
	if wanted == job.Nothing || a.local() && !a.disk.Cut && a.disk.KiB <= littleKiB {
		a.atOnce(send)
		return
	}
	a.async(send)
}

// sent goes on after the output was sent, or was not.
func (a *activation) sent(wanted job.Wanted, sent job.Sent, err error) []duty {
	if wanted != job.Nothing {
		a.record.BytesOut, a.record.Ran.Stages.Sent = sent.Bytes, time.Now()
	}
	var held *job.Held
	switch {
	case errors.Is(err, job.ErrAway):
		return a.life.unheard(dutyOutput, connection(a.source.Connected()))
	case errors.As(err, &held):
		return a.life.finished(&held.Hold)
	case err != nil && a.life.evicted == nil:
		return a.life.finished(a.holds.Output(err))
	}
	return a.life.finished(nil) // or it was told to leave, and the life knows why
}

// checkpoint saves the state of the job, which then goes on.
func (a *activation) checkpoint() {
	e := job.Ending{State: a.state(job.Exited), Before: a.before}
	a.record.Usage = host.Usage{} // of the next run
	a.async(func(ctx context.Context) func() []duty {
		saved, err := a.source.Checkpoint(ctx, e)
		return func() []duty { return a.saved(saved, err) }
	})
}

// saved goes on after the state of the job was saved, or was not.
func (a *activation) saved(got job.Saved, err error) []duty {
	a.record.BytesOut += got.Bytes
	a.problem(got.Problem)
	var held *job.Held
	switch l := got.Leave; {
	case errors.Is(err, job.ErrAway):
		return a.life.unheard(dutyOutput, connection(a.source.Connected()))
	case errors.As(err, &held):
		return a.life.finished(&held.Hold)
	case l != nil:
		if a.life.evicted == nil {
			a.life.evicted = &eviction{asked: l.Asked, reason: l.Reason, code: l.Code, subcode: l.Subcode}
		}
		return a.life.finished(nil)
	}
	a.input.Piped = got.Piped
	return a.life.again()
}

// tell tells a shadow how it went.
func (a *activation) tell() {
	switch {
	case a.life.lost:
		a.perform(a.life.toldShadow())
		return
	case a.life.apart:
		a.perform(a.life.unheard(dutyTell, away))
		return
	}
	e := job.End{State: a.state(job.Exited), Ran: a.life.ran, Hold: a.life.hold}
	a.async(func(ctx context.Context) func() []duty {
		err := a.source.Tell(ctx, e)
		return func() []duty {
			var held *job.Held
			switch {
			case errors.Is(err, job.ErrAway):
				return a.life.unheard(dutyTell, connection(a.source.Connected()))
			case errors.As(err, &held):
				a.life.hold = &held.Hold
			default:
				a.problem(err)
			}
			return a.life.toldShadow()
		}
	})
}
