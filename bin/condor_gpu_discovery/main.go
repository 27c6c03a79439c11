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
	"os"
	"time"
)

func main() {
	os.Exit(tool(os.Args[1:], system{
		stdout: os.Stdout, stderr: os.Stderr, getenv: os.Getenv, unsetenv: os.Unsetenv, now: time.Now, libraries: newLibraries,
	}))
}
