// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/history"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/jobpolicy"
	"github.com/execpoint/execpoint/lib/local"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/pool"
	"github.com/execpoint/execpoint/lib/slot"
	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// countsEvery bounds how often a person is told the counts.
const countsEvery = 100 * time.Millisecond

// node is the goroutine that owns the engine and the access point, and what
// the goroutines around it need to reach it.
type node struct {
	o        Options
	eng      *ep.Engine
	ap       *local.AP
	pool     *pool.Pool // nil without one
	joined   string     // our address in the pool
	launcher Launcher
	starts   processes // starters, for the launcher
	bench    *benchmarks
	cron     *cron
	back     *backfill
	settings atomic.Pointer[starterSettings] // of the starters that begin now
	types    map[int]int                     // of slots, see slotTypes
	poll     time.Duration                   // POLLING_INTERVAL
	duty     *dutyCycle                      // of the owner

	abilities abilities

	// How the machine was divided. The ledger is the engine's; here it is only
	// read.
	ledger    *slot.Ledger
	found     []slot.Inventory
	resources []slot.Resource
	problems  []slot.Problem

	logs      *logs
	launching chan struct{}                // one for each starter that is started and given its plan
	inbox     chan func(now clock.Instant) // run by the owner
	done      chan struct{}                // closed when the owner is gone
	around    sync.WaitGroup               // goroutines around it
	starters  map[claim.ActivationID]*activation
	queue     []ep.Event
	moved     bool // something happened that may let a job start
	sampling  bool
	started   time.Time

	loading, loadAgain bool // the configuration is being read again, and once more

	wakeAt     clock.Instant
	looked     clock.Instant // when the machine was last read
	lookAt     clock.Instant // when it is to be read next
	timer      *time.Timer
	interrupts int
	leaves     bool      // the end was ordered, which was not told yet
	complete   bool      // the engine has shut down
	end        string    // why the engine ends the EP, "" if it does not
	restart    bool      // the EP is to be started again when it has ended
	ownerReply *ep.Reply // to the request of the control socket under way

	records chan record // to the goroutine that keeps files of what was
	keepTo  history.Options

	room     room                      // descriptors
	tests    map[string]*executeTest   // of EXECUTE directories, by path
	failedAs map[string]*host.Identity // whose job last failed in one

	claimFileFailed bool // the last claim id file could not be written, which was told

	lastCounts local.Counts
	told       time.Time
	waitsAt    clock.Instant // when it is looked next whether jobs wait long
}

// activation is the run's side of one starter.
type activation struct {
	handle Starter        // nil until it runs
	dir    string         // its scratch directory, "" until it has one
	job    host.ProcID    // the job's main process, zero until it runs
	user   *host.Identity // who it runs as, nil for the user of this program
	record *protocol.ExitRecord

	start   ep.StartStarter
	leaving bool             // it was told to end its job
	orders  []protocol.Order // given before it ran
	kill    bool
}

// newNode fails when ctx ends before the engine is there.
func newNode(ctx context.Context, o Options) (*node, error) {
	n := &node{
		o: o, logs: newLogs(o.asOwner), inbox: make(chan func(clock.Instant), 64), launching: make(chan struct{}, mostLaunching), done: make(chan struct{}),
		starters: make(map[claim.ActivationID]*activation), tests: make(map[string]*executeTest), failedAs: make(map[string]*host.Identity),
		timer: time.NewTimer(time.Hour), started: time.Now(), duty: new(dutyCycle),
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
	n.ledger, n.resources, n.types = ledger, ledger.Resources(), slotTypes(ledger)
	settings, err := n.startersOf(o.Config)
	if err != nil {
		return nil, errs.E("run.Run", errs.Invalid, "", err)
	}
	n.settings.Store(settings)
	Advertise(o.Inventory, o.Version)
	if n.serving() {
		if v := o.Serve.Version; v != "" {
			o.Inventory.Attrs.SetString("CondorVersion", v)
		}
		n.able(o.Inventory.Attrs, settings)
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
	n.tellDoubts(o.Config)
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
	n.launcher, n.starts = newLauncher(o)
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
	n.poll = max(poll, 100*time.Millisecond)
	window, quantum := dutyWindow(s)
	n.duty.configure(window, quantum)
	return err
}

func (n *node) problem(err error) {
	n.o.Log.Warn("problem", "err", err)
	if n.o.Problem != nil {
		n.o.Problem(err)
	}
}

func (n *node) close() {
	close(n.done)
	n.abilities.end()
	n.launcher.Close()
	close(n.records)
	n.stopBenchmarks()
	n.back.abandon()
	n.around.Wait()
	if err := n.logs.close(); err != nil {
		n.problem(err)
	}
}

// post hands f to the owner; it is dropped when the owner is gone.
func (n *node) post(f func(now clock.Instant)) {
	select {
	case n.inbox <- f:
	case <-n.done:
	}
}

// loop is the owner.
func (n *node) loop(ctx context.Context) (Result, error) {
	var res Result
	now := n.o.Host.Clock.Now()
	n.duty.begin(now.Boot)
	n.looked = now
	n.ap.Submit(now)
	n.step(now, ep.Tick{})
	res.Impossible = n.ap.Judge(now, n.offers(), n.eng.CouldEverRun)
	n.moved = true
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
		n.duty.rest(n.o.Host.Clock.Now().Boot)
		select {
		case f := <-n.inbox:
			now = n.woken()
			f(now)
		case <-n.timer.C:
			if now = n.woken(); now.Boot >= n.lookAt.Boot {
				n.looked = now
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
			n.interrupts++
			n.interrupt(now, ep.Fast)
		}
	}
	n.logAds()
	n.tellCounts(now, true)
	n.tell(now, observe.EPShutdown, slot.ID{}, func(a *classad.Ad) { a.SetInt("ExitCode", 0) })
	res.Counts, res.Interrupted, res.Restart = n.ap.Counts(), n.interrupts > 0 || n.end != "", n.restart
	res.Ended = n.end != "" && n.interrupts == 0
	return res, nil
}

// woken is when the owner has stopped to wait.
func (n *node) woken() clock.Instant {
	now := n.o.Host.Clock.Now()
	n.duty.woke(now.Boot)
	return now
}

// over reports whether there is nothing left to wait for.
func (n *node) over() bool {
	if n.interrupts > 0 || n.end != "" {
		return n.complete && len(n.starters) == 0
	}
	return !n.serving() && n.ap.Finished() && len(n.starters) == 0 && n.back.client == nil
}

// interrupt asks all jobs to leave, at the second time without mercy.
func (n *node) interrupt(now clock.Instant, m ep.Manner) {
	n.interrupts++
	n.leaves = true // also where nothing changes: a person pressed Ctrl-C
	if n.interrupts > 1 {
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
	if !n.wakeAt.IsZero() {
		d = n.wakeAt.Sub(now)
	}
	if c := n.ap.Counts(); c.Idle > c.Impossible {
		d = min(d, n.looked.Add(n.poll).Sub(now))
	}
	n.lookAt = now.Add(d)
	if c := n.ap.Counts(); c.Idle > c.Impossible {
		d = min(d, n.waitsAt.Sub(now))
	}
	if at := n.ap.Due(); !at.IsZero() {
		d = min(d, at.Sub(now))
	}
	d = min(d, n.cronDue(now), n.backfillDue(now))
	if n.o.Counts != nil && n.ap.Counts() != n.lastCounts {
		d = min(d, countsEvery)
	}
	n.timer.Reset(max(d, 0))
}

// sample reads the machine in the background, since a dead file system may
// hold the reader up, and lets the engine look at its policy afterwards. While
// a reading is under way time goes on without it.
func (n *node) sample() {
	if n.sampling {
		n.step(n.o.Host.Clock.Now(), ep.Tick{})
		n.moved = true
		return
	}
	n.sampling = true
	n.around.Go(func() {
		s, err := n.o.Host.Sampler.Sample(context.Background())
		n.post(func(now clock.Instant) {
			n.sampling = false
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

func (n *node) performAll(now clock.Instant, effects []ep.Effect) {
	for _, eff := range effects {
		n.perform(now, eff)
	}
}

// perform carries out one effect.
func (n *node) perform(now clock.Instant, eff ep.Effect) {
	if r, ok := eff.(ep.Reply); ok && r.Granted != nil {
		n.tellGranted(now, r.Granted)
	}
	if n.pool != nil && n.pool.Perform(now, eff) {
		return
	}
	switch e := eff.(type) {
	case ep.Reply:
		switch e.Ref.By {
		case ep.ControlSocket: // one request at a time
			n.ownerReply = &e
		case ep.OwnQueue:
			if e.Err != nil {
				n.o.Log.Info("request refused", "err", e.Err)
			}
			n.queue = append(n.queue, n.ap.Reply(now, e)...)
		}
	case ep.StartStarter:
		n.start(e)
	case ep.OrderStarter:
		n.order(now, e)
	case ep.KillStarter:
		n.o.Log.Warn("killing the starter", "activation", e.Activation, "why", e.Reason)
		n.kill(e.Activation)
	case ep.ClaimEnded:
		if e.ByClient {
			n.tell(now, observe.EPReleaseClaim, e.Slot, func(a *classad.Ad) { a.SetBool("Success", true) })
		}
		n.cron.claimEnds(e.Slot)
		n.queue = append(n.queue, n.ap.ClaimEnded(now, e)...)
		n.moved = true
	case ep.Transitioned:
		n.logMove(e)
		n.moved = true
		n.cron.slotsChanged()
	case ep.ClaimWaits:
		n.logWaiting(e)
	case ep.KeptAlive:
		n.logAlive(e)
	case ep.AdWithdrawn:
		n.moved = true
		n.cron.slotsChanged()
	case ep.ClaimIDChanged:
		n.claimIDChanged(e)
	case ep.SlotBroke:
		n.tellBroke(now, e)
	case ep.RunBenchmarks:
		n.runBenchmarks(now)
	case ep.StopBenchmarks:
		n.stopBenchmarks()
	case ep.StartBackfill:
		n.startBackfill(e.Slot)
	case ep.StopBackfill:
		n.stopBackfill(now, e.Deadline)
	case ep.WakeAt:
		n.wakeAt = e.At
	case ep.ActivationEnded:
		n.keep(now, e)
	case ep.DrainBegun:
		n.logDrain(e)
	case ep.DrainFinal:
		n.o.Log.Info("Initiating final draining (all original jobs complete).", "id", e.ID)
	case ep.DrainCompleted:
		n.drained(e)
	case ep.ShutdownBegun:
		n.ending(e)
	case ep.PolicyWarning:
		n.policyOdd(e)
	case ep.TestExecute:
		n.testExecute(e.Place)
	case ep.FaultChanged:
		n.faultChanged(e)
	case ep.ShutdownComplete:
		n.complete = true
	}
}

// start begins an activation. The ads are written out here, since they may not
// be read by two goroutines; the rest happens beside the owner.
func (n *node) start(e ep.StartStarter) {
	a := &activation{start: e}
	a.start.MachineAd = nil // which nobody needs any more
	n.starters[e.Activation] = a
	n.jobBegins(e.Slot)
	shadow := n.pool != nil && n.pool.HasShadow(e.Activation)
	told := e
	if shadow {
		told.MachineAd = n.shown(e)
	}
	plan := n.plan(told)
	var choose runAs
	if n.serving() {
		var err error
		if plan.Log, err = starterLog(n.starterOf(e.Slot).config, n.o.Config, e.SlotName, e.Job); err != nil {
			n.o.Log.Warn("the starter writes no log", "err", err)
		}
	}
	if shadow {
		plan.Shadow, plan.Keep = n.shadowSide(), false
		choose = runAsFrom(n.starterOf(e.Slot).config, e.Slot, e.MachineAd, e.Job)
	} else if n.o.Host.Account != nil {
		choose = runAsHere(n.starterOf(e.Slot).config, e.Slot, e.MachineAd, e.Job, n.o.RunAs)
	}
	n.around.Go(func() {
		h, err := n.launch(e, plan, shadow, choose)
		if err != nil {
			n.post(func(now clock.Instant) {
				delete(n.starters, e.Activation)
				n.o.Log.Error("no starter", "slot", e.SlotName, "err", err)
				n.step(now, ep.StarterFailed{Activation: e.Activation, Err: err, Fault: faultOfLaunch(err)})
				n.queue = append(n.queue, n.ap.StarterExited(now, e.Activation, err.Error())...)
				n.moved = true
			})
			return
		}
		n.post(func(now clock.Instant) {
			a.user = plan.RunAs
			n.launched(now, e.Activation, a, h)
		})
		for r := range h.Reports() {
			n.post(func(now clock.Instant) { n.report(now, e.Activation, r) })
		}
		<-h.Exited()
		st, err := h.Exit()
		n.post(func(now clock.Instant) { n.exited(now, e.Activation, st, err) })
	})
}

func (n *node) launched(now clock.Instant, act claim.ActivationID, a *activation, h Starter) {
	a.handle = h
	n.tellActivated(now, a.start, h.Proc().PID)
	n.step(now, ep.StarterStarted{Activation: act, Proc: h.Proc()})
	orders := a.orders
	a.orders = nil
	for _, o := range orders {
		n.send(act, a, o)
	}
	if a.kill {
		n.kill(act)
	}
}

func (n *node) order(now clock.Instant, e ep.OrderStarter) {
	a, ok := n.starters[e.Activation]
	if !ok {
		return
	}
	n.tellOrder(now, a, e)
	if e.Late {
		n.logLate(a)
	}
	o := orderOf(e)
	if a.handle == nil {
		a.orders = append(a.orders, o)
		return
	}
	n.send(e.Activation, a, o)
}

// orderOf is an order of the engine in the words of the protocol.
func orderOf(e ep.OrderStarter) protocol.Order {
	why := protocol.Leave{Manner: protocol.MannerVacate, Asked: "startd", Reason: e.Reason, Code: e.Code, Subcode: e.Subcode}
	if e.Hold {
		why.Manner = protocol.MannerHold
	}
	switch e.Op {
	case ep.Suspend:
		return protocol.Suspend{}
	case ep.Continue:
		return protocol.Continue{}
	case ep.SoftKill:
		return protocol.SoftKill{Leave: why, Final: e.Final}
	case ep.Checkpoint:
		return protocol.Checkpoint{}
	}
	return protocol.HardKill{Leave: why, OutputLimit: e.OutputLimit}
}

// send passes an order on, and waits for nobody. A starter that is gone needs
// none, its exit is on the way; one that does not read is killed by its handle.
func (n *node) send(act claim.ActivationID, a *activation, o protocol.Order) {
	if err := a.handle.Send(o); err != nil && !errs.Is(err, errs.NotFound) {
		n.o.Log.Warn("order not taken", "activation", act, "order", o.Kind(), "err", err)
	}
}

func (n *node) kill(act claim.ActivationID) {
	a, ok := n.starters[act]
	if !ok {
		return
	}
	a.kill = true
	if a.handle == nil {
		return
	}
	n.around.Go(func() {
		if err := a.handle.Kill(); err != nil {
			n.o.Log.Warn("starter cannot be killed", "activation", act, "err", err)
		}
	})
}

// report passes a starter's report to the engine, then to the access point.
func (n *node) report(now clock.Instant, act claim.ActivationID, told protocol.Told) {
	a, ok := n.starters[act]
	if !ok {
		return
	}
	switch r := told.What.(type) {
	case protocol.Sandbox:
		a.dir = r.Dir
	case protocol.Running:
		a.job = r.Proc
		n.step(now, ep.JobRunning{Activation: act, Proc: r.Proc})
	case protocol.Usage:
		n.step(now, ep.JobUsage{Activation: act, Usage: r.Usage, DiskKiB: r.DiskKiB})
	case protocol.Suspended:
		n.step(now, ep.JobSuspended{Activation: act})
	case protocol.Continued:
		n.step(now, ep.JobContinued{Activation: act})
	case protocol.OutputMoved:
		n.step(now, ep.OutputMoved{Activation: act})
	case protocol.Contact:
		n.step(now, ep.StarterReached{Activation: act, Address: r.Address})
	case protocol.Refused:
		n.o.Log.Warn("the starter refuses an order", "activation", act, "order", r.Order, "why", r.Why)
	case protocol.Ended:
		n.jobEnded(now, act, a, &r.Record)
	}
	n.ap.Report(now, act, told)
	if a.handle != nil {
		a.handle.Heard(told.ID)
	}
}

// jobEnded takes the last word of a starter.
func (n *node) jobEnded(now clock.Instant, act claim.ActivationID, a *activation, rec *protocol.ExitRecord) {
	a.record = rec
	if rec.Fault != nil {
		n.failedAs[n.o.executeOf(a.start.Slot)] = a.user
	}
	for _, p := range rec.Problems {
		n.o.Log.Warn("starter", "activation", act, "problem", p)
	}
	n.step(now, ep.JobEnded{Activation: act, Exit: ep.Exit{
		Status: rec.Status, Evicted: rec.Evicted, Held: rec.Held != nil, Usage: rec.Usage,
		BytesIn: rec.BytesIn, BytesOut: rec.BytesOut, Fault: faultOf(rec.Fault),
	}})
}

func (n *node) exited(now clock.Instant, act claim.ActivationID, st host.ExitStatus, err error) {
	why := ""
	if err != nil {
		n.o.Log.Warn("starter", "activation", act, "err", err)
		why = err.Error()
	}
	if !st.Success() {
		why = errors.Join(fmt.Errorf("the starter %v", st), err).Error()
	}
	gone := ep.StarterExited{Activation: act, Status: st}
	if a := n.starters[act]; a != nil {
		gone.ClientLost, gone.Fault = a.record != nil && a.record.Lost, a.silent(st)
	}
	n.step(now, gone)
	delete(n.starters, act)
	n.queue = append(n.queue, n.ap.StarterExited(now, act, why)...)
	n.moved = true
}

// tellCounts shows the counts when they changed, not too often.
func (n *node) tellCounts(now clock.Instant, last bool) {
	if n.o.Counts == nil || !last && now.Wall.Sub(n.told) < countsEvery {
		return
	}
	c := n.ap.Counts()
	if c == n.lastCounts && !last {
		return
	}
	n.lastCounts, n.told = c, now.Wall
	n.o.Counts(now.Wall, c)
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
	n.post(func(now clock.Instant) { reply <- n.answer(now, r) })
	select {
	case resp := <-reply:
		return resp
	case <-n.done:
		return observe.Response{Err: errEnding.Error()}
	}
}

var errEnding = errors.New("the Execution Point is ending")
