// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"testing"
	"time"
)

// A job whose program has ended by itself sends its output while the EP shuts
// down. Its starter is ended by force when nothing moves for KILLING_TIMEOUT, and
// in a fast shutdown shortly before SHUTDOWN_FAST_TIMEOUT is over, at which
// condor_master kills the startd itself.
func TestShutdownSparesOutput(t *testing.T) {
	t.Parallel()
	const config = static1 + "MAXJOBRETIREMENTTIME = 0\nMachineMaxVacateTime = 60\nKILLING_TIMEOUT = 30\nSHUTDOWN_FAST_TIMEOUT = 300\nSHUTDOWN_GRACEFUL_TIMEOUT = 1800\n"
	shutdown := func(m Manner) Event { return ShutdownRequested{Manner: m} }
	for _, c := range []struct {
		name  string
		what  Event
		moves time.Duration // output moves for so long after it
		limit time.Duration // that the starter is told with the hard kill, 0: there is none
		hard  time.Duration // when the hard kill is ordered
		kill  time.Duration // when the starter is ended by force, 0: never
	}{
		{"fast, it moves and arrives", shutdown(Fast), 200 * time.Second, 270 * time.Second, 0, 0},
		{"fast, it never ends", shutdown(Fast), time.Hour, 270 * time.Second, 0, 285 * time.Second},
		{"fast, it stops", shutdown(Fast), 100 * time.Second, 270 * time.Second, 0, 130 * time.Second},
		{"fast, it never moves", shutdown(Fast), 0, 270 * time.Second, 0, 30 * time.Second},
		{"graceful, it moves and arrives", shutdown(Graceful), 1000 * time.Second, 0, 0, 0},
		{"graceful, it stops", shutdown(Graceful), 1000 * time.Second, 15 * time.Second, 1030 * time.Second, 1060 * time.Second},
		{"graceful, it never ends", shutdown(Graceful), time.Hour, 270 * time.Second, 1800 * time.Second, 2085 * time.Second},
		{"vacated fast", VacateRequested{Slot: slot1, Manner: Fast}, time.Hour, 15 * time.Second, 0, 30 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, 1, config)
			// The program has ended for the starter alone: it obeys no order any more.
			ad := job(t, script{runs: 10 * time.Hour, onSoft: -1, onHard: -1}, "")
			id := s.activate(s.claim(slot1, ad).Claim, ad)
			s.run(10 * time.Second)
			began, killed := s.elapsed(), time.Duration(0)
			s.onGone = func(*actor) { killed = s.elapsed() - began }
			var end ActivationEnded
			s.onOther = func(e Effect) {
				if e, ok := e.(ActivationEnded); ok {
					end = e
				}
			}
			hard := time.Duration(-1)
			s.step(c.what)
			for d := 5 * time.Second; d <= c.moves && len(s.killed) == 0; d += 5 * time.Second {
				s.run(5 * time.Second)
				s.step(OutputMoved{Activation: id})
			}
			if c.kill == 0 { // it arrives
				s.starters[id].told = false
				s.starters[id].ends()
			}
			s.run(time.Hour)
			limit := time.Duration(0)
			for _, o := range s.orders {
				if o.Op == HardKill {
					limit, hard = o.OutputLimit, o.Deadline.Sub(s.begun)-30*time.Second-began
				}
			}
			if limit != c.limit || c.limit != 0 && hard != c.hard {
				t.Errorf("hard kill after %v with %v for the output, want after %v with %v", hard, limit, c.hard, c.limit)
			}
			if done := c.kill == 0; (end.Code == 0) != done || end.Ran != done {
				t.Errorf("the end is told as %+v", end)
			}
			if c.kill == 0 && len(s.killed) != 0 || c.kill != 0 && killed != c.kill {
				t.Errorf("the starter was ended by force %d times, at last after %v, want %v", len(s.killed), killed, c.kill)
			}
		})
	}
}
