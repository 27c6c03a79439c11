// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// Node is the Execution Point of a simulation.
type Node struct {
	// Load reads the configuration for a machine, with more lines after its
	// own. It is called again for each change of configuration.
	Load    func(inv *machine.Inventory, more string) (*config.Snapshot, error)
	Machine Machine
	Found   []slot.Inventory // what inventory programs would tell of resources

	// extras says that there are a backfill client and benchmarks, which the
	// recorded daemons were built without or told not to run.
	extras bool
}

// restartDelay is how long a master takes to start an Execution Point anew.
const restartDelay = 5 * time.Second

// maxSteps is how many things may happen in one simulation. It is met only by
// a world that does not come to rest.
const maxSteps = 200_000_000

// world is everything around the core, and the core. It belongs to one
// goroutine.
type world struct {
	node Node
	inv  *machine.Inventory
	snap *config.Snapshot
	eng  *ep.Engine

	timeline
	life     life
	starters map[claim.ActivationID]*actor
	started  int
	sigs     int           // kinds of jobs, for the matchmaker
	idle     time.Duration // of keyboard and mouse, when it began
	location *time.Location
	chance   func() float64

	ap         *accessPoint
	beforeTick func()
	moved      func(ep.Transitioned)
	booted     func()                 // it was started anew; may be nil
	warned     func(ep.PolicyWarning) // an expression gave something strange; may be nil
	busyCpus   float64                // of jobs that run now

	backfills, benchmarks int // count what was begun and ended of them
}

// timeline is the virtual time of a world: when it began, where it is, and what
// comes.
type timeline struct {
	begun, now clock.Instant
	wake       clock.Instant // when the core wants a Tick, zero: never
	agenda     agenda
}

// elapsed is the time since the simulation began.
func (t *timeline) elapsed() time.Duration { return t.now.Sub(t.begun) }

// after lets do happen d from now, behind everything else that is due then.
func (t *timeline) after(d time.Duration, do func()) { t.agenda.add(t.now.Boot+max(0, d), do) }

// life is whether the Execution Point is there.
type life struct {
	over     bool          // its shutdown is complete, or it died
	ended    clock.Instant // its last end, zero: it goes on
	restarts bool          // it is started anew after its end
	err      error         // of a restart
}

// newWorld builds a machine and its Execution Point. Nothing has happened yet
// but the core's first look at its slots, whose moves moved is told. idle is how
// long keyboard and mouse were not used.
func newWorld(node Node, more string, start time.Time, seed uint64, location *time.Location, idle time.Duration, moved func(ep.Transitioned)) (*world, error) {
	const op = "simulate.New"
	w := &world{node: node, starters: make(map[claim.ActivationID]*actor), moved: moved}
	w.ap = newAccessPoint(w)
	w.now = clock.Instant{Wall: start, Boot: time.Hour}
	w.begun = w.now
	inv, problems := machine.Scan(context.Background(), start, &node.Machine)
	if len(problems) > 0 {
		return nil, errs.E(op, errs.Invalid, "machine", errors.Join(problems...))
	}
	snap, err := node.Load(inv, more)
	if err != nil {
		return nil, err
	}
	changed, err := inv.Prefer(snap)
	if err != nil {
		return nil, err
	}
	if changed {
		if snap, err = node.Load(inv, more); err != nil {
			return nil, err
		}
	}
	if problems := inv.Apply(context.Background(), start, machine.ConfigScanner(snap)); len(problems) > 0 {
		return nil, errs.E(op, errs.Invalid, "configuration", errors.Join(problems...))
	}
	w.inv, w.snap, w.idle, w.location = inv, snap, idle, location
	w.ap.configured()
	chance := rand.New(rand.NewPCG(seed, 1))
	w.chance = chance.Float64
	if err := w.boot(); err != nil {
		return nil, err
	}
	return w, nil
}

// boot starts the Execution Point, for the first time or anew.
func (w *world) boot() error {
	const op = "simulate.Boot"
	layout, err := slot.LayoutFrom(w.snap, w.inv, w.node.Found...)
	if err != nil {
		return err
	}
	ledger, misfits := slot.Build(layout, w.inv)
	for _, p := range misfits {
		if !p.Warning {
			return errs.E(op, errs.Invalid, "configuration", p)
		}
	}
	secrets := 0
	eng, effects, err := ep.New(ep.Config{
		Snapshot: w.snap, Inventory: w.inv, Ledger: ledger, Address: "<127.0.0.1:9618>", Start: w.now.Wall.Unix(),
		NewSecret: func() claim.Secret { secrets++; return claim.Secret("simulated" + strconv.Itoa(secrets)) },
		Sample:    machine.Sample{At: w.now, Fresh: machine.AllReadings, KeyboardIdle: w.idle, FreeSwapKiB: w.inv.SwapKiB, FreeDiskKiB: w.inv.Execute.FreeKiB, TotalDiskKiB: w.inv.Execute.TotalKiB},
		Location:  w.location, Rand: w.chance, Backfill: w.node.extras, Benchmarks: w.node.extras,
	}, w.now)
	if err != nil {
		return err
	}
	w.eng = eng
	w.perform(effects)
	// What an Execution Point learns from its starter.
	able := classad.NewAd()
	able.SetBool("HasFileTransfer", true)
	able.SetString("CondorVersion", "$CondorVersion: "+config.Version+" simulated $")
	w.step(ep.Published{Source: "starter", Attrs: able})
	return nil
}

// die is the end of the Execution Point without a word: every starter dies
// with it, and its access point learns that the jobs are gone.
func (w *world) die() {
	w.life.over = true
	w.wake = clock.Instant{}
	for _, a := range w.actors() {
		a.gen++
		if a.phase < leaving {
			a.rest()
		}
		a.phase = exited
	}
	clear(w.starters)
	w.ap.lost()
}

// again starts the Execution Point anew in so long, if it has ended by then.
func (w *world) again(d time.Duration) {
	w.after(d, func() {
		if !w.life.over {
			return
		}
		w.die()
		w.life.over = false
		if err := w.boot(); err != nil {
			w.life.err = cmp.Or(w.life.err, err)
			return
		}
		if w.booted != nil {
			w.booted()
		}
	})
}

// step tells the core what happened and carries out what follows. Nothing that
// is carried out steps again at once: it goes through the agenda.
func (w *world) step(ev ep.Event) { w.perform(w.eng.Step(w.now, ev)) }

func (w *world) perform(effects []ep.Effect) {
	for _, eff := range effects {
		switch eff := eff.(type) {
		case ep.Transitioned:
			w.moved(eff)
		case ep.WakeAt:
			w.wake = eff.At
		case ep.Reply:
			w.ap.replied(eff)
		case ep.ClaimEnded:
			w.ap.claimEnded(eff)
		case ep.StartStarter:
			w.launch(eff)
		case ep.OrderStarter:
			if a := w.starters[eff.Activation]; a != nil {
				a.obey(eff)
			}
		case ep.KillStarter:
			if a := w.starters[eff.Activation]; a != nil {
				a.killed()
			}
		case ep.PolicyWarning:
			if w.warned != nil {
				w.warned(eff)
			}
		case ep.ShutdownComplete:
			w.life.over, w.life.ended = true, w.now
			if w.life.restarts {
				w.life.restarts = false
				w.again(restartDelay)
			}
		case ep.StartBackfill:
			w.inBackfill(backfillStart, ep.BackfillRunning{}, ep.BackfillUsage{}) // it makes no load
		case ep.StopBackfill:
			w.inBackfill(backfillStop, ep.BackfillExited{})
		case ep.RunBenchmarks:
			w.inBenchmark(benchmarkTime, true)
		case ep.StopBenchmarks:
			w.inBenchmark(0, false)
		case ep.DrainCompleted:
			w.life.restarts = w.life.restarts || eff.Then == ep.ThenRestart
		}
	}
}

// How the backfill client and the benchmarks of a simulated machine behave.
const (
	backfillStart = time.Second      // until the client runs
	backfillStop  = 2 * time.Second  // until it is gone
	benchmarkTime = 30 * time.Second // of all benchmarks
)

// inBackfill tells of the backfill client in d, unless it was told otherwise by
// then.
func (w *world) inBackfill(d time.Duration, events ...ep.Event) {
	w.backfills++
	n := w.backfills
	w.after(d, func() {
		if w.backfills != n {
			return
		}
		for _, ev := range events {
			w.step(ev)
		}
	})
}

// inBenchmark tells of the end of the benchmarks in d.
func (w *world) inBenchmark(d time.Duration, complete bool) {
	w.benchmarks++
	n := w.benchmarks
	w.after(d, func() {
		if w.benchmarks == n {
			w.step(ep.BenchmarksDone{Complete: complete})
		}
	})
}

// run lets time pass until so long after the beginning: everything on the
// agenda happens in its order, and the core is woken when it asked for it.
func (w *world) run(until time.Duration) error {
	end := w.begun.Boot + until
	for range maxSteps {
		next, tick := end, false
		if !w.life.over && w.wake.Boot != 0 && w.wake.Boot <= next {
			next, tick = w.wake.Boot, true
		}
		if at, ok := w.agenda.next(); ok && at <= next {
			next, tick = at, false
		}
		if next > w.now.Boot {
			w.now = w.now.Add(next - w.now.Boot)
		}
		switch {
		case tick:
			w.wake = clock.Instant{}
			if w.beforeTick != nil {
				w.beforeTick()
			}
			w.step(ep.Tick{})
		default:
			at, ok := w.agenda.next()
			if !ok || at > w.now.Boot {
				return w.life.err
			}
			w.agenda.take()()
		}
	}
	return errs.E("simulate.Run", errs.Exhausted, "", fmt.Errorf("more than %d things happened", maxSteps))
}

// pair returns where a slot is, Owner/Idle when there is none such.
func (w *world) pair(id slot.ID) policy.Pair {
	v, ok := w.eng.SlotView(id)
	if !ok {
		return policy.OwnerIdle
	}
	return v.Pair
}

// reconfigure lets the Execution Point read its configuration again, with more
// lines after its own.
func (w *world) reconfigure(more string) error {
	snap, err := w.node.Load(w.inv, more)
	if err != nil {
		return err
	}
	was := w.snap
	w.snap = snap
	if w.life.over { // it is read when the Execution Point is started anew
		w.ap.configured()
		return nil
	}
	ev := ep.Reconfigured{Ref: ep.Ref{By: ep.Reload}, Snapshot: snap}
	if err := w.answered(ev, ev.Ref); err != nil {
		w.snap = was
		return err
	}
	w.ap.configured()
	return nil
}

// agenda is what is going to happen, a heap by time and then by the order in
// which it was put down.
type agenda struct {
	items []entry
	seq   int
}

type entry struct {
	at  time.Duration // boot time
	seq int
	do  func()
}

func (e entry) before(o entry) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

func (a *agenda) add(at time.Duration, do func()) {
	a.seq++
	a.items = append(a.items, entry{at, a.seq, do})
	for i := len(a.items) - 1; i > 0; {
		up := (i - 1) / 2
		if !a.items[i].before(a.items[up]) {
			return
		}
		a.items[i], a.items[up] = a.items[up], a.items[i]
		i = up
	}
}

func (a *agenda) next() (time.Duration, bool) {
	if len(a.items) == 0 {
		return 0, false
	}
	return a.items[0].at, true
}

func (a *agenda) take() func() {
	first, last := a.items[0].do, len(a.items)-1
	a.items[0] = a.items[last]
	a.items[last] = entry{}
	a.items = a.items[:last]
	for i := 0; ; {
		least := i
		for c := 2*i + 1; c <= 2*i+2 && c < last; c++ {
			if a.items[c].before(a.items[least]) {
				least = c
			}
		}
		if least == i {
			return first
		}
		a.items[i], a.items[least] = a.items[least], a.items[i]
		i = least
	}
}
