// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package engine is how the pool's side reaches the engine: a Turn in the goroutine
// that owns it, and Requests whose replies come later. It owns the numbers of
// requests and which caller waits for which reply.
//
// It must never change the engine but by an event, hand out anything of it that can
// be changed, or let a reply go to any caller but the one that asked.
package engine
