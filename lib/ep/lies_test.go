// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// history is what a slot did, with the seconds since the claims.
func (s *stage) history(name string, since time.Duration) []string {
	var out []string
	for i, m := range s.moves {
		if m.Name == name && s.at[i] >= since {
			out = append(out, fmt.Sprintf("%v %v", s.at[i]-since, m.To))
		}
	}
	return out
}

// TestJobsThatLie runs a job with negative, absurd or meaningless times beside
// an honest one. The honest one's slot does what it does beside another honest
// one, to the instant, and the liar gets no more than the machine promises.
func TestJobsThatLie(t *testing.T) {
	t.Parallel()
	const config = "SLOT_TYPE_0_PARTITIONABLE = false\nNUM_SLOTS = 2\nNUM_CPUS = 2\nPOLLING_INTERVAL = 1\nUPDATE_INTERVAL = 5\n" +
		"MAXJOBRETIREMENTTIME = 60\nMachineMaxVacateTime = 20\nKILLING_TIMEOUT = 30\nPREEMPT = Evict =?= true\nWANT_SUSPEND = false\nCLAIM_WORKLIFE = 3600\n"
	other := slot.ID{N: 2}
	play := func(lie string) (honest, liar []string) {
		s := newStage(t, 2, config)
		since := s.elapsed()
		good := job(t, script{runs: 40 * time.Second}, "")
		deaf := script{runs: 1000 * time.Hour, onSoft: -1, onHard: -1} // it obeys nothing
		bad := job(t, deaf, lie)
		g := s.claim(other, good)
		s.activate(g.Claim, good)
		if r := s.request(ClaimRequested{Slot: slot1, AliveInterval: time.Minute}, bad); r.Err == nil {
			s.activate(r.Granted.Claim, bad)
		}
		s.run(10 * time.Second)
		s.publish("Evict = true\n")
		for range 30 {
			s.run(10 * time.Second)
			s.step(LeaseRenewed{Claim: g.Claim})
		}
		if got := s.pair(slot1); got != policy.UnclaimedIdle {
			t.Errorf("%s: the liar's slot is %v after five minutes", lie, got)
		}
		return s.history("slot2", since), s.history("slot1", since)
	}
	want, _ := play("")
	if len(want) < 6 {
		t.Fatalf("the honest job's slot: %q", want)
	}
	for _, lie := range []string{
		"JobLeaseDuration = -1", "JobLeaseDuration = -9223372036854775808", "JobLeaseDuration = 9223372036854775807",
		"JobLeaseDuration = 1.0e300", "JobLeaseDuration = real(\"NaN\")", "JobLeaseDuration = real(\"-INF\")", "JobLeaseDuration = \"long\"", "JobLeaseDuration = error",
		"MaxJobRetirementTime = -1", "MaxJobRetirementTime = -9223372036854775808", "MaxJobRetirementTime = 9223372036854775807",
		"MaxJobRetirementTime = 1.0e300", "MaxJobRetirementTime = real(\"NaN\")", "MaxJobRetirementTime = \"long\"", "MaxJobRetirementTime = {1}",
		"JobMaxVacateTime = -1", "JobMaxVacateTime = -9223372036854775808", "JobMaxVacateTime = 9223372036854775807",
		"JobMaxVacateTime = 1.0e300", "JobMaxVacateTime = real(\"NaN\")", "JobMaxVacateTime = \"long\"", "JobMaxVacateTime = undefined",
		"KillSigTimeout = 9223372036854775807", "KillSigTimeout = -5", "KillSigTimeout = [a = 1]",
		"JobUniverse = \"vanilla\"", "JobUniverse = -7", "JobUniverse = 13\nJobVMCheckpoint = \"x\"", "User = 7\nOwner = {}",
		"ClusterId = -1\nProcId = 9223372036854775807", "RemoteUser = error\nJobPrio = 1.0e300",
	} {
		honest, liar := play(lie + "\n")
		if d := cmp.Diff(want, honest); d != "" {
			t.Errorf("beside %s: %s", lie, d)
		}
		// Retirement, vacate and killing time of the machine bound whatever it says.
		if len(liar) > 0 {
			var last time.Duration
			for _, line := range liar {
				text, _, _ := strings.Cut(line, " ")
				at, err := time.ParseDuration(text)
				if err != nil {
					t.Fatal(err)
				}
				last = at
			}
			if last > (60+20+30+5)*time.Second {
				t.Errorf("%s keeps the slot: %q", lie, liar)
			}
		}
	}
}
