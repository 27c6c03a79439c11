// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package run wires the core to its edges: configuration and scanners make a
// machine, the machine makes slots, the engine (lib/ep) decides, and this
// package carries its effects out and turns what happens into its events. One
// goroutine owns the engine and the embedded access point; everything else
// talks to it over a channel.
//
// It must never decide anything about a slot, a claim or a job itself, and it
// must never reach for the operating system except through what Options holds.
//
//	res, err := run.Run(ctx, run.Options{Config: snap, OwnJobs: run.OwnJobs{Jobs: jobs}, Host: host, …})
package run
