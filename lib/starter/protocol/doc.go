// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package protocol is what a startd and a starter say to each other.
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
// It owns the words, and what the configuration says to a starter, which comes with
// the plan (Settings). It must never start, read or write anything.
package protocol
