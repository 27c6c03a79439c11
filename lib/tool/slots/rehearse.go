// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package slots

import (
	"context"
	"fmt"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/hook"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// allowance is how long programs may run before that counts as time: a machine
// that is busy otherwise must not change what is shown.
const allowance = time.Second

// startup is how long a daemon has been up, and measuring, when it tells its
// address, from which the time of a rehearsal counts.
const startup = 500 * time.Millisecond

// rehearsal runs the periodic programs and the benchmarks of a configuration
// for a while. Time is skipped while no program runs.
type rehearsal struct {
	d        *Division
	runner   *hook.Runner
	families [2]family
	runs     map[string]*hook.Run // by family and job
	events   chan said

	now    clock.Instant
	busy   clock.Instant // when the first of the programs that run was started
	real   time.Time     // the same in earnest
	update clock.Instant // when RunBenchmarks is looked at next
	every  time.Duration // UPDATE_INTERVAL
	bench  slot.ID       // for which benchmarks run, zero for none
}

// The families of programs.
const (
	cronFamily = iota
	benchFamily
)

type family struct {
	jobs     []hook.Job
	schedule *hook.Schedule
	board    *hook.CronAds
}

// said is what a program did: printed an ad, or ended if there is none.
type said struct {
	family int
	job    string
	block  *hook.Block
}

func (s said) key() string { return fmt.Sprint(s.family, s.job) }

// Rehearse lets the periodic programs and the benchmarks of the configuration run for
// a time, and shows on the slots what they printed: d.Now is later by that time, which
// is skipped while no program runs. It returns what lays over the daemon's ad what is
// for that.
func (d *Division) Rehearse(runner *hook.Runner, span time.Duration) (overlay func(*classad.Ad)) {
	every, err := d.Config.Duration("UPDATE_INTERVAL")
	r := &rehearsal{
		d: d, runner: runner, runs: make(map[string]*hook.Run), events: make(chan said), now: d.Now,
		every: max(every, time.Second),
	}
	r.warn(err)
	r.update = d.Now.Add(r.every)
	for i, read := range [...]func(*config.Snapshot) (hook.Cron, config.Problems){cronFamily: hook.CronFrom, benchFamily: hook.BenchmarksFrom} {
		cron, problems := read(d.Config)
		for _, p := range problems {
			r.warn(p)
		}
		r.families[i] = family{cron.Jobs, hook.NewSchedule(cron), hook.NewCronAds(cron)}
	}
	ctx, cancel := context.WithCancel(context.Background())
	for end := d.Now.Add(span); r.now.Boot < end.Boot; {
		r.benchmark()
		for i := range r.families {
			r.due(ctx, i)
		}
		r.pass(end)
	}
	cancel()
	for len(r.runs) > 0 {
		if e := <-r.events; e.block == nil {
			r.ended(e)
		}
	}
	d.Now = r.now
	r.publish()
	return func(ad *classad.Ad) {
		for i := range r.families {
			r.families[i].board.Overlay(ad)
		}
	}
}

func (r *rehearsal) publish() {
	for i := range r.families {
		var slots []hook.Slot
		for s := range r.d.Ledger.Slots() {
			a, _ := r.d.Ads.Slot(s.ID)
			name, _ := a.Ad().EvalString("Name", nil)
			slots = append(slots, hook.Slot{ID: s.ID, Name: name, TypeID: s.TypeID, Ad: a.Ad()})
		}
		for _, p := range r.families[i].board.Publish(slots) {
			r.d.Ads.Publish(p.Source, p.Slot, p.Attrs)
		}
	}
}

// benchmark asks for the benchmarks when RunBenchmarks is true of a slot that
// is at rest, which is looked at every UPDATE_INTERVAL, and sees to their end.
func (r *rehearsal) benchmark() {
	f := &r.families[benchFamily]
	if !r.bench.IsZero() {
		if f.schedule.Idle() {
			a, _ := r.d.Ads.Slot(r.bench)
			a.SetPair(policy.UnclaimedIdle, r.now)
			r.d.Ads.SetLastBenchmark(r.now.Wall)
			r.bench = slot.ID{}
		}
		return
	}
	if r.now.Boot < r.update.Boot {
		return
	}
	r.update = r.now.Add(r.every)
	r.d.Now = r.now // IS_OWNER may depend on the hour
	r.publish()
	r.d.Owners()
	for s := range r.d.Ledger.Slots() {
		a, _ := r.d.Ads.Slot(s.ID)
		e := r.d.Policy[s.TypeID].Get(policy.RunBenchmarks).Expr
		if s.Broken != nil || r.d.owned[s.ID] || e == nil || len(f.jobs) == 0 ||
			!e.Eval(&classad.Env{My: a.Ad(), Now: r.now.Wall, Location: r.d.place}).IsTrue() {
			continue
		}
		a.SetPair(policy.UnclaimedBenchmarking, r.now)
		r.bench = s.ID
		for _, j := range f.jobs {
			f.schedule.Demand(j.Name)
		}
		return
	}
}

// due starts and stops what is to be.
func (r *rehearsal) due(ctx context.Context, of int) {
	f := &r.families[of]
	starts, stops := f.schedule.Due(r.now, func(e *classad.Expr) bool {
		return e.Eval(&classad.Env{My: r.d.Ads.Daemon(nil, r.now), Now: r.now.Wall, Location: r.d.place}).IsTrue()
	})
	for _, name := range stops {
		if run := r.runs[said{family: of, job: name}.key()]; run != nil {
			r.warn(run.Stop())
		}
	}
	for _, s := range starts {
		over := said{family: of, job: s.Job.Name}
		run, err := r.runner.Start(ctx, s.Job, func(b hook.Block) { r.events <- said{of, s.Job.Name, &b} })
		if err != nil {
			r.warn(err)
			f.schedule.Ended(s.Job.Name, r.now)
			continue
		}
		if len(r.runs) == 0 {
			r.busy, r.real = r.now, time.Now()
		}
		r.runs[over.key()] = run
		go func() {
			<-run.Done()
			r.events <- over
		}()
	}
}

func (r *rehearsal) warn(err error) {
	if err != nil {
		r.d.warn(err)
	}
}

// pass lets time go on to the next thing that happens, at most to the end.
func (r *rehearsal) pass(end clock.Instant) {
	next := end
	sooner := func(at time.Duration) {
		if at < next.Boot {
			next = r.now.Add(at - r.now.Boot)
		}
	}
	for i := range r.families {
		if at, ok := r.families[i].schedule.Next(); ok {
			sooner(at)
		}
	}
	if r.bench.IsZero() {
		sooner(r.update.Boot)
	}
	if len(r.runs) == 0 {
		if r.bench.IsZero() {
			r.now = next
		}
		return
	}
	timer := time.NewTimer(allowance - time.Since(r.real) + next.Sub(r.busy))
	defer timer.Stop()
	select {
	case e := <-r.events:
		if passed := r.busy.Add(max(0, time.Since(r.real)-allowance)); passed.Boot > r.now.Boot {
			r.now = passed
		}
		if e.block == nil {
			r.ended(e)
		} else if _, err := r.families[e.family].board.Put(e.job, *e.block, r.now.Wall); err != nil {
			r.warn(err)
		}
	case <-timer.C:
		r.now = next
	}
}

// ended takes the end of a program, and tells what was bad about it.
func (r *rehearsal) ended(e said) {
	report := r.runs[e.key()].Report()
	delete(r.runs, e.key())
	r.families[e.family].schedule.Ended(e.job, r.now)
	for _, b := range report.Bad {
		r.warn(fmt.Errorf("%s: %w", e.job, b))
	}
	if report.Err != nil && report.Status.Exited {
		r.warn(report.Err)
	}
}
