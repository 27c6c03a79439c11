// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"os"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/classad"
)

// What the recorded daemon did in these cases is not to be repeated, or needs
// more than a configuration.
var recordsApart = map[string]string{
	"slot-static-10":  "the original never ends here; broken slots instead",
	"slot-default-06": "the original never ends here; broken slots instead",
	"slot-disk-18":    "the original publishes the mark of an open share; nothing instead",
	"slot-fail-33":    "the original publishes the mark of an open share; nothing instead",
	"slot-fail-35":    "the original publishes the mark of an open share; nothing instead",
	"slot-misc-20":    "GPUs that a program looks for",
	"slot-misc-22":    "GPUs that a program looks for",
}

// TestSlotsRecord answers recorded cases of HTCondor 25.14, a file that the
// division of machines is held against and one with whole ads.
func TestSlotsRecord(t *testing.T) {
	t.Parallel()
	for path, least := range map[string]int{"../../lib/slot/testdata/layouts.jsonl": 110, "../../lib/ad/testdata/resources.jsonl": 14} {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var records []recorded
		for line := range bytes.Lines(text) {
			var r recorded
			if err := json.Unmarshal(line, &r); err != nil {
				t.Fatal(err)
			}
			if recordsApart[r.ID] == "" && len(r.Inventories) == 0 {
				records = append(records, r)
			}
		}
		if len(records) < least {
			t.Errorf("%s: only %d records", path, len(records))
		}
		answered(t, records)
	}
}

type recorded struct {
	slotsAnswer
	Config      string            `json:"config"`
	Detected    json.RawMessage   `json:"detected"`
	Inventories map[string]string `json:"inventories"`
}

func answered(t *testing.T, records []recorded) {
	var in, out bytes.Buffer
	for _, r := range records {
		q, err := json.Marshal(map[string]any{"id": r.ID, "config": r.Config, "detected": r.Detected})
		if err != nil {
			t.Fatal(err)
		}
		in.Write(append(q, '\n'))
	}
	if status, err := answerSlots(&in, &out); status != 0 || err != nil {
		t.Errorf("status %d, %v", status, err)
	}
	answers := json.NewDecoder(&out)
	for _, want := range records {
		var got slotsAnswer
		if err := answers.Decode(&got); err != nil {
			t.Fatal(err)
		}
		if got.ID != want.ID || got.Error != "" || len(got.Slots) != len(want.Slots) || (got.Exit == nil) != (want.Exit == nil) {
			t.Errorf("%s: %d slots, exit %v, error %q; want %d and exit %v\n%s", got.ID, len(got.Slots), got.Exit, got.Error, len(want.Slots), want.Exit, want.Config)
			continue
		}
		for i, ad := range want.Slots {
			compareTexts(t, want.ID, got.Slots[i], ad)
		}
		compareTexts(t, want.ID+" daemon", got.Daemon, want.Daemon)
	}
	if err := answers.Decode(new(slotsAnswer)); err != io.EOF {
		t.Errorf("behind the last answer: %v", err)
	}
}

// compareTexts holds an ad against a recorded one. What depends on the disk of
// a machine is recorded as a part of its own total, to five digits.
func compareTexts(t *testing.T, id string, got, want map[string]string) {
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
		if !strings.Contains(text, "Total") || !(math.Abs(a-b) <= 1+6e-6*largest) {
			t.Errorf("%s: %s is %s, want %s", id, name, have, text)
		}
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
{"id": "c", "config": "", "scripts": {"a.sh": ""}, "detected": {"cpus": 2, "memory_mb": 1000}}
{"id": "d", "config": "RESERVED_MEMORY = 2000", "detected": {"cpus": 2, "memory_mb": 1000}}
{"id": "e", "config": "", "args": ["-n", "fred"], "detected": {"cpus": 2, "memory_mb": 1000}}
`
	var out bytes.Buffer
	if status, err := answerSlots(strings.NewReader(in), &out); status != exitUndivided || err != nil {
		t.Errorf("status %d, %v", status, err)
	}
	answers := json.NewDecoder(&out)
	for _, want := range []struct {
		id, err, name string
		exit          bool
	}{
		{id: "a", name: `"slot1@${HOST}"`}, {err: "not a record"}, {id: "b", err: "NUM_CPUS"}, {id: "c", err: "scripts"},
		{id: "d", exit: true}, {id: "e", name: `"slot1@fred@${HOST}"`},
	} {
		var got slotsAnswer
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
