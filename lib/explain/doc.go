// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package explain answers why a slot is in its state, why it takes no job, and
// what would have to change. It takes values (ads, expressions, decisions with
// their traces, where things were configured) and returns values that print as
// text and as JSON. It must never keep time, change an ad it was given, ask a
// machine, or decide anything: what it says about an expression it has tried,
// by evaluating that expression again over ads in which the change is made.
//
//	r := explain.Find(explain.Question{Expr: start, Slot: slot, Job: job, Want: true, Now: now})
//	r.Sentence("START") // START would be TRUE if KeyboardIdle > 900; it is 34 now, in 14 min 27 s if nobody types
//
// Attributes that grow by one in a second (KeyboardIdle, ConsoleIdle) and
// time() are looked ahead; those that follow the clock of the wall (ClockMin,
// ClockDay) too. What a load average will do is not foretold.
package explain
