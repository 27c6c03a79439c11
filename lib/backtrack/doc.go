// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package backtrack matches the regular expressions that Go's regexp refuses:
// assertions that look ahead or behind, back references, atomic groups,
// possessive repetition and conditions. HTCondor evaluates them with PCRE, and
// owners' policies use them.
//
// It owns the program that is made of a pattern and the machine that runs it.
// The pattern is parsed by regexp2. Its own machine is not used, because a
// clock is the only bound that it has: whether a policy holds would depend on
// how busy the computer is. This machine counts its instructions, so a match
// ends after the same work everywhere.
//
// It must never run without a bound, read a clock, or recurse deeper than the
// pattern is nested.
//
//	p, err := backtrack.Compile(`^(?!test)\w+$`, 0)
//	steps := 10_000
//	loc, ok := p.Find("slot1", 0, &steps) // [0 5], true
//
// A character is a byte, as in HTCondor.
package backtrack
