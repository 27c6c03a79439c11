// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package jobpolicy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/jobpolicy"
	"github.com/execpoint/execpoint/lib/reason"
)

var noon = time.Unix(1_800_000_000, 0)

// nobody is an access point whose owner says nothing.
var nobody jobpolicy.System

func parse(t testing.TB, text string) *classad.Ad {
	t.Helper()
	ad, err := classad.ParseAd(text, classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	return ad
}

func verdict(a jobpolicy.Action, attr, expr string) jobpolicy.Verdict {
	v := jobpolicy.Verdict{Action: a, Attr: attr, Code: 3, Why: "The job attribute " + attr + " expression '" + expr + "' evaluated to TRUE"}
	if a == jobpolicy.Vacate {
		v.Code = 1000
	}
	return v
}

// TestPeriodic holds the order in which a job in the queue is asked, the words and
// the numbers, as HTCondor's policy of the user has them.
func TestPeriodic(t *testing.T) {
	t.Parallel()
	const runs = "JobStatus = 2\nShadowBday = 1799999990\nJobCurrentStartExecutingDate = 1799999995\n"
	for _, tt := range []struct {
		name, ad string
		want     jobpolicy.Verdict
	}{
		{"nothing", "JobStatus = 1\n", jobpolicy.Verdict{}},
		{"undefined is no", "JobStatus = 1\nPeriodicRemove = Foo > 3\nPeriodicHold = undefined\n", jobpolicy.Verdict{}},
		{"an error is no", "JobStatus = 1\nPeriodicRemove = \"a\" + 3\n", jobpolicy.Verdict{}},
		{"a number is yes", "JobStatus = 1\nPeriodicRemove = 2\n", verdict(jobpolicy.Remove, "PeriodicRemove", "2")},
		{"a small number is no", "JobStatus = 1\nPeriodicRemove = 0.9\n", jobpolicy.Verdict{}},
		{"hold before remove", "JobStatus = 1\nPeriodicRemove = true\nPeriodicHold = true\n", verdict(jobpolicy.Hold, "PeriodicHold", "true")},
		{"a held job is not held", "JobStatus = 5\nPeriodicRemove = true\nPeriodicHold = true\n", verdict(jobpolicy.Remove, "PeriodicRemove", "true")},
		{"release before remove", "JobStatus = 5\nPeriodicRemove = true\nPeriodicRelease = JobStatus == 5\n", verdict(jobpolicy.Release, "PeriodicRelease", "JobStatus == 5")},
		{"not what a person held", "JobStatus = 5\nHoldReasonCode = 1\nPeriodicRelease = true\n", jobpolicy.Verdict{}},
		{"submitted on hold", "JobStatus = 5\nHoldReasonCode = 15\nPeriodicRelease = true\n", verdict(jobpolicy.Release, "PeriodicRelease", "true")},
		{"only a held job is released", "JobStatus = 1\nPeriodicRelease = true\n", jobpolicy.Verdict{}},
		{"vacate a running job", runs + "PeriodicVacate = true\nPeriodicHold = true\n", verdict(jobpolicy.Vacate, "PeriodicVacate", "true")},
		{"an idle job stays", "JobStatus = 1\nPeriodicVacate = true\n", jobpolicy.Verdict{}},
		{"time", "JobStatus = 1\nQDate = 1799999900\nPeriodicRemove = time() - QDate > 99\n", verdict(jobpolicy.Remove, "PeriodicRemove", "time() - QDate > 99")},
		{"reason and subcode", "JobStatus = 2\nPeriodicHold = true\nPeriodicHoldReason = strcat(\"too \", \"big\")\nPeriodicHoldSubCode = 6 * 7\n",
			jobpolicy.Verdict{Action: jobpolicy.Hold, Attr: "PeriodicHold", Why: "too big", Code: 3, Subcode: 42}},
		{"timer", "JobStatus = 1\nTimerRemove = 1799999999\n", verdict(jobpolicy.Remove, "TimerRemove", "1799999999")},
		{"timer not yet", "JobStatus = 1\nTimerRemove = 1800000000\n", jobpolicy.Verdict{}},
		{"job duration", runs + "AllowedJobDuration = 10\nPeriodicRemove = true\n",
			jobpolicy.Verdict{Action: jobpolicy.Hold, Attr: "AllowedJobDuration", Why: "The job exceeded allowed job duration of 00:10", Code: 46}},
		{"job duration not yet", runs + "AllowedJobDuration = 11\n", jobpolicy.Verdict{}},
		{"execute duration", runs + "AllowedExecuteDuration = 4\n",
			jobpolicy.Verdict{Action: jobpolicy.Hold, Attr: "AllowedExecuteDuration", Why: "The job exceeded allowed execute duration of 00:04", Code: 47}},
		{"execute duration not yet", runs + "AllowedExecuteDuration = 5\n", jobpolicy.Verdict{}},
		{"an earlier run's program", "JobStatus = 2\nShadowBday = 1799999990\nJobCurrentStartExecutingDate = 1799999000\nAllowedExecuteDuration = 5\n", jobpolicy.Verdict{}},
		{"a checkpoint since", runs + "AllowedExecuteDuration = 3\nTransferOutFinished = 1799999998\n", jobpolicy.Verdict{}},
		{"durations of an idle job", "JobStatus = 1\nShadowBday = 1799990000\nAllowedJobDuration = 10\n", jobpolicy.Verdict{}},
		{"a removed job", "JobStatus = 3\nPeriodicRemove = true\n", jobpolicy.Verdict{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(tt.want, nobody.Periodic(parse(t, tt.ad), &classad.Env{Now: noon})); d != "" {
				t.Error(d)
			}
		})
	}
}

// owner reads what the owner of an access point says.
func owner(t testing.TB, text string) *jobpolicy.System {
	t.Helper()
	snap, err := config.Load(config.Options{Root: "c", ReadFile: func(string) ([]byte, error) { return []byte(text), nil }})
	if err != nil {
		t.Fatal(err)
	}
	s := jobpolicy.SystemFrom(snap)
	return &s
}

// TestSystem asks the rules of the owner, each behind the job's own of its kind.
func TestSystem(t *testing.T) {
	t.Parallel()
	says := func(a jobpolicy.Action, code reason.Code, knob, text string) jobpolicy.Verdict {
		return jobpolicy.Verdict{Action: a, Attr: knob, Code: code, Why: "The system macro " + knob + " expression '" + text + "' evaluated to TRUE"}
	}
	for _, tt := range []struct {
		name, config, ad string
		want             jobpolicy.Verdict
	}{
		{"remove", "SYSTEM_PERIODIC_REMOVE = JobRunCount > 3\n", "JobStatus = 1\nJobRunCount = 4\n", says(jobpolicy.Remove, 26, "SYSTEM_PERIODIC_REMOVE", "JobRunCount > 3")},
		{"undefined is no", "SYSTEM_PERIODIC_REMOVE = JobRunCount > 3\n", "JobStatus = 1\n", jobpolicy.Verdict{}},
		{"false", "SYSTEM_PERIODIC_REMOVE = false\n", "JobStatus = 1\n", jobpolicy.Verdict{}},
		{"no expression", "SYSTEM_PERIODIC_REMOVE = (\n", "JobStatus = 1\n", jobpolicy.Verdict{}},
		{"the job's own first", "SYSTEM_PERIODIC_HOLD = true\n", "JobStatus = 1\nPeriodicHold = true\n", verdict(jobpolicy.Hold, "PeriodicHold", "true")},
		{"hold before remove", "SYSTEM_PERIODIC_HOLD = true\n", "JobStatus = 1\nPeriodicRemove = true\n", says(jobpolicy.Hold, 26, "SYSTEM_PERIODIC_HOLD", "true")},
		{"vacate", "SYSTEM_PERIODIC_VACATE = true\n", "JobStatus = 2\n", says(jobpolicy.Vacate, 1001, "SYSTEM_PERIODIC_VACATE", "true")},
		{"an idle job stays", "SYSTEM_PERIODIC_VACATE = true\n", "JobStatus = 1\n", jobpolicy.Verdict{}},
		{"release", "SYSTEM_PERIODIC_RELEASE = NumHolds < 3\n", "JobStatus = 5\nNumHolds = 2\n", says(jobpolicy.Release, 26, "SYSTEM_PERIODIC_RELEASE", "NumHolds < 3")},
		{"not what a person held", "SYSTEM_PERIODIC_RELEASE = true\n", "JobStatus = 5\nHoldReasonCode = 1\n", jobpolicy.Verdict{}},
		{"released often enough", "SYSTEM_MAX_RELEASES = 2\n", "JobStatus = 5\nNumHolds = 2\nPeriodicRelease = true\n", jobpolicy.Verdict{}},
		{"once more", "SYSTEM_MAX_RELEASES = 2\n", "JobStatus = 5\nNumHolds = 1\nPeriodicRelease = true\n", verdict(jobpolicy.Release, "PeriodicRelease", "true")},
		{"names in their order, then the one without", "SYSTEM_PERIODIC_HOLD_NAMES = Mem, mem Disk NAMES\nSYSTEM_PERIODIC_HOLD_Disk = big\nSYSTEM_PERIODIC_HOLD_Mem = small\nSYSTEM_PERIODIC_HOLD = true\n" +
			"SYSTEM_PERIODIC_HOLD_Disk_REASON = strcat(\"too \", word)\nSYSTEM_PERIODIC_HOLD_Disk_SUBCODE = 6 * 7\nSYSTEM_PERIODIC_HOLD_REASON = \"not this\"\n",
			"JobStatus = 1\nsmall = false\nbig = true\nword = \"big\"\n", jobpolicy.Verdict{Action: jobpolicy.Hold, Attr: "SYSTEM_PERIODIC_HOLD", Why: "too big", Code: 26, Subcode: 42}},
		{"a name that is not listed", "SYSTEM_PERIODIC_HOLD_Disk = true\n", "JobStatus = 1\n", jobpolicy.Verdict{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if d := cmp.Diff(tt.want, owner(t, tt.config).Periodic(parse(t, tt.ad), &classad.Env{Now: noon})); d != "" {
				t.Error(d)
			}
		})
	}
	ends := owner(t, "SYSTEM_PERIODIC_REMOVE = true\n")
	if v := ends.Exit(parse(t, "JobStatus = 2\nOnExitRemove = false\nExitCode = 1\n"), &classad.Env{Now: noon}); v.Action != jobpolicy.Remove {
		t.Errorf("a job that ends while the owner's rule removes it: %v", v)
	}
	held := parse(t, "JobStatus = 5\nNumHolds = 1\n")
	for text, want := range map[string]bool{"": false, "SYSTEM_PERIODIC_RELEASE = NumHolds < 2\n": true, "SYSTEM_PERIODIC_RELEASE = NumHolds < 1\n": false, "SYSTEM_PERIODIC_RELEASE = true\nSYSTEM_MAX_RELEASES = 1\n": false} {
		s := owner(t, text)
		if got := s.MayBeReleased(held, &classad.Env{Now: noon}); got != want {
			t.Errorf("%q: may be released: %v", text, got)
		}
		if got := s.Has(held); got != strings.Contains(text, "SYSTEM_PERIODIC") {
			t.Errorf("%q: something is to be asked: %v", text, got)
		}
	}
}

// TestExit has a program end, and asks whether its job is done.
func TestExit(t *testing.T) {
	t.Parallel()
	const retries = "JobMaxRetries = 2\nOnExitHold = false\nOnExitRemove = NumJobCompletions > JobMaxRetries || ExitCode =?= 0\n"
	for _, tt := range []struct {
		name, ad string
		want     jobpolicy.Action
	}{
		{"done", "ExitCode = 1\n", jobpolicy.Remove},
		{"first of three", retries + "ExitCode = 1\n", jobpolicy.Stay},
		{"second of three", retries + "ExitCode = 1\nNumJobCompletions = 1\n", jobpolicy.Stay},
		{"third of three", retries + "ExitCode = 1\nNumJobCompletions = 2\n", jobpolicy.Remove},
		{"good at once", retries + "ExitCode = 0\n", jobpolicy.Remove},
		{"undefined is done", "OnExitRemove = Foo\n", jobpolicy.Remove},
		{"no", "OnExitRemove = 0\n", jobpolicy.Stay},
		{"hold first", "OnExitHold = ExitCode =!= 0\nOnExitRemove = true\nExitCode = 4\n", jobpolicy.Hold},
		{"periodic hold before it", "PeriodicHold = true\nExitCode = 0\n", jobpolicy.Hold},
		{"periodic remove is done", "PeriodicRemove = true\nOnExitHold = true\nExitCode = 0\n", jobpolicy.Remove},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ad := parse(t, "JobStatus = 2\n"+tt.ad)
			jobpolicy.Ended(ad)
			if v := nobody.Exit(ad, &classad.Env{Now: noon}); v.Action != tt.want {
				t.Errorf("%v", v)
			}
		})
	}
}

// TestMayBeReleased tells a job that will be released from one that has had its
// chances.
func TestMayBeReleased(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"":                                 false,
		"PeriodicRelease = false\n":        false,
		"PeriodicRelease = true\n":         true,
		"PeriodicRelease = NumHolds < 3\n": true,
		"PeriodicRelease = NumHolds < 2\n": false,
		"PeriodicRelease = NumHolds < 3 && time() - EnteredCurrentStatus > 3600\n": true,
		"PeriodicRelease = NumHolds < 2 && time() - EnteredCurrentStatus > 3600\n": false,
		"PeriodicRelease = true\nHoldReasonCode = 1\n":                             false,
	} {
		ad := parse(t, "JobStatus = 5\nNumHolds = 2\nEnteredCurrentStatus = 1800000000\n"+text)
		if got := nobody.MayBeReleased(ad, &classad.Env{Now: noon}); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// TestHas finds the jobs that need not be asked at all.
func TestHas(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"JobStatus = 1\n": false, "PeriodicHold = false\nPeriodicRemove = undefined\n": false,
		"AllowedJobDuration = 0\n": true, "PeriodicRelease = Foo\n": true,
	} {
		if got := nobody.Has(parse(t, text)); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// TestLimit gives the second at which Periodic will act.
func TestLimit(t *testing.T) {
	t.Parallel()
	const runs = "JobStatus = 2\nShadowBday = 1800000000\nJobCurrentStartExecutingDate = 1800000005\n"
	for text, want := range map[string]int64{
		"": 0, "AllowedJobDuration = 60\n": 60, "AllowedExecuteDuration = 20\n": 26, "AllowedJobDuration = 60\nAllowedExecuteDuration = 20\n": 26,
	} {
		ad := parse(t, runs+text)
		at, ok := jobpolicy.Limit(ad, &classad.Env{Now: noon})
		if ok != (want > 0) || ok && at.Unix() != noon.Unix()+want {
			t.Errorf("%q: %v %v", text, at, ok)
			continue
		}
		if ok && (nobody.Periodic(ad, &classad.Env{Now: at}).Action != jobpolicy.Hold || nobody.Periodic(ad, &classad.Env{Now: at.Add(-time.Second)}).Action != jobpolicy.Stay) {
			t.Errorf("%q: not held at that second", text)
		}
	}
}

// TestPace lets ten starts a minute pass, and slows down more: no job starts
// more than that for long. A run that lasts ends it.
func TestPace(t *testing.T) {
	t.Parallel()
	var p jobpolicy.Pace
	now, starts := time.Duration(0), 0
	for now < 10*time.Minute {
		starts++
		now += 20 * time.Millisecond
		now += p.Ended(now-20*time.Millisecond, now)
	}
	if starts < jobpolicy.MostStarts || starts > 30 {
		t.Errorf("%d starts in ten minutes", starts)
	}
	if w := p.Ended(now, now+10*time.Millisecond); w != time.Minute {
		t.Errorf("waits %v", w)
	}
	if w := p.Ended(now, now+7*time.Second); w != 0 {
		t.Errorf("waits %v after a run that lasted", w)
	}
	p = jobpolicy.Pace{}
	for i := range 100 {
		at := time.Duration(i) * 7 * time.Second
		if w := p.Ended(at, at+time.Second); w != 0 {
			t.Fatalf("start %d, one each 7 s: waits %v", i, w)
		}
	}
}
