// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package startd is the daemon that joins a pool: it reads the configuration
// and the machine, opens the door, secures what comes through it, and runs the
// Execution Point behind it until it is told to end. It owns the order in which
// these things begin and end. It must never decide about slots, claims or
// rights: it brings together those who do.
package startd
