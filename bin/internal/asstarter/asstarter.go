// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package asstarter turns the calling process into a starter: it chooses the
// platform and hands over to lib/starter. condor_starter is nothing else, and
// condor_ep becomes one by its first argument. It must be called before the
// process has done anything else.
package asstarter

import (
	"context"
	"fmt"
	"os"

	"github.com/execpoint/execpoint/bin/internal/commands"
	"github.com/execpoint/execpoint/lib/starter"
)

// exitNoHost says that this machine cannot be a starter's.
const exitNoHost = 1

// Main is the whole life of a starter; the caller exits with what it returns.
func Main(args []string) int {
	if len(args) == 1 {
		switch args[0] {
		case "-v", "-version", "--version":
			return commands.PrintVersion(os.Stdout)
		case "-h", "-help", "--help":
			fmt.Print(commands.Starter.Help(""))
			return commands.OK
		}
	}
	h, stdin, stdout, err := newHost()
	if err != nil {
		fmt.Fprintf(os.Stderr, "condor_starter: %v\n", err)
		return exitNoHost
	}
	return starter.Main(context.Background(), args, os.Environ(), stdin, stdout, os.Stderr, h)
}
