// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Condor_gpu_discovery prints which GPUs this machine has, and their
// properties, as the startd reads them from an inventory program.
//
//	condor_gpu_discovery
//	condor_gpu_discovery -properties -extra
//	condor_gpu_discovery -dynamic -cron
//	condor_gpu_discovery -simulate:3,2 -not-nested -properties
//
// It owns options and messages; names and text of devices are lib/gpu, the
// libraries of the drivers are platform/linux/gpu. It must never start a
// computation on a device, nor change one.
package main

import (
	"io"
	"os"
	"time"
)

func main() {
	args := os.Args[1:]
	steps := io.Discard
	switch {
	case os.Getenv(apartVariable) != "":
		steps = os.NewFile(stepsFile, "steps")
	case needsLibraries(args):
		if own, err := os.Executable(); err == nil {
			os.Exit(apart(own, args, os.Stdout, os.Stderr))
		}
	}
	os.Exit(tool(args, system{
		stdout: os.Stdout, stderr: os.Stderr, steps: steps, getenv: os.Getenv, unsetenv: os.Unsetenv, now: time.Now, libraries: newLibraries,
	}))
}
