// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/ep/eptest"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/machine"
)

var update = flag.Bool("update", false, "write the golden files anew")

// play parses and runs a scenario that must be right.
func play(t testing.TB, name, text string) *Result {
	t.Helper()
	sc, err := Parse(name, text)
	if err != nil {
		t.Fatal(err)
	}
	res, err := Run(sc, Node{Machine: sc.Machine, Load: func(inv *machine.Inventory, text string) (*config.Snapshot, error) {
		return config.Parse(name, text, config.Options{Subsystem: "STARTD", Facts: machine.ConfigFacts(inv)})
	}})
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// golden compares with a file of testdata, or writes it.
func compareGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

// TestScenario plays a scenario with everything that can happen and compares
// what is printed, as text, JSON and SVG. It is the same each time.
func TestScenario(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/everything.scn")
	if err != nil {
		t.Fatal(err)
	}
	var first [3][]byte
	for round := range 2 {
		res := play(t, "everything.scn", string(data))
		var text, svg bytes.Buffer
		if err := errors.Join(res.WriteText(&text, 100), res.WriteSVG(&svg)); err != nil {
			t.Fatal(err)
		}
		compact, err := json.Marshal(res)
		if err != nil {
			t.Fatal(err)
		}
		var lines bytes.Buffer
		if err := json.Indent(&lines, compact, "", " "); err != nil {
			t.Fatal(err)
		}
		if round == 0 {
			first = [3][]byte{text.Bytes(), lines.Bytes(), svg.Bytes()}
			compareGolden(t, "everything.txt", text.Bytes())
			compareGolden(t, "everything.json", lines.Bytes())
			compareGolden(t, "everything.svg", svg.Bytes())
			continue
		}
		for i, again := range [][]byte{text.Bytes(), lines.Bytes(), svg.Bytes()} {
			if !bytes.Equal(first[i], again) {
				t.Errorf("output %d differs the second time", i)
			}
		}
	}
}

// small is a machine with one static slot.
const small = "start 2026-03-02 08:00\nmachine cpus=1 memory=2048 name=one.example\nconfig\n    NUM_SLOTS = 1\n    SLOT_TYPE_0_PARTITIONABLE = False\n    RunBenchmarks = False\n"

// path is where a slot goes, from and with its first claim.
func path(r *Result, slot string) string {
	var b strings.Builder
	for _, m := range r.Moves {
		if m.Slot == slot && m.At > 0 {
			fmt.Fprintf(&b, "%v %v, ", m.At.Round(time.Second), m.To)
		}
	}
	return strings.TrimSuffix(b.String(), ", ")
}

// TestTimeline holds single things that happen against what the slot does.
func TestTimeline(t *testing.T) {
	t.Parallel()
	const ended = "Claimed/Cleaning, 11m1s Claimed/Idle, 11m1s Preempting/Killing, 11m1s Owner/Idle, 11m1s Unclaimed/Idle"
	begun := "1m0s Claimed/Idle, 1m0s Claimed/Busy, "
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "job j runs=10m\nat 0s submit j", begun + "11m1s " + ended},
		{"vacate", "job j runs=10m soft=20s\nat 0s submit j\nat 5m vacate slot1", begun +
			"5m0s Claimed/Retiring, 5m0s Preempting/Vacating, 5m20s Owner/Idle, 5m20s Unclaimed/Idle, " +
			"6m0s Claimed/Idle, 6m0s Claimed/Busy, 16m1s Claimed/Cleaning, 16m1s Claimed/Idle, 16m1s Preempting/Killing, 16m1s Owner/Idle, 16m1s Unclaimed/Idle"},
		{"vacate fast", "job j runs=10m\nat 0s submit j\nat 5m vacate all fast\nat 5m1s remove j", begun +
			"5m0s Preempting/Killing, 5m1s Owner/Idle, 5m1s Unclaimed/Idle"},
		{"ignored", "config\n    MachineMaxVacateTime = 30\njob j runs=10m soft=never\nat 0s submit j\nat 5m vacate slot1\nat 5m remove j", begun +
			"5m0s Claimed/Retiring, 5m0s Preempting/Vacating, 5m31s Owner/Idle, 5m31s Unclaimed/Idle"},
		{"hold and release", "job j runs=10m\nat 0s submit j\nat 5m hold j\nat 8m release j\nat 9m30s remove 1.0", begun +
			"5m0s Claimed/Cleaning, 5m0s Preempting/Vacating, 5m0s Owner/Idle, 5m0s Unclaimed/Idle, 9m0s Claimed/Idle, 9m0s Claimed/Busy, " +
			"9m30s Claimed/Cleaning, 9m30s Preempting/Vacating, 9m30s Owner/Idle, 9m30s Unclaimed/Idle"},
		{"suspend and continue", "job j runs=10m\nat 0s submit j\nat 2m suspend j\nat 4m continue all", begun +
			"2m0s Claimed/Suspended, 4m0s Claimed/Busy, 13m1s Claimed/Cleaning, 13m1s Claimed/Idle, 13m1s Preempting/Killing, 13m1s Owner/Idle, 13m1s Unclaimed/Idle"},
		{"no program", "config\n    KILLING_TIMEOUT = 5\njob j fails=exec\nat 0s submit j", begun +
			"1m11s Preempting/Killing, 1m18s Owner/Idle, 1m18s Unclaimed/Idle"},
		{"no input", "job j fails=input begins=2s\nat 0s submit j", begun + "1m2s Claimed/Idle, 1m2s Preempting/Killing, 1m2s Owner/Idle, 1m2s Unclaimed/Idle"},
		{"attribute", "config\n    IS_OWNER = Mine =?= true\nat 5m set Mine = 1 == 1\nat 20m unset Mine", "5m0s Owner/Idle, 20m0s Unclaimed/Idle"},
		{"reconfig", "job j runs=10m\nat 0s submit j\nat 5m reconfig\n    PREEMPT = True\n    START = False\n", begun +
			"5m0s Claimed/Retiring, 5m0s Preempting/Vacating, 5m0s Owner/Idle, 5m0s Unclaimed/Idle"},
		{"graceful shutdown", "config\n    MAXJOBRETIREMENTTIME = 3600\njob j runs=10m\nat 0s submit j 2\nat 5m shutdown", begun +
			"5m0s Claimed/Retiring, 11m1s Claimed/Cleaning, 11m1s Claimed/Idle"},
		{"fast shutdown", "job j runs=10m\nat 0s submit j 2\nat 5m shutdown fast", begun + "5m0s Preempting/Killing, 5m1s Owner/Idle, 5m1s Unclaimed/Idle"},
		{"drain", "job j runs=10m\nat 0s submit j 2\nat 5m drain quick reason 'new memory'\nat 9m drain cancel\nat 10m remove all", begun +
			"5m0s Claimed/Retiring, 5m0s Preempting/Vacating, 5m0s Owner/Idle, 5m0s Unclaimed/Idle, 5m5s Drained/Retiring, 5m5s Drained/Idle, " +
			"9m0s Owner/Idle, 9m0s Unclaimed/Idle, 9m0s Claimed/Idle, 9m0s Claimed/Busy, 10m0s Claimed/Cleaning, 10m0s Preempting/Vacating, 10m0s Owner/Idle, 10m0s Unclaimed/Idle"},
		// An idle claim has no job to wait for: it goes at once, however young it
		// is. Ten seconds is less than what the drain lets its own claims wait.
		{"drain of an idle claim", "job j runs=5s\n    keep_claim_idle = 7200\nat 0s submit j\nat 70s drain\nat 20m drain cancel", begun +
			"1m6s Claimed/Cleaning, 1m6s Claimed/Idle, 1m10s Claimed/Retiring, 1m10s Preempting/Vacating, 1m10s Owner/Idle, 1m10s Unclaimed/Idle, " +
			"1m10s Drained/Retiring, 1m10s Drained/Idle, 20m0s Owner/Idle, 20m0s Unclaimed/Idle"},
		{"drain of an old idle claim", "job j runs=10m\n    keep_claim_idle = 7200\nat 0s submit j\nat 15m drain", begun +
			"11m1s Claimed/Cleaning, 11m1s Claimed/Idle, 15m0s Claimed/Retiring, 15m0s Preempting/Vacating, 15m0s Owner/Idle, 15m0s Unclaimed/Idle, " +
			"15m0s Drained/Retiring, 15m0s Drained/Idle"},
		{"backfill", "config\n    ENABLE_BACKFILL = True\n    BACKFILL_SYSTEM = BOINC\n    BOINC_Executable = /usr/bin/boinc\n    BOINC_Universe = vanilla\n" +
			"    START_BACKFILL = True\n    EVICT_BACKFILL = False\n    BOINC_InitialDir = /var/lib/boinc\n    BOINC_Owner = nobody\njob j runs=10m\nat 9m30s submit j", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := path(play(t, c.name, "end 25m\n"+small+c.text+"\n"), "slot1")
			if c.name == "backfill" {
				if !strings.Contains(got, "Backfill/Busy") || !strings.Contains(got, "10m0s Backfill/Killing, 10m2s Backfill/Idle, 10m2s Claimed/Idle") {
					t.Error(got)
				}
				return
			}
			if diff := cmp.Diff(strings.Split(c.want, ", "), strings.Split(got, ", ")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestAccount looks at what is counted as done and as lost.
func TestAccount(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		options    string
		done, lost time.Duration
		starts     int
	}{
		{"", 20 * time.Minute, 4*time.Minute - time.Second, 2},
		{"saves=leaving soft=5s", 20 * time.Minute, 0, 2},
		{"saves=leaving soft=never", 20 * time.Minute, 4*time.Minute + 9*time.Second, 2}, // it goes on until the hard kill
		{"saves=3m", 20 * time.Minute, time.Minute - time.Second, 2},
	} {
		res := play(t, "account", small+"end 1h\nconfig\n    MachineMaxVacateTime = 10\njob j runs=20m "+c.options+"\nat 0s submit j\nat 5m vacate all\n")
		j := res.Jobs[0]
		if j.Done != c.done || j.Lost != c.lost || j.Starts != c.starts || j.State != "completed" || j.Evictions != 1 {
			t.Errorf("%q: %+v", c.options, j)
		}
		if res.Total.Good != c.done || res.Total.Bad != c.lost {
			t.Errorf("%q: %+v", c.options, res.Total)
		}
	}
	res := play(t, "account", small+"end 1h\njob j runs=20m\nat 0s submit j\nat 5m suspend j\nat 9m continue j\nat 10m remove j\n")
	if j := res.Jobs[0]; j.State != "removed" || j.Why != "removed by its owner" || j.Done != 0 || j.Lost != 5*time.Minute-time.Second || j.Suspended != 4*time.Minute {
		t.Errorf("%+v", j)
	}
}

// TestSilence lets the access point fall silent: an idle claim is lost with its
// lease, and work goes on when it speaks again.
func TestSilence(t *testing.T) {
	t.Parallel()
	res := play(t, "silence", small+"end 3h\nconfig\n    CLAIM_WORKLIFE = -1\njob j runs=10m\n    keep_claim_idle = 7200\n    job_lease_duration = 900\nat 0s submit j\nat 20m silence 1h\nat 30m submit j\n")
	got := path(res, "slot1")
	if !strings.Contains(got, "11m1s Claimed/Idle, 3") || !strings.Contains(got, "1h20m0s Claimed/Busy") && !strings.Contains(got, "1h21m0s Claimed/Busy") {
		t.Error(got)
	}
	if res.Total.Completed != 2 {
		t.Errorf("%+v", res.Total)
	}
}

// TestOdd tells of an expression that is undefined, once.
func TestOdd(t *testing.T) {
	t.Parallel()
	res := play(t, "odd.scn", small+"end 1h\nconfig\n    PREEMPT = Nobody\njob j runs=10m\nat 0s submit j 3\n")
	if len(res.Warnings) != 1 || !strings.Contains(res.Warnings[0].Text, "PREEMPT") || !strings.Contains(res.Warnings[0].Text, "odd.scn:") {
		t.Errorf("%+v", res.Warnings)
	}
	var text bytes.Buffer
	if err := res.WriteText(&text, 80); err != nil || strings.Count(text.String(), " odd: ") != 1 {
		t.Errorf("%v\n%s", err, &text)
	}
}

// TestSeed draws other run times with another seed, and the same with the same.
func TestSeed(t *testing.T) {
	t.Parallel()
	of := func(seed string) string {
		res := play(t, "seed", small+"end 1d\nseed "+seed+"\njob j runs=1m..30m\nat 0s submit j 20\n")
		return path(res, "slot1")
	}
	seven := of("7")
	if again := of("7"); again != seven {
		t.Error("the same seed gives other times")
	}
	if seven == of("8") {
		t.Error("another seed gives the same times")
	}
}

// mistakes are scenarios with something wrong, where and what.
var mistakes = []struct{ text, where, words string }{
	{"", "1:1", "no end"},
	{"end", "1:1", "one value must follow"},
	{"end 0s", "1:5", "out of range"},
	{"end 401d", "1:5", "no span of time"},
	{"end 1h\nend 2h", "2:1", "said before, in line 1"},
	{"end 1h\n  seed 1", "2:1", "indented"},
	{"end 1h\nseed -1", "2:6", "no seed"},
	{"end 1h\ncycle 1ms", "2:7", "that quick"},
	{"end 1h\nstart tomorrow", "2:7", "no date"},
	{"end 1h\nstart", "2:1", "a date must follow"},
	{"end 1h\nmachine", "2:1", "nothing is said"},
	{"end 1h\nmachine cpus=0", "2:9", "no amount for cpus"},
	{"end 1h\nmachine cpus=1 wheels=4", "2:16", "no such thing"},
	{"end 1h\nconfig", "2:1", "no configuration"},
	{"end 1h\nconfig a b", "2:10", "a word too many"},
	{"end 1h\njob", "2:1", "no name"},
	{"end 1h\njob a\njob a", "3:5", "of that name already"},
	{"end 1h\njob a runs=soon", "2:12", "no span of time"},
	{"end 1h\njob a runs=2h..1h", "2:12", "upside down"},
	{"end 1h\njob a soft=x", "2:12", "no span of time"},
	{"end 1h\njob a exit=256", "2:12", "no exit status"},
	{"end 1h\njob a fails=badly", "2:13", "cannot fail to start"},
	{"end 1h\njob a clock=sun", "2:13", "no such clock"},
	{"end 1h\njob a memory=5,6", "2:14", "no course of memory"},
	{"end 1h\njob a colour=red", "2:7", "no such option"},
	{"end 1h\nat", "2:1", "a time and what happens"},
	{"end 1h\nat 5m every 1m", "2:1", "nothing happens"},
	{"end 1h\nat 5m every 1ms leave", "2:13", "too often"},
	{"end 1h\nat 25:00 leave", "2:4", "no span of time"},
	{"end 1h\nat 5m dance", "2:7", "cannot happen"},
	{"end 1h\nat 5m submit", "2:7", "other words"},
	{"end 1h\nat 5m submit a", "2:14", "no job of that name"},
	{"end 1h\njob a\nat 5m submit a 0", "3:16", "no number of jobs"},
	{"end 1h\nat 5m load x", "2:12", "no load"},
	{"end 1h\nat 5m load NaN", "2:12", "no load"},
	{"end 1h\nat 5m set A 1", "2:7", "other words"},
	{"end 1h\nat 5m set A = 1 +", "2:15", "no expression"},
	{"end 1h\nat 5m unset", "2:7", "other words"},
	{"end 1h\nat 5m vacate slot1 slowly", "2:20", "no such way"},
	{"end 1h\nat 5m hold", "2:7", "other words"},
	{"end 1h\nat 5m leave now", "2:7", "other words"},
	{"end 1h\nat 5m shutdown now", "2:16", "no such shutdown"},
	{"end 1h\nat 5m reconfig", "2:7", "no configuration"},
	{"end 1h\nat 5m drain slowly please", "2:7", "no option"},
	{"end 1h\nat 5m drain quik", "2:7", "no option"},
	{"end 1h\njob a\nat 5m hold b", "3:12", "no job of that name"},
	{"end 1h\njob all", "2:5", "other jobs"},
	{"end 1h\njob 1.0", "2:5", "other jobs"},
	{"end 1h\nat 5m vacate desk", "2:14", "no slot"},
	{"end 1h\nat 5m until 10m type", "2:7", "nothing is repeated"},
	{"end 1h\nat 5m every 1m until 5m type", "2:22", "ends before it begins"},
	{"end 1h\nat 5m every 1m every 2m type", "2:16", "said twice"},
	{"end 1h\nat 5m reconfig\n  A = 1\nat 4m reconfig\n  A = 2", "4:7", "comes later"},
	{"end 1h\nat 5m drain reason 'x", "2:7", "quotation mark"},
	{"end 1h\nat 5m drain start", "2:7", "nothing follows start"},
	{"end 1h\nweather fine", "2:1", "no such statement"},
	{"end 300d\njob a\nat 0s every 1s submit a 1000", "3:1", "far too much"},
	{"end 1h\nseed \xff", "1:1", "not UTF-8"},
}

// TestMistakes finds each mistake at its place.
func TestMistakes(t *testing.T) {
	t.Parallel()
	for _, m := range mistakes {
		_, err := Parse("bad.scn", m.text)
		var ps Problems
		if !errors.As(err, &ps) || !errs.Is(err, errs.Invalid) {
			t.Errorf("%q: %v", m.text, err)
			continue
		}
		if got := ps[0].Error(); !strings.HasPrefix(got, "bad.scn:"+m.where+": ") || !strings.Contains(got, m.words) {
			t.Errorf("%q: %s, want %s at %s", m.text, got, m.words, m.where)
		}
	}
	_, err := Parse("bad.scn", strings.Repeat("x\n", 1000))
	var ps Problems
	if !errors.As(err, &ps) || len(ps) != maxProblems {
		t.Errorf("%d problems", len(ps))
	}
}

// FuzzParse reads anything without a panic; what it accepts runs, if it is
// short.
func FuzzParse(f *testing.F) {
	for _, m := range mistakes {
		f.Add(m.text)
	}
	f.Add(week)
	if data, err := os.ReadFile("testdata/everything.scn"); err == nil {
		f.Add(string(data))
	}
	f.Fuzz(func(t *testing.T, text string) {
		sc, err := Parse("fuzz.scn", text)
		if err != nil {
			var ps Problems
			if !errors.As(err, &ps) || len(ps) == 0 || ps[0].Line < 1 || ps[0].Column < 1 {
				t.Fatalf("%v", err)
			}
			return
		}
		jobs := 0
		for _, e := range sc.Events {
			jobs += e.Count
		}
		if sc.End > time.Hour || jobs > 50 || len(sc.Events) > 20 || sc.Machine.Cpus > 64 || len(text) > 4000 || strings.Contains(text, "every") {
			return
		}
		res, err := Run(sc, Node{Machine: sc.Machine, Load: parseText})
		if err != nil {
			return
		}
		if err := res.WriteText(&bytes.Buffer{}, 80); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzReplay plays any record without a panic.
func FuzzReplay(f *testing.F) {
	for i, run := range eptest.Runs(f) {
		if i%10 == 0 {
			f.Add(string(run.JSON))
		}
	}
	f.Fuzz(func(t *testing.T, line string) {
		var r Record
		if json.Unmarshal([]byte(line), &r) != nil || r.End > 100 {
			return
		}
		moves, err := Replay(&r, parseText)
		if err != nil {
			return
		}
		at := math.Inf(-1)
		where := map[string]string{}
		for _, m := range moves {
			// A slot that is new, of an Execution Point that is or of its own, is its owner's.
			from, seen := where[m.Slot]
			if m.T < at || seen && m.From != from && m.From != "Owner/Idle" || m.From == m.To {
				t.Fatalf("%+v comes after %s at %g", m, from, at)
			}
			at, where[m.Slot] = m.T, m.To
		}
		again, err := Replay(&r, parseText)
		if diff := cmp.Diff(moves, again); err != nil || diff != "" {
			t.Fatalf("it is not the same again: %v %s", err, diff)
		}
	})
}
