// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ep is the engine of an execution point: the one owner of its slots,
// claims and activations, and the only place that changes them. It is told
// what happened (an Event) and when, changes its state, and says what is to be
// done about it (Effects). It must never do any of it itself: no goroutines,
// clocks, files, sockets, processes or logs, and nothing that blocks.
//
//	engine, effects, err := ep.New(ep.Config{…}, clock.Now())
//	for {
//		perform(effects)
//		effects = engine.Step(clock.Now(), nextEvent())
//	}
//
// One goroutine owns an Engine. Asked the same things at the same instants, an
// Engine answers the same: replay, simulation and tests use the real one.
package ep
