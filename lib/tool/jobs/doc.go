// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jobs prints jobs that have ended, one after the other, from the ads that
// a history keeps of them: as a table, as ads, or as JSON. It owns this text, which
// is condor_ep history's, and how the end of a job is called in a word. It must never
// read a history or a clock, nor hold more than the table needs: lib/history finds
// the jobs.
package jobs
