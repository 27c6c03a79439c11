// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package linux

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/machine/proctext"
)

// mostGPUText is beyond what the driver says of a GPU.
const mostGPUText = 1 << 16

// NVIDIAGPUs lists the GPUs of NVIDIA's driver with their devices, as the driver shows
// them in procfs; nil without the driver. It asks no library: a starter calls it before
// each job.
func NVIDIAGPUs(root Root) []host.GPU {
	dir := filepath.Join(root.Proc, "driver", "nvidia", "gpus")
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) == 0 {
		return nil
	}
	// All devices of the driver have one major number.
	var st unix.Stat_t
	if unix.Stat(filepath.Join(root.Dev, "nvidiactl"), &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFCHR {
		return nil
	}
	var all []host.GPU
	for _, e := range entries {
		text, err := os.ReadFile(filepath.Join(dir, e.Name(), "information"))
		if err != nil || len(text) > mostGPUText {
			continue
		}
		if uuid, minor, ok := proctext.ParseNVIDIA(text); ok {
			all = append(all, host.GPU{UUID: uuid, Device: host.Device{Major: unix.Major(st.Rdev), Minor: minor}})
		}
	}
	return all
}
