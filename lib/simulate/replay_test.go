// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/machine"
)

// golden is one recorded run of the reference daemons in a pool of their own.
type golden struct {
	Record
	Group, Desc string
	Transitions []Moved
	Reasons     []struct {
		T          float64
		Slot, Text string
	}
	Notes string
}

func goldens(t testing.TB) []golden {
	t.Helper()
	data, err := os.ReadFile("testdata/policy.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	var all []golden
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var g golden
		if err := json.Unmarshal(lines.Bytes(), &g); err != nil {
			t.Fatal(err)
		}
		all = append(all, g)
	}
	return all
}

func parseText(inv *machine.Inventory, text string) (*config.Snapshot, error) {
	return config.Parse("ep.conf", text, config.Options{Subsystem: "STARTD", Facts: machine.ConfigFacts(inv)})
}

// firstLife cuts the moves of one slot down to what can be compared: from its
// first claim (or, in a run without claims, from where it stands at the start)
// up to where it stands after the first eviction or release.
func firstLife(moves []Moved, name string, claims bool) []Moved {
	var out []Moved
	preempted := false
	for _, m := range moves {
		if m.Slot != name {
			continue
		}
		if claims && len(out) == 0 && !strings.HasPrefix(m.To, "Claimed") {
			continue
		}
		if !claims && m.T < 0 {
			continue
		}
		out = append(out, m)
		if strings.HasPrefix(m.To, "Preempting") {
			preempted = true
		}
		if preempted && (strings.HasPrefix(m.To, "Unclaimed") || strings.HasPrefix(m.From, "Preempting") && strings.HasPrefix(m.To, "Claimed")) {
			break
		}
	}
	return out
}

func render(moves []Moved) string {
	var b strings.Builder
	for _, m := range moves {
		fmt.Fprintf(&b, "%6.1f %s -> %s\n", m.T, m.From, m.To)
	}
	return b.String()
}

// compare returns how the two lives of a slot differ, "" if they do not.
func compare(got, want []Moved, end float64) string {
	// A move near the end of the run may just have missed it.
	for len(got) > len(want) && got[len(got)-1].T > end-2 {
		got = got[:len(got)-1]
	}
	for len(want) > len(got) && want[len(want)-1].T > end-2 {
		want = want[:len(want)-1]
	}
	same := len(got) == len(want)
	for i := 0; same && i < len(got); i++ {
		same = got[i].From == want[i].From && got[i].To == want[i].To && math.Abs(got[i].T-want[i].T) <= 2.0
	}
	if same {
		return ""
	}
	return fmt.Sprintf("got\n%swant\n%s", render(got), render(want))
}

// diverging are the cases that do not come out as recorded, and why. They must
// still differ: one that no longer does has to be taken off the list.
var diverging = map[string]string{
	"policy-claimed-02": "IS_OWNER is undefined at first, which ends the reference daemon; here it keeps the slot for its owner",
	"policy-owner2-07":  "the same",
	"policy-preempt-07": "WANT_VACATE is undefined, which ends the reference daemon; here the job may leave gently",
	"policy-lease3-02":  "the reference daemon waits for its own unanswered calls before the lease counts",
	"policy-killing-04": "the daemon itself is killed, and started again by its master",
	"policy-jobhook-02": "the exit hook held the recorded starter for two more seconds in this run alone",
	"policy-drain2-11":  "the documents promise that all slots end together, so the shorter retirement is stretched; the reference daemon does not do it",
	"policy-drain3-01":  "a job that was let in meanwhile may stay until the drain needs its slot, as the documents have it; the reference daemon evicts it after a tick",
}

// TestReplay plays the recorded runs in virtual time: the same configuration,
// jobs that behave the same, the same commands at the same moments. Every slot
// must make the same moves, each within two seconds of when it was recorded,
// and give the same reasons for them.
func TestReplay(t *testing.T) {
	t.Parallel()
	cases := goldens(t)
	passed := 0
	for _, g := range cases {
		t.Run(g.ID, func(t *testing.T) {
			diff := replayed(&g)
			why, known := diverging[g.ID]
			switch {
			case diff == "" && known:
				t.Errorf("is as recorded, though it should not be: %s", why)
			case diff == "":
				passed++
			case !known:
				t.Errorf("%s\n%s", g.Desc, diff)
			}
		})
	}
	t.Logf("%d of %d runs came out as recorded, %d differ for a reason", passed, len(cases), len(diverging))
}

// replayed plays one case and tells how it differs from the record.
func replayed(g *golden) string {
	got, err := Replay(&g.Record, parseText)
	if err != nil {
		return err.Error()
	}
	claims := slices.ContainsFunc(g.Transitions, func(m Moved) bool { return strings.HasPrefix(m.To, "Claimed") })
	var names []string
	for _, m := range append(slices.Clone(g.Transitions), got...) {
		if !slices.Contains(names, m.Slot) {
			names = append(names, m.Slot)
		}
	}
	diff := ""
	for _, name := range names {
		if d := compare(firstLife(got, name, claims), firstLife(g.Transitions, name, claims), g.End); d != "" {
			diff += name + "\n" + d
			continue
		}
		diff += g.unheard(got, name, firstLife(g.Transitions, name, claims))
	}
	return diff
}

// worded are the recorded reasons that a move has to give in the same words.
var worded = []string{
	"IS_OWNER is false", "IS_OWNER is true", "IS_OWNER is TRUE", "claiming protocol successful", "claim-activation protocol successful",
	"PREEMPT is TRUE", "SUSPEND is TRUE", "CONTINUE is TRUE", "KILL is TRUE", "claim retirement ended/expired",
	"retiring due to preempting claim", "unretiring because no preempting claim exists", "idle claim shutting down due to CLAIM_WORKLIFE",
	"received RELEASE_CLAIM command", "received VACATE_CLAIM command", "received SUSPEND_CLAIM command", "received CONTINUE_CLAIM command",
	"No preempting claim, returning to owner", "preempting claim exists - START is true or undefined",
	"starter exited, was in Claimed/Cleaning", "starter exited, was in Claimed/Busy",
}

// absorbed reports whether a release came while the starter was being reaped.
func absorbed(m Moved) bool {
	return m.From == "Claimed/Cleaning" && strings.HasPrefix(m.To, "Preempting")
}

// unheard tells which recorded reasons of a slot's life no move gave.
func (g *golden) unheard(got []Moved, name string, life []Moved) string {
	if len(life) == 0 {
		return ""
	}
	missing := ""
	for _, r := range g.Reasons {
		if r.Slot != name || r.T < life[0].T-0.1 || r.T > life[len(life)-1].T+0.05 {
			continue
		}
		text := strings.TrimSuffix(strings.TrimSuffix(r.Text, "."), ", Starter PID")
		if !slices.Contains(worded, text) {
			continue
		}
		if text == "received RELEASE_CLAIM command" && slices.ContainsFunc(life, absorbed) {
			continue // what moves the slot then is the end of the starter
		}
		if !slices.ContainsFunc(got, func(m Moved) bool { return m.Slot == name && m.Reason == text }) {
			missing += fmt.Sprintf("%s: nothing happened because %q (%.1f)\n", name, text, r.T)
		}
	}
	return missing
}
