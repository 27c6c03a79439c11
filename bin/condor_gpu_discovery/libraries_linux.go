// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package main

import (
	"github.com/execpoint/execpoint/lib/gpu"
	"github.com/execpoint/execpoint/lib/tool/gpus"
	libs "github.com/execpoint/execpoint/platform/linux/gpu"
)

func newLibraries(warn, note func(string)) gpus.Libraries {
	return &loaded{libs.Libraries{Warn: warn, Note: note}}
}

// loaded asks the libraries of this machine.
type loaded struct{ libs.Libraries }

func (l *loaded) NVIDIA(w gpus.Wanted) (gpu.Found, error) {
	return l.Libraries.NVIDIA(libs.Wanted{Driver: w.Driver, Runtime: w.Runtime, Dynamic: w.Dynamic})
}
