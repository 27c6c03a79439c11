// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/hook"
	"github.com/execpoint/execpoint/lib/slot"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// hookGrace is how long a periodic program has between the request to end and
// its end by force.
const hookGrace = time.Second

// maxAds is how many ads a program may print in a second. One that prints more
// is held up: its output waits.
const maxAds = 100

// pace is how fast a program prints.
type pace struct {
	began time.Time // of the present second
	ads   int       // in it
}

// hold counts an ad and returns for how long the next one is to wait.
func (p *pace) hold(now time.Time) time.Duration {
	if now.Sub(p.began) >= time.Second {
		p.began, p.ads = now, 0
	}
	if p.ads++; p.ads < maxAds {
		return 0
	}
	return p.began.Add(time.Second).Sub(now)
}

// cron runs the programs of STARTD_CRON_*. It belongs to the owner; only the
// programs run beside it.
type cron struct {
	jobs     hook.Cron
	runner   hook.Runner
	schedule *hook.Schedule
	board    *hook.CronAds
	runs     map[string]*cronRun

	moved bool          // the schedule may have something to say
	look  time.Duration // boot time at which conditions are looked at again
	dirty bool          // the slots may not show what is on the board
}

// cronRun is one program that runs, or is being started.
type cronRun struct {
	run       *hook.Run // nil until it runs
	hup, stop bool      // asked for before it ran
}

func newCron(o Options) *cron {
	jobs, problems := hook.CronFrom(o.Config)
	for _, p := range problems {
		o.Log.Warn("cron", "err", p)
	}
	return &cron{
		jobs: jobs, runner: hooks(o), schedule: hook.NewSchedule(jobs), board: hook.NewCronAds(jobs),
		runs: make(map[string]*cronRun), moved: true,
	}
}

// hooks runs the programs of the owner.
func hooks(o Options) hook.Runner {
	return hook.Runner{
		Spawner: o.Host.Spawner, Census: o.Host.Census, Env: o.StarterEnv, Dir: o.Config.String("LOG"),
		Hangup: o.Host.Hangup, Terminate: o.Host.Terminate, Grace: hookGrace,
	}
}

// runCron starts and stops what is due, and shows what was printed.
func (n *node) runCron(now clock.Instant) {
	c := n.cron
	next, timed := c.schedule.Next()
	if c.moved || timed && next <= now.Boot || c.schedule.Waiting() && now.Boot >= c.look {
		c.moved, c.look = false, now.Boot+n.wakes.poll
		starts, stops := c.schedule.Due(now, func(e *classad.Expr) bool { return n.allowed(now, e) })
		for _, name := range stops {
			n.stopHook(name)
		}
		for _, s := range starts {
			n.startHook(s.Job)
		}
	}
	if c.dirty {
		c.dirty = false
		n.publishCron(now)
	}
}

// cronDue is how long after an instant runCron has something to do at the
// latest.
func (n *node) cronDue(now clock.Instant) time.Duration {
	d := time.Hour
	if next, ok := n.cron.schedule.Next(); ok {
		d = min(d, next-now.Boot)
	}
	if n.cron.schedule.Waiting() {
		d = min(d, n.cron.look-now.Boot)
	}
	return d
}

// allowed evaluates the condition of a job in the ad of the daemon.
func (n *node) allowed(now clock.Instant, condition *classad.Expr) bool {
	return condition.Eval(&classad.Env{My: n.eng.DaemonAd(n.slots.problems), Now: now.Wall, Location: time.Local, Rand: n.random}).IsTrue()
}

func (n *node) startHook(job hook.Job) {
	r := &cronRun{}
	n.cron.runs[job.Name] = r
	runner, failures := n.cron.runner, n.cron.jobs.LogFailures
	n.o.Log.Debug("hook starts", "hook", job.Name)
	n.mail.around.Go(func() {
		var printing pace
		run, err := runner.Start(context.Background(), job, func(b hook.Block) {
			n.mail.post(func(now clock.Instant) { n.hookPrinted(now, job.Name, b) })
			if d := printing.hold(time.Now()); d > 0 {
				select {
				case <-time.After(d):
				case <-n.mail.done:
				}
			}
		})
		if err != nil {
			n.mail.post(func(now clock.Instant) {
				n.o.Log.Error("hook did not start", "hook", job.Name, "err", err)
				n.hookEnded(now, job.Name, r)
			})
			return
		}
		n.mail.post(func(clock.Instant) { n.hookRuns(job.Name, r, run) })
		select {
		case <-run.Done():
		case <-n.mail.done: // the run is over
			if err := run.Stop(); err != nil {
				n.o.Log.Warn("hook cannot be stopped", "hook", job.Name, "err", err)
			}
		}
		report := run.Report()
		n.mail.post(func(now clock.Instant) {
			report.Log(context.Background(), n.o.Log, failures)
			n.hookEnded(now, job.Name, r)
		})
	})
}

// hookRuns does what was asked of a program before it ran.
func (n *node) hookRuns(name string, r *cronRun, run *hook.Run) {
	r.run = run
	if r.stop {
		n.stopHook(name)
	} else if r.hup {
		n.hangup(name)
	}
}

func (n *node) stopHook(name string) {
	r := n.cron.runs[name]
	switch {
	case r == nil:
	case r.run == nil:
		r.stop = true
	default:
		if err := r.run.Stop(); err != nil {
			n.o.Log.Warn("hook cannot be stopped", "hook", name, "err", err)
		}
	}
}

func (n *node) hangup(name string) {
	r := n.cron.runs[name]
	switch {
	case r == nil:
	case r.run == nil:
		r.hup = true
	default:
		if err := r.run.Hangup(); err != nil {
			n.o.Log.Warn("hook cannot be told of the new configuration", "hook", name, "err", err)
		}
	}
}

func (n *node) hookPrinted(now clock.Instant, name string, b hook.Block) {
	if _, err := n.cron.board.Put(name, b, now.Wall); err != nil {
		n.o.Log.Warn("hook", "hook", name, "err", err)
		return
	}
	n.cron.dirty = true
}

func (n *node) hookEnded(now clock.Instant, name string, r *cronRun) {
	if n.cron.runs[name] == r {
		delete(n.cron.runs, name)
	}
	n.cron.schedule.Ended(name, now)
	n.cron.moved = true
}

// slotsChanged says that there may be other slots, or other ones that what is
// on the board is for.
func (c *cron) slotsChanged() { c.dirty = c.dirty || c.board.Selective() }

// hookSlot is a slot as the board sees it.
func (n *node) hookSlot(id slot.ID, name string) hook.Slot {
	ad := n.eng.SlotAd(id)
	typeID, _ := ad.EvalInt("SlotTypeID", nil)
	return hook.Slot{ID: id, Name: name, TypeID: int(typeID), Ad: ad}
}

// jobBegins has what is measured of the slot's resources counted for its job.
func (n *node) jobBegins(id slot.ID) {
	if v, ok := n.eng.SlotView(id); ok {
		s := n.hookSlot(id, v.FullName)
		n.cron.board.JobBegins(&s)
		n.cron.slotsChanged()
	}
}

// claimEnds has nothing more counted for the jobs of a claim.
func (c *cron) claimEnds(id slot.ID) {
	c.board.ClaimEnds(id)
	c.slotsChanged()
}

// slotTold passes the ad of a slot that the pool is told on to the starter of its
// job, as long as that runs.
func (n *node) slotTold(id slot.ID, ad *classad.Ad) {
	v, ok := n.eng.SlotView(id)
	if !ok || v.Activation == "" {
		return
	}
	a := n.starter.live[v.Activation]
	if a == nil || a.handle == nil || a.dir == "" || a.record != nil {
		return
	}
	used := classad.NewAd()
	for _, name := range n.cron.jobs.UsageAttrs() {
		if _, there := ad.Lookup(name); !there {
			continue
		}
		// A job that has not been measured is told so, since its ad may still have
		// the figures of an earlier run.
		v := ad.Eval(name, nil)
		if _, number := v.AsNumber(); number || v.Kind() == classad.KindUndefined {
			used.SetValue(name, v)
		}
	}
	o := protocol.SlotAd{Slot: ad.Text(classad.Old), Usage: used.Text(classad.Old)}
	limits := n.slotLimits(v.Total)
	limits.Cores = a.cores
	o.Limits = &limits
	if err := a.handle.Send(o); err != nil && !errs.Is(err, errs.NotFound) {
		n.o.Log.Warn("the starter is not told of its slot", "activation", v.Activation, "err", err)
	}
}

// publishCron tells the engine what the slots show of the board.
func (n *node) publishCron(now clock.Instant) {
	var slots []hook.Slot
	for v := range n.eng.Views() {
		slots = append(slots, n.hookSlot(v.ID, v.FullName))
	}
	for _, p := range n.cron.board.Publish(slots) {
		n.step(now, p)
		n.moved = true
	}
}
