// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package words writes amounts, times and names as the programs show them to
// people: 3.5 GiB, 4 min 12 s, a name without what a terminal would obey. It
// owns these forms and nothing else. It must never look at a clock, a terminal
// or a locale: the same value has the same text everywhere.
package words
