// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Command condor_mips measures how fast this machine is on whole numbers and
// prints the attribute Mips in the output protocol of benchmarks. It takes about
// a second and looks at no arguments.
package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/execpoint/execpoint/lib/benchmark"
)

func main() { os.Exit(measure(os.Stdout, os.Stderr)) }

func measure(stdout, stderr io.Writer) int {
	begin := time.Now()
	n, err := benchmark.Mips(func() time.Duration { return time.Since(begin) }, benchmark.Span)
	if err == nil {
		_, err = fmt.Fprintf(stdout, "%s = %d\n--\n", benchmark.AttrMips, n)
	}
	if err != nil {
		fmt.Fprintf(stderr, "condor_mips: %v\n", err)
		return 1
	}
	return 0
}
