// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/execpoint/execpoint/lib/chirp"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/sandbox"
	"github.com/execpoint/execpoint/lib/starter/job"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/starter/runner"
	"github.com/execpoint/execpoint/lib/starter/shadowjob"
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
	// GPUs lists those of the machine whose devices can be closed to a job; nil where
	// there are none.
	GPUs func() []host.GPU
	// Space says why no family can have a host.Space; nil is that it can. nil where
	// there are none.
	Space func() error
	// Stop is called once, when the job has run for a moment, and returns a
	// channel that is closed when this process is told to end (SIGTERM). Most
	// jobs are over before it would be worth its cost. nil where there is no
	// such thing.
	Stop func() <-chan struct{}
	// Waits is called when the job has run for a moment: from then on a starter
	// mostly waits, perhaps for weeks, and its own memory should not grow. nil where
	// nothing can be done about that.
	Waits func()
	job.Accounts
	shadowjob.Machine // for the jobs of a pool
	// Listen makes the named socket by which later startds reach this starter, in the
	// open directory dir; nil where there are none.
	Listen func(dir *os.File, name string) (Door, error)
	// Acknowledge has the system acknowledge at once what came on a connection
	// (Linux: TCP_QUICKACK), nil where it cannot be told.
	Acknowledge func(net.Conn)
	// Files is what the files of a job without a shadow are asked beyond Go's
	// library, for Chirp. Errno is filled in.
	Files chirp.System
	// Mounter mounts the scratch directory's own file system; nil where jobs get none.
	Mounter host.Mounter
	// Quotas has file systems count what is in scratch directories; nil where that is
	// not known.
	Quotas host.Quotas
	// Log is the starter's log, nil for none, until a plan asks for one that
	// OpenLog opens; touched is when it was last written before, zero for a new one.
	Log     *slog.Logger
	OpenLog func(protocol.LogPlan) (log *slog.Logger, touched time.Time, err error)

	runners []runner.Runner // nil is runner.All
}

// activation does what its life says. It belongs to one goroutine; longer work
// is done beside it by one other at a time, which tells its end through step.
type activation struct {
	host   Host
	env    []string // the starter's own
	report func(protocol.Report)
	talk   *conversation // with the startd and those after it; nil where reports are all there is
	life   life

	plan   *protocol.Plan
	source *source      // nil before the plan
	log    *slog.Logger // what the plan asks for, nil for none
	holds  job.Holds
	setup
	runner  jobRunner
	family  *runner.Run // the job, nil before its first run
	record  protocol.ExitRecord
	scripts scripts
	limited limited
	flow    outputFlow
	awaited
	timers
	exitTold bool // that the job has exited
	ended    bool // the last word is said
}

// setup is what is there for the job.
type setup struct {
	job    *job.Job
	place  *job.Place
	box    *sandbox.Sandbox
	note   sandbox.Record // in the box
	before transfer.Listing
	input  job.Brought
	// furnished says that the scratch directory is as the job finds it.
	furnished bool
	room      room
	jobEnv    []string    // the job's
	machine   *classad.Ad // of the plan, once something wanted it: machineAd
	disk      sandbox.Usage
	diskLooks diskLooks
	hooks     hooks
	metered   *classad.Ad // what monitors say that the job uses, nil for nothing
	exitAt    time.Time   // when the job's main process ended
}

// awaited is what an activation waits for.
type awaited struct {
	step   chan func() []duty // the end of work done beside
	cancel context.CancelFunc // of that work
	done   <-chan struct{}    // the job's main process has ended; nil unless it runs
	gone   <-chan struct{}    // the conversation with the shadow broke; nil without one
	calls  chan func()        // what others want done, from outside of the activation
	over   chan struct{}      // closed when the last word is said
}

// timers are the times for which an activation waits.
type timers struct {
	deadline *time.Timer // nil unless a soft kill has one
	updates  *time.Timer // next usage report
	polls    polls       // looks at usage in between, for the peaks
	settled  *time.Timer // the job has run for a moment
	lease    *time.Timer // nil unless the shadow is away
	farewell *time.Timer // ends what is done beside; nil unless that has to end in a moment
}

func newActivation(h Host, env []string, report func(protocol.Report)) *activation {
	return &activation{host: h, env: env, report: report, awaited: awaited{step: make(chan func() []duty, 1), calls: make(chan func()), over: make(chan struct{})}}
}

// run lives one activation. orders is closed when the startd is gone. It
// returns when the last word is said and the sandbox is removed; an error is
// what was wrong after that word.
func (a *activation) run(ctx context.Context, orders <-chan protocol.Order) error {
	stop := ctx.Done()
	for !a.ended {
		var duties []duty
		select {
		case o, ok := <-orders:
			if !ok {
				orders = nil
				a.catchUp()
				duties = a.life.orphaned()
				break
			}
			if a.catchUp(); !a.ended {
				duties = a.take(o)
			}
		case next := <-a.step:
			a.cancel()
			duties = next()
		case <-a.done:
			a.done = nil
			duties = a.life.exited()
		case <-channel(a.deadline):
			duties = a.life.overdue()
		case <-channel(a.updates):
			if a.measured() {
				a.usage()
				a.runUpdateHook()
			}
			a.updates.Reset(a.plan.Settings.Update)
		case <-channel(a.polls.timer):
			u, _ := a.family.Usage() // the family remembers its peaks
			if u.Procs > 1 || len(a.note.Strays) > 0 {
				a.noteStrays() // a single process is the job's own, which is known
			}
			a.polls.again(a.plan.Settings.Poll, u)
		case <-ticks(a.flow.looks):
			duties = a.lookAtOutput()
		case <-ticks(a.diskLooks.ticks):
			duties = a.lookAtVolume()
		case <-a.gone:
			a.gone = nil
			duties = a.life.parted()
		case <-channel(a.lease):
			if left := a.source.Lease(); left > 0 {
				a.lease.Reset(min(left, leaseLook))
				break
			}
			duties = a.life.leaseOver()
		case call := <-a.calls:
			call()
		case <-channel(a.settled):
			a.noteStrays()
			if a.host.Stop != nil {
				stop = a.host.Stop()
			}
			if a.host.Waits != nil {
				a.host.Waits()
			}
		case <-stop:
			stop = nil
			a.catchUp()
			duties = a.life.stopped()
		}
		a.perform(duties)
	}
	close(a.over)
	a.stopTimers()
	if a.source != nil {
		ctx, cancel := context.WithCancel(context.Background())
		if !a.local() {
			go a.watchUrgent(ctx, cancel, orders, stop)
		}
		a.source.Close(ctx)
		cancel()
	}
	return a.cleanUp()
}

// catchUp notes what had happened when an order came, for which it counts: that the
// shadow is away, and that the job has ended by itself, which no order undoes.
func (a *activation) catchUp() {
	select {
	case <-a.gone:
		a.gone = nil
		a.perform(a.life.parted())
	default:
	}
	select {
	case <-a.done:
		a.done = nil
		a.perform(a.life.exited())
	default:
	}
}

// leaseLook is how often a starter whose shadow is away looks what is left of the
// lease. Its timers stand still while the machine sleeps, and the lease does not.
const leaseLook = 5 * time.Second

// watchUrgent gives what is left to be told a moment, once the starter has to end at
// once.
func (a *activation) watchUrgent(ctx context.Context, cancel context.CancelFunc, orders <-chan protocol.Order, stop <-chan struct{}) {
	e := a.life.evicted
	for urgent := e != nil && e.hard; !urgent; {
		select {
		case o, ok := <-orders:
			_, hard := o.(protocol.HardKill)
			if urgent = hard || !ok && a.plan.Orphan != protocol.OrphanStay; !ok {
				orders = nil
			}
		case <-stop:
			urgent = true
		case <-ctx.Done():
			return
		}
	}
	timer := time.NewTimer(a.host.Farewell())
	defer timer.Stop()
	select {
	case <-timer.C:
		cancel()
	case <-ctx.Done():
	}
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
	a.stopWatching()
	if a.lease != nil {
		a.lease.Stop()
	}
	if a.farewell != nil {
		a.farewell.Stop()
	}
	a.flow.stop()
}

// stopWatching ends looking at a run of the job.
func (a *activation) stopWatching() {
	if a.updates != nil {
		a.updates.Stop()
		a.polls.stop()
		a.diskLooks.stop()
		a.settled.Stop()
	}
}

func (a *activation) take(o protocol.Order) []duty {
	switch o := o.(type) {
	case *protocol.Plan:
		return a.begin(o)
	case protocol.SlotAd:
		a.slotAd(o)
		return nil
	case protocol.Checkpoint:
		a.logOrder(o)
		a.refuse(o, errors.New("this starter takes no checkpoints"))
		return nil
	}
	a.logOrder(o)
	return a.life.ordered(o)
}

// begin takes the plan.
func (a *activation) begin(p *protocol.Plan) []duty {
	if a.plan != nil {
		a.refuse(p, errors.New("this starter has a plan"))
		return nil
	}
	a.plan, a.record.Ran.Stages.Began = p, time.Now()
	a.plan.Complete()
	a.openLog()
	a.source = a.newSource()
	return a.life.planned(p)
}

// refuse says of an order that it is not carried out.
func (a *activation) refuse(o protocol.Order, why error) {
	a.say(protocol.Refused{Order: o.Kind(), Why: errs.E("starter.order", errs.Unsupported, o.Kind(), why).Error()})
}

func (a *activation) say(r protocol.Report) {
	a.logReport(r)
	a.report(r)
}

func (a *activation) perform(duties []duty) {
	for _, d := range duties {
		switch d {
		case dutyPrepare:
			a.prepare()
		case dutySpawn:
			if a.runBefore() || a.prepareRun() {
				break
			}
			hold, err := a.spawn()
			if err != nil {
				a.perform(a.unable(err))
			} else {
				a.perform(a.life.spawned(hold))
			}
		case dutySuspend:
			n, err := a.family.Suspend()
			a.problem(err)
			a.say(protocol.Suspended{Count: n})
			a.changed()
		case dutyContinue:
			a.problem(a.family.Continue())
			a.say(protocol.Continued{})
			a.changed()
		case dutySignal:
			a.problem(a.family.Signal(a.job.KillSignal(a.life.evicted.manner, a.host.Signal)))
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
		case dutyOutput:
			a.deliver()
		case dutyTell:
			if !a.runExitHook(func() { a.perform([]duty{dutyTell}) }) {
				a.tell()
			}
		case dutyHold:
			a.source.Held(*a.life.hold)
		case dutyLease:
			a.lease = time.NewTimer(min(a.source.Lease(), leaseLook))
		case dutyRejoin:
			if a.lease != nil {
				a.lease.Stop()
			}
			a.source.Rejoined()
			a.rejoined()
		case dutyBoundFarewell:
			a.farewell = time.AfterFunc(a.host.Farewell(), a.cancel)
		case dutySpare:
			a.spareOutput()
		case dutyEnd:
			if !a.runExitHook(func() { a.perform([]duty{dutyEnd}) }) {
				a.end()
			}
		}
	}
}

// problem notes what went wrong without changing how things go on.
func (a *activation) problem(err error) {
	if err != nil {
		a.record.Problems = append(a.record.Problems, err.Error())
	}
}

// async starts work in a goroutine of its own. Its result is called by the owner.
func (a *activation) async(work func(ctx context.Context) func() []duty) {
	ctx, cancel := context.WithCancel(context.Background())
	a.cancel = cancel
	go func() { a.step <- work(ctx) }()
}

// atOnce does work that does not take time.
func (a *activation) atOnce(work func(ctx context.Context) func() []duty) {
	a.perform(work(context.Background())())
}

func (a *activation) makeSandbox() error {
	p, self := a.plan, a.host.Census.Self()
	box, err := sandbox.Create(sandbox.Spec{
		Execute: p.Execute, Starter: self, Mode: p.Settings.Permissions, Owner: p.RunAs, As: a.asUser,
		Volume: p.Volume, Mounter: a.host.Mounter, Quotas: a.host.Quotas,
	})
	if err != nil {
		return err
	}
	a.box = box
	a.note = sandbox.Record{
		Activation: p.Activation, Slot: p.SlotFullName, Boot: a.host.Census.Boot(), Starter: self, Keep: p.Keep,
		// the name is HTCondor's, the value is ours: nobody else has it
		Marker:   fmt.Sprintf("_CONDOR_ANCESTOR_%d=%d:%d:%s", self.PID, self.PID, self.Start, strconv.FormatUint(rand.Uint64(), 36)),
		TrackGID: p.TrackGID,
	}
	if p.RunAs != nil && p.Dedicated {
		a.note.Account = p.RunAs.UID
	}
	if p.Volume != nil {
		a.note.Volume = p.Volume.Name
	}
	place := host.GroupPlace{Base: p.Settings.Cgroup, Delegated: p.Settings.Delegated}
	if place.Base != "" && a.host.Groups != nil && a.host.Groups(place) == nil {
		a.note.Group = groupName(p)
	}
	if err := box.Record(a.note); err != nil {
		return err
	}
	if a.talk != nil {
		a.problem(a.talk.open(box))
	}
	a.sayCounted()
	a.say(protocol.Sandbox{Dir: box.Scratch()})
	return nil
}

// finish kills what outlived the job's main process and brings the output
// back.
func (a *activation) finish() {
	a.record.Status = a.family.Status()
	a.logExit(a.record.Status)
	a.exitAt = time.Now()
	a.record.Ran.Stages.Exited = a.exitAt
	a.watchOutput()
	update := a.takeUpdateHook()
	closing := func() func() []duty {
		update.end()
		left, err := a.family.Close()
		usage, uerr := a.family.Usage()
		if n, kerr := a.clearAccount(); kerr != nil || n > 0 {
			left, err = left+n, errors.Join(err, kerr)
		}
		return func() []duty {
			a.record.Leftovers, a.record.Usage = left, usage
			a.noteUndying(err)
			a.problem(errors.Join(err, uerr))
			if duties := a.outOfMemory(); duties != nil {
				return duties
			}
			if duties := a.outOfDisk(); duties != nil {
				return duties
			}
			if a.runAfter() {
				return nil
			}
			return a.sendOutput()
		}
	}
	if a.family.Alone() {
		a.perform(closing()())
		return
	}
	a.async(func(context.Context) func() []duty { return closing() })
}

// nameCore gives a core file at the top of the scratch directory the name that
// it has on the submit side.
func (a *activation) nameCore() {
	cluster, ok1 := a.job.Ad.EvalInt("ClusterId", nil)
	proc, ok2 := a.job.Ad.EvalInt("ProcId", nil)
	if !ok1 || !ok2 || !a.job.Moves {
		return
	}
	to := fmt.Sprintf("core.%d.%d", cluster, proc)
	for _, name := range []string{"core", fmt.Sprintf("core.%d", a.family.Main().PID)} {
		if a.box.Root().Rename(name, to) == nil {
			return
		}
	}
}

// measured reports whether the job's usage is still to be told from time to time: while
// it runs, and while the program after it does, for a shadow that hears nothing for long
// takes the starter for dead. What a run has used whose state is being saved is counted
// already, and must not be counted again. HTCondor's starter ends these updates too,
// before it sends output.
func (a *activation) measured() bool { return a.life.phase == running || a.scripts.after }

// usage reports what the job uses now.
func (a *activation) usage() {
	u, err := a.family.Usage()
	a.problem(err)
	a.record.Usage, a.disk = u, a.diskLooks.look(a.box)
	all := a.source.Total(u)
	a.say(protocol.Usage{Usage: all, DiskKiB: a.disk.KiB})
	a.changed()
}

// end writes and tells how it went, and removes the sandbox.
func (a *activation) end() {
	r := &a.record
	r.Ran.Limits = a.inForce()
	if r.Ran.Limits != nil {
		a.audit()
	}
	r.Ended = time.Now()
	r.DiskKiB = a.disk.KiB
	if a.plan != nil {
		r.Activation = a.plan.Activation
	}
	r.Held, r.Lost = a.life.hold, a.life.lost
	a.blameHold()
	if a.source != nil {
		r.Usage = a.source.Total(r.Usage)
	}
	if e := a.life.evicted; e != nil {
		r.Evicted, r.Asked, r.Reason, r.Code, r.Subcode = true, e.asked, e.reason, e.code, e.subcode
	}
	if a.box != nil && (a.life.orphan == protocol.OrphanStay || a.plan.Keep) {
		// otherwise the sandbox goes before anybody could read it
		a.problem(a.box.WriteExit(r))
	}
	if r.Held != nil {
		a.say(protocol.Held{Hold: *r.Held})
	}
	a.say(protocol.Ended{Record: *r})
	a.ended = true
}

// cleanUp removes the sandbox, unless it is to be kept.
func (a *activation) cleanUp() error {
	if a.box == nil {
		return nil
	}
	err := a.unprepare() // before the scratch directory, to which it may have led
	left := false
	if a.talk != nil && a.plan.Orphan == protocol.OrphanStay {
		if !a.plan.Keep {
			err = errors.Join(err, a.box.RemoveJob())
		}
		var lost error
		left, lost = a.talk.farewell(a.box)
		err = errors.Join(err, lost)
	}
	if a.plan.Keep || left {
		a.box.Close()
		return err
	}
	return errors.Join(err, a.box.Remove())
}
