// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"time"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// RunBenchmarks asks to run the benchmarks of the machine for a slot. What
// they print comes as Published; BenchmarksDone answers when nothing of them is
// left, whatever became of them. Until then there is no second RunBenchmarks.
type RunBenchmarks struct{ Slot slot.ID }

// StopBenchmarks ends running benchmarks by force, since the slot is wanted for
// something else or the EP ends. BenchmarksDone follows as for any end.
type StopBenchmarks struct{ Slot slot.ID }

func (RunBenchmarks) effect()  {}
func (StopBenchmarks) effect() {}

// BenchmarksDone says that no benchmark runs any more.
type BenchmarksDone struct {
	// Complete is set when each of them had its turn, even if one failed; only
	// then does LastBenchmark tell of them.
	Complete bool
}

func (BenchmarksDone) event() {}

// benchmarkLoad is what the benchmarks, which run one after the other, add to
// the load of the machine.
const benchmarkLoad = 1

// benchmarks is where the benchmarks of the machine stand.
type benchmarks struct {
	configured bool
	onTick     bool // the policy is looked at because time has passed
	running    bool // RunBenchmarks was emitted, BenchmarksDone has not come
	stopped    bool // and StopBenchmarks as well
	slot       slot.ID
	last       time.Time // when they last were complete
}

// benchmarked reports whether a configuration names any benchmark.
func benchmarked(s *config.Snapshot) bool { return len(s.List("BENCHMARKS_JOBLIST")) > 0 }

// mayBenchmark reports whether RunBenchmarks is asked of a slot. That is so
// only when time has passed and never because something happened, as HTCondor
// has it; so a true RunBenchmarks benchmarks neither at the start nor twice at
// one instant. HTCondor does not ask again of a slot that has done nothing since
// its last benchmarks; here it is asked, since the documents want them run from
// time to time. The machine has one set of benchmarks: while they run for one
// slot no other begins.
func (e *Engine) mayBenchmark(sl *slotState) bool {
	b := &e.bench
	return b.onTick && b.configured && !b.running && !e.shutdown.begun && sl.s.Kind != slot.Dynamic && sl.s.Broken == nil
}

func (e *Engine) runBenchmarks(sl *slotState) {
	b := &e.bench
	b.running, b.stopped, b.slot = true, false, sl.s.ID
	e.emit(RunBenchmarks{Slot: b.slot})
}

// stopBenchmarks sees that they do not disturb a claim or the owner.
func (e *Engine) stopBenchmarks() {
	if b := &e.bench; b.running && !b.stopped {
		b.stopped = true
		e.emit(StopBenchmarks{Slot: b.slot})
	}
}

func (e *Engine) benchmarksDone(ev BenchmarksDone) {
	b := &e.bench
	if !b.running {
		return
	}
	b.running = false
	if ev.Complete {
		b.last = e.now.Wall
		e.ads.SetLastBenchmark(b.last)
		for _, sl := range e.slots.all {
			e.emit(AdChanged{Slot: sl.s.ID})
		}
	}
	if sl := e.slots.byID[b.slot]; sl != nil && sl.pair == policy.UnclaimedBenchmarking {
		e.moveOn(sl, policy.UnclaimedIdle, policy.BenchmarksOver, policy.ByBenchmarks, "")
	}
}
