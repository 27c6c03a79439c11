// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package status prints how an Execution Point stands, as it tells it at its
// control socket: one line of the whole, a table of its slots, how far a drain is,
// and its jobs. It owns this text, which is condor_ep status's. It must never ask
// anybody or look at a clock: the status and the time are handed in, and nothing of
// the status is changed.
package status
