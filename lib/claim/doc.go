// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package claim knows what a claim is: its id and secret, who holds it, its
// lease and worklife, and the activations (one job run each) under it. These
// are values and their moves; the package must never decide policy, keep time,
// or reach a slot, a process or a file. lib/ep owns the claims.
//
// Ids come before claims: each slot offers one, and who was told it may claim
// the slot. A request uses the id up, whether it is granted or not: granted, it
// is the id of the claim from then on, and the slot offers another.
package claim
