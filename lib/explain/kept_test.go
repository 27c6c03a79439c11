// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import "testing"

// TestKept tells a job that the owner's policy keeps out everywhere from one that
// waits for room or asks for another slot itself.
func TestKept(t *testing.T) {
	t.Parallel()
	no := func(name, origin, value string) Refusal {
		return Refusal{Name: name, Origin: origin, Value: value, Residual: Residual{Value: value}}
	}
	slot := func(all ...Refusal) Verdict { return Verdict{Refusals: all} }
	start, other := no("START", "ep.conf:3", "FALSE"), no("START", "ep.conf:9", "UNDEFINED")
	full, job := no(limits, "", "FALSE"), no(ofTheJob, "", "FALSE")
	for _, tt := range []struct {
		name         string
		verdicts     []Verdict
		reason, text string
	}{
		{"no slot", nil, "", ""},
		{"a slot takes it", []Verdict{slot(start), {Takes: true}}, "", ""},
		{"a busy slot would take it", []Verdict{slot(start), {Busy: "Claimed/Busy"}}, "", ""},
		{"a slot is full", []Verdict{slot(start), slot(full)}, "", ""},
		{"the job does not want one", []Verdict{slot(job), slot(start)}, "", ""},
		{"START", []Verdict{slot(start)}, "START ep.conf:3", "START is FALSE"},
		{"START, and room is short", []Verdict{slot(full, start, job)}, "START ep.conf:3", "START is FALSE"},
		{"the same of two slots", []Verdict{slot(start), slot(start)}, "START ep.conf:3", "START is FALSE"},
		{"another value", []Verdict{slot(no("START", "ep.conf:3", "UNDEFINED"))}, "START ep.conf:3", "START is UNDEFINED"},
		{"two", []Verdict{slot(other), slot(start)}, "START ep.conf:3\nSTART ep.conf:9", "START is UNDEFINED"},
		{"two, the other way round", []Verdict{slot(start), slot(other)}, "START ep.conf:3\nSTART ep.conf:9", "START is FALSE"},
	} {
		if reason, text := Kept(tt.verdicts); reason != tt.reason || text != tt.text {
			t.Errorf("%s: %q, %q; want %q, %q", tt.name, reason, text, tt.reason, tt.text)
		}
	}
	for sentence, want := range map[string]string{
		"START is FALSE":                          "START is FALSE",
		"START lacks:\n  x  is 3":                 "START lacks: x is 3",
		"one of these were so:\n  x > 3\n  y > 4": "one of these were so: (1) x > 3, (2) y > 4",
	} {
		if got := oneLine(sentence); got != want {
			t.Errorf("%q: %q, want %q", sentence, got, want)
		}
	}
}
