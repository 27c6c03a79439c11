// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import "testing"

// TestKept: only the owner's expressions keep a job, the reason names all of them
// whatever the order of slots, and one slot that refuses for want of room is no reason.
func TestKept(t *testing.T) {
	t.Parallel()
	refusal := func(name, origin, value string) Refusal {
		return Refusal{Name: name, Origin: origin, Residual: Residual{Value: value}}
	}
	start, begin := refusal("START", "c:1", "FALSE"), refusal("START", "c:2", "UNDEFINED")
	for _, tt := range []struct {
		name     string
		verdicts []Verdict
		reason   string
		text     string
	}{
		{"no slot", nil, "", ""},
		{"a slot that takes it", []Verdict{{Refusals: []Refusal{start}}, {}}, "", ""},
		{"no room now", []Verdict{{Refusals: []Refusal{start}}, {Refusals: []Refusal{refusal(limits, "", "")}}}, "", ""},
		{"what the job itself wants", []Verdict{{Refusals: []Refusal{refusal(ofTheJob, "", "")}}}, "", ""},
		{"one expression", []Verdict{{Refusals: []Refusal{start}}, {Refusals: []Refusal{start}}}, "START c:1", "START is FALSE"},
		{"two, and no room", []Verdict{{Refusals: []Refusal{refusal(limits, "", ""), begin}}, {Refusals: []Refusal{start}}}, "START c:1\nSTART c:2", "START is UNDEFINED"},
		{"two, the other way round", []Verdict{{Refusals: []Refusal{start}}, {Refusals: []Refusal{begin}}}, "START c:1\nSTART c:2", "START is FALSE"},
	} {
		if reason, text := Kept(tt.verdicts); reason != tt.reason || text != tt.text {
			t.Errorf("%s: %q, %q; want %q, %q", tt.name, reason, text, tt.reason, tt.text)
		}
	}
}

func TestOneLine(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"START is FALSE":                         "START is FALSE",
		"START would be TRUE if:\n  A > 1":       "START would be TRUE if: A > 1",
		"one of these were so:\n  A\n  B\n    C": "one of these were so: (1) A, (2) B, (3) C",
	} {
		if got := oneLine(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}
