// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"errors"
	"time"

	"github.com/execpoint/execpoint/lib/ad"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
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

	// Benchmarks says that somebody carries RunBenchmarks out. Without it no
	// slot is ever benchmarked.
	Benchmarks bool
	// Backfill says that somebody carries StartBackfill out. Without it no slot
	// is ever in Backfill.
	Backfill bool

	// Shutdown is why jobs leave when the EP ends, as they and their users are
	// told; "" is what HTCondor's startd says, which a pool looks for.
	Shutdown string

	// Place returns the EXECUTE directory of a slot, nil where all have the same.
	Place func(slot.ID) string

	Location *time.Location // local time zone of expressions, nil is UTC
	Rand     func() float64 // for random() in expressions and pauses; nil: random() gives error, pauses are even
}

// Engine is the state of one execution point. It is owned by one goroutine.
type Engine struct {
	cfg   Config
	times policy.Times
	exprs map[int]*policy.Expressions // by slot type
	// unparsed says which of the owner's expressions do not parse.
	unparsed []error
	ledger   *slot.Ledger
	request  slot.RequestModifiers
	ads      *ad.Machine

	slots   []*slotState // ascending by ID
	byID    map[slot.ID]*slotState
	byClaim map[string]*slotState // by the public part of the claim's id
	byOffer map[string]*slotState // by that of the id that the slot offers
	byAct   map[claim.ActivationID]*slotState
	gone    []*slotState // dynamic slots to be given back at the end of the step

	claims, activations int64 // how many there have been
	polled              int   // slots that are claimed and so are looked at often
	nextPoll            time.Duration
	nextUpdate          time.Duration
	updated             bool          // the first update has been
	deadline            time.Duration // of the earliest timer, 0 if none runs

	shutdown shutdown
	vacant   vacancy
	owners
	overlaps bool // there are backfill slots
	shifted  bool // what primary slots have in use has changed
	bench    benchmarks
	drain    drain
	back     backfill
	faults   []*condition // of the machine, few if any
	follows  bool         // STARTD_RECOMPUTE_DISK
	// drainDefault is DEFAULT_DRAINING_START_EXPR, nil if it is not set.
	drainDefault *classad.Expr

	now      clock.Instant
	clock    clock.Instant // when the wall clock last agreed with what is published
	sampleAt clock.Instant
	view     policy.View // used again for every decision
	looked   *slotState  // whom the view shows
	stepping bool        // Step or New is under way, nobody just asks
	odd      map[int]*oddities
	effects  []Effect
	asked    clock.Instant // of the last WakeAt
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
		cfg: cfg, ledger: cfg.Ledger, now: now, clock: now,
		byID:    make(map[slot.ID]*slotState),
		byClaim: make(map[string]*slotState),
		byOffer: make(map[string]*slotState),
		byAct:   make(map[claim.ActivationID]*slotState),
		odd:     make(map[int]*oddities), stepping: true,
	}
	if err := errors.Join(e.begin(cfg.Snapshot), e.configure(cfg.Snapshot)); err != nil {
		return nil, nil, errs.E(op, errs.Invalid, "", err)
	}
	var err error
	if e.ads, err = ad.New(e.source(cfg.Snapshot, expressions{byType: e.exprs, unparsed: e.unparsed}), now); err != nil {
		return nil, nil, errs.E(op, errs.Invalid, "", err)
	}
	e.sampleAt = now
	e.ads.Refresh(cfg.Sample, now)
	e.showDrain()
	e.beginUpdates()
	for s := range e.ledger.Slots() {
		show, _ := e.ads.Slot(s.ID)
		sl := e.add(s, show)
		e.mint(sl)
		e.stock(sl)
		e.overlaps = e.overlaps || s.Backfill
	}
	for _, sl := range e.slots {
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
	e.forgetOdd(x.byType)
	e.granting = granting
	e.follows = follows
	e.times, e.request, e.exprs, e.drainDefault, e.unparsed = times, x.request, x.byType, x.drainDefault, x.unparsed
	e.bench.configured = e.cfg.Benchmarks && benchmarked(s)
	e.back.enabled = backfilled(s)
	e.back.configured = e.cfg.Backfill && e.back.enabled
	return nil
}

// source is what the ads are made from.
func (e *Engine) source(s *config.Snapshot, x expressions) ad.Source {
	return ad.Source{Config: s, Inventory: e.cfg.Inventory, Ledger: e.ledger, Policy: x.byType, Unparsed: x.unparsed, Location: e.cfg.Location}
}

// publish lays attributes from outside over the ads.
func (e *Engine) publish(ev Published) {
	e.ads.Publish(ev.Source, ev.Slot, ev.Attrs)
	for _, sl := range e.slots {
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
	e.stepping = true
	if now.Boot < e.now.Boot {
		now.Boot = e.now.Boot
	}
	e.drainOn(now.Boot - e.now.Boot)
	e.now = now
	e.jump(now)
	if now.Boot >= e.asked.Boot {
		e.asked = clock.Instant{}
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
	case CoalesceRequested:
		e.coalesceRequested(ev)
	}
	e.finish()
	return e.effects
}

func (e *Engine) emit(eff Effect) { e.effects = append(e.effects, eff) }

// tick looks at the policy of every slot when that is due.
func (e *Engine) tick() {
	due := e.now.Boot >= e.nextUpdate
	if due {
		e.updateAll()
		e.update()
	}
	if e.polling() && e.now.Boot >= e.nextPoll {
		due = true
		e.drainTime()
		e.drainPoll()
		e.nextPoll = e.now.Boot + e.times.Polling
	}
	if !due {
		return
	}
	e.ads.Tell(e.now) // the last reading may be old: a dead file system holds the reader up
	e.bench.looking = true
	for _, sl := range e.slots {
		e.evaluate(sl)
		e.checkpoint(sl)
		e.seeStart(sl)
	}
	e.bench.looking = false
}

// update shows how long the running jobs are still promised.
func (e *Engine) update() {
	for _, sl := range e.slots {
		if sl.act != nil {
			sl.ad.SetRetirement(policy.RetirementLeft(e.look(sl)))
		}
	}
}

// finish sees to timers that were set to run out at once, gives back dynamic
// slots that have ended, notices the end of a shutdown, and says when the next
// Tick is due.
func (e *Engine) finish() {
	e.due()
	e.sweep()
	e.drainStep()
	e.sweep()
	if e.shifted {
		e.shifted = false
		for _, id := range e.ads.Overlap() {
			e.emit(AdChanged{Slot: id})
		}
	}
	e.endIfVacant()
	e.shutdown.check(e)
	e.sayOdd()
	e.stepping = false
	at := e.nextUpdate
	if e.polling() {
		at = min(at, e.nextPoll)
	}
	if e.deadline != 0 {
		at = min(at, e.deadline)
	}
	if wake := e.now.Add(at - e.now.Boot); wake.Boot != e.asked.Boot {
		e.asked = wake
		e.emit(WakeAt{At: wake})
	}
}

// sweep gives back dynamic slots that have ended.
func (e *Engine) sweep() {
	for _, sl := range e.gone {
		e.remove(sl)
	}
	e.gone = e.gone[:0]
}

// changed notes that backfill slots may have more or less to give.
func (e *Engine) changed() { e.shifted = e.overlaps }

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
	e.nextUpdate = min(e.nextUpdate, e.now.Boot+e.times.Update)
	e.nextPoll = min(e.nextPoll, e.now.Boot+e.times.Polling)
	e.endBackfill()
	for _, sl := range e.slots {
		sl.exprs = e.exprs[sl.s.TypeID]
		e.stock(sl)
		e.emit(AdChanged{Slot: sl.s.ID})
	}
}

// abilitiesFound shows what the machine can. Its policy may read it, so every slot
// is looked at with the update that is due now, by the next Tick. Before the first
// update, for which UPDATE_OFFSET may wait, nobody is told.
func (e *Engine) abilitiesFound(ev AbilitiesFound) {
	e.cfg.Inventory = ev.Inventory
	e.ads.Learn(ev.Inventory, e.now)
	for _, sl := range e.slots {
		e.emit(AdChanged{Slot: sl.s.ID})
	}
	if e.updated {
		e.nextUpdate = e.now.Boot
	}
}
