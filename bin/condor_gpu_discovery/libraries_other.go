// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !(linux && (amd64 || arm64))

package main

import (
	"runtime"

	"github.com/execpoint/execpoint/lib/gpu"
	"github.com/execpoint/execpoint/lib/tool/gpus"
)

func newLibraries(warn, _ func(string)) gpus.Libraries {
	warn("no library of a GPU driver can be loaded on " + runtime.GOOS + "/" + runtime.GOARCH + ": only -simulate finds devices")
	return noLibraries{}
}

// noLibraries is a platform where no library can be loaded.
type noLibraries struct{}

func (noLibraries) NVIDIA(gpus.Wanted) (gpu.Found, error) { return gpu.Found{}, nil }
func (noLibraries) HIP(uint16) ([]gpu.Device, bool)       { return nil, false }
func (noLibraries) OpenCL() []gpu.Device                  { return nil }
