// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package policy is the law of a slot: which states and activities there are,
// which moves between them exist (Table), the expressions with which the owner
// of a machine decides (Expressions), and the decision for one slot at one
// moment (Decide). It takes values and returns values. It must never keep
// time, change a slot, start or stop anything, read files or log; lib/ep asks
// it and acts.
//
//	d := policy.Decide(&view)
//	if d.Moves() { … engine carries out d.To, told by d.Number and d.Reason … }
//
// A decision that moves a slot brings a Trace: the expression, its text, its
// value, the attribute values it read and where it was configured.
package policy
