// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package localjob is the job of an embedded access point (lib/local), whose files
// are on the machine where the job runs. It satisfies the Fetch, Notify and Deliver
// of lib/starter: files are copied, and what the access point has to hear is a
// report to the startd, which it shares a process with.
//
// It must never decide about the job's life: it answers what the activation asks.
package localjob
