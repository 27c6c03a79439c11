// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/reason"
	"github.com/execpoint/execpoint/lib/sandbox"
	"github.com/execpoint/execpoint/lib/transfer"
)

// Host is what a starter needs of the machine it runs on.
type Host struct {
	Spawner host.Spawner // every child of the starter's process is of its families
	Census  host.Census
	Errno   host.Errno
	Signal  host.SignalNumber
	// Groups is called once, before the job is started, when BASE_CGROUP is
	// set: families may have control groups below it. An error means that they
	// go without. nil where there are none.
	Groups func(host.GroupPlace) error
	// Stop is called once, when the job has run for a moment, and returns a
	// channel that is closed when this process is told to end (SIGTERM). Most
	// jobs are over before it would be worth its cost. nil where there is no
	// such thing.
	Stop func() <-chan struct{}
	Home string // home directory of the user that jobs run as, "" if unknown
	// Access is for jobs of another user; nil where there can be none.
	Access host.Access
}

// activation does what its life says. It belongs to one goroutine; longer work
// is done beside it by one other at a time, which tells its end through step.
type activation struct {
	host   Host
	env    []string // the starter's own
	report func(Report)
	life   life

	plan   *Plan
	job    *job
	holds  holds
	box    *sandbox.Sandbox
	before transfer.Listing
	family host.Family
	record ExitRecord
	note   sandbox.Record
	disk   sandbox.Usage
	ended  bool // the last word is said

	step     chan func() []duty // the end of work done beside
	cancel   context.CancelFunc // of that work
	done     <-chan struct{}    // the job's main process has ended; nil unless it runs
	deadline *time.Timer        // nil unless a soft kill has one
	updates  *time.Timer        // next usage report
	polls    *time.Ticker       // looks at usage in between, for the peaks
	settled  *time.Timer        // the job has run for a moment
}

func newActivation(h Host, env []string, report func(Report)) *activation {
	return &activation{host: h, env: env, report: report, step: make(chan func() []duty, 1)}
}

// run lives one activation. orders is closed when the startd is gone. It
// returns when the last word is said and the sandbox is removed; an error is
// what was wrong after that word.
func (a *activation) run(ctx context.Context, orders <-chan Order) error {
	self := a.host.Census.Self()
	a.say(Report{Op: OpReady, Proc: &self})
	stop := ctx.Done()
	for !a.ended {
		var duties []duty
		select {
		case o, ok := <-orders:
			if !ok {
				orders = nil
				duties = a.life.orphaned()
				break
			}
			duties = a.take(o)
		case next := <-a.step:
			a.cancel()
			duties = next()
		case <-a.done:
			a.done = nil
			duties = a.life.exited()
		case <-channel(a.deadline):
			duties = a.life.overdue()
		case <-channel(a.updates):
			a.usage()
			a.updates.Reset(a.plan.seconds("STARTER_UPDATE_INTERVAL", nextUpdates))
		case <-ticks(a.polls):
			_, _ = a.family.Usage() // the family remembers its peaks
		case <-channel(a.settled):
			if a.host.Stop != nil {
				stop = a.host.Stop()
			}
		case <-stop:
			stop = nil
			duties = a.life.stopped()
		}
		a.perform(duties)
	}
	a.stopTimers()
	return a.cleanUp()
}

func channel(t *time.Timer) <-chan time.Time {
	if t == nil {
		return nil
	}
	return t.C
}

func ticks(t *time.Ticker) <-chan time.Time {
	if t == nil {
		return nil
	}
	return t.C
}

func (a *activation) stopTimers() {
	if a.deadline != nil {
		a.deadline.Stop()
	}
	if a.updates != nil {
		a.updates.Stop()
		a.polls.Stop()
		a.settled.Stop()
	}
}

func (a *activation) take(o Order) []duty {
	if o.Op == OpPlan && o.Plan != nil && a.plan == nil {
		a.plan = o.Plan
		return a.life.planned(o.Plan)
	}
	switch o.Op {
	case OpSuspend, OpContinue, OpSoftKill, OpHardKill:
		return a.life.ordered(o)
	case OpCheckpoint:
		a.refuse(o, errors.New("this starter takes no checkpoints"))
	default:
		a.refuse(o, errors.New("no such order"))
	}
	return nil
}

// refuse says of an order that it is not carried out.
func (a *activation) refuse(o Order, why error) {
	a.say(Report{Op: OpRefused, Order: o.Op, Why: errs.E("starter.order", errs.Unsupported, o.Op, why).Error()})
}

func (a *activation) say(r Report) {
	r.At = time.Now()
	a.report(r)
}

func (a *activation) perform(duties []duty) {
	for _, d := range duties {
		switch d {
		case dutyPrepare:
			a.prepare()
		case dutySpawn:
			a.perform(a.life.spawned(a.spawn()))
		case dutySuspend:
			n, err := a.family.Suspend()
			a.problem(err)
			a.say(Report{Op: OpSuspended, Count: n})
		case dutyContinue:
			a.problem(a.family.Continue())
			a.say(Report{Op: OpContinued})
		case dutySignal:
			a.problem(a.family.Signal(a.job.killSignal(a.life.evicted.manner, a.host.Signal)))
		case dutyDeadline:
			a.deadline = time.NewTimer(a.life.evicted.deadline)
		case dutyKill:
			_, err := a.family.Kill()
			a.problem(err)
		case dutyAbort:
			if a.cancel != nil {
				a.cancel()
			}
		case dutyFinish:
			a.finish()
		case dutyEnd:
			a.end()
		}
	}
}

// problem notes what went wrong without changing how things go on.
func (a *activation) problem(err error) {
	if err != nil {
		a.record.Problems = append(a.record.Problems, err.Error())
	}
}

// beside starts work in a goroutine of its own. Its result is called by the
// owner.
func (a *activation) beside(work func(ctx context.Context) func() []duty) {
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel = cancel
	go func() { a.step <- work(ctx) }()
}

// prepare makes the sandbox and brings the input.
func (a *activation) prepare() {
	p := a.plan
	a.holds = holds{slot: p.SlotFullName, errno: a.host.Errno}
	fail := func(h *Hold) { a.perform(a.life.prepared(h)) }
	ad, err := classad.ParseAd(p.JobAd, classad.Old)
	if err != nil {
		fail(a.holds.broken(fmt.Errorf("job ad: %w", err)))
		return
	}
	if err := a.canRunAs(); err != nil {
		fail(a.holds.broken(err))
		return
	}
	if err := a.makeSandbox(); err != nil {
		// That is the machine's fault, not the job's: it leaves and may be
		// matched again.
		a.life.evicted = &eviction{asked: "starter", reason: err.Error(), code: int(reason.ScratchDirError), hard: true}
		fail(nil)
		return
	}
	if a.job, err = readJob(ad, p.Submit.Iwd, a.box.Scratch()); err != nil {
		fail(a.holds.broken(err))
		return
	}
	if err := a.mayRunAs(); err != nil {
		fail(a.holds.broken(err))
		return
	}
	if !a.job.transfer {
		fail(nil) // nothing to bring
		return
	}
	in, err := transfer.InputOf(ad, a.job.iwd)
	a.say(Report{Op: OpTransferInStart})
	if err == nil && len(in.Items) == 0 {
		a.say(Report{Op: OpTransferInDone})
		fail(nil)
		return
	}
	a.beside(func(ctx context.Context) func() []duty {
		var got transfer.Result
		if err == nil {
			got, err = in.CopyIn(ctx, a.box.Root())
		}
		return func() []duty {
			a.record.BytesIn = got.Bytes
			a.say(Report{Op: OpTransferInDone, Files: got.Files, Bytes: got.Bytes})
			if err != nil {
				return a.life.prepared(a.holds.input(err))
			}
			return a.life.prepared(nil)
		}
	})
}

func (a *activation) makeSandbox() error {
	p, self := a.plan, a.host.Census.Self()
	box, err := sandbox.Create(sandbox.Spec{
		Execute: p.Execute, Starter: self, Mode: sandbox.Mode(p.knob("JOB_EXECDIR_PERMISSIONS")), Owner: p.RunAs,
	})
	if err != nil {
		return err
	}
	a.box = box
	a.note = sandbox.Record{
		Activation: p.Activation, Slot: p.SlotFullName, Boot: a.host.Census.Boot(), Starter: self, Keep: p.Keep,
		// the name is HTCondor's, the value is ours: nobody else has it
		Marker: fmt.Sprintf("_CONDOR_ANCESTOR_%d=%d:%d:%s", self.PID, self.PID, self.Start, strconv.FormatUint(rand.Uint64(), 36)),
	}
	place := host.GroupPlace{Base: p.knob("BASE_CGROUP"), Delegated: p.truth("CREATE_CGROUP_WITHOUT_ROOT")}
	if place.Base != "" && a.host.Groups != nil && a.host.Groups(place) == nil {
		a.note.Group = groupName(p)
	}
	if err := box.Record(a.note); err != nil {
		return err
	}
	a.say(Report{Op: OpSandbox, Dir: box.Scratch()})
	return nil
}

// finish kills what outlived the job's main process and brings the output
// back.
func (a *activation) finish() {
	a.record.Status = a.family.Status()
	evicted := a.life.evicted != nil
	closing := func() func() []duty {
		left, err := a.family.Close()
		usage, uerr := a.family.Usage()
		return func() []duty {
			a.record.Leftovers, a.record.Usage = left, usage
			a.problem(errors.Join(err, uerr))
			return a.sendOutput(evicted)
		}
	}
	if a.family.Alone() {
		a.perform(closing()())
		return
	}
	a.beside(func(context.Context) func() []duty { return closing() })
}

func (a *activation) sendOutput(evicted bool) []duty {
	a.disk = a.box.Usage()
	if a.record.Status.Core {
		a.nameCore()
	}
	some, whole := a.job.wantsOutput(a.record.Status, evicted)
	if !some || a.life.evicted != nil && a.life.evicted.hard {
		return a.life.finished(nil)
	}
	out, err := a.job.outputs(a.box.Scratch(), whole)
	a.say(Report{Op: OpTransferOutStart})
	sending := func(ctx context.Context) func() []duty {
		var sent transfer.Result
		if err == nil {
			sent, err = out.CopyOut(ctx, a.box.Root(), a.before)
		}
		return func() []duty {
			a.record.BytesOut = sent.Bytes
			a.say(Report{Op: OpTransferOutDone, Files: sent.Files, Bytes: sent.Bytes})
			if err != nil {
				return a.life.finished(a.holds.output(err))
			}
			return a.life.finished(nil)
		}
	}
	if !a.disk.Cut && a.disk.KiB <= littleKiB {
		return sending(context.Background())()
	}
	a.beside(sending)
	return nil
}

// littleKiB is how much output is sent without listening for orders meanwhile.
const littleKiB = 1024

// nameCore gives a core file at the top of the scratch directory the name that
// it has on the submit side.
func (a *activation) nameCore() {
	cluster, ok1 := a.job.ad.EvalInt("ClusterId", nil)
	proc, ok2 := a.job.ad.EvalInt("ProcId", nil)
	if !ok1 || !ok2 || !a.job.transfer {
		return
	}
	to := fmt.Sprintf("core.%d.%d", cluster, proc)
	for _, name := range []string{"core", fmt.Sprintf("core.%d", a.family.Main().PID)} {
		if a.box.Root().Rename(name, to) == nil {
			return
		}
	}
}

// usage reports what the job uses now.
func (a *activation) usage() {
	u, err := a.family.Usage()
	a.problem(err)
	a.say(Report{Op: OpUsage, Usage: &u, DiskKiB: a.box.Usage().KiB})
}

// end writes and tells how it went, and removes the sandbox.
func (a *activation) end() {
	r := &a.record
	r.Ended = time.Now()
	r.DiskKiB = a.disk.KiB
	if a.plan != nil {
		r.Activation = a.plan.Activation
	}
	r.Held = a.life.hold
	if e := a.life.evicted; e != nil {
		r.Evicted, r.Asked, r.Reason, r.Code, r.Subcode = true, e.asked, e.reason, e.code, e.subcode
	}
	if a.box != nil && (a.life.orphan == OrphanStay || a.plan.Keep) {
		// otherwise the sandbox goes before anybody could read it
		a.problem(a.box.WriteExit(r))
	}
	if r.Held != nil {
		a.say(Report{Op: OpHeld, Hold: r.Held})
	}
	a.say(Report{Op: OpEnded, Record: r})
	a.ended = true
}

// cleanUp removes the sandbox, unless it is to be kept.
func (a *activation) cleanUp() error {
	if a.box == nil {
		return nil
	}
	if a.plan.Keep {
		a.box.Close()
		return nil
	}
	return a.box.Remove()
}
