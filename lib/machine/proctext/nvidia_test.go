// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package proctext

import (
	"strings"
	"testing"
)

// As the driver 535 writes it.
const nvidiaText = "Model: \t\t NVIDIA A100-SXM4-40GB\nIRQ:   \t\t 262\nGPU UUID: \t GPU-6a96bd13-70bc-6494-6d62-1b77a9a7f29f\nVideo BIOS: \t 92.00.45.00.03\n" +
	"Bus Type: \t PCIe\nDMA Size: \t 47 bits\nDMA Mask: \t 0x7fffffffffff\nBus Location: \t 0000:01:00.0\nDevice Minor: \t 3\nGPU Firmware: \t 535.104.05\nGPU Excluded:\t No\n"

func TestParseNVIDIA(t *testing.T) {
	t.Parallel()
	const id = "GPU-6a96bd13-70bc-6494-6d62-1b77a9a7f29f"
	for _, c := range []struct {
		text  string
		uuid  string
		minor uint32
	}{
		{nvidiaText, id, 3},
		{"GPU UUID: " + id + "\nDevice Minor: 255", id, 255},
		{strings.Replace(nvidiaText, id, "GPU-????????-????-????-????-????????????", 1), "", 0},
		{"GPU UUID: " + id + "\n", "", 0},
		{"Device Minor: 1\n", "", 0},
		{"GPU UUID: " + id + "\nDevice Minor: -1\n", "", 0},
		{"GPU UUID: " + id + "\nDevice Minor: 4294967296\n", "", 0},
		{"", "", 0},
	} {
		uuid, minor, ok := ParseNVIDIA([]byte(c.text))
		if uuid != c.uuid || minor != c.minor || ok != (c.uuid != "") {
			t.Errorf("%q: %q, %d, %v", c.text, uuid, minor, ok)
		}
	}
}

func FuzzParseNVIDIA(f *testing.F) {
	f.Add([]byte(nvidiaText))
	f.Add([]byte("GPU UUID: x\nDevice Minor: 7"))
	f.Fuzz(func(t *testing.T, text []byte) {
		uuid, minor, ok := ParseNVIDIA(text)
		if ok == (uuid == "") || minor >= 1<<20 || strings.ContainsAny(uuid, "\n?") {
			t.Errorf("%q, %d, %v", uuid, minor, ok)
		}
	})
}
