// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package runner runs jobs: it knows which kinds of job an Execution Point can run,
// and how each kind is prepared, started, suspended, ended and measured. Today there
// is one Runner, for a plain process. A container runtime or a virtual machine is a
// further Runner, added to the list in All; nothing else says which universes there
// are.
//
// The package owns what a runner offers, what a job demands, and which of the two
// fit (Choose). It must never decide whether a job may run, be suspended or has to
// leave, which is ordered; never move a job's files or speak to its access point; and
// never read the configuration, whose values it is given.
//
//	runners := runner.All(runner.Machine{Spawner: spawner, Errno: errno})
//	r, err := runner.Choose(runners, runner.Request{Job: ad, Wanted: wanted})
//	…                                  // err is a *Refusal: the job is held with it
//	ready, err := r.Prepare(ctx, task) // an image is pulled, a mount is made
//	defer ready.Close()
//	run, err := ready.Start(program)
//	<-run.Done()
//	status := run.Status()
//	left, err := run.Close()           // nothing that the job started is left
//	usage, err := run.Usage()          // the final figures
package runner
