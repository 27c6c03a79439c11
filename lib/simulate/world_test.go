// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/policy"
)

// job finds a job of a result by its number.
func job(t *testing.T, r *Result, id string) JobResult {
	t.Helper()
	for _, j := range r.Jobs {
		if j.ID == id {
			return j
		}
	}
	t.Fatalf("there is no job %s: %+v", id, r.Jobs)
	return JobResult{}
}

// TestQueue holds what becomes of jobs when orders cross: each is what a schedd
// makes of it.
func TestQueue(t *testing.T) {
	t.Parallel()
	const two = "start 2026-03-02 08:00\nmachine cpus=2 memory=4096\nconfig\n    RunBenchmarks = False\n"
	for _, c := range []struct {
		name, text string
		id, state  string
		why        string
		starts     int
		ended      time.Duration // of the job, negative: not yet
	}{
		{"a retry runs the whole program again", small + "job j runs=5m exit=1\n    max_retries = 2\nat 0s submit j", "1.0", "completed", "", 3, 18*time.Minute + 1100*time.Millisecond},
		{"removed before its input failed", small + "job j fails=input begins=5m\nat 0s submit j\nat 3m remove j", "1.0", "removed", "removed by its owner", 1, 3 * time.Minute},
		{"a job that is held already is not held again", small + "job j exit=1 runs=1m\n    on_exit_hold = NumJobStarts < 2\n    periodic_release = NumHolds < 2 && time() - EnteredCurrentStatus > 600\nat 0s submit j\nat 5m hold j",
			"1.0", "completed", "", 2, -2},
		{"released while it leaves", small + "job j runs=10m soft=2m\nat 0s submit j\nat 3m hold j\nat 4m release j", "1.0", "completed", "", 2, -2},
		{"a removed job is not held", small + "job j runs=10m soft=2m\nat 0s submit j\nat 3m remove j\nat 4m hold j", "1.0", "removed", "removed by its owner", 1, 5 * time.Minute},
		{"a released job has no reason", small + "job j runs=10m\n    periodic_remove = HoldReasonCode =!= undefined && JobStatus == 1\nat 0s submit j\nat 3m hold j\nat 4m release j", "1.0", "completed", "", 2, -2},
		{"held between grant and start", two + "job k runs=1h\njob j runs=10m\nat 0s submit k\nat 20s every 40s until 1m hold j\nat 30s submit j\nat 5m release j",
			"2.0", "completed", "", 1, -2},
		{"a claim is promised to one job", two + "config\n    NUM_SLOTS = 1\n    SLOT_TYPE_0_PARTITIONABLE = False\njob a runs=9m59s begins=900ms\njob b runs=10m\njob c runs=10m\n    keep_claim_idle = 60\n" +
			"at 0s submit a\nat 10m59950ms submit b\nat 10m59960ms submit c", "3.0", "completed", "", 1, -2},
		{"the policy is asked after a silence", small + "job j\n    requirements = false\n    periodic_remove = time() - QDate > 300\nat 0s submit j\nat 1m silence 1m", "1.0", "removed", "periodic_remove", 0, -2},
		{"what cannot be executed is found after a silence", small + "job j fails=exec\nat 0s submit j\nat 1m5s silence 1m", "1.0", "held", "its program could not be executed", 1, -1},
		{"allowed_job_duration", small + "job j runs=1h\n    allowed_job_duration = 300\n    periodic_remove = HoldReasonCode == 46\nat 0s submit j", "1.0", "removed", "periodic_remove", 1, -2},
		{"allowed_execute_duration", small + "job j runs=1h\n    allowed_execute_duration = 300\n    periodic_remove = HoldReasonCode == 47\nat 0s submit j", "1.0", "removed", "periodic_remove", 1, -2},
		{"the execute duration counts from its program", small + "job j runs=5m begins=20m\n    allowed_execute_duration = 600\nat 0s submit j", "1.0", "completed", "", 1, -2},
		{"jobs that were suspended", small + "job j runs=10m\n    periodic_remove = JobStatus == 7 && time() - EnteredCurrentStatus > 60\nat 0s submit j\nat 3m suspend j", "1.0", "removed", "periodic_remove", 1, -2},
		{"the owner's policy is read again", small + "job j runs=1h\nat 0s submit j\nat 10m reconfig\n    SYSTEM_PERIODIC_HOLD = JobStatus == 2", "1.0", "held", "SYSTEM_PERIODIC_HOLD", 1, -1},
		{"one that does not match is not in the way", small + "job j runs=1m\n    requirements = time() - QDate < 600\nat 0s submit j\nat 24m set Open = true\nat 25m submit j\nconfig\n    START = Open =?= true", "2.0", "completed", "", 1, -2},
		{"work goes on after a restart", small + "cycle 3s\njob j runs=10m\nat 0s submit j\nat 4m58s drain fast restart", "1.0", "completed", "", 2, -2},
		{"claims are renewed after a restart", small + "config\n    ALIVE_INTERVAL = 4\njob j runs=2h\n    job_lease_duration = 1200\nat 0s submit j\nat 4m58s drain fast restart", "1.0", "completed", "", 2, -2},
		{"submitted while it is down", small + "job j runs=10m\nat 5m drain fast restart\nat 5m6s submit j", "1.0", "completed", "", 1, -2},
		{"what submission reads", small + "config\n    JOB_DEFAULT_REQUESTMEMORY = 4096\njob j runs=1m\nat 0s submit j", "1.0", "idle", "", 0, -1},
		{"submitted after the end", small + "job j runs=10m\nat 5m shutdown\nat 10m submit j", "1.0", "idle", "", 0, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			j := job(t, play(t, c.name, "end 4h\n"+c.text+"\n"), c.id)
			if j.State != c.state || j.Why != c.why || j.Starts != c.starts || c.ended > -2 && (j.Ended-c.ended).Abs() > 200*time.Millisecond && (c.ended >= 0 || j.Ended >= 0) {
				t.Errorf("%s %q after %d starts at %v, want %s %q after %d at %v", j.State, j.Why, j.Starts, j.Ended, c.state, c.why, c.starts, c.ended)
			}
		})
	}
}

// TestClaimKept keeps an idle claim for as long as the last job that used it
// asked for, and a silent access point gives none back.
func TestClaimKept(t *testing.T) {
	t.Parallel()
	const kept = "config\n    CLAIM_WORKLIFE = -1\njob j runs=1m\n    keep_claim_idle = 600\n"
	for _, c := range []struct{ name, text, want string }{
		{"used again", "at 0s submit j\nat 9m30s submit j", "1m0s Claimed/Idle, 1m0s Claimed/Busy, 2m1s Claimed/Cleaning, 2m1s Claimed/Idle, " +
			"10m0s Claimed/Busy, 11m1s Claimed/Cleaning, 11m1s Claimed/Idle, 21m1s Preempting/Killing, 21m1s Owner/Idle, 21m1s Unclaimed/Idle"},
		{"silent", "at 0s submit j\nat 5m silence 20m", "1m0s Claimed/Idle, 1m0s Claimed/Busy, 2m1s Claimed/Cleaning, 2m1s Claimed/Idle, " +
			"25m0s Preempting/Killing, 25m0s Owner/Idle, 25m0s Unclaimed/Idle"},
	} {
		if got := path(play(t, c.name, small+"end 1h\n"+kept+c.text+"\n"), "slot1"); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestSuspendedEarly suspends a job whose input still comes: its preparation
// goes on, and its program is stopped as soon as it is there.
func TestSuspendedEarly(t *testing.T) {
	t.Parallel()
	for _, clock := range []string{"run", "wall"} {
		res := play(t, "early", small+"end 1h\njob j runs=10m begins=5m clock="+clock+"\nat 0s submit j\nat 2m suspend j\nat 8m continue j\n")
		j := res.Jobs[0]
		want := 18*time.Minute + 100*time.Millisecond
		if clock == "wall" {
			want = 16*time.Minute + 100*time.Millisecond
		}
		if j.State != "completed" || (j.Ended-want).Abs() > time.Second || j.Suspended != 2*time.Minute {
			t.Errorf("%s: %+v, want the end at %v", clock, j, want)
		}
	}
}

// TestLeavesEarly asks a job to leave whose program does not run yet: nothing is
// there that could take notice, or none.
func TestLeavesEarly(t *testing.T) {
	t.Parallel()
	got := path(play(t, "early", small+"end 10m\njob j begins=5m soft=never\nat 0s submit j\nat 2m vacate slot1\nat 2m remove j\n"), "slot1")
	if !strings.Contains(got, "2m0s Preempting/Vacating, 2m0s Owner/Idle") {
		t.Error(got)
	}
}

// TestContinuedToLeave asks a suspended job to leave: it is let go on for that,
// and one that takes no notice runs until it is killed.
func TestContinuedToLeave(t *testing.T) {
	t.Parallel()
	res := play(t, "leave", small+"end 30m\nconfig\n    MachineMaxVacateTime = 60\njob j runs=1h soft=never\nat 0s submit j\nat 2m suspend j\nat 5m vacate slot1\nat 5m remove j\n")
	if j := res.Jobs[0]; j.Suspended != 3*time.Minute || j.Lost < time.Minute+59*time.Second {
		t.Errorf("%+v", j)
	}
}

// TestShutdownAfterRestart ends for good what was started anew before.
func TestShutdownAfterRestart(t *testing.T) {
	t.Parallel()
	res := play(t, "down", small+"end 1h\nat 5m drain restart\nat 20m shutdown\nat 30m vacate all\n")
	if res.Down != 20*time.Minute {
		t.Errorf("down at %v", res.Down)
	}
	if len(res.Notes) != 1 || res.Notes[0].Line == 0 {
		t.Errorf("nobody is told that a command found no Execution Point: %+v", res.Notes)
	}
}

// TestPublishedAfterRestart publishes what was set before a restart again.
func TestPublishedAfterRestart(t *testing.T) {
	t.Parallel()
	res := play(t, "set", small+"end 1h\nconfig\n    START = Mine =?= true\njob j runs=10m\nat 1m set Mine = true\nat 5m drain restart\nat 10m submit j\n")
	if j := res.Jobs[0]; j.State != "completed" {
		t.Errorf("%+v", j)
	}
}

// TestOverlap lets people and load come and go in spans that overlap.
func TestOverlap(t *testing.T) {
	t.Parallel()
	const owner = "config\n    IS_OWNER = KeyboardIdle < 30 || TotalLoadAvg > 1.2\n    SLOTS_CONNECTED_TO_KEYBOARD = 1\n    SLOTS_CONNECTED_TO_CONSOLE = 1\n    POLLING_INTERVAL = 5\n    UPDATE_INTERVAL = 5\n"
	for _, c := range []struct{ name, text, want string }{
		{"typing that ended early", "at 10m type 30m\nat 15m leave\nat 20m type\nat 50m leave", "10m0s Owner/Idle, 15m30s Unclaimed/Idle, 20m0s Owner/Idle, 50m30s Unclaimed/Idle"},
		{"load upon load", "at 10m load 4 10m\nat 15m load 8 2m", "10m0s Owner/Idle, 20m0s Unclaimed/Idle"},
	} {
		if got := path(play(t, c.name, small+"end 1h\n"+owner+c.text+"\n"), "slot1"); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestMeanWait counts the jobs that waited until they began.
func TestMeanWait(t *testing.T) {
	t.Parallel()
	res := play(t, "wait", small+"end 1h\njob j runs=1m\njob never\n    requirements = false\nat 0s submit j\nat 0s submit never 9\n")
	if got := res.Total.String(); !strings.Contains(got, "mean wait 1m00s") {
		t.Error(got)
	}
}

// TestWideAndLong draws a picture that is wide, of a scenario that is long.
func TestWideAndLong(t *testing.T) {
	t.Parallel()
	end := 400 * 24 * time.Hour
	res := &Result{Name: "long", End: end, Down: -1, Moves: []Move{{Slot: "slot1", From: policy.UnclaimedIdle, To: policy.ClaimedBusy}}}
	var text bytes.Buffer
	if err := res.WriteText(&text, 10000); err != nil || !strings.Contains(text.String(), strings.Repeat("#", 9900)) {
		t.Errorf("%v %d bytes", err, text.Len())
	}
}

// TestNamePrefix tells a dynamic slot from one whose name has a line in it.
func TestNamePrefix(t *testing.T) {
	t.Parallel()
	res := play(t, "prefix", "end 10m\nmachine cpus=1\nconfig\n    SLOT_TYPE_1 = 100%\n    NUM_SLOTS_TYPE_1 = 1\n    SLOT_TYPE_1_PARTITIONABLE = False\n    SLOT_TYPE_1_NAME_PREFIX = my_slot\njob j runs=1m\nat 0s submit j\n")
	lanes := res.Lanes()
	if len(lanes) != 1 || len(lanes[0].Spans) == 0 || lanes[0].Spans[len(lanes[0].Spans)-1].To != res.End {
		t.Errorf("%+v", lanes)
	}
}

// TestTooMuch refuses a scenario that would not end in any reasonable memory.
func TestTooMuch(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("end 1h\njob j\n")
	for range 60 {
		b.WriteString("at 0s submit j 100000\n")
	}
	_, err := Parse("much.scn", b.String())
	var ps Problems
	if !errors.As(err, &ps) || !strings.Contains(err.Error(), "far too much") {
		t.Errorf("six million jobs: %v", err)
	}
	sc, err := Parse("much.scn", "end 1h\njob j\n    queue 100\nat 0s submit j 100000\n")
	if err == nil {
		_, err = Run(sc, Node{Machine: sc.Machine, Load: parseText})
	}
	if err == nil || !strings.Contains(err.Error(), "much.scn:4") || !strings.Contains(err.Error(), "far too much") {
		t.Errorf("ten million jobs: %v", err)
	}
}

// TestManyNotes prints some of many refusals, and how many there are.
func TestManyNotes(t *testing.T) {
	t.Parallel()
	res := &Result{Name: "n", End: time.Hour, Down: -1}
	for i := range maxRows + 7 {
		res.Notes = append(res.Notes, Note{Line: i, Text: "no"})
	}
	var text bytes.Buffer
	if err := res.WriteText(&text, 80); err != nil || !strings.Contains(text.String(), "… and 7 more notes") || strings.Count(text.String(), ": no\n") != maxRows {
		t.Errorf("%v %d lines", err, strings.Count(text.String(), "\n"))
	}
}

// TestReconfigAgain reads lines that come into force again and again once.
func TestReconfigAgain(t *testing.T) {
	t.Parallel()
	res := play(t, "again.scn", small+"end 2h\nat 5m every 5m reconfig\n    Bad = Nobody\nat 1h reconfig\n    IS_OWNER = 1 == 1\n")
	if got := fmt.Sprint(res.Moves[len(res.Moves)-1].Origin); got != "again.scn:11" {
		t.Errorf("decided by %s", got)
	}
}
