// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package protocol is what a startd and a starter say to each other.
//
// Each says one JSON object a line: the version of the protocol, a number, the kind of
// message and its body. First both say hello. Then the startd gives Orders, of which
// the first is the Plan, and the starter makes Reports, of which the last is Ended. It
// answers each order but the plan with Taken as soon as it is read.
//
//	← {"v":1,"kind":"hello","body":{"program":"execpoint-0.1.0","proc":{"pid":811,"start":52101},"state":"waiting"}}
//	→ {"v":1,"kind":"hello","body":{"program":"execpoint-0.1.0"}}
//	→ {"v":1,"id":1,"kind":"plan","body":{"activation":"slot1_1#3", …}}
//	← {"v":1,"id":1,"kind":"sandbox","at":"2026-01-02T03:04:05Z","body":{"dir":"/execute/dir_811/scratch"}} …
//	→ {"v":1,"id":2,"kind":"softkill","body":{"manner":"vacate","reason":"PREEMPT is true"}}
//	← {"v":1,"kind":"taken","body":{"order":2}}
//	← {"v":1,"id":7,"kind":"ended","at":"…","body":{"record":{"status":{"exited":false,"signal":15}, …}}}
//
// Orders and reports are numbered, each side's from 1 and always higher. A startd
// acknowledges the reports that it has dealt with (Heard). A starter whose plan says
// OrphanStay keeps the others, and tells them again to a startd that comes later; an order
// whose number it has taken it does not carry out again. So each arrives once, whatever
// breaks in between.
//
// The first conversation goes over the starter's standard input and output, and ends with
// them. Later ones go over a socket in the starter's own directory.
//
// The package owns the words, and what the configuration says to a starter, which comes with
// the plan (Settings). It must never start, read or write anything.
package protocol
