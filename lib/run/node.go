// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/jobpolicy"
	"github.com/execpoint/execpoint/lib/local"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/slot"
)

// countsEvery bounds how often a person is told the counts.
const countsEvery = 100 * time.Millisecond

// node is the goroutine that owns the engine and the access point, and what
// the goroutines around it need to reach it.
type node struct {
	o      Options
	eng    *ep.Engine
	ap     *local.AP
	member member
	bench  *benchmarks
	cron   *cron
	back   *backfill
	logs   *logs

	starter starterSide
	slots   division
	faults  faults

	mail    mail
	queue   []ep.Event
	moved   bool // something happened that may let a job start
	wakes   wakes
	leave   departure
	reloads reloads

	kept    keeping
	control control
	tally   tally
}

// newNode fails when ctx ends before the engine is there.
func newNode(ctx context.Context, o Options) (*node, error) {
	n := &node{
		o: o, logs: newLogs(o.asOwner),
		mail:    mail{inbox: make(chan func(clock.Instant), 64), done: make(chan struct{})},
		starter: starterSide{live: make(map[claim.ActivationID]*activation), launching: make(chan struct{}, mostLaunching)},
		faults:  faults{tests: make(map[string]*executeTest), failedAs: make(map[string]*host.Identity)},
		wakes:   wakes{timer: time.NewTimer(time.Hour), duty: new(dutyCycle)},
		control: control{started: time.Now()},
	}
	now := o.Host.Clock.Now()
	if err := n.setIntervals(o.Config); err != nil {
		return nil, errs.E("run.Run", errs.Invalid, "", err)
	}
	ledger, err := n.divide(ctx)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return nil, err
	}
	n.slots.ledger, n.slots.resources, n.slots.types = ledger, ledger.Resources(), slotTypes(ledger)
	settings, err := n.startersOf(o.Config)
	if err != nil {
		return nil, errs.E("run.Run", errs.Invalid, "", err)
	}
	n.starter.settings.Store(settings)
	var doubt error
	if n.starter.gids, doubt, err = gidsFrom(o.Config, o.Host); err != nil {
		return nil, errs.E("run.Run", errs.Invalid, "", err)
	}
	if doubt != nil {
		n.problem(doubt)
	}
	Advertise(o.Inventory, o.Version)
	if n.serving() {
		if v := o.Serve.Version; v != "" {
			o.Inventory.Attrs.SetString("CondorVersion", v)
		}
		n.able(o.Inventory.Attrs, settings)
	} else {
		settings.contain.advertise(o.Inventory.Attrs)
	}
	over := n.waiting("a first reading of how busy the machine and how full its file systems are")
	sample, err := o.Host.Sampler.Sample(ctx)
	over()
	if err != nil {
		o.Log.Warn("reading of the machine is incomplete", "err", err)
	}
	n.bench = newBenchmarks(o)
	n.cron = newCron(o)
	n.newBackfill()
	if n.serving() && o.Serve.Starters != nil {
		o.Serve.Starters(func(id slot.ID) *config.Snapshot { return n.starterOf(id).config })
	}
	if err := n.join(); err != nil {
		return nil, errs.E("run.Run", errs.Invalid, "", err)
	}
	var effects []ep.Effect
	n.eng, effects, err = n.newEngine(ledger, sample, now)
	if err != nil {
		return nil, errs.E("run.Run", errs.Invalid, "", err)
	}
	n.tellTracking()
	n.tellDoubts(o.Config)
	n.tellUncontained(nil, settings)
	interval, err := o.Config.Duration("PERIODIC_EXPR_INTERVAL")
	if err != nil {
		return nil, errs.E("run.Run", errs.Invalid, "", err)
	}
	n.ap, err = local.New(local.Config{
		Jobs: o.Jobs, User: o.User, Host: o.Inventory.FullHostname, Address: sinful(o.Inventory.FullHostname), Interval: interval,
		System: jobpolicy.SystemFrom(o.Config),
		Log:    n.logs.append, Env: newEnv, Changed: o.Changed, Problem: n.problem,
	}, n.eng.Mentions)
	if err != nil {
		return nil, err
	}
	n.starter.launcher, n.starter.own = newLauncher(o, settings.contain.users)
	n.beginRecords()
	n.tellStart(now)
	for _, eff := range effects {
		n.perform(now, eff)
	}
	if n.serving() && o.Serve.Asked != nil {
		o.Serve.Asked(n.askedBy)
	}
	if n.serving() { // else Inventory has it
		n.seekAbilities()
	}
	if o.Settled != nil {
		o.Settled()
	}
	return n, nil
}

func (n *node) setIntervals(s *config.Snapshot) error {
	poll, err := s.Duration("POLLING_INTERVAL")
	n.wakes.poll = max(poll, 100*time.Millisecond)
	window, quantum := dutyWindow(s)
	n.wakes.duty.configure(window, quantum)
	return err
}

func (n *node) problem(err error) {
	n.o.Log.Warn("problem", "err", err)
	if n.o.Problem != nil {
		n.o.Problem(err)
	}
}

func (n *node) close() {
	close(n.mail.done)
	n.starter.abilities.end()
	n.starter.launcher.Close()
	n.endRecords()
	n.stopBenchmarks()
	n.back.abandon()
	n.mail.around.Wait()
	if err := n.logs.close(); err != nil {
		n.problem(err)
	}
}

// loop is the owner.
func (n *node) loop(ctx context.Context) (Result, error) {
	var res Result
	now := n.o.Host.Clock.Now()
	n.wakes.duty.begin(now.Boot)
	n.wakes.looked = now
	n.ap.Submit(now)
	n.step(now, ep.Tick{})
	res.Impossible = n.ap.Judge(now, n.offers(), n.eng.CouldEverRun)
	n.moved = true
	if n.o.Host.Volumes != nil {
		watching, stop := context.WithCancel(context.Background())
		defer stop()
		n.mail.around.Go(func() { n.watchPool(watching) })
	}
	cancelled := ctx.Done()
	for {
		n.runCron(now)
		if at := n.ap.Due(); !at.IsZero() && at.Boot <= now.Boot {
			n.queue = append(n.queue, n.ap.Look(now)...)
			n.moved = true
		}
		n.settle(now)
		n.tendBackfill(now)
		n.tellLeaving()
		n.tellWaits(now)
		n.tellCounts(now, false)
		if n.over() {
			break
		}
		n.arm(now)
		n.wakes.duty.rest(n.o.Host.Clock.Now().Boot)
		select {
		case f := <-n.mail.inbox:
			now = n.woken()
			f(now)
		case <-n.wakes.timer.C:
			if now = n.woken(); now.Boot >= n.wakes.lookAt.Boot {
				n.wakes.looked = now
				n.sample()
			}
		case <-n.o.Reload:
			now = n.woken()
			n.reload()
		case <-n.o.Interrupt:
			now = n.woken()
			n.interrupt(now, ep.Graceful)
		case m := <-n.orders():
			now = n.woken()
			n.ordered(now, m)
		case <-cancelled:
			cancelled = nil
			now = n.woken()
			n.leave.interrupts++
			n.interrupt(now, ep.Fast)
		}
	}
	n.logAds()
	n.tellCounts(now, true)
	n.tell(now, observe.EPShutdown, slot.ID{}, func(a *classad.Ad) { a.SetInt("ExitCode", 0) })
	res.Counts, res.Interrupted, res.Restart = n.ap.Counts(), n.leave.interrupts > 0 || n.leave.end != "", n.leave.restart
	res.Ended = n.leave.end != "" && n.leave.interrupts == 0
	return res, nil
}

// woken is when the owner has stopped to wait.
func (n *node) woken() clock.Instant {
	now := n.o.Host.Clock.Now()
	n.wakes.duty.woke(now.Boot)
	return now
}

// over reports whether there is nothing left to wait for.
func (n *node) over() bool {
	if n.leave.begun() {
		return n.leave.complete && len(n.starter.live) == 0
	}
	return !n.serving() && n.ap.Finished() && len(n.starter.live) == 0 && n.back.client == nil
}

// interrupt asks all jobs to leave, at the second time without mercy.
func (n *node) interrupt(now clock.Instant, m ep.Manner) {
	n.leave.interrupts++
	n.leave.leaves = true // also where nothing changes: a person pressed Ctrl-C
	if n.leave.interrupts > 1 {
		m = ep.Fast
	}
	n.step(now, ep.ShutdownRequested{Manner: m})
	if m == ep.Fast {
		n.killBackfill(now)
	}
}

// arm sets the timer for what is due next: the engine's wake-up; while jobs
// wait for the machine to become free, a look at the machine; and counts that
// were held back.
func (n *node) arm(now clock.Instant) {
	d := time.Hour
	if !n.wakes.wakeAt.IsZero() {
		d = n.wakes.wakeAt.Sub(now)
	}
	if n.wakes.sampling {
		d = max(d, n.wakes.late.Sub(now))
	}
	c := n.ap.Counts()
	wait := c.Idle > c.Impossible
	if wait {
		d = min(d, n.wakes.looked.Add(n.wakes.poll).Sub(now))
	}
	sample := d
	if wait {
		d = min(d, n.wakes.waitsAt.Sub(now))
	}
	if at := n.ap.Due(); !at.IsZero() {
		d = min(d, at.Sub(now))
	}
	d = min(d, n.cronDue(now), n.backfillDue(now))
	if n.o.Counts != nil && c != n.tally.last {
		d = min(d, countsEvery)
	}
	n.wakes.at(now, sample, d)
}

// readingPatience is how long the engine's policy waits for a reading of the machine,
// which takes milliseconds unless a file system does not answer.
const readingPatience = time.Second

// sample reads the machine in the background, since a dead file system may
// hold the reader up, and lets the engine look at its policy afterwards: as with
// HTCondor's startd each look is at what was measured for it. When a reading takes
// longer than readingPatience, time goes on without it.
func (n *node) sample() {
	if n.wakes.sampling {
		n.step(n.o.Host.Clock.Now(), ep.Tick{})
		n.moved = true
		return
	}
	n.wakes.sampling, n.wakes.late = true, n.wakes.looked.Add(readingPatience)
	n.mail.around.Go(func() {
		s, err := n.o.Host.Sampler.Sample(context.Background())
		n.mail.post(func(now clock.Instant) {
			n.wakes.sampling = false
			if err != nil {
				n.o.Log.Warn("reading of the machine is incomplete", "err", err)
			}
			n.sampled(now, s)
		})
	})
}

func (n *node) sampled(now clock.Instant, s machine.Sample) {
	n.step(now, ep.Sampled{Sample: s})
	n.logFacts(s)
	for _, id := range n.ap.Alive() {
		n.step(now, ep.LeaseRenewed{Claim: id})
	}
	n.step(now, ep.Tick{})
	n.moved = true
}

// settle carries on until nothing more follows from what happened: events of
// the access point, then claims for jobs that wait.
func (n *node) settle(now clock.Instant) {
	for {
		for len(n.queue) > 0 {
			ev := n.queue[0]
			n.queue = n.queue[1:]
			n.step(now, ev)
		}
		if !n.moved {
			return
		}
		ev, ok := n.ap.Negotiate(now, n.offers())
		if !ok {
			n.moved = false
			return
		}
		n.step(now, ev)
	}
}

// offers are the slots that a claim may be asked for.
func (n *node) offers() []local.Offer {
	var out []local.Offer
	for v := range n.eng.Views() {
		if v.Claimable() {
			out = append(out, local.Offer{Slot: v.ID, Ad: n.eng.SlotAd(v.ID), Open: len(n.cron.jobs.Jobs) > 0})
		}
	}
	return out
}

func (n *node) step(now clock.Instant, ev ep.Event) {
	if a, ok := ev.(ep.ActivateRequested); ok {
		a.Fault = n.lacking(now)
		ev = a
	}
	n.performAll(now, n.eng.Step(now, ev))
}

// tellCounts shows the counts when they changed, not too often.
func (n *node) tellCounts(now clock.Instant, last bool) {
	if n.o.Counts == nil {
		return
	}
	if c := n.ap.Counts(); n.tally.due(now.Wall, c, last) {
		n.o.Counts(now.Wall, c)
	}
}

// ask answers the control socket. It runs beside the owner.
func (n *node) ask(r observe.Request) observe.Response {
	if n.o.Allow != nil {
		if err := n.o.Allow(r); err != nil {
			n.o.Log.Info("control socket: refused", "op", r.Op, "by", r.By, "why", err)
			return observe.Response{Err: err.Error()}
		}
	}
	return n.askedBy(r)
}

// askedBy answers a question of who may ask it.
func (n *node) askedBy(r observe.Request) observe.Response {
	reply := make(chan observe.Response, 1)
	n.mail.post(func(now clock.Instant) { reply <- n.answer(now, r) })
	select {
	case resp := <-reply:
		return resp
	case <-n.mail.done:
		return observe.Response{Err: errEnding.Error()}
	}
}

var errEnding = errors.New("the Execution Point is ending")
