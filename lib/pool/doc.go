// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pool is the pool's side of an Execution Point: it keeps collectors
// told of the slots, and turns what negotiators, access points and tools ask
// into events of the engine and its replies into answers. It owns the ads as
// they are sent, what each collector was told, and the form of the startd's
// commands. It must never decide about a slot, hold the engine up, let a slow
// peer delay another one, or let a claim id out except in a private ad and to
// its holder.
//
//	p := pool.New(pool.Config{Owner: owner, Open: client, Sessions: sessions, …}, settings)
//	go p.Run(ctx)
//	for _, eff := range engine.Step(now, event) {
//		if !p.Perform(now, eff) { … } // in the goroutine that owns the engine
//	}
//	table, err := listen.NewTable(p.Commands()...)
//	p.Withdraw(ctx) // at the end
package pool
