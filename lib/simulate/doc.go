// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package simulate runs the core of the Execution Point (lib/ep) in virtual
// time. It owns the simulated world around it: the agenda of what happens when,
// starters and jobs that behave as described, people at the keyboard, the load,
// and an access point that claims slots, uses claims again and matches anew.
// What a slot does is decided by the core alone.
//
// A Scenario comes to a Result: every move with its reason, what became of each
// job, and what was done and lost. A Record is a run of the reference daemons,
// to be played again for its moves.
//
//	sc, err := simulate.Parse("desktop.scn", text)
//	res, err := simulate.Run(sc, simulate.Node{Load: load, Machine: sc.Machine})
//
// It must never look at a clock, a file or the machine it runs on, start
// goroutines, or decide anything about a slot. The same scenario, configuration
// and seed give the same Result.
package simulate
