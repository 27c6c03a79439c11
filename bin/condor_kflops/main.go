// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Command condor_kflops measures how fast this machine is on floating-point numbers and
// prints the attribute KFlops in the output protocol of benchmarks, or with -json
// as an object. It takes about a second.
package main

import (
	"os"
	"time"

	"github.com/execpoint/execpoint/bin/internal/commands"
	"github.com/execpoint/execpoint/lib/benchmark"
)

func main() { os.Exit(commands.Measure(&commands.Kflops, os.Args[1:], os.Stdout, os.Stderr, measure)) }

func measure() (string, int64, error) {
	begin := time.Now()
	n, err := benchmark.KFlops(func() time.Duration { return time.Since(begin) }, benchmark.Span)
	return benchmark.AttrKFlops, n, err
}
