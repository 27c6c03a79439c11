// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// switched is a machine of one static slot whose whole policy hangs on
// attributes that a test switches.
const switched = boinc + `START_BACKFILL = KBackfill =?= true
EVICT_BACKFILL = KEvict =?= true
BENCHMARKS_JOBLIST = MIPS
RUNBENCHMARKS = KBench =?= true
IS_OWNER = KOwner =?= true
START = (KStart =!= false) && (TARGET.Good =!= false)
WANT_SUSPEND = KWantSuspend =?= true
SUSPEND = KSuspend =?= true
CONTINUE = KContinue =?= true
PREEMPT = KPreempt =?= true
WANT_VACATE = KWantVacate =!= false
KILL = KKill =?= true
RANK = TARGET.Prio
MAXJOBRETIREMENTTIME = KRetire
MachineMaxVacateTime = 10
KILLING_TIMEOUT = 5
UPDATE_INTERVAL = 1
`

// play is a stage of one switched slot, with the commands of a test.
type play struct {
	*boincStage
	knobs map[string]string
	held  claim.ID
	act   claim.ActivationID
	bench bool
}

var theSlot = slot.ID{N: 1}

func newPlay(t testing.TB) *play {
	p := &play{knobs: map[string]string{"KRetire": "0"}}
	p.boincStage = newBoincStage(t, 1, switched, nil)
	p.eng.cfg.Benchmarks, p.eng.bench.configured = true, true
	inner := p.onOther
	p.onOther = func(eff Effect) {
		switch eff.(type) {
		case RunBenchmarks:
			p.bench = true
		case StopBenchmarks:
			p.bench = false
			p.after(0, func() { p.step(BenchmarksDone{}) })
		default:
			inner(eff)
		}
	}
	p.set()
	return p
}

// set switches attributes: name and value in turn.
func (p *play) set(pairs ...string) {
	for i := 0; i+1 < len(pairs); i += 2 {
		p.knobs[pairs[i]] = pairs[i+1]
	}
	text := ""
	for name, value := range p.knobs {
		text += name + " = " + value + "\n"
	}
	p.publish(text)
	p.run(1100 * time.Millisecond)
}

// request asks for the slot with a job of that rank and returns the number of
// the request.
func (p *play) request(rank int) uint64 {
	p.ref++
	ref := p.ref
	p.step(ClaimRequested{Ref: asked(ref), Slot: theSlot, Job: job(p.t, steady(time.Hour), fmt.Sprintf("Prio = %d\n", rank))})
	if r := p.replies[ref]; r.Granted != nil {
		p.held = r.Granted.Claim
	}
	return ref
}

func (p *play) claimed() { p.request(1) }

// busy claims and starts a job that runs for an hour, leaves at once when it is
// told to, and whose starter needs half a second to go.
func (p *play) busy() { p.busyWith(script{runs: time.Hour, reap: 500 * time.Millisecond}) }

func (p *play) busyWith(sc script) {
	p.claimed()
	p.act = p.activate(p.held, job(p.t, sc, "Prio = 1\n"))
	p.run(100 * time.Millisecond)
}

func (p *play) suspended() {
	p.busy()
	p.set("KWantSuspend", "true", "KSuspend", "true")
}

// retiring has a job that must go and has time left.
func (p *play) retiring() {
	p.set("KRetire", "1000")
	p.busy()
	p.vacate(Graceful)
}

func (p *play) vacate(m Manner) { p.step(VacateRequested{Slot: theSlot, Manner: m}) }
func (p *play) shut(m Manner)   { p.step(ShutdownRequested{Manner: m}) }
func (p *play) release()        { p.step(ReleaseRequested{Claim: p.held}) }
func (p *play) starterDies() {
	if a := p.starters[p.act]; a != nil {
		a.gone(host.ExitStatus{Signal: 9})
	}
}

func (p *play) jobEnds() {
	if a := p.starters[p.act]; a != nil {
		a.gen++
		a.ends()
	}
}

func (p *play) closing() {
	p.eng.slots.byClaim[p.held.Public].cur.Closing = true
	p.step(DeactivateRequested{Claim: p.held, How: Gracefully})
}

func (p *play) suspendCommand() { p.step(SuspendRequested{Claim: p.held}) }

// backfilling has the client running.
func (p *play) backfilling() {
	p.set("KBackfill", "true")
	p.run(2 * time.Second)
}

// TestTransitions makes every move of the table happen, each under the number
// that the documents give it, and ends with the proof that none is missing.
//
// row: S0-102, S0-104, S0-106, S0-123, S2-004, S2-005, S2-007, S1-041, S1-042
func TestTransitions(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, tt := range []struct {
		number int
		move   string // "from > to: class of event"
		do     func(p *play)
	}{
		{1, "Owner/Idle > Unclaimed/Idle: policy evaluated", func(p *play) { p.set("KOwner", "true"); p.set("KOwner", "false") }},
		{36, "Owner/Idle > Drained/Retiring: policy evaluated", func(p *play) { p.set("KOwner", "true"); p.drain(DrainRequested{}) }},
		{5, "Owner/Idle > Claimed/Idle: claim taken", func(p *play) { partOf(p, "") }},

		{2, "Unclaimed/Idle > Owner/Idle: policy evaluated", func(p *play) { p.set("KOwner", "true") }},
		{3, "Unclaimed/Idle > Unclaimed/Benchmarking: policy evaluated", func(p *play) { p.set("KBench", "true") }},
		{4, "Unclaimed/Benchmarking > Unclaimed/Idle: benchmarks over", func(p *play) { p.set("KBench", "true"); p.step(BenchmarksDone{Complete: true}) }},
		{2, "Unclaimed/Benchmarking > Owner/Idle: policy evaluated", func(p *play) { p.set("KBench", "true"); p.set("KOwner", "true") }},
		{5, "Unclaimed/Idle > Claimed/Idle: claim taken", (*play).claimed},
		{5, "Unclaimed/Benchmarking > Claimed/Idle: claim taken", func(p *play) { p.set("KBench", "true"); p.claimed() }},
		{6, "Unclaimed/Idle > Matched/Idle: match told", func(p *play) { p.match(1) }},
		{6, "Unclaimed/Benchmarking > Matched/Idle: match told", func(p *play) { p.set("KBench", "true"); p.match(1) }},
		{7, "Unclaimed/Idle > Backfill/Idle: policy evaluated", (*play).backfilling},
		{7, "Unclaimed/Benchmarking > Backfill/Idle: policy evaluated", func(p *play) { p.set("KBench", "true"); p.backfilling() }},
		{37, "Unclaimed/Idle > Drained/Retiring: policy evaluated", func(p *play) { p.drain(DrainRequested{}) }},
		{37, "Unclaimed/Benchmarking > Drained/Retiring: policy evaluated", func(p *play) { p.set("KBench", "true"); p.drain(DrainRequested{}) }},

		{8, "Matched/Idle > Owner/Idle: timed out", func(p *play) { p.match(1); p.run(121 * time.Second) }},
		{8, "Matched/Idle > Owner/Idle: policy evaluated", func(p *play) { p.match(1); p.set("KStart", "false") }},
		{8, "Matched/Idle > Owner/Idle: told", func(p *play) { p.match(1); p.vacate(Graceful) }},
		{9, "Matched/Idle > Claimed/Idle: claim taken", func(p *play) { p.match(1); p.claimed() }},

		{11, "Claimed/Idle > Claimed/Busy: activated", (*play).busy},
		{10, "Claimed/Idle > Preempting/Vacating: policy evaluated", func(p *play) { p.claimed(); p.set("KOwner", "true") }},
		{10, "Claimed/Idle > Preempting/Vacating: told", func(p *play) { p.claimed(); p.closing() }},
		{10, "Claimed/Idle > Preempting/Killing: told", func(p *play) { p.claimed(); p.release() }},
		{10, "Claimed/Idle > Claimed/Retiring: told", func(p *play) { p.claimed(); p.vacate(Graceful) }},

		{12, "Claimed/Busy > Claimed/Cleaning: job gone", func(p *play) { p.busy(); p.jobEnds() }},
		{12, "Claimed/Busy > Claimed/Idle: starter gone", func(p *play) { p.busy(); p.starterDies() }},
		{13, "Claimed/Busy > Claimed/Retiring: policy evaluated", func(p *play) { p.busy(); p.set("KPreempt", "true") }},
		{13, "Claimed/Busy > Claimed/Retiring: told", func(p *play) { p.busy(); p.vacate(Graceful) }},
		{14, "Claimed/Busy > Claimed/Suspended: policy evaluated", (*play).suspended},
		{14, "Claimed/Busy > Claimed/Suspended: told", func(p *play) { p.busy(); p.suspendCommand() }},
		{18, "Claimed/Busy > Preempting/Vacating: policy evaluated", func(p *play) { p.busy(); p.request(9); p.run(2 * time.Second) }},
		{0, "Claimed/Busy > Preempting/Vacating: told", func(p *play) { p.busy(); p.closing() }},
		{0, "Claimed/Busy > Preempting/Killing: told", func(p *play) { p.busy(); p.release() }},

		{12, "Claimed/Suspended > Claimed/Cleaning: job gone", func(p *play) { p.suspended(); p.jobEnds() }},
		{12, "Claimed/Suspended > Claimed/Idle: starter gone", func(p *play) { p.suspended(); p.starterDies() }},
		{15, "Claimed/Suspended > Claimed/Busy: policy evaluated", func(p *play) { p.suspended(); p.set("KSuspend", "false", "KContinue", "true") }},
		{15, "Claimed/Suspended > Claimed/Busy: told", func(p *play) {
			p.busy()
			p.suspendCommand()
			p.step(ContinueRequested{Claim: p.held})
		}},
		{16, "Claimed/Suspended > Claimed/Retiring: policy evaluated", func(p *play) { p.set("KRetire", "1000"); p.suspended(); p.set("KPreempt", "true") }},
		{16, "Claimed/Suspended > Claimed/Retiring: told", func(p *play) { p.set("KRetire", "1000"); p.suspended(); p.vacate(Graceful) }},
		{17, "Claimed/Suspended > Preempting/Vacating: policy evaluated", func(p *play) { p.suspended(); p.request(9); p.run(2 * time.Second) }},
		{17, "Claimed/Suspended > Preempting/Killing: policy evaluated", func(p *play) {
			p.set("KRetire", "1000", "KWantVacate", "false")
			p.busy()
			p.set("KPreempt", "true")
			p.set("KPreempt", "false", "KWantSuspend", "true", "KSuspend", "true")
			p.set("KRetire", "0")
		}},
		{0, "Claimed/Suspended > Preempting/Vacating: told", func(p *play) { p.suspended(); p.closing() }},
		{0, "Claimed/Suspended > Preempting/Killing: told", func(p *play) { p.suspended(); p.release() }},

		{12, "Claimed/Retiring > Claimed/Cleaning: job gone", func(p *play) { p.retiring(); p.jobEnds() }},
		{18, "Claimed/Retiring > Preempting/Vacating: policy evaluated", func(p *play) { p.retiring(); p.set("KRetire", "0") }},
		{18, "Claimed/Retiring > Preempting/Killing: policy evaluated", func(p *play) {
			p.busy()
			p.set("KWantVacate", "false")
			p.set("KPreempt", "true")
		}},
		{18, "Claimed/Retiring > Preempting/Vacating: starter gone", func(p *play) { p.retiring(); p.starterDies() }},
		{19, "Claimed/Retiring > Claimed/Busy: policy evaluated", func(p *play) {
			p.set("KRetire", "1000")
			p.busy()
			ref := p.request(9)
			p.run(2 * time.Second)
			p.step(ClaimWithdrawn{Ref: asked(ref)})
			p.run(2 * time.Second)
		}},
		{20, "Claimed/Retiring > Claimed/Suspended: policy evaluated", func(p *play) { p.retiring(); p.set("KWantSuspend", "true", "KSuspend", "true") }},
		{20, "Claimed/Retiring > Claimed/Suspended: told", func(p *play) { p.retiring(); p.suspendCommand() }},
		{0, "Claimed/Retiring > Preempting/Vacating: told", func(p *play) { p.retiring(); p.closing() }},
		{0, "Claimed/Retiring > Preempting/Killing: told", func(p *play) { p.retiring(); p.release() }},

		{12, "Claimed/Cleaning > Claimed/Idle: starter gone", func(p *play) { p.busy(); p.jobEnds(); p.run(time.Second) }},
		{0, "Claimed/Cleaning > Preempting/Vacating: starter gone", func(p *play) {
			p.busy()
			p.jobEnds()
			p.release()
			p.run(time.Second)
		}},

		{21, "Preempting/Vacating > Preempting/Killing: policy evaluated", func(p *play) {
			p.busyWith(script{runs: time.Hour, onSoft: -1})
			p.vacate(Graceful)
			p.set("KKill", "true")
		}},
		{21, "Preempting/Vacating > Preempting/Killing: told", func(p *play) {
			p.busyWith(script{runs: time.Hour, onSoft: -1})
			p.vacate(Graceful)
			p.vacate(Fast)
		}},
		{22, "Preempting/Vacating > Owner/Idle: starter gone", func(p *play) { p.busy(); p.vacate(Graceful); p.run(2 * time.Second) }},
		{23, "Preempting/Vacating > Claimed/Idle: starter gone", func(p *play) { p.busy(); p.request(9); p.run(2 * time.Second) }},
		{24, "Preempting/Killing > Claimed/Idle: starter gone", func(p *play) {
			p.busyWith(script{runs: time.Hour, onSoft: -1, onHard: time.Second})
			p.request(9)
			p.run(1100 * time.Millisecond)
			p.set("KKill", "true")
			p.run(2 * time.Second)
		}},
		{25, "Preempting/Killing > Owner/Idle: starter gone", func(p *play) { p.busy(); p.release(); p.run(2 * time.Second) }},

		{0, "Claimed/Idle > Owner/Idle: claim taken", func(p *play) {
			with(p, 2, "NUM_CPUS = 2\nNUM_SLOTS = 1\nNUM_SLOTS_TYPE_1 = 1\nSLOT_TYPE_1 = 100%\nSLOT_TYPE_1_PARTITIONABLE = true\n")
			p.dataSlot(DataSlotRequested{Claim: p.claim(slot1, job(p.t, steady(time.Hour), "")).Claim, Job: job(p.t, steady(time.Hour), "")})
		}},

		{26, "Backfill/Idle > Backfill/Busy: backfill up", (*play).backfilling},
		{27, "Backfill/Busy > Backfill/Idle: backfill gone", func(p *play) { p.backfilling(); p.step(BackfillExited{}) }},
		{28, "Backfill/Busy > Backfill/Killing: policy evaluated", func(p *play) { p.backfilling(); p.set("KEvict", "true") }},
		{28, "Backfill/Busy > Backfill/Killing: match told", func(p *play) { p.backfilling(); p.match(1) }},
		{28, "Backfill/Busy > Backfill/Killing: claim pending", func(p *play) { p.backfilling(); p.claimed() }},
		{28, "Backfill/Busy > Backfill/Killing: told", func(p *play) { p.backfilling(); p.vacate(Graceful) }},
		{29, "Backfill/Killing > Backfill/Idle: backfill gone", func(p *play) { p.backfilling(); p.match(1); p.run(3 * time.Second) }},
		{30, "Backfill/Idle > Owner/Idle: policy evaluated", func(p *play) {
			p.backfilling()
			p.fails = true
			p.step(BackfillExited{})
			p.set("KEvict", "true", "KBackfill", "false")
		}},
		{30, "Backfill/Idle > Owner/Idle: told", func(p *play) { p.backfilling(); p.shut(Graceful); p.run(3 * time.Second) }},
		{31, "Backfill/Idle > Claimed/Idle: claim taken", func(p *play) { p.backfilling(); p.claimed(); p.run(3 * time.Second) }},
		{32, "Backfill/Idle > Matched/Idle: match told", func(p *play) { p.backfilling(); p.match(1); p.run(3 * time.Second) }},

		{33, "Drained/Retiring > Drained/Idle: policy evaluated", func(p *play) { p.drain(DrainRequested{}) }},
		{34, "Drained/Idle > Owner/Idle: policy evaluated", func(p *play) { p.drain(DrainRequested{Then: ThenResume}); p.run(3 * time.Second) }},
		{35, "Drained/Retiring > Owner/Idle: policy evaluated", func(p *play) {
			with(p, 2, "NUM_CPUS = 2\nNUM_SLOTS = 2\n")
			p.set("KRetire", "1000")
			p.activate(p.claim(slot.ID{N: 2}, job(p.t, steady(time.Hour), "")).Claim, job(p.t, steady(time.Hour), ""))
			p.drain(DrainRequested{})
			p.cancelDrain("")
		}},
		{0, "Drained/Retiring > Claimed/Idle: claim taken", func(p *play) {
			with(p, 2, "NUM_CPUS = 2\nNUM_SLOTS = 2\n")
			p.set("KRetire", "1000")
			p.activate(p.claim(slot.ID{N: 2}, job(p.t, steady(time.Hour), "")).Claim, job(p.t, steady(time.Hour), ""))
			p.drain(DrainRequested{Start: classad.MustParseExpr("true")})
			p.claimed()
		}},
	} {
		name := strings.TrimSpace(fmt.Sprintf("%d %s", tt.number, tt.move))
		if seen[tt.move] {
			t.Errorf("%s: twice", name)
		}
		seen[tt.move] = true
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPlay(t)
			tt.do(p)
			for _, m := range p.moves {
				if m.Number == tt.number && strings.HasPrefix(tt.move, fmt.Sprintf("%v > %v:", m.From, m.To)) {
					return
				}
			}
			t.Errorf("did not happen: %s", p.path("slot1", 0))
		})
	}
	for _, row := range policy.Table() {
		if move := fmt.Sprintf("%v > %v: %v", row.From, row.To, row.On); !seen[move] {
			t.Errorf("no test makes %s (%d) happen", move, row.Number)
		}
	}
}

// with puts the play on another machine.
func with(p *play, cpus int, text string) {
	fresh := newBoincStage(p.t, cpus, switched+text, nil)
	*p.boincStage = *fresh
	p.onOther = p.effect
	p.set()
}

// partOf claims a piece of a partitionable slot.
func partOf(p *play, more string) {
	with(p, 2, "NUM_CPUS = 2\nSLOT_TYPE_0_PARTITIONABLE = true\n"+more)
	p.claim(theSlot, job(p.t, steady(time.Hour), ""))
}
