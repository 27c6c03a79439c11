// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package batch answers questions about expressions and ads, one JSON object to a
// line: what an expression is, how it prints, what it refers to, what an ad looks
// like in another syntax, whether two ads match. The questions are those of
// docs/commands.md (condor_ep classad eval -batch, match -batch), and the answers
// have the form in which HTCondor's own are recorded. It owns that form, and the
// limits on a record. It must never read a file, run a command or look at a clock,
// whatever a record asks for: the world that expressions see is handed in.
package batch
