// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import (
	"fmt"
	"io"
	"runtime"
)

func run(_ io.Reader, _, stderr io.Writer, _ []string) int {
	fmt.Fprintf(stderr, "realpool: unsupported on %s: it needs Linux namespaces\n", runtime.GOOS)
	return 2
}
