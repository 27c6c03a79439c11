// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package starter is one activation: a process of its own that makes the
// sandbox, brings the input, runs the job, watches it, ends it when told,
// brings the output back and tells how it went. The startd side of the
// conversation (Launcher, Handle) is here as well.
//
// The two speak in lines of JSON: Orders on the starter's standard input,
// Reports on its standard output. The first order is the plan. One "ended"
// report is the last word; after it the starter removes the sandbox and exits
// 0. Every order but the plan is answered by "taken" as soon as it is read. End
// of file on standard input means that the startd is gone.
//
//	→ {"op":"plan","plan":{"activation":"slot1_1#3", …}}
//	← {"op":"ready", …} {"op":"sandbox", …} {"op":"running","proc":{"pid":812,"start":52133}, …}
//	→ {"op":"softkill","manner":"vacate","reason":"PREEMPT is true"}
//	← {"op":"taken","order":"softkill"}
//	← {"op":"ended","record":{"status":{"exited":false,"signal":15}, …}}
//
// The package owns the life of an activation. It must never decide whether a
// job may run, be suspended or has to leave: that is ordered. How a job is run, and
// which jobs can be run at all, is decided by lib/starter/runner.
package starter
