// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package hook

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
)

// play lets time pass second by second over a schedule and notes, as
// "second:+job" and "second:-job", what it starts and stops. A job runs as long
// as lasts says; one that is stopped ends a second later.
func play(s *Schedule, seconds int, lasts map[string]int, at map[int]func(clock.Instant)) []string {
	var log []string
	ends := map[string]int{}
	for second := range seconds {
		now := start.Add(time.Duration(second) * time.Second)
		for _, name := range slices.Sorted(func(yield func(string) bool) {
			for name, end := range ends {
				if end <= second && !yield(name) {
					return
				}
			}
		}) {
			delete(ends, name)
			s.Ended(name, now)
		}
		if f := at[second]; f != nil {
			f(now)
		}
		starts, stops := s.Due(now, func(e *classad.Expr) bool { return e.Eval(nil).IsTrue() })
		for _, st := range starts {
			log = append(log, stamp(second, "+", st.Job.Name))
			ends[st.Job.Name] = second + lasts[st.Job.Name]
		}
		for _, name := range stops {
			log = append(log, stamp(second, "-", name))
			ends[name] = second + 1
		}
	}
	return log
}

func stamp(second int, what, job string) string {
	return (time.Duration(second) * time.Second).String() + what + job
}

func TestSchedule(t *testing.T) {
	t.Parallel()
	job := func(j Job) Job { j.Load = 0.01; return j }
	for _, c := range []struct {
		name    string
		jobs    []Job
		max     float64
		seconds int
		lasts   map[string]int
		want    []string
	}{
		// row: S0-238
		{"every 15 seconds", []Job{job(Job{Name: "a", Period: 15 * time.Second})}, 0.1, 46, map[string]int{"a": 1},
			[]string{"0s+a", "15s+a", "30s+a", "45s+a"}},
		// row: S0-238
		{"every 10 minutes", []Job{job(Job{Name: "a", Period: 10 * time.Minute})}, 0.1, 1201, map[string]int{"a": 3},
			[]string{"0s+a", "10m0s+a", "20m0s+a"}},
		{"one that takes longer than its period is left alone", []Job{job(Job{Name: "a", Period: 5 * time.Second})}, 0.1, 16, map[string]int{"a": 7},
			[]string{"0s+a", "10s+a"}},
		// row: S0-240
		{"or ended with KILL", []Job{job(Job{Name: "a", Period: 5 * time.Second, Kill: true})}, 0.1, 13, map[string]int{"a": 100},
			[]string{"0s+a", "5s-a", "6s+a", "10s-a", "11s+a"}},
		// row: S0-237
		{"OneShot", []Job{job(Job{Name: "a", Mode: OneShot})}, 0.1, 1000, map[string]int{"a": 1}, []string{"0s+a"}},
		{"OnDemand", []Job{job(Job{Name: "a", Mode: OnDemand})}, 0.1, 1000, nil, nil},
		{"WaitForExit with a delay", []Job{job(Job{Name: "a", Mode: WaitForExit, Period: 10 * time.Second})}, 0.1, 30, map[string]int{"a": 3},
			[]string{"0s+a", "13s+a", "26s+a"}},
		{"WaitForExit without, at most once a second", []Job{job(Job{Name: "a", Mode: WaitForExit})}, 0.1, 3, nil,
			[]string{"0s+a", "1s+a", "2s+a"}},
		// row: S0-236
		{"the load of one is too much for ever, two share it", []Job{
			{Name: "a", Load: 0.5, Period: time.Minute}, {Name: "b", Load: 0.1, Mode: OneShot}, {Name: "c", Load: 0.2, Mode: OneShot}, {Name: "d", Load: 0.1, Mode: OneShot},
		}, 0.3, 20, map[string]int{"b": 4, "c": 2, "d": 1}, []string{"0s+b", "0s+c", "2s+d"}},
		{"a condition that is not true", []Job{{Name: "a", Period: time.Minute, Condition: classad.MustParseExpr("2 > 3")}, {Name: "b", Period: time.Minute, Condition: classad.MustParseExpr("3 > 2")}},
			1, 10, nil, []string{"0s+b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := NewSchedule(Cron{Jobs: c.jobs, MaxLoad: c.max})
			if d := cmp.Diff(c.want, play(s, c.seconds, c.lasts, nil)); d != "" {
				t.Error(d)
			}
		})
	}
}

// row: S0-237
func TestScheduleReconfigure(t *testing.T) {
	t.Parallel()
	c := Cron{MaxLoad: 1, Jobs: []Job{
		{Name: "once", Mode: OneShot}, {Name: "again", Mode: OneShot, Rerun: true},
		{Name: "gone", Period: time.Hour}, {Name: "hup", Mode: WaitForExit, Hup: true},
	}}
	s := NewSchedule(c)
	var hups, stops []string
	log := play(s, 10, map[string]int{"once": 1, "again": 1, "gone": 100, "hup": 100}, map[int]func(clock.Instant){5: func(now clock.Instant) {
		c.Jobs = append(slices.Delete(slices.Clone(c.Jobs), 2, 3), Job{Name: "new", Mode: OneShot})
		hups, stops = s.Reconfigure(c, now)
	}})
	if d := cmp.Diff([]string{"0s+once", "0s+again", "0s+gone", "0s+hup", "5s+again", "5s+new"}, log); d != "" {
		t.Error(d)
	}
	if !slices.Equal(hups, []string{"hup"}) || !slices.Equal(stops, []string{"gone"}) {
		t.Errorf("hups %q, stops %q", hups, stops)
	}
	if s.Idle() {
		t.Error("idle while the removed job still runs")
	}
	for _, job := range []string{"gone", "hup", "new", "again"} {
		s.Ended(job, start.Add(time.Minute))
	}
	if !s.Idle() {
		t.Error("not idle after all have ended")
	}
}

func TestScheduleNewPeriod(t *testing.T) {
	t.Parallel()
	c := Cron{MaxLoad: 1, Jobs: []Job{{Name: "a", Period: time.Hour}}}
	s := NewSchedule(c)
	log := play(s, 31, nil, map[int]func(clock.Instant){3: func(now clock.Instant) {
		s.Reconfigure(Cron{MaxLoad: 1, Jobs: []Job{{Name: "a", Period: 10 * time.Second}}}, now)
	}})
	if d := cmp.Diff([]string{"0s+a", "10s+a", "20s+a", "30s+a"}, log); d != "" {
		t.Error(d)
	}
	if next, ok := s.Next(); !ok || next != start.Boot+40*time.Second {
		t.Errorf("next %v %v", next, ok)
	}
}

// row: S0-244
func TestBenchmarksRunOneAfterTheOther(t *testing.T) {
	t.Parallel()
	cfg := parseConfig(t, "BENCHMARKS_JOBLIST = mips kflops\nBENCHMARKS_MIPS_EXECUTABLE=/m\nBENCHMARKS_KFLOPS_EXECUTABLE=/k\n")
	c, problems := BenchmarksFrom(cfg)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	s := NewSchedule(c)
	log := play(s, 20, map[string]int{"mips": 3, "kflops": 2}, map[int]func(clock.Instant){2: func(clock.Instant) {
		for _, j := range c.Jobs {
			if !s.Demand(j.Name) {
				t.Errorf("%s does not run on demand", j.Name)
			}
			if s.Demand(j.Name) {
				t.Errorf("%s is taken twice", j.Name)
			}
		}
	}})
	if d := cmp.Diff([]string{"2s+mips", "5s+kflops"}, log); d != "" {
		t.Error(d)
	}
}

// A clock that is set, and a machine that sleeps through many periods, make no
// program start twice at once: what was missed is not made up for.
func TestScheduleNeitherBurstsNorStops(t *testing.T) {
	t.Parallel()
	s := NewSchedule(Cron{MaxLoad: 1, Jobs: []Job{
		{Name: "periodic", Period: time.Minute, Load: 0.01},
		{Name: "waits", Mode: WaitForExit, Period: time.Minute, Load: 0.01},
	}})
	now := clock.Instant{Wall: time.Unix(1_800_000_000, 0), Boot: time.Hour}
	started := map[string]int{}
	look := func() {
		for range 3 { // at one instant
			starts, _ := s.Due(now, nil)
			for _, st := range starts {
				started[st.Job.Name]++
				s.Ended(st.Job.Name, now)
			}
		}
	}
	for i, tt := range []struct {
		sleep, set time.Duration
		want       int // starts in the two minutes behind it, of each
	}{
		{0, 0, 2}, {0, time.Hour, 2}, {0, -time.Hour, 2}, {0, -400 * 24 * time.Hour, 2}, {8 * time.Hour, 0, 3}, {8 * time.Hour, -8 * time.Hour, 3},
	} {
		if i == 0 {
			look() // the first starts
		}
		clear(started)
		now = now.Add(tt.sleep)
		now.Wall = now.Wall.Add(tt.set)
		for range 120 {
			look()
			now = now.Add(time.Second)
		}
		look()
		for _, name := range []string{"periodic", "waits"} {
			// Where a sleep ends within a period is where the next one counts from.
			if n := started[name]; n < 2 || n > tt.want {
				t.Errorf("slept %v, clock set by %v: %s started %d times in two minutes, want 2 to %d", tt.sleep, tt.set, name, n, tt.want)
			}
		}
	}
}
