// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/tool/record"
)

// recordedSlots is one line of testdata/slots.jsonl: a configuration, and what
// HTCondor 25.14 made of it on a machine. The first line is an ordinary ad of a
// slot and one of the daemon; every other one has what it shows otherwise, or
// not at all.
type recordedSlots struct {
	record.Question
	Slots    []adDelta
	Daemon   *adDelta // nil if there was none
	Exit     *int
	LogClass string          `json:"log_class"`
	Stdout   string          // of the GPU discovery program
	Steps    json.RawMessage // TestSlotsSteps
}

type adDelta struct {
	Set     map[string]string
	Without []string
}

func (d adDelta) over(base map[string]string) map[string]string {
	out := maps.Clone(base)
	maps.Copy(out, d.Set)
	for _, name := range d.Without {
		delete(out, name)
	}
	return out
}

// recordedCases reads the recorded cases; slot and daemon are the ordinary ads.
func recordedCases(t *testing.T) (slot, daemon map[string]string, cases []recordedSlots) {
	t.Helper()
	text, err := os.ReadFile("testdata/slots.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		if slot == nil {
			var base struct{ Slot, Daemon map[string]string }
			if err := json.Unmarshal(line, &base); err != nil {
				t.Fatal(err)
			}
			slot, daemon = base.Slot, base.Daemon
			continue
		}
		var r recordedSlots
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, r)
	}
	return slot, daemon, cases
}

// answersTo puts records to condor_ep slots -record and returns its answers.
func answersTo(t *testing.T, records ...record.Question) []record.Answer {
	t.Helper()
	var in, out bytes.Buffer
	questions := json.NewEncoder(&in)
	for _, r := range records {
		if err := questions.Encode(r); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := answerSlots(&in, &out); err != nil {
		t.Fatal(err)
	}
	var all []record.Answer
	answers := json.NewDecoder(&out)
	for range records {
		var a record.Answer
		if err := answers.Decode(&a); err != nil {
			t.Fatal(err)
		}
		all = append(all, a)
	}
	if err := answers.Decode(new(record.Answer)); err != io.EOF {
		t.Errorf("behind the last answer: %v", err)
	}
	return all
}

// TestSlotsRecord answers every recorded case but those in which slots are
// carved, and compares every attribute that was recorded.
func TestSlotsRecord(t *testing.T) {
	t.Parallel()
	slot, daemon, cases := recordedCases(t)
	if len(cases) != 268 {
		t.Errorf("%d cases", len(cases))
	}
	for _, r := range cases {
		t.Run(r.ID, func(t *testing.T) {
			t.Parallel()
			got := answersTo(t, r.question())[0]
			if got.ID != r.ID || got.Error != "" {
				t.Fatalf("%s: error %q\n%s", got.ID, got.Error, r.Config)
			}
			own := otherwise[r.ID]
			want := r.Slots
			if own.slots > 0 {
				// There is no recorded slot to compare with.
				want, r.Exit, r.Daemon = make([]adDelta, own.slots), nil, nil
			}
			if len(got.Slots) != len(want) || (got.Exit == nil) != (r.Exit == nil) || got.Exit != nil && *got.Exit != *r.Exit {
				t.Fatalf("%d slots, exit %v, warnings %q; want %d and exit %v\n%s", len(got.Slots), got.Exit, got.Warnings, len(want), r.Exit, r.Config)
			}
			met := make(map[string]bool)
			for i, d := range want {
				recorded := d.over(slot)
				if own.slots > 0 {
					recorded = own.attrs
				}
				compareTexts(t, fmt.Sprintf("%s slot %d", r.ID, i+1), got.Slots[i], recorded, own.attrs, met)
			}
			if r.Daemon != nil {
				compareTexts(t, r.ID+" daemon", got.Daemon, r.Daemon.over(daemon), own.attrs, met)
			}
			if r.Daemon == nil && own.slots == 0 && len(got.Daemon) > 0 {
				t.Errorf("%s: a daemon ad, recorded without: %v", r.ID, got.Daemon)
			}
			for name := range own.attrs {
				if own.slots == 0 && !met[name] {
					t.Errorf("%s is as recorded", name)
				}
			}
			if said := strings.Join(got.Warnings, "\n"); !strings.Contains(said, own.warning) {
				t.Errorf("warnings %q lack %q", said, own.warning)
			}
		})
	}
}

// question is the record that is put. Where GPUs are looked for, a script says
// what the recorded discovery program said, and there are quick benchmarks.
func (r *recordedSlots) question() record.Question {
	q := r.Question
	if r.Stdout != "" {
		q.Scripts = map[string]string{"condor_gpu_discovery": "#!/bin/sh\ncat <<'END'\n" + r.Stdout + "\nEND\n"}
		q.Config += "\nLIBEXEC = ${DIR}/scripts\n"
	}
	if r.ID == "slot-misc-23" {
		q.Scripts = map[string]string{
			"condor_mips":   "#!/bin/sh\necho Mips = 1200\n",
			"condor_kflops": "#!/bin/sh\necho KFlops = 3400\n",
		}
		q.Config += "\nLIBEXEC = ${DIR}/scripts\n"
	}
	return q
}

// apart is a case which is not to be answered as it was recorded, because the
// daemon crashed, hung or published nonsense, or because the moment of a
// question decides.
type apart struct {
	why     string
	slots   int               // how many there are here, where none was recorded
	attrs   map[string]string // what is otherwise, and how it is here; "" is absent
	warning string            // what is said of it
}

const (
	noMemory = `"Not enough Memory (0 left for 1 slots)"`
	noDisk   = `"Not enough Disk (0 left for 1 slots)"`
)

var otherwise = map[string]apart{
	"slot-static-10": {
		why: "note 23: the original never ends over the ninth CPU", slots: 9,
		attrs: map[string]string{"TotalCpus": "8.0", "TotalSlots": "9"},
	},
	"slot-default-06": {
		why: "note 23: the original never ends over a CPU that is not there", slots: 1,
		attrs: map[string]string{"SlotBrokenReason": `"Not enough Cpus (0 left for 1 slots)"`},
	},
	"slot-disk-18": {
		why:   "note 23: the original publishes the mark of an open share",
		attrs: map[string]string{"Disk": "0", "TotalSlotDisk": "0.0", "SlotBrokenReason": noMemory, "Requirements": noMemory, "TotalSlotMemory": "0", "VirtualMemory": "0", "ExcessBackfillMemory": "0", "slot2BrokenReason": noMemory},
	},
	"slot-fail-33": {
		why:   "note 23: the original publishes the mark of an open share",
		attrs: map[string]string{"Disk": "0", "TotalSlotDisk": "0.0", "SlotBrokenReason": noDisk, "Requirements": noDisk, "ExcessBackfillDisk": "0", "slot1BrokenReason": noDisk},
	},
	"slot-fail-35": {
		why:   "note 23: the original publishes the mark of an open share",
		attrs: map[string]string{"Disk": "0", "TotalSlotDisk": "0.0", "SlotBrokenReason": noDisk, "Requirements": noDisk, "ExcessBackfillDisk": "0", "slot1BrokenReason": noDisk},
	},
	"slot-gpu-12": {
		why: "the documents bind a device by how its name begins; the original takes whole names alone and breaks the slot", slots: 1,
		attrs: map[string]string{"AssignedGPUs": `"GPU-dddd4444"`, "GPUs": "1", "Cpus": "4", "SlotBrokenCode": "", "Requirements": "Start && WithinResourceLimits"},
	},
	"slot-start-29": {
		why: "note 36: the original ends over an IS_OWNER that is not boolean", slots: 1,
		attrs:   map[string]string{"State": `"Owner"`, "Activity": `"Idle"`, "Start": "true"},
		warning: `slot1: IS_OWNER = "x" is "x", neither true nor false`,
	},
	"slot-cron-41": {
		why: "note 36: the original ends over an IS_OWNER that is undefined until a program has run", slots: 3,
		attrs:   map[string]string{"State": `"Owner"`, "Value": "21"},
		warning: "slot3: IS_OWNER = Value > 5 is undefined, neither true nor false",
	},
	"slot-cron-37": {
		why: "note 47: the original crashes over the first ad of a job with METRICS that has no tag", slots: 3,
		attrs: map[string]string{"State": `"Unclaimed"`, "UptimeTempPeak": "2", "UptimeHeatSeconds": ""},
	},
	"slot-cron-31": {
		why:   "note 38: a program does not change how many CPUs a slot has; the recorded ad says it does, and would be matched to what cannot be given",
		attrs: map[string]string{"Cpus": "2"},
	},
	"slot-cron-25": {
		why:     "the original reads an expression as far as it can and drops the rest of the line",
		attrs:   map[string]string{"Arg2": ""},
		warning: `tst: line 2:`,
	},
	"slot-cron-23": {
		why:   "the daemon's ad was asked for a run later than those of the slots",
		attrs: map[string]string{"Value": "5"},
	},
	"slot-misc-23": {
		why:   "the recorded benchmarks took four seconds, those here none",
		attrs: map[string]string{"TotalTimeUnclaimedBenchmarking": "", "Mips": "1200", "KFlops": "3400"},
	},
	"slot-cronx-01": {
		why:   "the slots were asked after four runs and the daemon after five; here both after five, in five seconds",
		attrs: map[string]string{"DeviceHeatAverageUsage": "1.0"},
	},
}

// compareTexts holds an ad against a recorded one. What depends on the disk of
// a machine is recorded as a part of its own total, to five digits. What is
// otherwise here must be as own says; it is put into met.
func compareTexts(t *testing.T, id string, got, want, own map[string]string, met map[string]bool) {
	t.Helper()
	total, largest := classad.NewAd(), 0.0
	for _, name := range []string{"TotalDisk", "TotalVirtualMemory"} {
		if text, ok := got[name]; ok {
			if err := total.SetText(name, text); err != nil {
				t.Fatal(err)
			}
			largest = max(largest, number(t, text, nil))
		}
	}
	for name, text := range want {
		have, ok := got[name]
		if have == text || ok && text == "<time>" {
			continue
		}
		a, b := number(t, have, total), number(t, text, total)
		if strings.Contains(text, "Total") && math.Abs(a-b) <= 1+6e-6*largest {
			continue
		}
		if here, apart := own[name]; apart && slices.Contains(strings.Split(here, "|"), have) {
			met[name] = true
			continue
		}
		t.Errorf("%s: %s is %s, want %s", id, name, have, text)
	}
}

func number(t *testing.T, text string, my *classad.Ad) float64 {
	e, err := classad.ParseExpr(text, classad.Old)
	if err != nil {
		return math.NaN()
	}
	if f, ok := e.Eval(&classad.Env{My: my}).AsNumber(); ok {
		return f
	}
	return math.NaN()
}

// A record that cannot be answered is said so in its place; the others are.
func TestSlotsRecordErrors(t *testing.T) {
	t.Parallel()
	in := `{"id": "a", "config": "NUM_SLOTS = 1", "detected": {"cpus": 2, "memory_mb": 1000}}
nonsense

{"id": "b", "config": "NUM_CPUS = x(", "detected": {"cpus": 2, "memory_mb": 1000}}
{"id": "c", "config": "", "scripts": {"../a.sh": ""}, "detected": {"cpus": 2, "memory_mb": 1000}}
{"id": "d", "config": "RESERVED_MEMORY = 2000", "detected": {"cpus": 2, "memory_mb": 1000}}
{"id": "e", "config": "", "args": ["-n", "fred"], "detected": {"cpus": 2, "memory_mb": 1000}}
`
	var out bytes.Buffer
	if unanswered, err := answerSlots(strings.NewReader(in), &out); unanswered != 3 || err != nil {
		t.Errorf("%d were not answered, %v", unanswered, err)
	}
	answers := json.NewDecoder(&out)
	for _, want := range []struct {
		id, err, name string
		exit          bool
	}{
		{id: "a", name: `"slot1@${HOST}"`}, {err: "not a record"}, {id: "b", err: "NUM_CPUS"}, {id: "c", err: "without directories"},
		{id: "d", exit: true}, {id: "e", name: `"slot1@fred@${HOST}"`},
	} {
		var got record.Answer
		if err := answers.Decode(&got); err != nil {
			t.Fatal(err)
		}
		name := ""
		if len(got.Slots) > 0 {
			name = got.Slots[0]["Name"]
		}
		if got.ID != want.id || !strings.Contains(got.Error, want.err) || (got.Error == "") != (want.err == "") || name != want.name ||
			(got.Exit != nil && *got.Exit == 4) != want.exit {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}
