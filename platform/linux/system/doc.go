// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package system is the operating system as one value: what lib/run and
// lib/startd want of it, put together of the packages beside it, and filled into
// their options. It is the front door for a program of one's own, and what
// condor_ep and condor_startd use. It must never decide anything about a slot or a
// job.
//
//	func main() {
//		asstarter.Become() // where this process is to be the starter of a job
//		sys, err := system.New(bolts)      // bolts is a machine.Scanner of one's own
//		o, found, err := sys.Run(ctx, system.Configuration{Dir: dir, Texts: policy})
//		o.Jobs = jobs                      // of lib/submit, or made as ads
//		result, err := run.Run(ctx, o)     // or, for a pool:
//		status, err := startd.Run(ctx, sys.Daemon(system.Configuration{File: "/etc/condor/condor_config"}))
//	}
//
// examples/customep is such a program. On other systems than Linux New and Visit
// answer Unsupported, and a program that imports this package still builds.
package system
