// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package linux

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/host"
)

func TestNVIDIAGPUs(t *testing.T) {
	t.Parallel()
	root := RootAt(t.TempDir())
	if all := NVIDIAGPUs(root); all != nil {
		t.Errorf("without a driver: %v", all)
	}
	for bus, text := range map[string]string{
		"0000:01:00.0": "GPU UUID: \t GPU-a\nDevice Minor: \t 1\n",
		"0000:02:00.0": "GPU UUID: \t GPU-b\nDevice Minor: \t 0\n",
		"0000:03:00.0": "GPU UUID: \t GPU-?\nDevice Minor: \t 2\n",
	} {
		dir := filepath.Join(root.Proc, "driver/nvidia/gpus", bus)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "information"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if all := NVIDIAGPUs(root); all != nil {
		t.Errorf("without the device that tells the number: %v", all)
	}
	if err := os.MkdirAll(root.Dev, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mknod(filepath.Join(root.Dev, "nvidiactl"), unix.S_IFCHR|0o600, int(unix.Mkdev(195, 255))); err != nil {
		t.Skipf("needs a right to make devices: %v", err)
	}
	want := []host.GPU{{UUID: "GPU-a", Device: host.Device{Major: 195, Minor: 1}}, {UUID: "GPU-b", Device: host.Device{Major: 195}}}
	if all := NVIDIAGPUs(root); !slices.Equal(all, want) {
		t.Errorf("%v, want %v", all, want)
	}
}

// The processors are those of the process, in order.
func TestCores(t *testing.T) {
	t.Parallel()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(os.Getpid(), &set); err != nil {
		t.Fatal(err)
	}
	all := Cores()
	if len(all) != set.Count() || !slices.IsSorted(all) || !set.IsSet(all[0]) {
		t.Errorf("%v of %d", all, set.Count())
	}
}
