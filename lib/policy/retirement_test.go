// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
)

func TestRetirement(t *testing.T) {
	t.Parallel()
	const minute = time.Minute
	for _, tt := range []struct {
		name   string
		config string
		job    string
		ran    time.Duration
		with   func(*View)
		left   time.Duration
		vacate time.Duration
		over   bool // whether eviction begins
	}{
		{name: "nothing configured", vacate: 600 * time.Second, over: true},
		{name: "time left", config: "MAXJOBRETIREMENTTIME = 3600\nMachineMaxVacateTime = 10", ran: minute, left: 59 * minute, vacate: 10 * time.Second},
		{name: "a promise shorter than the vacate time protects nothing", config: "MAXJOBRETIREMENTTIME = 20", left: 20 * time.Second, vacate: 600 * time.Second, over: true},
		// row: S0-187
		{name: "one second before the soft kill", config: "MAXJOBRETIREMENTTIME = 100\nMachineMaxVacateTime = 30", ran: 69 * time.Second, left: 31 * time.Second, vacate: 30 * time.Second},
		{name: "soft kill so that the hard one falls on the end", config: "MAXJOBRETIREMENTTIME = 100\nMachineMaxVacateTime = 30", ran: 70 * time.Second, left: 30 * time.Second, vacate: 30 * time.Second, over: true},
		{name: "the same with the job's own vacate time", config: "MAXJOBRETIREMENTTIME = 100\nMachineMaxVacateTime = 30", job: "JobMaxVacateTime = 5", ran: 94 * time.Second, left: 6 * time.Second, vacate: 5 * time.Second},
		// row: S0-188
		{name: "the job wants less", config: "MAXJOBRETIREMENTTIME = 3600\nMachineMaxVacateTime = 1", job: "MaxJobRetirementTime = 60", left: minute, vacate: time.Second},
		{name: "the job cannot get more", config: "MAXJOBRETIREMENTTIME = 60\nMachineMaxVacateTime = 1", job: "MaxJobRetirementTime = 3600", left: minute, vacate: time.Second},
		{name: "the job's undefined wish counts for nothing", config: "MAXJOBRETIREMENTTIME = 60\nMachineMaxVacateTime = 1", job: "MaxJobRetirementTime = NoSuch", left: minute, vacate: time.Second},
		{name: "the job's expression sees the machine", config: "MAXJOBRETIREMENTTIME = 60\nMachineMaxVacateTime = 1", job: "MaxJobRetirementTime = TARGET.Slow ? 30 : 10", left: 30 * time.Second, vacate: time.Second},
		// row: S0-186
		{name: "the job wants less vacate time", config: "MachineMaxVacateTime = 15", job: "JobMaxVacateTime = 3", vacate: 3 * time.Second, over: true},
		{name: "the job wants more, nothing is left", config: "MachineMaxVacateTime = 4", job: "JobMaxVacateTime = 20", vacate: 4 * time.Second, over: true},
		{name: "the job wants more, some retirement is left", config: "MachineMaxVacateTime = 4\nMAXJOBRETIREMENTTIME = 30", job: "JobMaxVacateTime = 20", ran: 18 * time.Second, left: 12 * time.Second, vacate: 12 * time.Second, over: true},
		{name: "the job wants more, enough retirement is left", config: "MachineMaxVacateTime = 4\nMAXJOBRETIREMENTTIME = 30", job: "JobMaxVacateTime = 12", ran: 4 * time.Second, left: 26 * time.Second, vacate: 12 * time.Second},
		{name: "retirement below the machine's vacate time adds nothing", config: "MachineMaxVacateTime = 10\nMAXJOBRETIREMENTTIME = 30", job: "JobMaxVacateTime = 20", ran: 27 * time.Second, left: 3 * time.Second, vacate: 10 * time.Second, over: true},
		{name: "the old attribute", config: "MachineMaxVacateTime = 15", job: "KillSigTimeout = 3", vacate: 3 * time.Second, over: true},
		{name: "the new attribute wins", config: "MachineMaxVacateTime = 15", job: "KillSigTimeout = 3; JobMaxVacateTime = 7", vacate: 7 * time.Second, over: true},
		{name: "what is no number asks for nothing", config: "MachineMaxVacateTime = 15", job: "JobMaxVacateTime = \"long\"", over: true},
		{name: "a negative wish", config: "MachineMaxVacateTime = 15", job: "JobMaxVacateTime = -5", over: true},
		{name: "the machine's is no number", config: "MachineMaxVacateTime = \"x\"", over: true},
		{name: "the machine's is undefined", config: "MAXJOBRETIREMENTTIME = NoSuch\nMachineMaxVacateTime = NoSuch", over: true},
		{name: "a real is cut", config: "MAXJOBRETIREMENTTIME = 60.9\nMachineMaxVacateTime = 1.9", left: minute, vacate: time.Second},
		{name: "too long for a clock", config: "MAXJOBRETIREMENTTIME = 9223372036854775807\nMachineMaxVacateTime = 1", left: seconds(1 << 62), vacate: time.Second},
		{name: "negative", config: "MAXJOBRETIREMENTTIME = -1\nMachineMaxVacateTime = -1", over: true},
		{name: "a pledge is kept", config: "MachineMaxVacateTime = 100", with: func(v *View) { v.Activation.Pledge = 5 * time.Second }, vacate: 5 * time.Second, over: true},
		{name: "peaceful", config: "MAXJOBRETIREMENTTIME = 3\nMachineMaxVacateTime = 1", ran: minute, with: func(v *View) { v.Activation.Peaceful = true }, left: endless - minute, vacate: time.Second},
		{name: "peaceful, but -1 is at once", config: "MAXJOBRETIREMENTTIME = -1", ran: minute, with: func(v *View) { v.Activation.Peaceful = true }, vacate: 600 * time.Second, over: true},
		{name: "peaceful, but the job wants less", config: "MachineMaxVacateTime = 1", job: "MaxJobRetirementTime = 90", ran: minute, with: func(v *View) { v.Activation.Peaceful = true }, left: 30 * time.Second, vacate: time.Second},
		{name: "the job is gone", config: "MAXJOBRETIREMENTTIME = 3600", with: func(v *View) { _ = v.Activation.Enter(claim.Ended, v.Now) }, over: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := situation{config: tt.config, pair: ClaimedRetiring, ran: tt.ran, job: tt.job, slot: "Slow = True", with: func(v *View) {
				v.Activation.Irrevocable = true
				if tt.with != nil {
					tt.with(v)
				}
			}}.view(t)
			if got := RetirementLeft(v); got != tt.left {
				t.Errorf("retirement left %v, want %v", got, tt.left)
			}
			if got := MaxVacate(v); got != tt.vacate {
				t.Errorf("vacate time %v, want %v", got, tt.vacate)
			}
			d := Decide(v)
			if over := d.To.State == Preempting; over != tt.over {
				t.Errorf("eviction begins: %v, want %v: %v", over, tt.over, d.Trace)
			}
		})
	}
}

func TestRank(t *testing.T) {
	t.Parallel()
	const group = `RANK = Owner == "coltrane" || Owner == "tyner" || Owner == "garrison" || Owner == "jones"`
	const sum = `RANK = (Owner == "coltrane") + (Owner == "tyner") + ((Owner == "garrison") * 10) + (Owner == "jones")`
	for _, tt := range []struct {
		config, job string
		want        float64
	}{
		{group, `Owner = "coltrane"`, 1},
		{group, `Owner = "davis"`, 0},
		{sum, `Owner = "jones"`, 1},
		{sum, `Owner = "garrison"`, 10},
		{sum, `Owner = "davis"`, 0},
		// row: S0-099
		{"RANK = ImageSize", "ImageSize = 123456", 123456},
		{"RANK = ImageSize", "ImageSize = 2048", 2048},
		{"RANK = NoSuch", "", 0},
		{"RANK = \"best\"", "", 0},
		{"RANK = 1/0", "", 0},
		{"", "", 0},
		{"RANK = -2.5", "", -2.5},
		{"RANK = MY.Fast * 2", "Fast = 7", 6},
	} {
		v := situation{config: tt.config, pair: ClaimedIdle, job: tt.job, slot: "Fast = 3"}.view(t)
		if got := RankOf(v); got != tt.want {
			t.Errorf("%s for %s: %v, want %v", tt.config, tt.job, got, tt.want)
		}
	}
}

func TestStarts(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		start, job string
		ok         bool
		trace      string
	}{
		{"True", "", true, ""},
		{"2", "", true, ""},
		{"False", "", false, "START = false is FALSE [policy.conf:1]"},
		{"0", "", false, "START = 0 is FALSE [policy.conf:1]"},
		{"NoSuch", "", false, "START = NoSuch is undefined, taken as FALSE [policy.conf:1]; NoSuch = undefined"},
		{"\"yes\"", "", false, "undefined, taken as FALSE"},
		// row: S0-093
		{"KeyboardIdle > 900 && TARGET.ImageSize <= 1000", "ImageSize = 900", true, ""},
		{"KeyboardIdle > 900 && TARGET.ImageSize <= 1000", "ImageSize = 1001", false, "MY.KeyboardIdle = 1000, TARGET.ImageSize = 1001"},
		{"KeyboardIdle > 9000 && TARGET.ImageSize <= 1000", "ImageSize = 900", false, "MY.KeyboardIdle = 1000"},
	} {
		v := situation{config: "START = " + tt.start, pair: ClaimedIdle, job: tt.job, slot: "KeyboardIdle = 1000"}.view(t)
		got := Starts(v)
		if got.OK != tt.ok {
			t.Errorf("START = %s for %s: %v", tt.start, tt.job, got.OK)
		}
		if !tt.ok && (len(got.Trace) != 1 || !strings.Contains(got.Trace[0].String(), tt.trace)) {
			t.Errorf("START = %s: trace %v, want %q", tt.start, got.Trace, tt.trace)
		}
		wantFalse := tt.start == "False" || tt.start == "0" || strings.Contains(tt.start, "KeyboardIdle") && !tt.ok
		if StartIsFalse(v) != wantFalse {
			t.Errorf("START = %s is plainly false: %v", tt.start, !wantFalse)
		}
	}
}

func TestWantsHold(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, config string
		with         func(*View)
		want         *Hold
	}{
		{"not after PREEMPT", "WANT_HOLD = True", irrevocable, nil},
		{"false", "WANT_HOLD = False", preempted, nil},
		{"undefined", "WANT_HOLD = NoSuch", preempted, nil},
		{"default reason", "WANT_HOLD = MemoryUsage > 10", preempted, &Hold{Reason: "The startd put this job on hold.  (At preemption time, WANT_HOLD evaluated to true: WANT_HOLD = MemoryUsage > 10)", Code: 21}},
		{"own reason", "WANT_HOLD = True\nWANT_HOLD_REASON = strcat(\"too big: \", MemoryUsage)\nWANT_HOLD_SUBCODE = 7", preempted, &Hold{Reason: "too big: 11", Code: 21, Subcode: 7}},
		{"reason that is none", "WANT_HOLD = True\nWANT_HOLD_REASON = NoSuch\nWANT_HOLD_SUBCODE = \"x\"", preempted, &Hold{Reason: "The startd put this job on hold.  (At preemption time, WANT_HOLD evaluated to true: WANT_HOLD = true)", Code: 21}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			v := situation{config: tt.config, pair: ClaimedRetiring, job: "MemoryUsage = 11", with: tt.with}.view(t)
			got, trace := WantsHold(v)
			if (got == nil) != (tt.want == nil) || got != nil && *got != *tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
			if asked := v.Activation.PreemptWasTrue; asked != (len(trace) > 0) {
				t.Errorf("trace %v", trace)
			}
		})
	}
}

// A job that came in while draining stays for as long as the drain takes. One for
// which PREEMPT became true has its own retirement, and no more than the drain.
func TestRetirementOfAdmitted(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		granted   string
		left      time.Duration // of the drain
		preempted bool
		over      bool
		cause     Cause
	}{
		{"none of its own", "0", time.Hour, false, false, NoCause},
		{"none of its own, the drain is over", "0", 0, false, true, ByDraining},
		{"preempted, none of its own", "-1", time.Hour, true, true, ByRetirement},
		{"preempted, some of its own", "600", time.Hour, true, false, NoCause},
		{"preempted, the drain is over first", "600", 0, true, true, ByRetirement},
	} {
		v := situation{config: "PREEMPT = False\nMachineMaxVacateTime = 5\nMAXJOBRETIREMENTTIME = " + tt.granted, pair: ClaimedRetiring, ran: time.Minute, with: func(v *View) {
			v.Draining, v.DrainLeft, v.Activation.Admitted = true, tt.left, true
			v.Activation.PreemptWasTrue, v.Activation.Irrevocable = tt.preempted, true
		}}.view(t)
		if d := Decide(v); (d.To == PreemptingVacating) != tt.over || tt.over && d.Cause != tt.cause {
			t.Errorf("%s: %v, cause %v", tt.name, d, d.Cause)
		}
	}
}
