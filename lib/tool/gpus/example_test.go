// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package gpus_test

import (
	"fmt"

	"github.com/execpoint/execpoint/lib/gpu"
	"github.com/execpoint/execpoint/lib/tool/gpus"
)

// amd is a machine with one device of AMD, and what was asked there.
type amd struct{ asked *[]string }

func (a amd) NVIDIA(gpus.Wanted) (gpu.Found, error) {
	*a.asked = append(*a.asked, "NVIDIA")
	return gpu.Found{}, nil
}

func (a amd) HIP(uint16) ([]gpu.Device, bool) {
	*a.asked = append(*a.asked, "HIP")
	return []gpu.Device{{Name: "MI300"}}, true
}

func (a amd) OpenCL() []gpu.Device {
	*a.asked = append(*a.asked, "OpenCL")
	return nil
}

func ExampleAsk() {
	for _, c := range []gpus.Choice{{}, {CUDA: true}, {OpenCL: true}} {
		var asked []string
		found, _, err := gpus.Ask(amd{&asked}, c)
		fmt.Println(asked, len(found.Devices), err)
	}
	// Output:
	// [NVIDIA HIP] 1 <nil>
	// [NVIDIA] 0 <nil>
	// [OpenCL] 0 <nil>
}
