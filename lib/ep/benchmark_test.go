// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"slices"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// laboratory is a machine whose owner comes and goes as KOwner says.
const laboratory = `
POLLING_INTERVAL = 5
UPDATE_INTERVAL = 60
START = True
SUSPEND = False
PREEMPT = False
IS_OWNER = KOwner =?= True
`

// lab is a stage whose benchmarks take a while, or for ever if that is 0.
type lab struct {
	*stage
	takes  time.Duration
	ran    []time.Duration // when RunBenchmarks came, since the start
	stops  int
	figure int64
}

func newLab(t *testing.T, cpus int, takes time.Duration, text string) *lab {
	t.Helper()
	l := &lab{stage: newStage(t, cpus, text), takes: takes, figure: 1000}
	l.eng.cfg.Benchmarks = true
	l.eng.bench.configured = benchmarked(l.eng.cfg.Snapshot)
	round := 0
	l.onOther = func(eff Effect) {
		switch eff.(type) {
		case RunBenchmarks:
			l.ran = append(l.ran, l.elapsed())
			round++
			mine := round
			if l.takes > 0 {
				l.after(l.takes, func() {
					if l.eng.bench.running && round == mine {
						l.finish()
					}
				})
			}
		case StopBenchmarks:
			l.stops++
			l.after(time.Millisecond, func() { l.step(BenchmarksDone{}) })
		}
	}
	return l
}

// finish is the end of benchmarks that had their turn.
func (l *lab) finish() {
	ad := classad.NewAd()
	ad.SetInt("Mips", l.figure)
	ad.SetInt("KFlops", 10*l.figure)
	l.step(Published{Source: "BENCHMARKS", Attrs: ad})
	l.step(BenchmarksDone{Complete: true})
}

func (l *lab) attr(id slot.ID, name string) string {
	ad := l.eng.slots.byID[id].ad.Snapshot(l.now)
	e, ok := ad.Lookup(name)
	if !ok {
		return "absent"
	}
	return e.String()
}

// row: S0-134, S0-135, S0-136
func TestBenchmarksWhenNeverRun(t *testing.T) {
	t.Parallel()
	l := newLab(t, 2, 4*time.Second, laboratory) // RunBenchmarks is LastBenchmark == 0 by default
	for _, name := range []string{"Mips", "KFlops"} {
		if got := l.attr(slot1, name); got != "absent" {
			t.Errorf("%s before the first run is %s", name, got)
		}
	}
	if got := l.attr(slot1, "LastBenchmark"); got != "0" {
		t.Errorf("LastBenchmark before the first run is %s", got)
	}
	l.run(62 * time.Second)
	if l.pair(slot1) != policy.UnclaimedBenchmarking || l.attr(slot1, "Activity") != `"Benchmarking"` {
		t.Errorf("the slot is %v", l.pair(slot1))
	}
	if got := l.attr(slot1, "LastBenchmark"); got != "0" {
		t.Errorf("LastBenchmark in the first run is %s", got)
	}
	l.run(5 * time.Second)
	want := map[string]string{
		"Mips": "1000", "KFlops": "10000", "Activity": `"Idle"`, "State": `"Unclaimed"`, "TotalTimeUnclaimedBenchmarking": "4",
		"LastBenchmark": "1800000064",
	}
	for name, v := range want {
		if got := l.attr(slot1, name); got != v {
			t.Errorf("%s = %s, want %s", name, got, v)
		}
	}
	l.run(time.Hour)
	if !slices.Equal(l.ran, []time.Duration{time.Minute}) {
		t.Errorf("ran at %v", l.ran)
	}
	if got, want := l.path("slot1", 0), "Owner/Idle 1 Unclaimed/Idle 3 Unclaimed/Benchmarking 4 Unclaimed/Idle"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestBenchmarksAreNotRunAtTheStart holds against what was recorded: with
// RunBenchmarks = True the daemon had not benchmarked 50 s after its start.
func TestBenchmarksAreNotRunAtTheStart(t *testing.T) {
	t.Parallel()
	l := newLab(t, 8, 4*time.Second, laboratory+"RunBenchmarks = True\nUPDATE_INTERVAL = 300\n")
	l.run(50 * time.Second)
	if len(l.ran) > 0 || l.attr(slot1, "LastBenchmark") != "0" {
		t.Errorf("ran at %v", l.ran)
	}
	l.run(650 * time.Second)
	if want := []time.Duration{300 * time.Second, 600 * time.Second}; !slices.Equal(l.ran, want) {
		t.Errorf("ran at %v, want %v: at each look and not again at the end of each", l.ran, want)
	}
}

// TestBenchmarksFromTimeToTime shows the expressions of the documents.
func TestBenchmarksFromTimeToTime(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"of 23.9": "RunBenchmarks = (time() - LastBenchmark) >= (4 * $(HOUR))\n",
		"of 6.8":  "BenchmarkTimer = (CurrentTime - LastBenchmark)\nRunBenchmarks = $(BenchmarkTimer) >= (4 * $(HOUR))\n",
		"helper":  "RunBenchmarks = $(BenchmarkTimer) >= 4 * 3600\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t, 2, 4*time.Second, laboratory+"HOUR = 3600\n"+text)
			l.run(9 * time.Hour)
			first := time.Minute // LastBenchmark is 0 then
			want := []time.Duration{first, first + 4*time.Hour + time.Minute, first + 8*time.Hour + 2*time.Minute}
			if !slices.Equal(l.ran, want) {
				t.Errorf("ran at %v, want %v", l.ran, want)
			}
		})
	}
}

func TestBenchmarksAreSwitchedOff(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"false": "RunBenchmarks = False\n", "undefined": "RunBenchmarks = NoSuchThing > 4\n", "error": "RunBenchmarks = 1 / 0\n",
		"none listed": "BENCHMARKS_JOBLIST =\n", "no slot is free": "RunBenchmarks = True\nIS_OWNER = True\n",
	} {
		l := newLab(t, 2, 4*time.Second, laboratory+text)
		l.run(time.Hour)
		if len(l.ran) > 0 {
			t.Errorf("%s: ran at %v", name, l.ran)
		}
	}
}

// TestOneSlotBenchmarks shows that the machine has one set of benchmarks, whose
// figures are those of every slot.
func TestOneSlotBenchmarks(t *testing.T) {
	t.Parallel()
	l := newLab(t, 4, 4*time.Second, laboratory+"NUM_SLOTS = 4\n")
	l.run(30 * time.Minute)
	if !slices.Equal(l.ran, []time.Duration{time.Minute}) {
		t.Errorf("ran at %v", l.ran)
	}
	for n := 1; n <= 4; n++ {
		if got := l.attr(slot.ID{N: n}, "Mips") + " " + l.attr(slot.ID{N: n}, "LastBenchmark"); got != "1000 1800000064" {
			t.Errorf("slot%d: %s", n, got)
		}
	}
}

// row: S0-129
func TestNoBenchmarksForAnOwner(t *testing.T) {
	t.Parallel()
	l := newLab(t, 2, 30*time.Second, laboratory+"RunBenchmarks = LastBenchmark == 0\nUPDATE_INTERVAL = 10\n")
	l.publish("KOwner = true")
	l.run(time.Minute)
	if l.pair(slot1) != policy.OwnerIdle || len(l.ran) > 0 {
		t.Fatalf("%v, ran at %v", l.pair(slot1), l.ran)
	}
	l.publish("KOwner = false")
	l.run(25 * time.Second)
	if l.pair(slot1) != policy.UnclaimedBenchmarking {
		t.Fatalf("the slot is %v", l.pair(slot1))
	}
	l.publish("KOwner = true")
	l.run(10 * time.Second)
	if l.pair(slot1) != policy.OwnerIdle || l.stops != 1 || l.eng.bench.running {
		t.Errorf("%v, stopped %d times, runs on: %v", l.pair(slot1), l.stops, l.eng.bench.running)
	}
	if got := l.attr(slot1, "LastBenchmark"); got != "0" {
		t.Errorf("a run that was stopped counts: LastBenchmark = %s", got)
	}
	l.publish("KOwner = false")
	l.run(time.Minute)
	if len(l.ran) != 2 || l.attr(slot1, "LastBenchmark") == "0" {
		t.Errorf("ran at %v, LastBenchmark = %s", l.ran, l.attr(slot1, "LastBenchmark"))
	}
}

func TestClaimEndsBenchmarks(t *testing.T) {
	t.Parallel()
	l := newLab(t, 2, 0, laboratory+"NUM_SLOTS_TYPE_1 = 1\nSLOT_TYPE_1 = 100%\nSLOT_TYPE_1_PARTITIONABLE = False\n")
	l.run(65 * time.Second)
	l.claim(slot1, job(t, steady(time.Hour), ""))
	l.run(time.Second)
	if l.pair(slot1) != policy.ClaimedIdle || l.stops != 1 || l.eng.bench.running {
		t.Errorf("%v, stopped %d times", l.pair(slot1), l.stops)
	}
	if got, want := l.path("slot1", 1), "Unclaimed/Idle 3 Unclaimed/Benchmarking 5 Claimed/Idle"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestClaimOfPartLeavesBenchmarks shows that a partitionable slot goes on while
// jobs run in what was carved from it.
func TestClaimOfPartLeavesBenchmarks(t *testing.T) {
	t.Parallel()
	l := newLab(t, 2, 20*time.Second, laboratory)
	l.run(65 * time.Second)
	g := l.claim(slot1, job(t, steady(time.Hour), ""))
	if l.pair(slot1) != policy.UnclaimedBenchmarking || l.pair(g.Slot) != policy.ClaimedIdle || l.stops > 0 {
		t.Errorf("%v, %v", l.pair(slot1), l.pair(g.Slot))
	}
	l.run(20 * time.Second)
	if got := l.attr(g.Slot, "Mips"); l.pair(slot1) != policy.UnclaimedIdle || got != "1000" {
		t.Errorf("%v, Mips of the part %s", l.pair(slot1), got)
	}
}

func TestShutdownEndsBenchmarks(t *testing.T) {
	t.Parallel()
	l := newLab(t, 2, 0, laboratory)
	l.run(65 * time.Second)
	l.step(ShutdownRequested{Manner: Graceful})
	if l.stops != 1 || l.complete {
		t.Fatalf("stopped %d times, complete before the end: %v", l.stops, l.complete)
	}
	l.step(ShutdownRequested{Manner: Fast})
	l.run(time.Second)
	if l.stops != 1 || !l.complete {
		t.Errorf("stopped %d times, complete %v", l.stops, l.complete)
	}
	l.run(time.Hour)
	if len(l.ran) != 1 {
		t.Errorf("ran at %v", l.ran)
	}
}

// TestBenchmarkLoad shows that the owner is not blamed for what benchmarks do.
func TestBenchmarkLoad(t *testing.T) {
	t.Parallel()
	l := newLab(t, 2, 0, laboratory)
	l.run(60 * time.Second)
	sample := func() {
		l.step(Sampled{Sample: machine.Sample{At: l.now, LoadAvg: 1, Fresh: machine.AllReadings}})
	}
	sample()
	l.run(59 * time.Second)
	sample()
	condor, _ := l.eng.SlotAd(slot1).EvalReal("CondorLoadAvg", nil)
	if condor < 0.5 || condor > 1 {
		t.Errorf("CondorLoadAvg in Benchmarking is %g", condor)
	}
}

// TestStrayBenchmarksDone shows that an end without a beginning changes nothing.
func TestStrayBenchmarksDone(t *testing.T) {
	t.Parallel()
	l := newLab(t, 2, time.Second, laboratory)
	l.step(BenchmarksDone{Complete: true})
	if l.attr(slot1, "LastBenchmark") != "0" || len(l.moves) > 1 {
		t.Errorf("LastBenchmark %s, %v", l.attr(slot1, "LastBenchmark"), l.moves)
	}
}
