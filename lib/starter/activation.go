// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/execpoint/execpoint/lib/cedar/authn"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/chirp"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/sandbox"
	"github.com/execpoint/execpoint/lib/starter/protocol"
	"github.com/execpoint/execpoint/lib/starter/runner"
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
	// Rest is called once, when the job has run for a moment: what the start of a
	// job needs of memory may go back. Like Stop it is not worth its cost to most
	// jobs. nil where nothing can be given back.
	Rest func()
	Home string // home directory of the user that jobs run as, "" if unknown
	// Access is for jobs of another user; nil where there can be none.
	Access host.Access
	// Outside opens a file or directory by its absolute path for this process to
	// read from, with the rights of u, nil being its own; it never leads to what
	// only this process reaches. nil where that cannot be.
	Outside func(u *host.Identity, path string) (*os.File, error)
	// KillUser ends every process of a user, whoever started it, and returns how
	// many there were; nil where that cannot be.
	KillUser func(uid uint32) (int, error)
	// UserName is what a user is called on this machine, NotFound for a number
	// that nobody has; nil where nobody can be another user.
	UserName func(uid uint32) (string, error)
	// GroupName is what a group is called, as UserName.
	GroupName func(gid uint32) (string, error)
	// Socket returns the connection that came with the plan, once; the caller
	// closes it. nil where none can come.
	Socket func() (net.Conn, error)
	// Listen makes the named socket by which later startds reach this starter, in the
	// open directory dir; nil where there are none.
	Listen func(dir *os.File, name string) (Door, error)
	// SharedPort makes the named socket id, where a shared port hands on
	// connections, below dir or with condor_master's cookie; nil where there is
	// none.
	SharedPort func(cookie, dir, id string) (listen.NamedSocket, error)
	// Reuse is listen.Dialer's, nil where the system has no such thing.
	Reuse func(*net.Dialer) (lingers func(error) bool)
	// Acknowledge has the system acknowledge at once what came on a connection
	// (Linux: TCP_QUICKACK), nil where it cannot be told.
	Acknowledge func(net.Conn)
	// Files is what the files of a job without a shadow are asked beyond Go's
	// library, for Chirp. Errno is filled in.
	Files chirp.System
	// System is what registering with a broker needs of this process. nil knows
	// no method that needs anything.
	System func() authn.System
	// Clock tells the time since boot with that in which the machine slept: the
	// lease of a job goes on meanwhile. nil is clock.System, which cannot.
	Clock clock.Clock
	// Moment is how long a shadow may take to hear how the job ended when the
	// starter has to end at once. 0 is ten seconds.
	Moment time.Duration
	// Log is the starter's log, nil for none, until a plan asks for one that
	// OpenLog opens; touched is when it was last written before, zero for a new one.
	Log     *slog.Logger
	OpenLog func(protocol.LogPlan) (log *slog.Logger, touched time.Time, err error)
	// OpenRecords opens the file of FILE_TRANSFER_STATS_LOG, of which each Write is
	// one record; nil where none is written.
	OpenRecords func(path string) (io.Writer, error)

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
	side   jobSource    // nil before the plan
	log    *slog.Logger // what the plan asks for, nil for none
	job    *job
	holds  holds
	box    *sandbox.Sandbox
	before transfer.Listing
	// furnished says that the scratch directory is as the job finds it.
	furnished bool
	scripts   scripts
	runner    jobRunner
	family    *runner.Run // the job, nil before its first run
	record    protocol.ExitRecord
	note      sandbox.Record
	disk      sandbox.Usage
	ended     bool      // the last word is said
	exitAt    time.Time // when the job's main process ended

	step     chan func() []duty // the end of work done beside
	cancel   context.CancelFunc // of that work
	done     <-chan struct{}    // the job's main process has ended; nil unless it runs
	deadline *time.Timer        // nil unless a soft kill has one
	updates  *time.Timer        // next usage report
	polls    polls              // looks at usage in between, for the peaks
	settled  *time.Timer        // the job has run for a moment
	lease    *time.Timer        // nil unless the shadow is away
	flow     outputFlow
	hurry    *time.Timer        // ends what is done beside; nil unless that has to end in a moment
	gone     <-chan struct{}    // the conversation with the shadow broke; nil without one
	calls    chan func() []duty // what others want done, from outside of the activation
	over     chan struct{}      // closed when the last word is said
	jobEnv   []string           // the job's
	metered  *classad.Ad        // what monitors say that the job uses, nil for nothing
}

func newActivation(h Host, env []string, report func(protocol.Report)) *activation {
	return &activation{host: h, env: env, report: report, step: make(chan func() []duty, 1), calls: make(chan func() []duty), over: make(chan struct{})}
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
				duties = a.life.orphaned()
				break
			}
			select {
			case <-a.gone: // before the order came: then it counts for it
				a.gone = nil
				a.perform(a.life.parted())
			default:
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
			a.updates.Reset(a.plan.Settings.Update)
		case <-channel(a.polls.timer):
			u, _ := a.family.Usage() // the family remembers its peaks
			a.noteStrays()
			a.polls.again(a.plan.Settings.Poll, u)
		case <-ticks(a.flow.looks):
			duties = a.lookAtOutput()
		case <-a.gone:
			a.gone = nil
			duties = a.life.parted()
		case <-channel(a.lease):
			if left := a.side.lease(); left > 0 {
				a.lease.Reset(min(left, leaseLook))
				break
			}
			duties = a.life.leaseOver()
		case call := <-a.calls:
			duties = call()
		case <-channel(a.settled):
			a.noteStrays()
			if a.host.Stop != nil {
				stop = a.host.Stop()
			}
			if a.host.Rest != nil {
				a.host.Rest()
			}
		case <-stop:
			stop = nil
			duties = a.life.stopped()
		}
		a.perform(duties)
	}
	close(a.over)
	a.stopTimers()
	if a.side != nil {
		ctx, cancel := context.WithCancel(context.Background())
		if a.plan.Shadow != nil {
			go a.heed(ctx, cancel, orders, stop)
		}
		a.side.close(ctx)
		cancel()
	}
	return a.cleanUp()
}

// leaseLook is how often a starter whose shadow is away looks what is left of the
// lease. Its timers stand still while the machine sleeps, and the lease does not.
const leaseLook = 5 * time.Second

// heed gives what is left to be told a moment, once the starter has to end at
// once.
func (a *activation) heed(ctx context.Context, cancel context.CancelFunc, orders <-chan protocol.Order, stop <-chan struct{}) {
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
	timer := time.NewTimer(a.moment())
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
	if a.hurry != nil {
		a.hurry.Stop()
	}
	a.flow.stop()
}

// stopWatching ends looking at a run of the job.
func (a *activation) stopWatching() {
	if a.updates != nil {
		a.updates.Stop()
		a.polls.stop()
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
	a.plan = p
	a.plan.Complete()
	a.openLog()
	a.side = &localJob{}
	if p.Shadow != nil {
		a.side = newShadowJob(a, p.Shadow)
	}
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
			a.side.changed(a)
		case dutyContinue:
			a.problem(a.family.Continue())
			a.say(protocol.Continued{})
			a.side.changed(a)
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
		case dutyOutput:
			a.side.send(a)
		case dutyTell:
			a.side.tell(a)
		case dutyHold:
			a.side.hold(a)
		case dutyLease:
			a.lease = time.NewTimer(min(a.side.lease(), leaseLook))
		case dutyRejoin:
			a.lease.Stop()
			a.side.rejoined(a)
		case dutyHurry:
			a.hurry = time.AfterFunc(a.moment(), a.cancel)
		case dutySpare:
			a.spareOutput()
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

// prepare learns the job, makes the sandbox and brings the input.
func (a *activation) prepare() {
	a.holds = holds{slot: a.plan.SlotFullName, errno: a.host.Errno, bare: a.plan.Shadow != nil}
	a.side.learn(a)
}

// learned goes on with the job's ad.
func (a *activation) learned(ad *classad.Ad, err error) []duty {
	if err != nil {
		return a.life.prepared(a.holds.broken(fmt.Errorf("job ad: %w", err)))
	}
	if a.life.evicted != nil {
		return a.life.prepared(nil)
	}
	if hold := a.primaryGroup(ad); hold != nil {
		return a.life.prepared(hold)
	}
	if err := a.canRunAs(); err != nil {
		return a.life.prepared(a.holds.broken(err))
	}
	if err := a.makeSandbox(); err != nil {
		return a.noSandbox(err)
	}
	if a.job, err = a.side.read(a, ad); err != nil {
		return a.life.prepared(a.holds.broken(err))
	}
	a.logJob(ad)
	if hold := a.chooseRunner(); hold != nil {
		return a.life.prepared(hold)
	}
	a.side.bring(a)
	return nil
}

// unfit ends an activation that cannot be set up here, without blame for the
// job.
func (a *activation) unfit(err error, code int) []duty {
	return a.unfitFor(err, eviction{reason: err.Error(), code: code})
}

// unfitFor is unfit with what is said of it.
func (a *activation) unfitFor(err error, why eviction) []duty {
	a.blameFor(err)
	if a.life.evicted == nil {
		why.asked, why.hard = "starter", true
		a.life.evicted = &why
	}
	return a.life.prepared(nil)
}

func (a *activation) makeSandbox() error {
	p, self := a.plan, a.host.Census.Self()
	box, err := sandbox.Create(sandbox.Spec{
		Execute: p.Execute, Starter: self, Mode: p.Settings.Permissions, Owner: p.RunAs, As: a.asUser,
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
	a.say(protocol.Sandbox{Dir: box.Scratch()})
	return nil
}

// finish kills what outlived the job's main process and brings the output
// back.
func (a *activation) finish() {
	a.record.Status = a.family.Status()
	a.logExit(a.record.Status)
	a.exitAt = time.Now()
	a.watchOutput()
	closing := func() func() []duty {
		left, err := a.family.Close()
		usage, uerr := a.family.Usage()
		if n, kerr := a.clearAccount(); kerr != nil || n > 0 {
			left, err = left+n, errors.Join(err, kerr)
		}
		return func() []duty {
			a.record.Leftovers, a.record.Usage = left, usage
			a.problem(errors.Join(err, uerr))
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
	a.beside(func(context.Context) func() []duty { return closing() })
}

func (a *activation) sendOutput() []duty {
	a.disk = a.box.Usage()
	if a.record.Status.Core {
		a.nameCore()
	}
	a.side.send(a)
	return nil
}

// output says which output is wanted back, if any, and whether all of it.
func (a *activation) output() (some, whole bool) {
	e := a.life.evicted
	some, whole = a.job.wantsOutput(a.record.Status, e != nil)
	switch {
	case e == nil:
		return some, whole
	case e.hard || a.life.held:
		return false, false
	case e.final && a.job.transfer:
		return true, true
	}
	return some, whole
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
	a.record.Usage, a.disk = u, a.box.Usage()
	all := a.side.total(u)
	a.say(protocol.Usage{Usage: all, DiskKiB: a.disk.KiB})
	a.side.changed(a)
}

// end writes and tells how it went, and removes the sandbox.
func (a *activation) end() {
	r := &a.record
	r.Ended = time.Now()
	r.DiskKiB = a.disk.KiB
	if a.plan != nil {
		r.Activation = a.plan.Activation
	}
	r.Held, r.Lost = a.life.hold, a.life.lost
	a.blameHold()
	if a.side != nil {
		r.Usage = a.side.total(r.Usage)
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
