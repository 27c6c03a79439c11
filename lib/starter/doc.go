// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package starter is one activation: a process of its own that makes the
// sandbox, brings the input, runs the job, watches it, ends it when told,
// brings the output back and tells how it went. What it and its startd say to
// each other is lib/starter/protocol; the startd's side is lib/starter/launch.
//
// Where to look:
//
//	life.go        what follows from an order, an end, a shadow that is away; pure
//	activation.go  the goroutine that does what the life says
//	source.go      what a job comes from: Fetch, Notify, Deliver, satisfied by
//	               lib/starter/localjob and lib/starter/shadowjob
//	stages.go      what their answers mean to the life
//	jobhooks.go    the owner's programs around a job
//	runs.go        the job's runner, of lib/starter/runner: a new universe is one there
//	visitors.go    what shadows that come back, and the owner's tools, reach of it
//
// The package owns the life of an activation. It must never decide whether a
// job may run, be suspended or has to leave: that is ordered. How a job is run, and
// which jobs can be run at all, is decided by lib/starter/runner.
package starter
