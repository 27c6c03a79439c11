// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/rapidtest"
)

// TestAnyTimeline plays random timelines. Whatever happens, the moves of a slot
// follow from one another, time goes on, a completed job has had the run time
// it needs, and nobody was given more than the machine has.
func TestAnyTimeline(t *testing.T) {
	t.Parallel()
	rapidtest.Check(t, func(t *rapid.T) {
		var b strings.Builder
		fmt.Fprintf(&b, "start 2026-03-02 08:00\nend 3h\nseed %d\nmachine cpus=%d memory=4096\nconfig\n", rapid.Uint32().Draw(t, "seed"), rapid.IntRange(1, 4).Draw(t, "cpus"))
		b.WriteString(rapid.SampledFrom([]string{
			"    use POLICY : Desktop\n", "    MAXJOBRETIREMENTTIME = 600\n    MachineMaxVacateTime = 60\n", "    NUM_SLOTS = 1\n    SLOT_TYPE_0_PARTITIONABLE = False\n    RANK = Prio\n",
			"    PREEMPT = LoadAvg - CondorLoadAvg > 0.5\n    WANT_SUSPEND = KeyboardIdle < 60\n    SUSPEND = KeyboardIdle < 60\n    CONTINUE = KeyboardIdle > 60\n    SLOTS_CONNECTED_TO_KEYBOARD = 9\n",
		}).Draw(t, "policy"))
		b.WriteString("job a runs=1m..40m\njob b runs=20m soft=never saves=5m\n    +Prio = 5\njob c runs=10m soft=30s saves=leaving memory=10,5m:100\n    keep_claim_idle = 300\njob d fails=exec\njob e runs=5m begins=4m soft=never clock=wall\n")
		verbs := []string{
			"submit a 3", "submit b", "submit c 2", "submit d", "submit e", "hold e", "release e", "type 7m", "type", "leave", "load 1.2 9m", "load 0", "set Flag = true", "vacate all", "vacate slot1_1 fast",
			"vacate slot1", "hold a", "release all", "remove 2.0", "suspend all", "continue all", "silence 10m", "drain", "drain quick resume", "drain fast cancel", "shutdown peaceful",
			"shutdown", "drain restart",
		}
		for range rapid.IntRange(1, 14).Draw(t, "events") {
			fmt.Fprintf(&b, "at %ds %s\n", rapid.IntRange(0, 9000).Draw(t, "at"), rapid.SampledFrom(verbs).Draw(t, "verb"))
		}
		sc, err := Parse("any.scn", b.String())
		if err != nil {
			t.Fatalf("%s%v", &b, err)
		}
		res, err := Run(sc, Node{Machine: sc.Machine, Load: parseText})
		if err != nil {
			t.Fatalf("%s%v", &b, err)
		}
		at := time.Duration(0)
		where := map[string]policy.Pair{}
		busy := map[string]bool{}
		for _, m := range res.Moves {
			from, ok := where[m.Slot]
			if m.At < at || ok && from != m.From && m.From != policy.OwnerIdle {
				t.Fatalf("%s%+v comes after %v", &b, m, from)
			}
			at, where[m.Slot] = m.At, m.To
			busy[m.Slot] = m.To.State == policy.Claimed || m.To.State == policy.Preempting
			n := 0
			for _, is := range busy {
				if is {
					n++
				}
			}
			if n > sc.Machine.Cpus {
				t.Fatalf("%s%d slots are taken of %d processors: %+v", &b, n, sc.Machine.Cpus, m)
			}
		}
		for _, j := range res.Jobs {
			kind := sc.Jobs[strings.Index("abcde", j.Kind)]
			least, most := kind.Runs, max(kind.Runs, kind.RunsMost)
			if j.State == "completed" && (j.Done < least || j.Done > most) {
				t.Fatalf("%s%+v is done after %v, not %v to %v", &b, j, j.Done, least, most)
			}
			if j.Done < 0 || j.Lost < 0 || j.Suspended < 0 || j.Running < 0 || j.Done+j.Lost+j.Running > sc.End*time.Duration(max(1, j.Starts)) || j.Done > most {
				t.Fatalf("%s%+v", &b, j)
			}
		}
	})
}
