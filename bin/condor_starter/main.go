// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Command condor_starter runs one job for a startd, which speaks to it through
// its standard input and output; see lib/starter.
package main

import (
	"os"

	"github.com/execpoint/execpoint/bin/internal/asstarter"
)

func main() { os.Exit(asstarter.Main(os.Args[1:])) }
