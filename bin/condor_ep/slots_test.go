// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// A newcomer has no configuration, and sees what condor_ep run would make of the
// machine. One that is named and not there is an error.
func TestSlotsWithoutConfiguration(t *testing.T) {
	p := newPlace(t)
	small := p.write(t, "small.json", `{"cpus": 4, "memory_mb": 8000, "disk_kb": 80000}`)
	t.Setenv("CONDOR_CONFIG", "")
	if !nowhere() {
		t.Skip("needs a machine on which HTCondor is not configured")
	}
	const told = "this machine has no configuration: these are the slots of condor_ep run"
	var out, errOut bytes.Buffer
	if status := cmdSlots([]string{"-machine", small}, nil, &out, &errOut); status != exitOK || !strings.Contains(out.String(), "Partitionable  4     8000 MiB") || !strings.Contains(errOut.String(), told) {
		t.Errorf("status %d\n%s%s", status, &out, &errOut)
	}
	t.Setenv("CONDOR_CONFIG", "/no/such/file")
	out.Reset()
	errOut.Reset()
	if status := cmdSlots([]string{"-machine", small}, nil, &out, &errOut); status != exitUsage || out.Len() > 0 || !strings.Contains(errOut.String(), "/no/such/file") {
		t.Errorf("status %d\n%s%s", status, &out, &errOut)
	}
}

const gpuMachine = `{"name": "big.example.org", "cpus": 16, "memory_mb": 64000, "disk_kb": 1000000000, "swap_kb": 0, "resources": {
  "GPUs": {"DetectedGPUs": "GPU-a, GPU-b, GPU-c, GPU-d", "Common": {"DriverVersion": 12.2},
           "GPU_a": {"id": "GPU-a", "Capability": 7.5}, "GPU_b": {"id": "GPU-b", "Capability": 8.0},
           "GPU_c": {"id": "GPU-c", "Capability": 8.0}, "GPU_d": {"id": "GPU-d", "Capability": 7.5}},
  "Cogs": 16, "Bolts": ["b1", "b2"]}}
`

const gpuSplit = `SLOT_TYPE_1 @=s
  GPUs = 2 : Capability >= 8.0
  50%
@s
SLOT_TYPE_1_PARTITIONABLE = true
NUM_SLOTS_TYPE_1 = 1
SLOT_TYPE_2 = auto
NUM_SLOTS_TYPE_2 = 2
`

// TestSlots tries configurations on described machines.
//
// row: S0-291
func TestSlots(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	gpus := p.write(t, "gpus.json", gpuMachine)
	small := p.write(t, "small.json", `{"cpus": 4, "memory_mb": 8000, "disk_kb": 80000}`)
	plain := p.write(t, "plain.conf", "START = true\n")
	split := p.write(t, "split.conf", gpuSplit)
	five := p.write(t, "five.conf", "NUM_SLOTS = 5\nSLOT_TYPE_0_PARTITIONABLE = false\n")
	abort := p.write(t, "abort.conf", "SLOT_TYPE_1 = cpus=9\nNUM_SLOTS_TYPE_1 = 1\nSLOT_CONFIG_FAILURE_MODE = ABORT\n")
	bad := p.write(t, "bad.conf", "NUM_SLOTS = many\n")
	greedy := p.write(t, "greedy.conf", "RESERVED_MEMORY = 9000\n")
	odd := p.write(t, "odd.json", "{\"cpus\": 4, \"memory_mb\": 8000,\n \"gpus\": 2}")
	none := p.write(t, "none.json", `{"cpus": 0, "memory_mb": 8000}`)
	wrong := p.write(t, "wrong.json", `{"cpus": 1, "memory_mb": 8000, "resources": {"Cogs": true}}`)
	for _, tt := range []struct {
		args   []string
		status int
		out    []string // in this order
		err    []string
	}{
		{[]string{"-config", plain, "-machine", small}, 0, []string{"NAME", "slot1", "Partitionable", "4", "8000 MiB", "80000 KiB"}, nil},
		{[]string{"--config", split, "--machine", gpus}, 0, []string{
			"BOLTS", "COGS", "GPUS", "slot1", "2 (GPU-b GPU-c)", "slot2", "Static", "1 (GPU-a)", "slot3", "1 (GPU-d)"}, nil},
		{[]string{"-config", split, "-machine", gpus, "-long"}, 0, []string{
			`AssignedGPUs = "GPU-b,GPU-c"`, "GPUs_Capability = 8.0", "GPUs_DriverVersion = 12.2", `Name = "slot1@big.example.org"`, "\n\n", `AssignedGPUs = "GPU-a"`}, nil},
		{[]string{"-config", plain}, 0, []string{"slot1", "Partitionable"}, nil},
		{[]string{"-config", five, "-machine", small}, 1, []string{"slot5", "broken: Not enough Cpus (4 left for 5 slots)"}, []string{"slot1: Not enough Cpus"}},
		{[]string{"-config", abort, "-machine", small}, 1, []string{"There would be no slot."}, []string{"exit status 4", "Could not create required number of type1 slots", abort + ":1"}},
		{[]string{"-config", bad, "-machine", small}, 2, nil, []string{bad + ":1:"}},
		{[]string{"-config", greedy, "-machine", small}, 2, nil, []string{"no memory is left for slots", "8000 MiB less RESERVED_MEMORY 9000 MiB"}},
		{[]string{"-config", plain, "-machine", odd}, 2, nil, []string{odd + ":2: ", `unknown field "gpus"`}},
		{[]string{"-config", plain, "-machine", none}, 2, nil, []string{"cpus is 0: want 1 to "}},
		{[]string{"-config", plain, "-machine", wrong}, 2, nil, []string{"resource Cogs: true is no amount"}},
		{[]string{"-config", plain, "-machine", p.dir}, 2, nil, []string{"condor_ep slots: "}},
		{[]string{"-json", "-long"}, 2, nil, []string{"want -json or -long"}},
	} {
		var stdout, stderr bytes.Buffer
		if got := tool(append([]string{"slots"}, tt.args...), &stdout, &stderr); got != tt.status {
			t.Errorf("slots %v: exit status %d, want %d\n%s%s", tt.args, got, tt.status, &stdout, &stderr)
		}
		if (tt.err == nil) != (stderr.Len() == 0) {
			t.Errorf("slots %v: said %s", tt.args, &stderr)
		}
		for stream, want := range map[string][]string{stdout.String(): tt.out, stderr.String(): tt.err} {
			rest := stream
			for _, w := range want {
				_, after, ok := strings.Cut(rest, w)
				if !ok {
					t.Errorf("slots %v: no %q in %s", tt.args, w, stream)
				}
				rest = after
			}
		}
	}
}

// The JSON form is one list of objects, an ad each.
func TestSlotsJSON(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	args := []string{"slots", "-json", "-config", p.write(t, "split.conf", gpuSplit), "-machine", p.write(t, "gpus.json", gpuMachine)}
	var stdout, stderr bytes.Buffer
	if got := tool(args, &stdout, &stderr); got != 0 {
		t.Fatalf("exit status %d: %s", got, &stderr)
	}
	var ads []struct {
		Name         string
		Cpus, GPUs   int
		AssignedGPUs string
		State        string
	}
	if err := json.Unmarshal(stdout.Bytes(), &ads); err != nil {
		t.Fatalf("%v\n%s", err, &stdout)
	}
	if len(ads) != 3 || ads[0].Cpus != 8 || ads[0].GPUs != 2 || ads[0].AssignedGPUs != "GPU-b,GPU-c" ||
		ads[2].Name != "slot3@big.example.org" || ads[2].AssignedGPUs != "GPU-d" || ads[2].State != "Unclaimed" {
		t.Errorf("got %+v", ads)
	}
}
