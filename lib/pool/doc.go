// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pool is the pool's side of an Execution Point, put together: collectors get
// updates of the slots (lib/pool/collector), negotiators, schedds and shadows are
// answered about claims (lib/pool/claims), and administrators about the machine
// (lib/pool/admin). These three know nothing of one another; what they share is how the
// engine is reached (lib/pool/engine), how ads are completed (lib/pool/ads) and where
// daemons are (lib/pool/directory).
//
// The package owns the order in which they see the engine's effects, and nothing else.
// It must never answer a command itself, or hold the engine up.
//
//	p := pool.New(pool.Config{Owner: owner, Open: client, Sessions: sessions, …}, settings)
//	go p.Run(ctx)
//	for _, eff := range engine.Step(now, event) {
//		if !p.Perform(now, eff) { … } // in the goroutine that owns the engine
//	}
//	table, err := listen.NewTable(p.Commands()...)
//	p.Withdraw(ctx) // at the end
package pool
