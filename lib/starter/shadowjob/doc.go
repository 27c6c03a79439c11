// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shadowjob is a job of a pool: it comes from a condor_shadow over the
// connection that came with the plan, its files over connections of their own. A
// Job satisfies the Fetch, Notify and Deliver of lib/starter, and serves the
// starter's command socket, through which a shadow takes its job up again.
//
// Where to look:
//
//	job.go           what lib/starter asks of a job: Fetch; with bring.go, notify.go and deliver.go
//	conversation.go  the calls to the shadow, in one order; sessions
//	reached.go       the command socket, and brokers in front of it
//	reconnect.go     the shadow that comes back, and other visitors
//	mover.go         files: input, output, and when the next transfer may begin
//	checkpoint.go    a job that ends to have its state saved
//	account.go       what the job used; ads.go is how a shadow is told
//
// It must never decide about the job's life. It answers what the activation asks
// with values and errors (lib/starter/job), and hands on what visitors want
// (Activation).
package shadowjob
