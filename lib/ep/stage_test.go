// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// testHost is the name of the machine on the stage.
const testHost = "host.example"

// inventory is a machine of so many processors, 2 GiB of memory and 10 GiB of
// disk for each, and 1 MiB of swap.
func inventory(t testing.TB, cpus int, text string) (*machine.Inventory, *config.Snapshot) {
	t.Helper()
	now := time.Unix(1_800_000_000, 0)
	inv, problems := machine.Scan(t.Context(), now, given(func(inv *machine.Inventory) {
		inv.Hostname, inv.FullHostname = "host", testHost
		inv.Arch, inv.OpSys = "X86_64", "LINUX"
		inv.DetectedCores, inv.PhysicalCores, inv.UsableCores, inv.UsablePhysicalCores = cpus, cpus, cpus, cpus
		inv.DetectedMemoryMiB, inv.UsableMemoryMiB = int64(cpus)*2048, int64(cpus)*2048
		inv.SwapKiB = 1 << 20
		inv.Execute = machine.Disk{Path: "/execute", TotalKiB: int64(cpus) * 10 << 20, AvailableKiB: int64(cpus) * 10 << 20}
		inv.Execute.FreeKiB = inv.Execute.Usable(inv.Execute.AvailableKiB)
	}))
	if problems != nil {
		t.Fatal(problems)
	}
	snap := parse(t, inv, text)
	if errs := inv.Apply(t.Context(), now, machine.ConfigScanner(snap)); errs != nil {
		t.Fatal(errs)
	}
	return inv, snap
}

type given func(*machine.Inventory)

func (given) Name() string { return "given" }

func parse(t testing.TB, inv *machine.Inventory, text string) *config.Snapshot {
	t.Helper()
	snap, err := config.Parse("ep.conf", text, config.Options{Subsystem: "STARTD", Facts: machine.ConfigFacts(inv)})
	if err != nil {
		t.Fatalf("%s\n%v", text, err)
	}
	return snap
}

// stage is a world around an Engine in virtual time: it keeps a log of the
// moves, runs starters and jobs that the tests describe, and answers for the
// access point.
type stage struct {
	t   testing.TB
	eng *Engine
	now clock.Instant
	ref uint64

	inv *machine.Inventory

	replies  map[uint64]Reply
	starters map[claim.ActivationID]*actor
	moves    []Transitioned
	at       []time.Duration // of moves, since the start
	ended    []ClaimEnded
	broke    claim.ActivationID // of ruin
	orders   []OrderStarter
	killed   []KillStarter
	complete bool
	wake     clock.Instant
	begun    clock.Instant
	later    []pending // by time
	onReply  func(Reply)
	onEnded  func(ClaimEnded)
	onGone   func(*actor)
	onOther  func(Effect) // what the stage itself does not see to
}

// pending is something that the world does at a given time.
type pending struct {
	at  time.Duration // boot time
	seq int
	do  func()
}

// actor is a starter with its job.
type actor struct {
	s     *stage
	id    claim.ActivationID
	start StartStarter
	script
	phase string        // "starting", "running", "suspended", "leaving", "done", "gone"
	first clock.Instant // when the job began
	since clock.Instant // when it began to run or ran on
	ran   time.Duration
	gen   int  // invalidates what was planned
	done  bool // the job ended of itself or left when told
	told  bool // it was told to leave
	dying bool // it was ended by force
}

// script is how a job behaves.
type script struct {
	begins time.Duration // from the activation until the job runs
	runs   time.Duration // run time needed until it ends by itself
	onSoft time.Duration // from a soft kill to its end; negative: ignores it
	onHard time.Duration // from a hard kill to its end; negative: the starter is stuck
	onKill time.Duration // from the end of the starter by force to its exit
	reap   time.Duration // from the job's end to the starter's
	crash  bool          // the starter ends without a word about its job
	fails  bool          // the job cannot be started: the starter ends at once
	wall   bool          // runs counts on the wall, suspended or not, as sleep(1) does
	code   int
}

// steady ends after d and dies at once when told to.
func steady(d time.Duration) script { return script{runs: d} }

func newStage(t testing.TB, cpus int, text string) *stage {
	t.Helper()
	inv, snap := inventory(t, cpus, text)
	layout, err := slot.LayoutFrom(snap, inv)
	if err != nil {
		t.Fatal(err)
	}
	ledger, problems := slot.Build(layout, inv)
	for _, p := range problems {
		t.Fatal(p)
	}
	return stageWith(t, inv, snap, ledger)
}

// stageWith is a stage around a ledger that was built already.
func stageWith(t testing.TB, inv *machine.Inventory, snap *config.Snapshot, ledger *slot.Ledger) *stage {
	t.Helper()
	return stageAt(t, inv, snap, ledger, time.Unix(1_800_000_000, 0).UTC(), nil)
}

// stageAt is stageWith at a time and a place.
func stageAt(t testing.TB, inv *machine.Inventory, snap *config.Snapshot, ledger *slot.Ledger, wall time.Time, place *time.Location) *stage {
	t.Helper()
	s := &stage{t: t, inv: inv, replies: make(map[uint64]Reply), starters: make(map[claim.ActivationID]*actor)}
	s.now = clock.Instant{Wall: wall, Boot: time.Hour}
	s.begun = s.now
	secrets := 0
	eng, effects, err := New(Config{
		Snapshot: snap, Inventory: inv, Ledger: ledger, Address: "<127.0.0.1:9618>", Start: 1_800_000_000, Location: place,
		NewSecret: func() claim.Secret { secrets++; return claim.Secret(fmt.Sprintf("secret%d", secrets)) },
		Sample:    machine.Sample{At: s.now, Fresh: machine.AllReadings},
	}, s.now)
	if err != nil {
		t.Fatal(err)
	}
	s.eng = eng
	s.perform(effects)
	return s
}

// elapsed is the time since the start.
func (s *stage) elapsed() time.Duration { return s.now.Sub(s.begun) }

// step passes an event to the engine and performs what follows.
func (s *stage) step(ev Event) {
	effects := s.eng.Step(s.now, ev)
	s.perform(append([]Effect(nil), effects...))
}

func (s *stage) perform(effects []Effect) {
	for _, eff := range effects {
		switch eff := eff.(type) {
		case Reply:
			if eff.Ref.By == Fetcher {
				continue
			}
			s.replies[eff.Ref.N] = eff
			if s.onReply != nil {
				s.onReply(eff)
			}
		case Transitioned:
			s.moves = append(s.moves, eff)
			s.at = append(s.at, s.elapsed())
		case ClaimEnded:
			s.ended = append(s.ended, eff)
			if s.onEnded != nil {
				s.onEnded(eff)
			}
		case StartStarter:
			s.launch(eff)
		case OrderStarter:
			s.orders = append(s.orders, eff)
			if a := s.starters[eff.Activation]; a != nil {
				a.obey(eff)
			}
		case KillStarter:
			s.killed = append(s.killed, eff)
			if a := s.starters[eff.Activation]; a != nil && !a.dying {
				a.dying = true
				a.gen++
				a.plan(a.onKill, func() { a.gone(host.ExitStatus{Signal: 9}) })
			}
		case WakeAt:
			s.wake = eff.At
		case ShutdownComplete:
			s.complete = true
		default:
			if s.onOther != nil {
				s.onOther(eff)
			}
		}
	}
}

// after lets do happen d from now.
func (s *stage) after(d time.Duration, do func()) {
	p := pending{at: s.now.Boot + d, seq: len(s.later), do: do}
	i := len(s.later)
	for i > 0 && s.later[i-1].at > p.at {
		i--
	}
	s.later = append(s.later[:i], append([]pending{p}, s.later[i:]...)...)
}

// run lets d pass: everything planned happens in its order, and the engine is
// woken when it asked for it.
func (s *stage) run(d time.Duration) {
	s.t.Helper()
	end := s.now.Boot + d
	for steps := 0; ; steps++ {
		if steps > 1_000_000 {
			s.t.Fatal("the stage does not come to rest")
		}
		next, tick := end, false
		if s.wake.Boot != 0 && s.wake.Boot <= next {
			next, tick = s.wake.Boot, true
		}
		if len(s.later) > 0 && s.later[0].at <= next {
			next, tick = s.later[0].at, false
		}
		if next > s.now.Boot {
			s.now = s.now.Add(next - s.now.Boot)
		}
		switch {
		case tick:
			s.wake = clock.Instant{}
			s.step(Tick{})
		case len(s.later) > 0 && s.later[0].at <= s.now.Boot:
			p := s.later[0]
			s.later = s.later[1:]
			p.do()
		default:
			return
		}
	}
}

// launch begins to play a starter. What its job does is written in its ad.
func (s *stage) launch(e StartStarter) {
	a := &actor{s: s, id: e.Activation, start: e, phase: "starting"}
	num := func(name string) time.Duration {
		f, _ := e.Job.EvalReal(name, nil)
		return time.Duration(f * float64(time.Second))
	}
	a.script = script{
		begins: num("SimBegins"), runs: num("SimRuns"), onSoft: num("SimOnSoft"), onHard: num("SimOnHard"),
		onKill: num("SimOnKill"), reap: num("SimReap"),
	}
	a.crash, _ = e.Job.EvalBool("SimCrash", nil)
	a.fails, _ = e.Job.EvalBool("SimFails", nil)
	a.wall, _ = e.Job.EvalBool("SimWall", nil)
	s.starters[e.Activation] = a
	a.since = s.now
	a.plan(0, func() {
		s.step(StarterStarted{Activation: a.id, Proc: host.ProcID{PID: 1000 + len(s.starters), Start: 1}})
		if a.phase != "starting" {
			return
		}
		if a.fails {
			a.plan(a.begins, func() { a.gone(host.ExitStatus{Exited: true}) })
			return
		}
		a.plan(a.begins, func() {
			a.phase, a.first, a.since = "running", s.now, s.now
			s.step(JobRunning{Activation: a.id, Proc: host.ProcID{PID: 2000 + len(s.starters), Start: 2}})
			if a.phase == "running" {
				a.finishLater()
			}
		})
	})
}

// plan lets do happen unless something else becomes of the actor first.
func (a *actor) plan(d time.Duration, do func()) {
	gen := a.gen
	a.s.after(d, func() {
		if a.gen == gen {
			do()
		}
	})
}

func (a *actor) finishLater() {
	if a.wall {
		a.ran = a.s.now.Sub(a.first)
	}
	a.plan(a.runs-a.ran, a.ends)
}

// ends is the end of the job, then of the starter.
func (a *actor) ends() {
	a.done = !a.told
	a.phase = "done"
	a.gen++
	if a.crash {
		a.gone(host.ExitStatus{Signal: 9})
		return
	}
	a.s.step(JobEnded{Activation: a.id, Exit: Exit{Status: host.ExitStatus{Exited: true, Code: a.code}, Evicted: a.told}})
	a.plan(a.reap, func() { a.gone(host.ExitStatus{Exited: true}) })
}

func (a *actor) gone(st host.ExitStatus) {
	a.gen++
	a.phase = "gone"
	delete(a.s.starters, a.id)
	a.s.step(StarterExited{Activation: a.id, Status: st})
	if a.s.onGone != nil {
		a.s.onGone(a)
	}
}

func (a *actor) obey(o OrderStarter) {
	if a.phase == "done" || a.phase == "gone" {
		return
	}
	switch o.Op {
	case Suspend:
		a.gen++
		if a.phase == "running" {
			a.ran += a.s.now.Sub(a.since)
		}
		a.phase = "suspended"
		a.plan(0, func() { a.s.step(JobSuspended{Activation: a.id}) })
	case Continue:
		a.gen++
		a.phase, a.since = "running", a.s.now
		a.finishLater()
		a.plan(0, func() { a.s.step(JobContinued{Activation: a.id}) })
	case SoftKill:
		a.told = true
		if a.onSoft < 0 {
			return // it goes on, and may even end by itself
		}
		a.gen++
		a.phase = "leaving"
		a.plan(a.onSoft, a.ends)
	case HardKill:
		a.told = true
		a.gen++
		a.phase = "leaving"
		if a.onHard >= 0 {
			a.plan(a.onHard, a.ends)
		}
	}
}

// job makes a job ad; more are further lines of the ad.
func job(t testing.TB, sc script, more string) *classad.Ad {
	t.Helper()
	ad, err := classad.ParseAd("JobUniverse = 5\nOwner = \"alice\"\nUser = \"alice@example\"\nRequestCpus = 1\n"+
		"RequestMemory = 64\nRequestDisk = 1024\nCmd = \"/bin/sleep\"\n"+more, classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range []struct {
		name string
		d    time.Duration
	}{{"SimBegins", sc.begins}, {"SimRuns", sc.runs}, {"SimOnSoft", sc.onSoft}, {"SimOnHard", sc.onHard}, {"SimOnKill", sc.onKill}, {"SimReap", sc.reap}} {
		if f.d != 0 {
			ad.SetReal(f.name, f.d.Seconds())
		}
	}
	if sc.crash {
		ad.SetBool("SimCrash", true)
	}
	ad.SetBool("SimFails", sc.fails)
	ad.SetBool("SimWall", sc.wall)
	return ad
}

// asked names a request of the tests.
func asked(n uint64) Ref { return Ref{By: OwnQueue, N: n} }

// ask sends an event that wants a reply and returns the reply, if it came.
func (s *stage) ask(ev func(ref Ref) Event) (Reply, bool) {
	s.ref++
	ref := s.ref
	s.step(ev(asked(ref)))
	r, ok := s.replies[ref]
	return r, ok
}

// claim asks for a slot and demands to get it.
func (s *stage) claim(id slot.ID, ad *classad.Ad) Grant {
	s.t.Helper()
	r, ok := s.ask(func(ref Ref) Event {
		return ClaimRequested{Ref: ref, Slot: id, Job: ad, Client: claim.Client{User: "alice@example", Owner: "alice"}}
	})
	if !ok || r.Err != nil || r.Granted == nil {
		s.t.Fatalf("claim of %v: %+v", id, r)
	}
	return *r.Granted
}

// activate starts a job under a claim and demands that it is let.
func (s *stage) activate(id claim.ID, ad *classad.Ad) claim.ActivationID {
	s.t.Helper()
	r, ok := s.ask(func(ref Ref) Event { return ActivateRequested{Ref: ref, Claim: id, Job: ad} })
	if !ok || r.Err != nil || r.Activation == "" {
		s.t.Fatalf("activation: %+v", r)
	}
	return r.Activation
}

// pair returns where a slot is, Owner/Idle when there is no such slot.
func (s *stage) pair(id slot.ID) policy.Pair {
	v, ok := s.eng.SlotView(id)
	if !ok {
		return policy.OwnerIdle
	}
	return v.Pair
}

// publish sets attributes as a periodic job would.
func (s *stage) publish(attrs string) {
	s.t.Helper()
	ad, err := classad.ParseAd(attrs, classad.Old)
	if err != nil {
		s.t.Fatal(err)
	}
	s.step(Published{Source: "knobs", Attrs: ad})
}

// path is the history of moves of one slot from the n-th move on, such as
// "Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating".
func (s *stage) path(name string, from int) string {
	out := ""
	for _, m := range s.moves[from:] {
		if m.Name != name {
			continue
		}
		if out == "" {
			out = m.From.String()
		}
		out += fmt.Sprintf(" %d %v", m.Number, m.To)
	}
	return out
}

func (g given) Scan(_ context.Context, inv *machine.Inventory) error {
	g(inv)
	inv.Learn("given", "Hostname", "FullHostname", "Arch", "OpSys", "DetectedCores", "PhysicalCores", "UsableCores",
		"DetectedMemoryMiB", "UsableMemoryMiB", "SwapKiB", "Execute")
	return nil
}
