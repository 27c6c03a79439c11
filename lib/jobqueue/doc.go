// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jobqueue writes into the job queue of a schedd, as a starter does that the
// schedd has started itself, for a job of the local universe. What it says is the part
// of HTCondor's queue management protocol that this takes: who acts, attributes of one
// job, and the end of the transaction.
//
// It must never decide what is written.
package jobqueue
