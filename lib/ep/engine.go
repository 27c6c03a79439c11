// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"errors"
	"time"

	"github.com/execpoint/execpoint/lib/ad"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// Config is what an Engine is made of. The engine takes the Ledger over; the
// rest is only read.
type Config struct {
	Snapshot  *config.Snapshot
	Inventory *machine.Inventory
	Ledger    *slot.Ledger
	Sample    machine.Sample // the first reading of the machine

	// Address and Start go into claim ids: a sinful string such as
	// "<127.0.0.1:9618>" and the Unix time at which the EP began.
	Address string
	Start   int64
	// NewSecret returns a fresh secret for each claim: unguessable in earnest,
	// any distinct ones in a simulation. It must be set.
	NewSecret func() claim.Secret

	// Benchmarks says that the caller carries RunBenchmarks out. Without it no
	// slot is ever benchmarked.
	Benchmarks bool
	// Backfill says that the caller carries StartBackfill out. Without it no slot
	// is ever in Backfill.
	Backfill bool
	// Fetches says that the caller carries FetchWork out. Without it no slot fetches
	// work.
	Fetches bool

	// Shutdown is the reason that jobs and their users get when the EP ends; "" is
	// that of HTCondor's startd, which scripts of a pool look for.
	Shutdown string

	// Place returns the EXECUTE directory of a slot, nil where all have the same.
	Place func(slot.ID) string

	Location *time.Location // local time zone of expressions, nil is UTC
	Rand     func() float64 // for random() in expressions and pauses; nil: random() gives error, pauses are even
}

// Engine is the state of one execution point. It is owned by one goroutine.
type Engine struct {
	cfg    Config
	times  policy.Times
	exprs  expressions
	ledger *slot.Ledger
	ads    *ad.Machine

	slots    slotTable
	issued   issued
	schedule schedule
	shutdown shutdown
	owners
	overlap  overlap
	bench    benchmarks
	drain    drain
	back     backfill
	faults   []*condition // of the machine, few if any
	readings readings

	now     clock.Instant
	clock   clock.Instant // when the wall clock last agreed with what is published
	policy  evaluation
	effects []Effect
}

// issued counts the claims and activations that there have been: each has a
// number of its own.
type issued struct{ claims, activations, fetches int64 }

func (n *issued) claim() int64 {
	n.claims++
	return n.claims
}

func (n *issued) activation() int64 {
	n.activations++
	return n.activations
}

func (n *issued) fetch() int64 {
	n.fetches++
	return n.fetches
}

// overlap is what the engine knows of slots that share resources with others.
type overlap struct {
	exists  bool // there are backfill slots
	changed bool // what primary slots have in use has changed
}

// readings is what the engine does with readings of the machine.
type readings struct {
	last       clock.Instant // when the last one came
	followDisk bool          // STARTD_RECOMPUTE_DISK
}

// New makes an Engine whose slots all begin in Owner/Idle and have been looked
// at once. The error names everything in the configuration that cannot be
// used; there is no Engine then.
func New(cfg Config, now clock.Instant) (*Engine, []Effect, error) {
	const op = "ep.New"
	if cfg.NewSecret == nil {
		return nil, nil, errs.E(op, errs.Internal, "", errors.New("no source of secrets"))
	}
	e := &Engine{
		cfg: cfg, ledger: cfg.Ledger, now: now, clock: now, slots: newSlotTable(),
		policy: evaluation{warned: make(map[int]*warnings), stepping: true},
	}
	if err := errors.Join(e.begin(cfg.Snapshot), e.configure(cfg.Snapshot)); err != nil {
		return nil, nil, errs.E(op, errs.Invalid, "", err)
	}
	var err error
	if e.ads, err = ad.New(e.source(cfg.Snapshot, e.exprs), now); err != nil {
		return nil, nil, errs.E(op, errs.Invalid, "", err)
	}
	e.readings.last = now
	e.ads.Refresh(cfg.Sample, now)
	e.showDrain()
	e.beginUpdates()
	for s := range e.ledger.Slots() {
		show, _ := e.ads.Slot(s.ID)
		sl := e.add(s, show)
		e.mint(sl)
		e.stock(sl)
		e.overlap.exists = e.overlap.exists || s.Backfill
	}
	for _, sl := range e.slots.all {
		e.evaluate(sl)
		e.seeStart(sl)
	}
	e.finish()
	return e, e.effects, nil
}

// configure takes a configuration over as a whole or not at all.
func (e *Engine) configure(s *config.Snapshot) error {
	times, err := policy.TimesFrom(s)
	bad := []error{err}
	follows, err := machine.RecomputesDisk(s)
	bad = append(bad, err)
	granting, err := grantingFrom(s)
	bad = append(bad, err)
	x := expressionsFrom(s, e.ledger)
	if err := errors.Join(bad...); err != nil {
		return err
	}
	if e.ads != nil {
		was := e.ledger.Outages()
		e.ledger.SetOffline(slot.OutagesFrom(s, e.ledger.Resources()))
		if err := e.ads.Reconfigure(e.source(s, x), e.now); err != nil {
			e.ledger.SetOffline(was)
			return err
		}
		e.changed()
	}
	e.policy.reconfigured(x.byType)
	e.granting = granting
	e.readings.followDisk = follows
	e.times, e.exprs = times, x
	e.bench.configured = e.cfg.Benchmarks && benchmarked(s)
	e.back.enabled = backfilled(s)
	e.back.configured = e.cfg.Backfill && e.back.enabled
	e.fetch.configure(s)
	return nil
}

// source is what the ads are made from.
func (e *Engine) source(s *config.Snapshot, x expressions) ad.Source {
	return ad.Source{Config: s, Inventory: e.cfg.Inventory, Ledger: e.ledger, Policy: x.byType, Unparsed: x.unparsed, Location: e.cfg.Location}
}

// publish lays attributes from outside over the ads.
func (e *Engine) publish(ev Published) {
	e.ads.Publish(ev.Source, ev.Slot, ev.Attrs)
	for _, sl := range e.slots.all {
		if ev.Slot.IsZero() || ev.Slot == sl.s.ID || ev.Slot == sl.s.ID.Parent() {
			e.emit(AdChanged{Slot: sl.s.ID})
		}
	}
}

// Step tells the engine what happened at an instant and returns what is to be
// done about it. The slice is the engine's and holds until the next Step.
// Boot time never goes back; an earlier instant counts as the last one.
func (e *Engine) Step(now clock.Instant, ev Event) []Effect {
	clear(e.effects)
	e.effects = e.effects[:0]
	e.policy.stepping = true
	if now.Boot < e.now.Boot {
		now.Boot = e.now.Boot
	}
	e.drainOn(now.Boot - e.now.Boot)
	e.now = now
	e.jump(now)
	if now.Boot >= e.schedule.wake.Boot {
		e.schedule.wake = clock.Instant{}
	}
	e.due()
	switch ev := ev.(type) {
	case Tick:
		e.tick()
	case Sampled:
		e.sampled(ev)
	case Published:
		e.publish(ev)
	case ClaimRequested:
		e.ads.ClaimAsked(e.now)
		e.claimRequested(ev)
	case ClaimWithdrawn:
		e.claimWithdrawn(ev)
	case ActivateRequested:
		e.ads.ActivationAsked(e.now)
		e.activateRequested(ev)
	case StarterStarted:
		e.starterStarted(ev)
	case StarterReached:
		e.starterReached(ev)
	case StarterFailed:
		e.starterFailed(ev)
	case JobRunning:
		e.jobRunning(ev)
	case JobUsage:
		e.jobUsage(ev)
	case JobSuspended, JobContinued:
		// The state was changed when it was ordered.
	case OutputMoved:
		e.outputMoved(ev)
	case JobEnded:
		e.jobEnded(ev)
	case StarterExited:
		e.starterExited(ev)
	case VolumeRemoved:
		e.volumeRemoved(ev)
	case ExecuteTested:
		e.executeTested(ev)
	case DeactivateRequested:
		e.deactivateRequested(ev)
	case ReleaseRequested:
		e.releaseRequested(ev)
	case WorkEnded:
		e.workEnded(ev)
	case SuspendRequested:
		e.suspendRequested(ev)
	case ContinueRequested:
		e.continueRequested(ev)
	case LeaseRenewed:
		e.leaseRenewed(ev)
	case VacateRequested:
		e.vacateRequested(ev)
	case ShutdownRequested:
		e.shutdownRequested(ev.Manner)
	case BenchmarksDone:
		e.benchmarksDone(ev)
	case MatchTold:
		e.matchTold(ev)
	case BackfillRunning:
		e.backfillRunning()
	case BackfillExited:
		e.backfillExited()
	case BackfillPossible:
		e.backfillPossible(ev.Possible)
	case BackfillUsage:
		e.backfillUsage(ev.Usage)
	case DrainRequested:
		e.drainRequested(ev)
	case DrainCancelled:
		e.drainCancelled(ev)
	case Reconfigured:
		e.reconfigured(ev)
	case AbilitiesFound:
		e.abilitiesFound(ev)
	case Rehomed:
		e.rehomed()
	case WorkFetched:
		e.workFetched(ev)
	case CoalesceRequested:
		e.coalesceRequested(ev)
	case DataSlotRequested:
		e.dataSlotRequested(ev)
	case SlotColored:
		e.slotColored(ev)
	case CatalogAnnounced:
		e.catalogAnnounced(ev)
	}
	e.finish()
	return e.effects
}

func (e *Engine) emit(eff Effect) { e.effects = append(e.effects, eff) }

// tick looks at the policy of every slot when that is due.
func (e *Engine) tick() {
	due := e.now.Boot >= e.schedule.update
	if due {
		e.updateAll()
		e.update()
	}
	if e.polling() && e.now.Boot >= e.schedule.poll {
		due = true
		e.drainTime()
		e.drainPoll()
		e.schedule.poll = e.now.Boot + e.times.Polling
	}
	if !due {
		return
	}
	e.ads.Tell(e.now) // the last reading may be old: a dead file system holds the reader up
	e.bench.onTick = true
	for _, sl := range e.slots.all {
		e.evaluate(sl)
		e.checkpoint(sl)
		e.seeStart(sl)
	}
	e.bench.onTick = false
}

// update shows how long the running jobs are still promised.
func (e *Engine) update() {
	for _, sl := range e.slots.all {
		if sl.act != nil {
			sl.ad.SetRetirement(policy.RetirementLeft(e.policyView(sl)))
		}
	}
}

// finish sees to timers that were set to run out at once, gives back dynamic
// slots that have ended, notices the end of a shutdown, and says when the next
// Tick is due.
func (e *Engine) finish() {
	e.due()
	e.fetchAll()
	e.sweep()
	e.drainStep()
	e.sweep()
	if e.overlap.changed {
		e.overlap.changed = false
		for _, id := range e.ads.Overlap() {
			e.emit(AdChanged{Slot: id})
		}
	}
	e.endIfVacant()
	e.shutdown.check(e)
	e.emitWarnings()
	e.policy.stepping = false
	if wake := e.at(e.schedule.next(e.polling())); wake.Boot != e.schedule.wake.Boot {
		e.schedule.wake = wake
		e.emit(WakeAt{At: wake})
	}
}

// sweep gives back dynamic slots that have ended.
func (e *Engine) sweep() {
	for _, sl := range e.slots.ending {
		e.remove(sl)
	}
	e.slots.ending = e.slots.ending[:0]
}

// changed notes that backfill slots may have more or less to give.
func (e *Engine) changed() { e.overlap.changed = e.overlap.exists }

// reconfigured takes a new configuration over, unless something in it cannot be
// used: then the old one stays, and the Reply says what is wrong.
func (e *Engine) reconfigured(ev Reconfigured) {
	was := e.cfg.Inventory
	if ev.Inventory != nil {
		e.cfg.Inventory = ev.Inventory
	}
	err := errors.New("no configuration")
	if ev.Snapshot != nil {
		err = e.configure(ev.Snapshot)
	}
	if err != nil {
		e.cfg.Inventory = was
		e.refuse(ev.Ref, 0, errs.E("ep.Reconfigured", errs.Invalid, "", err))
		return
	}
	if !ev.Ref.IsZero() {
		e.emit(Reply{Ref: ev.Ref})
	}
	e.schedule.soonest(e.now.Boot+e.times.Update, e.now.Boot+e.times.Polling)
	e.endBackfill()
	for _, sl := range e.slots.all {
		sl.exprs = e.exprs.byType[sl.s.TypeID]
		e.stock(sl)
		sl.fetch.look = 0
		e.emit(AdChanged{Slot: sl.s.ID})
	}
}

// abilitiesFound shows what the machine can. Its policy may read it, so every slot
// is looked at with the update that is due now, by the next Tick. Before the first
// update, which UPDATE_OFFSET may delay, the pool gets no ad.
func (e *Engine) abilitiesFound(ev AbilitiesFound) {
	e.cfg.Inventory = ev.Inventory
	e.ads.Learn(ev.Inventory, e.now)
	for _, sl := range e.slots.all {
		e.emit(AdChanged{Slot: sl.s.ID})
	}
	if e.schedule.updated {
		e.schedule.update = e.now.Boot
	}
}
