// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var updatePolicies = flag.Bool("update-policies", false, "write what the scenarios of examples/policies come to")

// policies are the scenarios for the policy examples of the documents.
const policies = "../../examples/policies"

// TestPolicyExamples plays every scenario of the examples. Each has its golden
// text beside it, and each configuration there has a scenario.
func TestPolicyExamples(t *testing.T) {
	t.Parallel()
	scenarios, err := filepath.Glob(filepath.Join(policies, "*.scn"))
	if err != nil || len(scenarios) < 10 {
		t.Fatalf("%d scenarios, %v", len(scenarios), err)
	}
	used := ""
	for _, path := range scenarios {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		used += string(text)
		var stdout, stderr bytes.Buffer
		if status := cmdSimulate([]string{"-width", "80", path}, nil, &stdout, &stderr); status != exitOK || stderr.Len() > 0 {
			t.Errorf("%s: exit status %d\n%s", path, status, &stderr)
			continue
		}
		got := strings.ReplaceAll(stdout.String(), policies+"/", "")
		golden := strings.TrimSuffix(path, ".scn") + ".txt"
		if *updatePolicies {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Error(err)
			continue
		}
		if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", path, diff)
		}
	}
	configs, err := filepath.Glob(filepath.Join(policies, "*.conf"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range configs {
		if !strings.Contains(used, "config "+filepath.Base(c)) {
			t.Errorf("no scenario uses %s", c)
		}
	}
}

// TestSimulateCompare holds a desktop against a machine that nobody sits at:
// the same day, the same jobs, another configuration.
func TestSimulateCompare(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	other := p.write(t, "other.conf", "START = True\nPREEMPT = KeyboardIdle < 60\nWANT_SUSPEND = False\nSLOTS_CONNECTED_TO_KEYBOARD = 100\nSLOTS_CONNECTED_TO_CONSOLE = 100\n")
	var stdout, stderr bytes.Buffer
	if status := cmdSimulate([]string{"-json", "-compare", other, filepath.Join(policies, "default.scn")}, nil, &stdout, &stderr); status != exitOK {
		t.Fatalf("exit status %d\n%s", status, &stderr)
	}
	var c struct {
		With []struct {
			Name  string
			Total struct {
				Completed, Evictions int
				Badput               float64 `json:"badput_s"`
			}
		}
		Transitions []struct {
			Only, Slot, From, To, Expression, Origin string
			T                                        float64
		}
	}
	if err := json.Unmarshal(stdout.Bytes(), &c); err != nil {
		t.Fatal(err)
	}
	if c.With[0].Total.Evictions != 1 || c.With[1].Total.Evictions < 3 || c.With[1].Total.Badput <= c.With[0].Total.Badput {
		t.Errorf("%+v", c.With)
	}
	found := false
	for _, m := range c.Transitions {
		// The visit at half past eight is what makes the difference.
		found = found || m.Only == other && m.T == 1800 && m.From == "Claimed/Busy" && m.Expression == "PREEMPT" && m.Origin == other+":2"
		if m.T < 1800 {
			t.Errorf("differs before anything happened: %+v", m)
		}
	}
	if !found {
		t.Errorf("no eviction because of the visit: %+v", c.Transitions)
	}
	stdout.Reset()
	if status := cmdSimulate([]string{"-compare", other, filepath.Join(policies, "default.scn")}, nil, &stdout, &stderr); status != exitOK ||
		!strings.Contains(stdout.String(), "+  00:30:00") || !strings.Contains(stdout.String(), "evictions") {
		t.Errorf("%d %s %s", status, &stdout, &stderr)
	}
}

// TestSimulateCompareSame compares a scenario's configuration with itself: its own
// lines count in both halves, and the halves can be told from each other.
func TestSimulateCompareSame(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	base := p.write(t, "base.conf", "NUM_CPUS = 1\nSTART = False\n")
	open := p.write(t, "open.conf", "NUM_CPUS = 1\nMINE = 1\n")
	scenario := p.write(t, "s.scn", "end 2h\nmachine cpus=1\nconfig base.conf\n    START = True\njob j runs=10m\nat 0s submit j\n")
	alone := p.write(t, "alone.scn", "end 2h\nmachine cpus=1\nconfig\n    START = True\njob j runs=10m\nat 0s submit j\n")
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{"-compare", base, scenario}, []string{"Every slot makes the same moves.", base + " (the scenario's)", base + " (-compare)"}},
		{[]string{"-compare", open, scenario}, []string{"Every slot makes the same moves.", base + "  ", open + "\n"}},
		{[]string{"-config", base, "-compare", base, scenario}, []string{"Every slot makes the same moves.", base + " (-config)", base + " (-compare)"}},
		{[]string{"-compare", base, alone}, []string{"- only with " + alone + "\n+ only with " + base + "\n"}},
	} {
		var stdout, stderr bytes.Buffer
		status := cmdSimulate(tt.args, nil, &stdout, &stderr)
		for _, want := range tt.want {
			if status != exitOK || !strings.Contains(stdout.String(), want) {
				t.Errorf("%q: status %d, want %q\n%s%s", tt.args, status, want, &stdout, &stderr)
			}
		}
	}
}

// TestSimulateRecord answers recorded runs line by line, also those that are
// none.
func TestSimulateRecord(t *testing.T) {
	t.Parallel()
	in := `{"id":"one","config":"NUM_CPUS = 1\nNUM_SLOTS = 1\nSLOT_TYPE_0_PARTITIONABLE = false","knobs":null,"job":"executable = /bin/sleep\narguments = 5\nrequest_memory = 64\nqueue 1\n","t0":"first Claimed/Busy","actions":[{"t":-0.1,"do":"submit a"}],"end":12}

{"id":"two","config":"NUM_CPUS = 1","actions":[{"t":1,"do":"dance"}],"end":3}
{"id":"three","config":"START = = \nif","actions":[],"end":3}
{"id":"four","config":"","actions":[],"end":1e300}
nonsense
`
	var stdout, stderr bytes.Buffer
	status := cmdSimulate([]string{"-record"}, strings.NewReader(in), &stdout, &stderr)
	if stderr.Len() > 0 || status != exitSomeFailed {
		t.Fatalf("%d %s", status, &stderr)
	}
	var got []string
	dec := json.NewDecoder(&stdout)
	for dec.More() {
		var a struct {
			ID          string
			Transitions []struct {
				T              float64
				Slot, From, To string
			}
			Error string
		}
		if err := dec.Decode(&a); err != nil {
			t.Fatal(err)
		}
		line := a.ID + ":"
		for _, m := range a.Transitions {
			if a.ID == "one" {
				line += " " + m.To
			}
		}
		if a.Error != "" {
			line += " error"
		}
		got = append(got, line)
	}
	want := []string{
		"one: Unclaimed/Idle Claimed/Idle Claimed/Busy Claimed/Cleaning Claimed/Idle Preempting/Killing Owner/Idle Unclaimed/Idle",
		"two: error", "three: error", "four: error", ": error",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestSimulateRefusals are command lines and scenarios that cannot be.
func TestSimulateRefusals(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	good := p.write(t, "good.scn", "end 1h\nmachine cpus=1 memory=1024\n")
	bad := p.write(t, "bad.scn", "end 1h\nmachine cpus=0\nat 5m dance\n")
	broken := p.write(t, "broken.scn", "end 1h\nconfig\n    START = = 1\n")
	badJob := p.write(t, "job.scn", "end 1h\njob x\n    request_memory = lots of it\n    queue 1\n")
	for _, c := range []struct {
		args []string
		want []string
	}{
		{nil, []string{"want one scenario, got 0\n"}},
		{[]string{good, good}, []string{"want one scenario"}},
		{[]string{"-width", "3", good}, []string{"-width is from 20 to 10000, not 3"}},
		{[]string{"-record", good}, []string{"-record stands alone"}},
		{[]string{filepath.Join(p.dir, "none.scn")}, []string{"none.scn"}},
		{[]string{bad}, []string{bad + ":2:9:", bad + ":3:7:", "dance"}},
		{[]string{broken}, []string{broken + ":3:"}},
		{[]string{badJob}, []string{badJob + ":3:"}},
		{[]string{"-config", filepath.Join(p.dir, "none.conf"), good}, []string{"none.conf"}},
		{[]string{"-compare", filepath.Join(p.dir, "none.conf"), good}, []string{"none.conf"}},
		{[]string{"-machine", good, good}, []string{"not the description of a machine"}},
	} {
		var stdout, stderr bytes.Buffer
		if status := cmdSimulate(c.args, nil, &stdout, &stderr); status != exitUsage {
			t.Errorf("%v: exit status %d", c.args, status)
		}
		for _, want := range c.want {
			if !strings.Contains(stderr.String(), want) {
				t.Errorf("%v: %q is not in\n%s", c.args, want, &stderr)
			}
		}
	}
	var stdout, stderr bytes.Buffer
	if status := cmdSimulate([]string{good}, nil, &stdout, &stderr); status != exitOK {
		t.Errorf("exit status %d\n%s", status, &stderr)
	}
	refused := p.write(t, "refused.scn", "end 1h\nat 5m vacate slot7\n")
	stdout.Reset()
	if status := cmdSimulate([]string{refused}, nil, &stdout, &stderr); status != exitSomeFailed || !strings.Contains(stdout.String(), refused+":2: ") {
		t.Errorf("exit status %d\n%s%s", status, &stdout, &stderr)
	}
}
