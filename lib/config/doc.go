// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package config reads HTCondor's configuration language and answers what a
// knob is set to and where that came from.
//
// It owns the macro language (files, $(X), function macros, if, include, use,
// prefixes, _CONDOR_ variables), the templates behind "use", the table of
// knobs with types, ranges and defaults, and the checks of values. The result
// of reading is a Snapshot: immutable, safe for concurrent use, giving the
// same answer every time it is asked.
//
// It must never open a file, run a program, read the process environment or
// the clock: all of that comes in through Options, so that a configuration can
// be read from memory in a test, for another machine, or twice for a reload.
//
//	s, err := config.Load(config.Options{Root: "/etc/condor/condor_config", ReadFile: os.ReadFile, Env: os.Environ(), Subsystem: "STARTD"})
//	if err != nil { /* config.Problems: every problem with file:line:column */ }
//	start, _ := s.Lookup("START")   // start.Value, start.Origin
//
// Reading is all or nothing: with an error there is no Snapshot, so a reload
// that fails leaves the old one in force.
package config

//go:generate go run ./internal/gen -in knobs.toml -out knobs_table.go -page ../../docs/knobs.md
