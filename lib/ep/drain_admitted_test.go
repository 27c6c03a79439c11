// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// exceeding is a machine whose jobs are sent away when TooBig is true, as the
// policy HOLD_IF_MEMORY_EXCEEDED does when one has too much memory.
const exceeding = drainConfig + `NUM_SLOTS = 2
POLLING_INTERVAL = 3
EXCEEDED = (TooBig =?= true && TARGET.IsBackfill =?= true)
MAXJOBRETIREMENTTIME = ifthenelse($(EXCEEDED), -1, 300)
PREEMPT = $(EXCEEDED)
WANT_HOLD = $(EXCEEDED)
WANT_HOLD_REASON = "too big"
MachineMaxVacateTime = 2
`

// admitting drains the machine while slot1 has a job that may stay, and lets
// a job into slot2.
func admitting(t *testing.T, config string, first, second script) *stage {
	t.Helper()
	s := newStage(t, 2, config)
	old := job(t, first, "")
	s.activate(s.claim(slot.ID{N: 1}, old).Claim, old)
	s.run(3 * time.Second)
	if r := s.drain(DrainRequested{Start: classad.MustParseExpr("TARGET.IsBackfill")}); r.Err != nil {
		t.Fatal(r.Err)
	}
	s.run(2 * time.Second)
	ad := job(t, second, "IsBackfill = true\n")
	s.activate(s.claim(slot.ID{N: 2}, ad).Claim, ad)
	s.run(5 * time.Second)
	if got := s.pair(slot.ID{N: 2}); got != policy.ClaimedBusy {
		t.Fatalf("slot2 is %v", got)
	}
	return s
}

// TestDrainHoldsAdmitted: the policy of the slot holds for a job that the
// drain let in. What PREEMPT sends away goes when its own retirement is over,
// here at the next look at the policy, and does not stay until the drain ends.
func TestDrainHoldsAdmitted(t *testing.T) {
	t.Parallel()
	s := admitting(t, exceeding, steady(time.Hour), script{runs: time.Hour, onSoft: -1})
	from := len(s.moves)
	s.publish("TooBig = true\n")
	s.run(3 * time.Second) // a polling interval
	if got := s.pair(slot.ID{N: 2}); got.State != policy.Preempting {
		t.Fatalf("slot2 is %v", got)
	}
	s.publish("TooBig = false\n")
	s.run(5 * time.Second)
	const want = "Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating 22 Owner/Idle 1 Unclaimed/Idle 37 Drained/Retiring"
	if got := s.path("slot2", from); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	held := false
	for _, o := range s.orders {
		held = held || o.Hold && o.Reason == "too big"
	}
	if !held {
		t.Errorf("no order to hold: %+v", s.orders)
	}
}

// TestDrainSendsAdmittedAfterItsRetirement: PREEMPT gives a job that the drain
// let in the retirement that the slot grants, but no more time than the drain
// has.
func TestDrainSendsAdmittedAfterItsRetirement(t *testing.T) {
	t.Parallel()
	const config = drainConfig + "NUM_SLOTS = 2\nMAXJOBRETIREMENTTIME = TARGET.IsBackfill =?= true ? 20 : 300\n" +
		"PREEMPT = TooBig =?= true && TARGET.IsBackfill =?= true\nMachineMaxVacateTime = 1\n"
	s := admitting(t, config, steady(time.Hour), steady(time.Hour)) // which has run for 5 s
	from := len(s.moves)
	s.publish("TooBig = true\n")
	s.run(10 * time.Second)
	if got := s.pair(slot.ID{N: 2}); got != policy.ClaimedRetiring {
		t.Errorf("slot2 is %v", got)
	}
	s.run(5 * time.Second)
	const want = "Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating 22 Owner/Idle 1 Unclaimed/Idle 37 Drained/Retiring"
	if got := s.path("slot2", from); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if len(s.ended) != 1 || s.ended[0].Code != 1011 {
		t.Errorf("ends of claims: %+v", s.ended)
	}
}

// TestDrainFinalAtOnce: when the last of the first jobs has gone, those that
// were let in leave in the same instant, however long it is until the next
// look at the policy.
func TestDrainFinalAtOnce(t *testing.T) {
	t.Parallel()
	const config = drainConfig + "NUM_SLOTS = 2\nPOLLING_INTERVAL = 60\nMAXJOBRETIREMENTTIME = 600\nMachineMaxVacateTime = 5\n"
	s := admitting(t, config, steady(20*time.Second), script{runs: time.Hour, onSoft: -1})
	from := len(s.moves)
	s.run(11 * time.Second)
	const want = "Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating"
	if got := s.path("slot2", from); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestDrainWaitsForOutput: the first job has ended, but its output is on its
// way. Until its starter is gone nobody that was let in has to leave, and then
// the drain's last part begins.
func TestDrainWaitsForOutput(t *testing.T) {
	t.Parallel()
	const config = drainConfig + "NUM_SLOTS = 2\nMAXJOBRETIREMENTTIME = 600\nMachineMaxVacateTime = 5\n"
	s := admitting(t, config, script{runs: 20 * time.Second, reap: 30 * time.Second}, script{runs: time.Hour, onSoft: -1})
	from := len(s.moves)
	s.run(35 * time.Second)
	if got := s.pair(slot.ID{N: 1}); got != policy.ClaimedCleaning {
		t.Fatalf("slot1 is %v", got)
	}
	if got := s.pair(slot.ID{N: 2}); got != policy.ClaimedBusy {
		t.Errorf("slot2 is %v", got)
	}
	s.run(6 * time.Second)
	const want = "Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating"
	if got := s.path("slot2", from); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestDrainWaitsForClaim: the first job is over, and its shadow has not given the
// claim back. Until the claim is gone nobody that was let in has to leave.
func TestDrainWaitsForClaim(t *testing.T) {
	t.Parallel()
	const config = drainConfig + "NUM_SLOTS = 2\nPOLLING_INTERVAL = 1\nMAXJOBRETIREMENTTIME = 600\nMachineMaxVacateTime = 5\n"
	s := admitting(t, config, steady(12*time.Second), script{runs: time.Hour, onSoft: -1})
	from := len(s.moves)
	s.run(6 * time.Second)
	if got := s.pair(slot.ID{N: 1}); got != policy.ClaimedIdle {
		t.Fatalf("slot1 is %v", got)
	}
	if got := s.pair(slot.ID{N: 2}); got != policy.ClaimedBusy {
		t.Errorf("slot2 is %v", got)
	}
	s.run(12 * time.Second)
	const want = "Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating"
	if got := s.path("slot2", from); !strings.HasPrefix(got, want) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
