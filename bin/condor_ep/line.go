// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/execpoint/execpoint/lib/tool/words"
)

// The forms of lib/tool/words, for the lines of a run.

func printable(s string) string { return words.Printable(s) }

func fit(s string, most int) string { return words.Fit(s, most) }

func short(d time.Duration) string { return words.Short(d) }
