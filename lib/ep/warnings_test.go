// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/policy"
)

// odd collects what is said of the policy, from the first effect on.
func (s *stage) odd() *[]string {
	out := new([]string)
	see := func(eff Effect) {
		if o, ok := eff.(PolicyWarning); ok {
			*out = append(*out, o.Name+" "+o.Trace.String())
		}
	}
	for _, eff := range s.eng.effects {
		see(eff)
	}
	s.onOther = see
	return out
}

// TestPolicyOdd sets each expression to what it is not asked for. The slot does
// what the documents say, or the safe thing, and it is told once.
func TestPolicyOdd(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		config string
		path   string // of the slot, from its claim on
		want   []string
	}{
		{"PREEMPT = Nothing\n", "Claimed/Busy", []string{"PREEMPT = Nothing is undefined, taken as FALSE [ep.conf:6]; Nothing = undefined"}},
		{"PREEMPT = \"true\"\n", "Claimed/Busy", []string{`PREEMPT = "true" is undefined, taken as FALSE [ep.conf:6]`}},
		{"PREEMPT = real(\"NaN\")\n", "Claimed/Busy", []string{`PREEMPT = real("NaN") is undefined, taken as FALSE [ep.conf:6]`}},
		{"PREEMPT = error\n", "Claimed/Busy", []string{"PREEMPT = error is undefined, taken as FALSE [ep.conf:6]"}},
		{"PREEMPT_VANILLA = Nothing\nPREEMPT = false\n", "Claimed/Busy",
			[]string{"PREEMPT_VANILLA = Nothing is undefined, PREEMPT is asked [ep.conf:6]; Nothing = undefined"}},
		{"WANT_SUSPEND = {1}\n", "Claimed/Busy", []string{"WANT_SUSPEND = { 1 } is undefined, taken as FALSE [ep.conf:6]"}},
		// A machine whose owner cannot be made out is the owner's: no new job.
		{"IS_OWNER = Nothing\n", "", []string{"IS_OWNER = Nothing is undefined, taken as TRUE [ep.conf:6]; Nothing = undefined"}},
		// A job that is to go without a word about how has its vacate time.
		{"WANT_VACATE = Nothing\nPREEMPT = true\n", "Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating",
			[]string{"WANT_VACATE = Nothing is undefined, taken as TRUE [ep.conf:6]; Nothing = undefined"}},
		{"MAXJOBRETIREMENTTIME = \"long\"\nPREEMPT = true\n", "Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating",
			[]string{`MAXJOBRETIREMENTTIME = "long" is taken as 0 s [ep.conf:6]`}},
		{"MachineMaxVacateTime = Nothing\n", "Claimed/Busy", []string{"MachineMaxVacateTime = Nothing is taken as 0 s [ep.conf:6]; Nothing = undefined"}},
		{"RANK = \"high\"\n", "Claimed/Busy", []string{`RANK = "high" is taken as 0 [ep.conf:6]`}},
		{"CLAIM_WORKLIFE = Nothing\n", "Claimed/Busy",
			[]string{"CLAIM_WORKLIFE = Nothing is undefined, taken as the default of 1200 s [ep.conf:6]; Nothing = undefined"}},
		// Undefined is an ordinary answer of these.
		{"RANK = TARGET.Nothing\nSTART = TARGET.Owner == \"alice\"\n", "Claimed/Busy", nil},
		{"PREEMPT = true\nWANT_HOLD = true\nWANT_HOLD_REASON = Nothing\nWANT_HOLD_SUBCODE = \"x\"\n",
			"Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating", []string{`WANT_HOLD_SUBCODE = "x" is taken as 0 [ep.conf:9]`}},
	} {
		s := newStage(t, 1, "SLOT_TYPE_0_PARTITIONABLE = false\nNUM_SLOTS = 1\nPOLLING_INTERVAL = 1\nUPDATE_INTERVAL = 5\n\n"+tt.config)
		got := s.odd()
		s.run(time.Minute)
		ad := job(t, script{runs: time.Hour, onSoft: time.Hour}, "")
		if tt.path != "" {
			from := len(s.moves)
			g := s.claim(slot1, ad)
			s.activate(g.Claim, ad)
			s.run(30 * time.Second)
			if path := s.path("slot1", from+2); path != strings.TrimPrefix(tt.path, "Claimed/Busy") && path != tt.path {
				t.Errorf("%q: the slot went %q, want %q", tt.config, path, tt.path)
			}
		} else if p := s.pair(slot1); p != policy.OwnerIdle {
			t.Errorf("%q: %v, want the owner's", tt.config, p)
		}
		var want []string
		for _, w := range tt.want {
			want = append(want, "slot1 "+w)
		}
		if d := cmp.Diff(want, *got); d != "" {
			t.Errorf("%q: %s", tt.config, d)
		}
	}
}

// What is odd is told again when it was right meanwhile, when it is odd in
// another way, and when it was configured otherwise; not for other slots.
func TestPolicyOddAgain(t *testing.T) {
	t.Parallel()
	const config = "SLOT_TYPE_0_PARTITIONABLE = false\nNUM_SLOTS = 2\nNUM_CPUS = 2\nPOLLING_INTERVAL = 1\nUPDATE_INTERVAL = 5\n"
	s := newStage(t, 2, config+"PREEMPT = Mood\n")
	got := s.odd()
	ad := job(t, steady(10*time.Hour), "")
	for _, id := range []int{1, 2} {
		of := slot1
		of.N = id
		s.activate(s.claim(of, ad).Claim, ad)
	}
	told := func(want int, when string) {
		t.Helper()
		s.run(time.Minute)
		if len(*got) != want {
			t.Errorf("%s: told %d times, want %d: %q", when, len(*got), want, *got)
		}
	}
	told(1, "undefined in both slots")
	s.publish("Mood = false\n")
	told(1, "right")
	s.publish("Mood = undefined\n")
	told(2, "undefined again")
	s.publish("Mood = \"bad\"\n")
	told(3, "a string instead")
	s.publish("Mood = \"worse\"\n")
	told(3, "another string")
	s.step(Reconfigured{Snapshot: parse(t, s.inv, config+"PREEMPT = Mood\nFOO = 1\n")})
	told(3, "configured as before")
	s.step(Reconfigured{Snapshot: parse(t, s.inv, config+"PREEMPT = Mood && true\n")})
	told(4, "configured otherwise")
	// To ask why tells nobody and forgets nothing.
	s.publish("Mood = false\n")
	told(4, "right once more")
	s.publish("Mood = undefined\n")
	if _, ok := s.eng.Explain(slot1); !ok {
		t.Fatal("no explanation")
	}
	told(5, "undefined once more")
}
