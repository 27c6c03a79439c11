// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package slots

import (
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

func TestMachineTooLong(t *testing.T) {
	t.Parallel()
	if _, err := ParseMachine("m.json", make([]byte, MaxMachine+1)); err == nil || !strings.Contains(err.Error(), "longer than 1048576 bytes") {
		t.Errorf("got %v", err)
	}
}
