// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pooltest is what tests of the pool's side need around it: an engine
// with the goroutine that owns it, and a collector in memory. It must never be
// imported by anything but tests.
package pooltest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/pool"
	"github.com/execpoint/execpoint/lib/pool/claims"
	"github.com/execpoint/execpoint/lib/pool/engine"
	"github.com/execpoint/execpoint/lib/slot"
)

// Version is what our $CondorVersion string begins with.
const Version = config.Version

// Options say what EP there is.
type Options struct {
	Cpus int
	// Host is the machine's full name, "host.example" if empty.
	Host string
	// Text is the configuration. Root is a file to be read instead, with the
	// means to read it.
	Text   string
	Config config.Options
	// Address is our sinful, for claim ids; Secret makes their secrets, nil:
	// claims.NewSecret.
	Address string
	Secret  func() claim.Secret
	// Machine, if not nil, says what the machine is in place of Cpus and Host.
	Machine func(now time.Time) *machine.Inventory
	// Clock is clock.System if nil.
	Clock clock.Clock
	// Effect is called with each effect, in the owner's goroutine, after the pool.
	Effect func(engine.Turn, ep.Effect)
}

// EP is an engine and the goroutine that owns it.
type EP struct {
	Config    *config.Snapshot
	Inventory *machine.Inventory
	Start     int64
	clock     clock.Clock
	o         Options
	eng       *ep.Engine
	pool      *pool.Pool
	ledger    *slot.Ledger
	inbox     chan func()
	done      chan struct{}
	queue     []ep.Event
	stepping  bool
	wake      clock.Instant
}

// New makes an EP that does nothing before Begin.
func New(t testing.TB, o Options) *EP {
	t.Helper()
	if o.Host == "" {
		o.Host = "host.example"
	}
	if o.Cpus == 0 {
		o.Cpus = 4
	}
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Address == "" {
		o.Address = "<127.0.0.1:9620>"
	}
	if o.Secret == nil {
		o.Secret = claims.NewSecret(Version, func() bool { return true })
	}
	now := o.Clock.Now()
	inv := invented(t, &o, now.Wall)
	o.Config.Subsystem, o.Config.Facts = "STARTD", machine.ConfigFacts(inv)
	var snap *config.Snapshot
	var err error
	if o.Config.Root != "" {
		snap, err = config.Load(o.Config)
	} else {
		snap, err = config.Parse("ep.conf", o.Text, o.Config)
	}
	if err != nil {
		t.Fatal(err)
	}
	if bad := inv.Apply(t.Context(), now.Wall, machine.ConfigScanner(snap)); bad != nil {
		t.Fatal(bad)
	}
	if o.Machine == nil {
		inv.Attrs.SetString("CondorVersion", "$CondorVersion: "+Version+" 2026-11-20 execpoint $")
		inv.Attrs.SetString("CondorPlatform", "$CondorPlatform: X86_64-Debian_12 $")
	}
	layout, err := slot.LayoutFrom(snap, inv)
	if err != nil {
		t.Fatal(err)
	}
	ledger, wrong := slot.Build(layout, inv)
	for _, p := range wrong {
		t.Fatal(p)
	}
	return &EP{
		Config: snap, Inventory: inv, Start: now.Wall.Unix(), clock: o.Clock, o: o, ledger: ledger,
		inbox: make(chan func()), done: make(chan struct{}),
	}
}

// invented is the machine that the options describe.
func invented(t testing.TB, o *Options, now time.Time) *machine.Inventory {
	t.Helper()
	if o.Machine != nil {
		return o.Machine(now)
	}
	inv, problems := machine.Scan(t.Context(), now, given(func(inv *machine.Inventory) {
		inv.Hostname, inv.FullHostname = "host", o.Host
		inv.Arch, inv.OpSys, inv.OpSysAndVer = "X86_64", "LINUX", "Debian12"
		inv.DetectedCores, inv.PhysicalCores, inv.UsableCores, inv.UsablePhysicalCores = o.Cpus, o.Cpus, o.Cpus, o.Cpus
		inv.DetectedMemoryMiB, inv.UsableMemoryMiB = int64(o.Cpus)*2048, int64(o.Cpus)*2048
		inv.SwapKiB = 1 << 20
		inv.Execute = machine.Disk{Path: "/execute", TotalKiB: int64(o.Cpus) * 10 << 20, AvailableKiB: int64(o.Cpus) * 10 << 20}
		inv.Execute.FreeKiB = inv.Execute.Usable(inv.Execute.AvailableKiB)
	}))
	if problems != nil {
		t.Fatal(problems)
	}
	return inv
}

type given func(*machine.Inventory)

func (given) Name() string { return "given" }

func (g given) Scan(_ context.Context, inv *machine.Inventory) error {
	g(inv)
	inv.Learn("given", "Hostname", "FullHostname", "Arch", "OpSys", "OpSysAndVer", "DetectedCores", "PhysicalCores", "UsableCores",
		"DetectedMemoryMiB", "UsableMemoryMiB", "SwapKiB", "Execute")
	return nil
}

// Settings are those of the configuration.
func (e *EP) Settings(t testing.TB) pool.Settings {
	t.Helper()
	s, err := pool.SettingsFrom(e.Config)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Begin makes the engine and runs it until the test or ctx ends.
func (e *EP) Begin(ctx context.Context, t testing.TB, p *pool.Pool) {
	t.Helper()
	e.pool = p
	now := e.clock.Now()
	eng, effects, err := ep.New(ep.Config{
		Snapshot: e.Config, Inventory: e.Inventory, Ledger: e.ledger, Address: e.o.Address, Start: e.Start,
		NewSecret: e.o.Secret, Sample: sample(now),
	}, now)
	if err != nil {
		t.Fatal(err)
	}
	e.eng = eng
	e.perform(now, effects)
	ctx, cancel := context.WithCancel(ctx)
	go e.own(ctx)
	t.Cleanup(func() { cancel(); <-e.done })
}

func sample(now clock.Instant) machine.Sample {
	return machine.Sample{At: now, KeyboardIdle: 10 * time.Hour, ConsoleIdle: 10 * time.Hour, Fresh: machine.AllReadings}
}

func (e *EP) own(ctx context.Context) {
	defer close(e.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		timer.Reset(max(0, e.wake.Sub(e.clock.Now())))
		select {
		case <-ctx.Done():
			return
		case f := <-e.inbox:
			f()
		case <-timer.C:
			e.step(ep.Sampled{Sample: sample(e.clock.Now())})
			e.step(ep.Tick{})
		}
	}
}

// step tells the engine of an event. Events that come up while effects are
// performed come after them.
func (e *EP) step(ev ep.Event) {
	e.queue = append(e.queue, ev)
	if e.stepping {
		return
	}
	e.stepping = true
	for len(e.queue) > 0 {
		ev := e.queue[0]
		e.queue = e.queue[1:]
		now := e.clock.Now()
		e.perform(now, append([]ep.Effect(nil), e.eng.Step(now, ev)...))
	}
	e.stepping = false
}

func (e *EP) turn(now clock.Instant) engine.Turn {
	return engine.Turn{Now: now, Engine: e.eng, Step: e.step}
}

func (e *EP) perform(now clock.Instant, effects []ep.Effect) {
	for _, eff := range effects {
		if w, ok := eff.(ep.WakeAt); ok {
			e.wake = w.At
		}
		e.pool.Perform(now, eff)
		if e.o.Effect != nil {
			e.o.Effect(e.turn(now), eff)
		}
	}
}

// Do implements engine.Owner.
func (e *EP) Do(ctx context.Context, f func(engine.Turn)) error {
	ran := make(chan struct{})
	call := func() {
		f(e.turn(e.clock.Now()))
		close(ran)
	}
	select {
	case e.inbox <- call:
	case <-e.done:
		return errors.New("the owner is gone")
	case <-ctx.Done():
		return ctx.Err()
	}
	<-ran
	return nil
}

// Step tells the engine of an event and waits until it has.
func (e *EP) Step(t testing.TB, ev ep.Event) {
	t.Helper()
	if err := e.Do(t.Context(), func(turn engine.Turn) { turn.Step(ev) }); err != nil {
		t.Fatal(err)
	}
}
