// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package record answers recordings of what an Execution Point did, one JSON object to
// a line, with what this project makes of the same: which slots a configuration makes
// (condor_ep slots -record), and which moves slots make in a run (condor_ep simulate
// -record). It owns the form of these questions and answers, and their limits. It must
// never start anything that takes jobs, nor leave anything behind: the programs of a
// record run in a directory that is made for it and removed.
package record
