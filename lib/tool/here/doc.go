// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package here finds the Execution Points of this machine that the user of a tool may
// ask, runs and daemons, by the records that they leave and by the configuration, and
// puts questions to their control sockets. It owns which of them are meant, and what is
// said where none runs. It must never ask one a second time for something that changes
// it, nor find records, processes or configurations by itself: they are handed in.
package here
