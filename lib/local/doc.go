// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package local is the embedded access point: the queue, negotiator, schedd
// and shadow of one submit file, for an Execution Point that has no pool. It
// asks the engine for claims with the same events that a pool's requests
// become, reuses a claim for the next job that fits, and writes the job event
// log. It is a state machine in memory: each method takes what happened and
// returns the events that follow for the engine.
//
// It must never look into the engine's state (slot ads are all it sees), call
// a clock, start a process or open a file.
//
//	a := local.New(local.Config{Jobs: ads, User: "alice", Log: write})
//	a.Submit(now)
//	for {
//		ev, ok := a.Negotiate(now, offers)
//		…
//	}
package local
