// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package churn

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// what is done to the pool.
type what string

const (
	submit      what = "submit"
	vacateJob   what = "condor_vacate_job"
	vacateSlot  what = "condor_vacate slot"
	vacateAll   what = "condor_vacate"
	hold        what = "condor_hold"
	release     what = "condor_release"
	remove      what = "condor_rm"
	suspend     what = "condor_suspend"
	resume      what = "condor_continue"
	killShadow  what = "kill shadow"
	restartEP   what = "restart EP"
	restartAP   what = "restart schedd"
	gracefully       = "gracefully"
	fast             = "fast"
	byKill           = "by SIGKILL"
	maxBatch         = 6
	maxJobTime       = 3 * time.Second
	restartsEnd      = 0.6 // no EP is restarted later than this part of the time, so that the last one can be watched
	scheddEnd        = 0.8
	resumeAfter      = 1500 * time.Millisecond
	releaseWait      = 4 * time.Second
)

// action is one disturbance, or jobs that are submitted.
type action struct {
	at   time.Duration // since the start
	what what
	how  string
	pick uint64 // chooses among the jobs, slots or shadows that there are then
	jobs []spec // of submit
	of   int    // of resume and release: the action that they undo
}

// String is a line of the log by which a failure can be understood.
func (a action) String() string {
	s := fmt.Sprintf("%8.3f %s", a.at.Seconds(), a.what)
	if a.how != "" {
		s += " " + a.how
	}
	if len(a.jobs) > 0 {
		s += fmt.Sprintf(" %d jobs", len(a.jobs))
	}
	return s
}

// spec is a job.
type spec struct {
	length time.Duration
	exit   int
	files  int // how many input files it has
}

// every is how often something is done on the average.
func every(short bool) map[what]time.Duration {
	if short {
		return map[what]time.Duration{
			submit: 700 * time.Millisecond, vacateJob: 4 * time.Second, vacateSlot: 5 * time.Second, hold: 4 * time.Second,
			remove: 4 * time.Second, suspend: 3 * time.Second, killShadow: 5 * time.Second,
		}
	}
	return map[what]time.Duration{
		submit: 1500 * time.Millisecond, vacateJob: 4 * time.Second, vacateSlot: 8 * time.Second, vacateAll: 45 * time.Second, hold: 4 * time.Second,
		remove: 5 * time.Second, suspend: 5 * time.Second, killShadow: 6 * time.Second, restartEP: 30 * time.Second, restartAP: 60 * time.Second,
	}
}

// plan makes what is done in a time. The same seed makes the same plan. A
// short one restarts the EP once, gracefully. What is left out leaves all else
// as it is.
func plan(seed uint64, length time.Duration, short bool, without ...what) []action {
	var all []action
	means := every(short)
	for stream, w := range []what{submit, vacateJob, vacateSlot, vacateAll, hold, remove, suspend, killShadow, restartEP, restartAP} {
		mean, end := means[w], length
		switch w {
		case restartEP:
			end = time.Duration(float64(length) * restartsEnd)
		case restartAP:
			end = time.Duration(float64(length) * scheddEnd)
		}
		if mean == 0 || slices.Contains(without, w) {
			continue
		}
		// Each has its own numbers: another mean of one leaves the others.
		r := rand.New(rand.NewPCG(seed, uint64(stream)))
		at := time.Duration(0)
		if w != submit {
			at = time.Duration(r.ExpFloat64() * float64(mean))
		}
		for at < end {
			a := action{at: at, what: w, pick: r.Uint64()}
			switch w {
			case submit:
				for range 1 + r.IntN(maxBatch) {
					a.jobs = append(a.jobs, spec{length: time.Duration(r.Int64N(int64(maxJobTime))).Round(time.Millisecond), exit: max(0, r.IntN(8)-5), files: r.IntN(4)})
				}
			case vacateJob, vacateSlot, vacateAll:
				a.how = [...]string{gracefully, fast}[r.IntN(2)]
			case restartEP, restartAP:
				a.how = [...]string{gracefully, fast, byKill}[r.IntN(3)]
			}
			all = append(all, a)
			at += time.Duration(r.ExpFloat64()*float64(mean)*0.9 + float64(mean)*0.1)
		}
	}
	if short && !slices.Contains(without, restartEP) {
		all = append(all, action{at: length / 2, what: restartEP, how: gracefully})
	}
	slices.SortStableFunc(all, func(a, b action) int { return cmp.Compare(a.at, b.at) })
	for i := range slices.Clone(all) {
		undo := action{of: i}
		switch all[i].what {
		case suspend:
			undo.what, undo.at = resume, all[i].at+resumeAfter
		case hold:
			undo.what, undo.at = release, all[i].at+releaseWait
		default:
			continue
		}
		all = append(all, undo)
	}
	// of names a place in the first part of the list: the order of the whole is
	// given by an index of it.
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(all[a].at, all[b].at) })
	place := make([]int, len(all))
	sorted := make([]action, len(all))
	for i, o := range order {
		place[o] = i
		sorted[i] = all[o]
	}
	for i := range sorted {
		if w := sorted[i].what; w == resume || w == release {
			sorted[i].of = place[sorted[i].of]
		}
	}
	return sorted
}

func TestPlan(t *testing.T) {
	t.Parallel()
	const length = 10 * time.Minute
	a, again := plan(7, length, false), plan(7, length, false)
	if !slices.EqualFunc(a, again, func(x, y action) bool { return x.String() == y.String() && x.pick == y.pick && x.of == y.of }) {
		t.Error("the same seed makes two plans")
	}
	if b := plan(8, length, false); slices.EqualFunc(a, b, func(x, y action) bool { return x.String() == y.String() }) {
		t.Error("another seed makes the same plan")
	}
	count := make(map[what]int)
	jobs := 0
	for i, one := range a {
		count[one.what]++
		jobs += len(one.jobs)
		if i > 0 && one.at < a[i-1].at {
			t.Fatalf("action %d comes before the one in front of it", i)
		}
		if undone := a[one.of]; one.what == resume && undone.what != suspend || one.what == release && undone.what != hold {
			t.Errorf("%s undoes %s", one, undone)
		}
		if one.what == restartEP && one.at.Seconds() > length.Seconds()*restartsEnd {
			t.Errorf("%s: nothing is left of the time to watch it", one)
		}
	}
	if jobs < 1000 {
		t.Errorf("%d jobs, want at least 1000", jobs)
	}
	for w, mean := range every(false) {
		if want := int(length / mean / 3); count[w] < want {
			t.Errorf("%s: %d times, want at least %d", w, count[w], want)
		}
	}
	less := plan(7, length, false, killShadow)
	more := slices.DeleteFunc(slices.Clone(a), func(one action) bool { return one.what == killShadow })
	if !slices.EqualFunc(less, more, func(x, y action) bool { return x.String() == y.String() && x.pick == y.pick }) {
		t.Errorf("without %s, something else is another as well", killShadow)
	}
	if count[resume] != count[suspend] || count[release] != count[hold] {
		t.Errorf("not everything is undone: %v", count)
	}
}
