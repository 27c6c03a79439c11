// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import (
	"fmt"
	"io"
	"runtime"
)

func run(_, stderr io.Writer, _ []string) int {
	fmt.Fprintf(stderr, "guest: unsupported on %s: it needs Linux\n", runtime.GOOS)
	return 2
}
