// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package eptest has the recorded runs of the reference daemons, each in a pool
// of its own, and says what it takes for a run of ours to be the same. It owns
// the records and the comparison; who plays a record, in which world, is the
// test's affair. It must never import the engine, whose own tests use it, and
// never be imported by anything but tests.
//
//	eptest.Replay(t, eptest.Runs(t), diverging, func(t *testing.T, r *eptest.Run) ([]eptest.Move, error) { … })
package eptest

import (
	"bufio"
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

//go:embed testdata/policy.jsonl
var policy []byte

// Run is one recorded run: what the daemons were given, what was done to them,
// how their slots moved, and why. Times are in seconds of the run.
type Run struct {
	ID, Group, Desc, Config string
	Knobs                   map[string]string
	Job                     string // submit texts, headed "name:" and parted by "--- name:"
	T0                      string // what second 0 is: "first Claimed/Busy" or "pool ready"
	End                     float64
	Actions                 []struct {
		T  float64
		Do string
	}
	Transitions []Move
	Reasons     []struct {
		T          float64
		Slot, Text string
	}
	Notes string
	JSON  []byte `json:"-"` // the whole line, with what has no field here
}

// Move is one move of a slot.
type Move struct {
	T              float64
	Slot, From, To string
	Reason         string `json:"-"` // of ours; a record has its own list
}

// Runs returns all records. They may be changed.
func Runs(t testing.TB) []Run {
	t.Helper()
	var all []Run
	lines := bufio.NewScanner(bytes.NewReader(policy))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		r := Run{JSON: bytes.Clone(lines.Bytes())}
		if err := json.Unmarshal(r.JSON, &r); err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// Replay plays each run as a test of its own. Every slot must make the moves
// that were recorded, each within two seconds of when it was, and give the same
// reasons for them. The diverging are runs that do not come out so, and why:
// they must still differ, and one that no longer does has to be taken off the
// list.
func Replay(t *testing.T, runs []Run, diverging map[string]string, play func(*testing.T, *Run) ([]Move, error)) {
	t.Helper()
	passed := 0
	for _, r := range runs {
		t.Run(r.ID, func(t *testing.T) {
			diff := r.differs(play(t, &r))
			why, known := diverging[r.ID]
			switch {
			case diff == "" && known:
				t.Errorf("is as recorded, though it should not be: %s", why)
			case diff == "":
				passed++
			case !known:
				t.Errorf("%s\n%s", r.Desc, diff)
			}
		})
	}
	for id := range diverging {
		if !slices.ContainsFunc(runs, func(r Run) bool { return r.ID == id }) {
			t.Errorf("%s is said to differ, and is not among the runs", id)
		}
	}
	t.Logf("%d of %d runs came out as recorded, %d differ for a reason", passed, len(runs), len(diverging))
}

func (r *Run) differs(got []Move, err error) string {
	if err != nil {
		return err.Error()
	}
	return r.Diff(got)
}

// Diff says how moves differ from the record, "" if they do not.
func (r *Run) Diff(got []Move) string {
	claims := slices.ContainsFunc(r.Transitions, func(m Move) bool { return strings.HasPrefix(m.To, "Claimed") })
	var names []string
	for _, m := range append(slices.Clone(r.Transitions), got...) {
		if !slices.Contains(names, m.Slot) {
			names = append(names, m.Slot)
		}
	}
	diff := ""
	for _, name := range names {
		want := firstLife(r.Transitions, name, claims)
		if d := compare(firstLife(got, name, claims), want, r.End); d != "" {
			diff += name + "\n" + d
			continue
		}
		diff += r.unheard(got, name, want)
	}
	return diff
}

// firstLife cuts the moves of one slot down to what can be compared: from its
// first claim (or, in a run without claims, from where it stands at the start)
// up to where it stands after the first eviction or release.
func firstLife(moves []Move, name string, claims bool) []Move {
	var out []Move
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

func render(moves []Move) string {
	var b strings.Builder
	for _, m := range moves {
		fmt.Fprintf(&b, "%6.1f %s -> %s\n", m.T, m.From, m.To)
	}
	return b.String()
}

// compare returns how the two lives of a slot differ, "" if they do not.
func compare(got, want []Move, end float64) string {
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
func absorbed(m Move) bool {
	return m.From == "Claimed/Cleaning" && strings.HasPrefix(m.To, "Preempting")
}

// unheard tells which recorded reasons of a slot's life no move gave.
func (r *Run) unheard(got []Move, name string, life []Move) string {
	if len(life) == 0 {
		return ""
	}
	missing := ""
	for _, why := range r.Reasons {
		if why.Slot != name || why.T < life[0].T-0.1 || why.T > life[len(life)-1].T+0.05 {
			continue
		}
		text := strings.TrimSuffix(strings.TrimSuffix(why.Text, "."), ", Starter PID")
		if !slices.Contains(worded, text) {
			continue
		}
		if text == "received RELEASE_CLAIM command" && slices.ContainsFunc(life, absorbed) {
			continue // what moves the slot then is the end of the starter
		}
		if !slices.ContainsFunc(got, func(m Move) bool { return m.Slot == name && m.Reason == text }) {
			missing += fmt.Sprintf("%s: nothing happened because %q (%.1f)\n", name, text, why.T)
		}
	}
	return missing
}
