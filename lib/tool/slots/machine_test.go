// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package slots

import (
	"fmt"
	"strings"
	"testing"
)

// FuzzParseMachine: whatever a description is, it is within its limits or refused
// with a message that names the file.
func FuzzParseMachine(f *testing.F) {
	for _, text := range []string{
		`{"cpus": 4, "memory_mb": 8000, "disk_kb": 80000}`, `{"cpus": 1, "memory_mb": 1, "resources": {"Cogs": 2.5, "Bolts": ["a"], "GPUs": {"DetectedGPUs": "x"}}}`,
		`{"cpus": -1}`, `{"cpus": 1, "memory_mb": 1, "resources": {"Cogs": true}}`, `[`, ``,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		d, err := ParseMachine("m.json", []byte(text))
		switch {
		case err != nil && !strings.HasPrefix(err.Error(), "m.json:"):
			t.Errorf("%q: %v", text, err)
		case err == nil && (d.Cpus < 1 || d.Cpus > maxCpus || d.MemoryMiB < 1 || d.MemoryMiB > maxAmount || d.DiskKiB < 0 || d.SwapKiB < 0 || len(d.Found) != len(d.Resources)):
			t.Errorf("%q is %+v", text, d)
		}
	})
}

// TestMachineMistakes: what is no description is refused, with what is wrong.
func TestMachineMistakes(t *testing.T) {
	t.Parallel()
	const good = `{"cpus": 4, "memory_mb": 8000`
	for text, want := range map[string]string{
		good + `}`:                                         "",
		good + "}\n  \n":                                   "",
		good + "}\n{\"cpus\": 1}":                          "m.json:2: there is more behind the description",
		good + "} x":                                       "m.json:1: there is more behind the description",
		good + `, "resources": {"A B": 2}}`:                `m.json: resource "A B": want a name of letters, digits and underscores`,
		good + `, "resources": {"": 2}}`:                   `m.json: resource "": want a name`,
		good + `, "resources": {"2x": 2}}`:                 `m.json: resource "2x": want a name`,
		good + `, "resources": {"a\u001b[2J": 2}}`:         `m.json: resource "a\x1b[2J": want a name`,
		good + `, "resources": {"GPUs": 1e300}}`:           "m.json: resource GPUs: 1e300 is no amount",
		good + `, "resources": {"GPUs": ["GPU-1,GPU-2"]}}`: `m.json: resource GPUs: "GPU-1,GPU-2" is no name of one instance`,
		good + `, "resources": {"GPUs": [" "]}}`:           `m.json: resource GPUs: " " is no name of one instance`,
		good + `, "resources": {"Cogs": 2.5}}`:             "",
	} {
		_, err := ParseMachine("m.json", []byte(text))
		if got := fmt.Sprint(err); want == "" && err != nil || want != "" && !strings.HasPrefix(got, want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

func TestMachineTooLong(t *testing.T) {
	t.Parallel()
	if _, err := ParseMachine("m.json", make([]byte, MaxMachine+1)); err == nil || !strings.Contains(err.Error(), "longer than 1048576 bytes") {
		t.Errorf("got %v", err)
	}
}
