// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package endpoint assembles what a process needs on the wire out of typed
// settings: an [Endpoint] dials, speaks with brokers and makes the two sides of
// security, and [Sockets] listen at ports, behind a shared port and through
// brokers. The startd and each starter are one. What differs between them is a
// field of [Config] or [Sockets], or is done with what the methods return.
//
//	e := endpoint.New(endpoint.Config{Subsystem: "STARTD", Network: network, Source: source, …})
//	client := e.Client(sessions)
//
// It must never read a knob after [NetworkFrom], decide who may do what
// (lib/cedar/security does), or know a command besides the two with which a
// process speaks to brokers.
package endpoint
