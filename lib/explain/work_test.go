// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/policy"
)

// costlyJob is made to cost: each evaluation of its Requirements takes all the
// steps that one may, and there is much to try in it.
func costlyJob(t *testing.T) *classad.Ad {
	t.Helper()
	job := classad.NewAd()
	set := func(name, text string) {
		if err := job.SetText(name, text); err != nil {
			t.Fatal(err)
		}
	}
	set("D0", "random()")
	for i := 1; i <= 13; i++ {
		set(fmt.Sprintf("D%d", i), fmt.Sprintf("D%d + D%d", i-1, i-1))
	}
	var parts []string
	for i := range 40 {
		parts = append(parts, fmt.Sprintf("(D13 + TARGET.X%d > %d)", i, i))
	}
	set("Requirements", strings.Join(parts, " && "))
	return job
}

// asking explains a job that is made to cost and returns how many numbers were
// asked for, each at one step or more, and what came of it. It ends at limit.
func asking(t *testing.T, work *classad.Budget, limit int, ask func(Source, *classad.Ad, []Slot)) (calls int) {
	t.Helper()
	var slots []Slot
	for i := range 50 {
		ad := classad.NewAd()
		ad.SetInt("X0", int64(i))
		slots = append(slots, Slot{Name: fmt.Sprintf("slot%d", i+1), Ad: ad, Pair: policy.UnclaimedIdle})
	}
	type enough struct{}
	defer func() {
		if r := recover(); r != nil && r != any(enough{}) {
			panic(r)
		}
	}()
	src := Source{Now: time.Unix(1, 0), Work: work, Rand: func() float64 {
		if calls++; calls > limit {
			panic(enough{})
		}
		return 0.5
	}}
	ask(src, costlyJob(t), slots)
	return calls
}

// All that is evaluated for one answer takes the steps of its Work at most, and the
// answer says that it was given up, and no more than is known.
func TestWorkOfOneAnswer(t *testing.T) {
	t.Parallel()
	const work = 200_000
	var verdicts []Verdict
	judge := func(src Source, job *classad.Ad, slots []Slot) { verdicts = Judge(src, job, slots) }
	if calls := asking(t, nil, 4*work, judge); calls < 4*work {
		t.Fatalf("the job costs %d steps only", calls)
	}
	b := classad.NewBudget(work)
	if calls := asking(t, b, 4*work, judge); calls > work || !b.Spent() {
		t.Errorf("%d numbers with %d steps", calls, work)
	}
	n := 0
	for _, v := range verdicts {
		if n += len(v.Slots); v.GivenUp && (v.Takes || len(v.Refusals) > 0 || !strings.Contains(strings.Join(v.lines(), "\n"), "takes too long")) {
			t.Errorf("%+v", v)
		}
	}
	if last := verdicts[len(verdicts)-1]; n != 50 || !last.GivenUp || !strings.Contains(JobAnswer(verdicts), "not known") {
		t.Errorf("%d slots, %+v, %s", n, last, JobAnswer(verdicts))
	}
	if _, text := Kept(verdicts); text != "" {
		t.Errorf("told that the owner keeps it: %s", text)
	}
}

// A slot that is asked about a job that costs is given up, too, with what its
// decisions saw.
func TestWorkOfASlot(t *testing.T) {
	t.Parallel()
	var r *Report
	of := func(src Source, job *classad.Ad, slots []Slot) {
		s := slots[0]
		s.Job = job
		s.Present.Trace = []policy.Trace{{Name: "PREEMPT", Text: "TARGET.D13 > 5", Taken: "FALSE"}}
		s.Target = job
		r = OfSlot(src, s)
	}
	b := classad.NewBudget(10_000)
	if calls := asking(t, b, 100_000, of); calls > 10_000 || !b.Spent() {
		t.Fatalf("%d numbers", calls)
	}
	if len(r.Exprs) != 1 || r.Exprs[0].Residual != nil || !strings.Contains(r.Answer, "takes too long") {
		t.Errorf("%+v", r)
	}
}
