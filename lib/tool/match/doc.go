// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package match says whether two ads match, and if not, which parts of their
// Requirements do not hold and what those parts looked at. It owns this report, as
// a value, as JSON and as text. What a match is, is lib/classad's. It must never
// read a file or a clock: ads and their world are handed in, and no ad is changed.
package match
