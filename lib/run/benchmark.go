// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/execpoint/execpoint/lib/benchmark"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/hook"
	"github.com/execpoint/execpoint/lib/slot"
)

// benchmarkLimit is how long one benchmark may take. Its slot waits for it.
const benchmarkLimit = 10 * time.Minute

var (
	errBenchmarkHangs   = errors.New("a benchmark may take " + benchmarkLimit.String())
	errBenchmarkStopped = errors.New("the machine is wanted for something else")
)

// benchmarks runs the programs of BENCHMARKS_* when the engine asks for them.
// It belongs to the owner; only the programs run beside it.
type benchmarks struct {
	cron     hook.Cron
	board    *hook.CronAds
	runner   hook.Runner
	schedule *hook.Schedule
	ctx      context.Context // of the present round, as stop is
	stop     context.CancelCauseFunc
	figures  map[string]float64 // what is advertised, over all rounds
}

func newBenchmarks(o Options) *benchmarks {
	cron, problems := hook.BenchmarksFrom(o.Config)
	for _, p := range problems {
		o.Log.Warn("benchmark", "err", p)
	}
	return &benchmarks{
		stop: func(error) {},
		cron: cron, board: hook.NewCronAds(cron), figures: make(map[string]float64),
		runner: hook.Runner{Spawner: o.Host.Spawner, Census: o.Host.Census, Env: o.StarterEnv, Dir: o.Config.String("LOG")},
	}
}

// runBenchmarks begins a round: each benchmark once, as many side by side as
// their loads allow.
func (n *node) runBenchmarks(now clock.Instant) {
	b := n.bench
	b.ctx, b.stop = context.WithCancelCause(context.Background())
	b.schedule = hook.NewSchedule(b.cron)
	for _, j := range b.cron.Jobs {
		b.schedule.Demand(j.Name)
	}
	n.nextBenchmark(now)
}

// nextBenchmark starts what may start and notices the end of a round. One whose
// load never fits is never run.
func (n *node) nextBenchmark(now clock.Instant) {
	b := n.bench
	stopped := b.ctx.Err() != nil
	if !stopped {
		// Conditions are for cron jobs.
		starts, _ := b.schedule.Due(now, func(*classad.Expr) bool { return true })
		for _, s := range starts {
			n.startBenchmark(s.Job)
		}
	}
	if b.schedule.Idle() {
		b.stop(nil)
		n.queue = append(n.queue, ep.BenchmarksDone{Complete: !stopped})
	}
}

func (n *node) startBenchmark(job hook.Job) {
	b := n.bench
	round := b.ctx
	n.mail.around.Go(func() {
		ctx, cancel := context.WithTimeoutCause(round, benchmarkLimit, errBenchmarkHangs)
		defer cancel()
		run, err := b.runner.Start(ctx, job, func(block hook.Block) {
			n.mail.post(func(now clock.Instant) { n.benchmarkPrinted(now, job, block) })
		})
		var report *hook.Report
		if err == nil {
			report = run.Report()
		}
		n.mail.post(func(now clock.Instant) {
			switch {
			case round.Err() != nil:
				n.o.Log.Info("benchmark was ended", "hook", job.Name, "why", context.Cause(round))
			case err != nil:
				n.o.Log.Warn("benchmark did not run", "hook", job.Name, "err", err)
			default:
				report.Log(context.Background(), n.o.Log, b.cron.LogFailures)
			}
			b.schedule.Ended(job.Name, now)
			n.nextBenchmark(now)
		})
	})
}

// benchmarkPrinted advertises what a benchmark found: its own figures weighed
// with those of earlier rounds, all else as it is.
func (n *node) benchmarkPrinted(now clock.Instant, job hook.Job, block hook.Block) {
	b := n.bench
	for _, attr := range [...]string{benchmark.AttrMips, benchmark.AttrKFlops} {
		name := job.Prefix + attr
		if v, ok := block.Ad.EvalReal(name, nil); ok && v > 0 && v < math.MaxInt32 {
			b.figures[name] = benchmark.Weigh(b.figures[name], v)
			block.Ad.SetInt(name, int64(math.Round(b.figures[name])))
		}
	}
	if _, err := b.board.Put(job.Name, block, now.Wall); err != nil {
		n.o.Log.Warn("benchmark", "hook", job.Name, "err", err)
		return
	}
	var slots []hook.Slot
	for v := range n.eng.Views() {
		if v.Kind != slot.Dynamic { // these see what is published for their parent
			ad := n.eng.SlotAd(v.ID)
			typeID, _ := ad.EvalInt("SlotTypeID", nil)
			slots = append(slots, hook.Slot{ID: v.ID, Name: v.FullName, TypeID: int(typeID), Ad: ad})
		}
	}
	for _, p := range b.board.Publish(slots) {
		n.step(now, p)
	}
	n.moved = true
}

// stopBenchmarks ends the present round, if there is one.
func (n *node) stopBenchmarks() { n.bench.stop(errBenchmarkStopped) }
