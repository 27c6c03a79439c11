// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package claim

import (
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/errs"
)

var start = clock.Instant{Wall: time.Unix(1_800_000_000, 0), Boot: time.Hour}

func TestPhases(t *testing.T) {
	t.Parallel()
	all := []Phase{Starting, Running, Suspended, Vacating, Killing, Ended}
	legal := map[Phase][]Phase{
		Starting: {Running, Suspended, Vacating, Killing, Ended}, Running: {Suspended, Vacating, Killing, Ended},
		Suspended: {Starting, Running, Vacating, Killing, Ended}, Vacating: {Killing, Ended}, Killing: {Ended}, Ended: nil,
	}
	for _, from := range all {
		for _, to := range append(all, Phase(9)) {
			a := Start("slot1#1", nil, 5, 0, start)
			a.Phase = from
			want := from == to
			for _, p := range legal[from] {
				want = want || p == to
			}
			err := a.Enter(to, start.Add(time.Second))
			if (err == nil) != want || err != nil && !errs.Is(err, errs.Conflict) {
				t.Errorf("%v to %v: %v, want it to be possible: %v", from, to, err, want)
			}
			if err != nil && a.Phase != from {
				t.Errorf("%v to %v was refused and yet done", from, to)
			}
		}
	}
}

func TestRunTime(t *testing.T) {
	t.Parallel()
	a := Start(NewActivationID("slot1_1", 3), nil, 5, -time.Second, start)
	if a.ID != "slot1_1#3" || a.Pledge != 0 || !a.Active() {
		t.Fatalf("%+v", a)
	}
	at := func(s int) clock.Instant { return start.Add(time.Duration(s) * time.Second) }
	for _, step := range []struct {
		at             int
		to             Phase
		run, suspended time.Duration // just after
	}{
		{2, Running, 2 * time.Second, 0},
		{10, Suspended, 10 * time.Second, 0},
		{25, Running, 10 * time.Second, 15 * time.Second},
		{30, Suspended, 15 * time.Second, 15 * time.Second},
		{31, Running, 15 * time.Second, 16 * time.Second},
		{40, Vacating, 24 * time.Second, 16 * time.Second},
		{50, Killing, 24 * time.Second, 16 * time.Second},
		{60, Ended, 24 * time.Second, 16 * time.Second},
	} {
		if err := a.Enter(step.to, at(step.at)); err != nil {
			t.Fatal(err)
		}
		if r, s := a.RunTime(at(step.at)), a.SuspendedTime(at(step.at)); r != step.run || s != step.suspended {
			t.Errorf("%v at %d: ran %v, suspended %v, want %v and %v", step.to, step.at, r, s, step.run, step.suspended)
		}
	}
	c := Claim{}
	c.Add(&a, at(100))
	if c.TotalRun != 24*time.Second || c.TotalSuspended != 16*time.Second || a.Active() {
		t.Errorf("%+v", c)
	}
}

func TestLease(t *testing.T) {
	t.Parallel()
	l := NewLease(10*time.Second, start)
	if l.Expired(start.Add(9*time.Second)) || !l.Expired(start.Add(10*time.Second)) {
		t.Error("a lease of 10 s ends after 10 s")
	}
	// Only boot time counts: a jump of the wall clock ends no lease.
	jumped := clock.Instant{Wall: start.Wall.Add(24 * time.Hour), Boot: start.Boot + time.Second}
	if l.Expired(jumped) {
		t.Error("a jump of the wall clock ended a lease")
	}
	l = l.Renew(start.Add(8 * time.Second))
	if l.Expired(start.Add(17*time.Second)) || !l.Expired(start.Add(18*time.Second)) {
		t.Error("renewal counts from when it came")
	}
	if back := l.Renew(start); back != l {
		t.Error("an old renewal took time away")
	}
	if (Lease{}).Expired(start.Add(1e6*time.Hour)) || (Lease{}).Renew(start) != (Lease{}) {
		t.Error("the zero lease has no end")
	}
	if d := NewLease(0, start).Duration; d != 30*time.Minute {
		t.Errorf("default lease %v", d)
	}
	if l := l.Resize(time.Minute, start); l.Until != start.Boot+time.Minute {
		t.Errorf("resized to %v", l)
	}
}

func TestLeaseLength(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		job  string
		want time.Duration
	}{
		{"JobLeaseDuration = 2400", 40 * time.Minute},
		{"X = 1", 6 * 5 * time.Minute},
		{"JobLeaseDuration = undefined", 6 * 5 * time.Minute},
		{"JobLeaseDuration = 0", 6 * 5 * time.Minute},
		{"JobLeaseDuration = -7", 6 * 5 * time.Minute},
		{"JobLeaseDuration = \"long\"", 6 * 5 * time.Minute},
		{"JobLeaseDuration = 9223372036854775807", (1<<63 - 1) / time.Second * time.Second},
	} {
		ad, err := classad.ParseAd(tt.job, classad.Old)
		if err != nil {
			t.Fatal(err)
		}
		if got := LeaseLength(ad, 5*time.Minute, 6); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.job, got, tt.want)
		}
	}
	if got := LeaseLength(nil, time.Minute, 6); got != 6*time.Minute {
		t.Errorf("without a job %v", got)
	}
}

func TestWorklife(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		worklife time.Duration
		jobs     int
		age      time.Duration
		over     bool
	}{
		{20 * time.Minute, 1, 20 * time.Minute, false},
		{20 * time.Minute, 1, 20*time.Minute + 900*time.Millisecond, false},
		{20 * time.Minute, 1, 20*time.Minute + time.Second, true},
		{20 * time.Minute, 0, time.Hour, false},
		{0, 1, 0, true},
		{0, 0, time.Hour, false},
		{NoWorklife, 5, 1000 * time.Hour, false},
	} {
		c := Claim{Since: start, Activations: tt.jobs}
		if got := c.WorklifeOver(tt.worklife, start.Add(tt.age)); got != tt.over {
			t.Errorf("worklife %v after %d jobs and %v: over %v", tt.worklife, tt.jobs, tt.age, got)
		}
	}
}
