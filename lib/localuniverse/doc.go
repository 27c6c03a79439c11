// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package localuniverse is a starter whose schedd started it itself, for a job of the
// local universe (STARTER_LOCAL). There is no startd and no shadow: the arguments name
// the job and the schedd, the job's ad comes on standard input, orders come as
// signals, the starter writes the job's event log and its attributes in the queue, and
// by its exit status the schedd knows what becomes of the job.
//
// The activation itself is lib/starter's; this package is around it what a startd and
// a shadow are around others:
//
//	options.go   the arguments
//	plan.go      the plan of the activation, of the job's ad and the configuration
//	outcome.go   what becomes of the job, and which event and attributes tell it; pure
//	eventlog.go  the event logs of the job
//	run.go       from the first word to the exit status
//
// It must never decide how a job is run.
package localuniverse
