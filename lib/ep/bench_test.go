// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"fmt"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

const desktop = "use POLICY : Desktop\nNUM_CPUS = 16384\nMEMORY = 33554432\n"

// busyStage is a machine with n claimed and busy dynamic slots.
func busyStage(b testing.TB, n int, text string) *stage {
	s := newStage(b, n, text)
	s.step(Sampled{Sample: machine.Sample{At: s.now, KeyboardIdle: 10 * time.Hour, Fresh: machine.AllReadings}})
	s.now = s.now.Add(10 * time.Minute)
	s.step(Tick{})
	ad := job(b, script{begins: time.Hour, runs: time.Hour}, "")
	for range n {
		g := s.claim(slot.ID{N: 1}, ad)
		s.activate(g.Claim, ad)
	}
	s.step(Sampled{Sample: machine.Sample{At: s.now, KeyboardIdle: 10 * time.Hour, Fresh: machine.AllReadings}})
	s.onReply, s.later = nil, nil
	return s
}

// BenchmarkTick looks at the policy of ten thousand busy slots under the
// desktop policy, with nothing to change.
func BenchmarkTick(b *testing.B) {
	for _, n := range []int{100, 10_000} {
		b.Run(fmt.Sprintf("slots=%d", n), func(b *testing.B) {
			s := busyStage(b, n, desktop)
			sample := machine.Sample{At: s.now, KeyboardIdle: 10 * time.Hour, Fresh: machine.AllReadings}
			b.ReportAllocs()
			for b.Loop() {
				s.now = s.now.Add(5 * time.Second)
				sample.At = s.now
				s.eng.Step(s.now, Tick{})
			}
			if got := s.pair(slot.ID{N: 1, Sub: n}); got != policy.ClaimedBusy {
				b.Fatal(got)
			}
		})
	}
}

// BenchmarkPoll is one polling pass over ten thousand busy slots under the
// desktop policy, with nothing to change: a reading of the machine is taken
// into all ads, and the policy of every slot is looked at.
func BenchmarkPoll(b *testing.B) {
	s := busyStage(b, 10_000, desktop)
	sample := machine.Sample{At: s.now, KeyboardIdle: 10 * time.Hour, Fresh: machine.AllReadings}
	poll := func() {
		s.now = s.now.Add(5 * time.Second)
		sample.At = s.now
		s.eng.Step(s.now, Sampled{Sample: sample})
		s.eng.Step(s.now, Tick{})
	}
	for range 100 { // more than UPDATE_INTERVAL
		poll()
	}
	b.ReportAllocs()
	for b.Loop() {
		poll()
	}
	if got := s.pair(slot.ID{N: 1, Sub: 10_000}); got != policy.ClaimedBusy {
		b.Fatal(got)
	}
}

// TestPollAllocates counts what a polling pass allocates while nothing changes:
// nothing for any slot, only the events and the WakeAt after each. It runs
// alone, for it counts.
func TestPollAllocates(t *testing.T) {
	for _, n := range []int{50, 400} {
		s := busyStage(t, n, desktop)
		poll := func() {
			s.now = s.now.Add(5 * time.Second)
			s.eng.Step(s.now, Sampled{Sample: machine.Sample{At: s.now, KeyboardIdle: 10 * time.Hour, Fresh: machine.AllReadings}})
			s.eng.Step(s.now, Tick{})
		}
		for range 61 { // one after an UPDATE_INTERVAL
			poll()
		}
		if got := testing.AllocsPerRun(40, poll); got > 3 {
			t.Errorf("%v allocations with %d slots", got, n)
		}
	}
}

// BenchmarkSampled takes a reading of the machine into ten thousand ads.
func BenchmarkSampled(b *testing.B) {
	s := busyStage(b, 10_000, desktop)
	b.ReportAllocs()
	for b.Loop() {
		s.now = s.now.Add(5 * time.Second)
		s.eng.Step(s.now, Sampled{Sample: machine.Sample{At: s.now, KeyboardIdle: 10 * time.Hour, Fresh: machine.AllReadings}})
	}
}

// BenchmarkJob is one job under a claim that is kept: activation, start, end
// and the starter's exit, on a machine where so many slots are busy.
func BenchmarkJob(b *testing.B) {
	for _, n := range []int{8, 1000} {
		b.Run(fmt.Sprintf("slots=%d", n), func(b *testing.B) {
			s := busyStage(b, n, "")
			v, _ := s.eng.SlotView(slot.ID{N: 1, Sub: 1})
			ad := job(b, script{}, "")
			act := v.Activation
			b.ReportAllocs()
			for b.Loop() {
				s.eng.Step(s.now, JobRunning{Activation: act})
				s.eng.Step(s.now, JobEnded{Activation: act, Exit: Exit{Status: host.ExitStatus{Exited: true}}})
				s.eng.Step(s.now, StarterExited{Activation: act, Status: host.ExitStatus{Exited: true}})
				act = ""
				for _, eff := range s.eng.Step(s.now, ActivateRequested{Ref: asked(1), Claim: v.Claim, Job: ad}) {
					if r, ok := eff.(Reply); ok {
						act = r.Activation
					}
				}
				if act == "" {
					b.Fatal("the job was refused")
				}
			}
		})
	}
}

// BenchmarkClaim is the whole cycle: claim with carving, activation, end,
// release with the return of the dynamic slot.
func BenchmarkClaim(b *testing.B) {
	s := newStage(b, 8, "")
	ad := job(b, script{}, "")
	b.ReportAllocs()
	for b.Loop() {
		var id claim.ID
		var act claim.ActivationID
		step := func(ev Event) {
			for _, eff := range s.eng.Step(s.now, ev) {
				if r, ok := eff.(Reply); ok && r.Granted != nil {
					id = r.Granted.Claim
				} else if ok {
					act = r.Activation
				}
			}
		}
		step(ClaimRequested{Ref: asked(1), Slot: slot.ID{N: 1}, Job: ad, Lease: time.Hour})
		step(ActivateRequested{Ref: asked(2), Claim: id, Job: ad})
		started := act
		step(StarterStarted{Activation: started})
		step(JobRunning{Activation: started})
		step(JobEnded{Activation: started})
		step(StarterExited{Activation: started})
		step(ReleaseRequested{Ref: asked(3), Claim: id})
	}
	if s.eng.ledger.Len() != 1 {
		b.Fatal("a dynamic slot is left")
	}
}
