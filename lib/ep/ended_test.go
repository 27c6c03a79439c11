// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/reason"
)

// endings collects what is said of activations that are over.
func (s *stage) endings() *[]ActivationEnded {
	out := new([]ActivationEnded)
	s.onOther = func(eff Effect) {
		if e, ok := eff.(ActivationEnded); ok {
			*out = append(*out, e)
		}
	}
	return out
}

// TestActivationEnded tells once of each activation how it ended, and what cost
// it its work.
func TestActivationEnded(t *testing.T) {
	t.Parallel()
	type end struct {
		Ran                bool
		Code               int
		Drained, Preempted bool
		Wall               time.Duration
	}
	for _, tt := range []struct {
		name string
		do   func(s *stage)
		sc   script
		want end
	}{
		{"by itself", func(*stage) {}, script{runs: time.Minute}, end{Ran: true, Wall: time.Minute}},
		{"without a word", func(*stage) {}, script{runs: time.Minute, crash: true}, end{Wall: time.Minute}},
		// Its retirement but for the vacate time, and two seconds of that.
		{"vacated", func(s *stage) { s.step(VacateRequested{Manner: Graceful}) }, script{runs: time.Hour, onSoft: 2 * time.Second},
			end{Ran: true, Code: int(reason.StartdVacateCommand), Wall: 592 * time.Second}},
		{"drained", func(s *stage) { s.drain(DrainRequested{How: DrainFast}) }, script{runs: time.Hour},
			end{Ran: true, Code: int(reason.StartdDraining), Drained: true, Wall: 10 * time.Second}},
		{"preempted", func(s *stage) { s.publish("Evict = true\n"); s.run(5 * time.Second) }, script{runs: time.Hour},
			end{Ran: true, Code: int(reason.StartdPreemptExpression), Preempted: true, Wall: 15 * time.Second}},
		{"drained, but it was done before", func(s *stage) { s.drain(DrainRequested{}) }, script{runs: 11 * time.Second}, end{Ran: true, Wall: 11 * time.Second}},
	} {
		s := newStage(t, 1, static1+"PREEMPT = Evict =?= true\nMAXJOBRETIREMENTTIME = 600 * (Evict =!= true)\nMachineMaxVacateTime = 10\nPOLLING_INTERVAL = 5\n")
		got := s.endings()
		ad := job(t, tt.sc, "ClusterId = 4\n")
		g := s.claim(slot1, ad)
		act := s.activate(g.Claim, ad)
		s.run(10 * time.Second)
		tt.do(s)
		s.run(10 * time.Minute)
		if len(*got) != 1 {
			t.Errorf("%s: told %d times", tt.name, len(*got))
			continue
		}
		e := (*got)[0]
		if d := cmp.Diff(tt.want, end{e.Ran, e.Code, e.Drained, e.Preempted, e.Wall}); d != "" {
			t.Errorf("%s: %s", tt.name, d)
		}
		if e.Activation != act || e.Name != "slot1" || e.Claim != g.Claim.String() || (e.Reason == "") != (e.Code == 0) || e.Given.Cpus != 1 {
			t.Errorf("%s: %+v", tt.name, e)
		}
	}
}

// TestRuleOfAnEnd names the line of the policy that had a job leave, and none where
// somebody asked.
func TestRuleOfAnEnd(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		do   func(s *stage)
		want string
	}{
		{"preempted", func(s *stage) { s.publish("Evict = true\n"); s.run(5 * time.Second) }, "PREEMPT"},
		{"vacated", func(s *stage) { s.step(VacateRequested{Manner: Graceful}) }, ""},
	} {
		s := newStage(t, 1, static1+"PREEMPT = Evict =?= true\nMAXJOBRETIREMENTTIME = 0\nMachineMaxVacateTime = 10\nPOLLING_INTERVAL = 5\n")
		got := s.endings()
		ad := job(t, steady(time.Hour), "")
		g := s.claim(slot1, ad)
		s.activate(g.Claim, ad)
		s.run(10 * time.Second)
		c.do(s)
		s.run(time.Minute)
		if len(*got) != 1 {
			t.Fatalf("%s: %+v", c.name, *got)
		}
		rule := (*got)[0].Rule
		if rule.Name != c.want || c.want != "" && (rule.Text != "Evict =?= true" || rule.Origin == "") {
			t.Errorf("%s: %+v", c.name, rule)
		}
	}
}
