// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package progress shows a run of jobs as it goes on, as condor_ep run does: one line a
// change, a line that is drawn again and again for a terminal, or one JSON object a
// line. It owns these texts, what is worth a line, and how the progress fits the width
// of a terminal. It must never decide anything about a run, look at a clock or a
// terminal: what happened, when, and how wide the terminal is, it is told.
package progress
