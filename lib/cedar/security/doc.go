// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package security turns a CEDAR stream into one whose other end is known.
//
// It owns what a configuration says about security (SEC_*, ALLOW_*, DENY_*,
// the map file), the negotiation of a session in both roles, keys and their
// derivation, the sessions that are kept to be resumed, those that a claim id
// or condor_master hands over, and the decision whether somebody may do
// something:
//
//	settings, err := security.SettingsFrom(snapshot, security.Sources{Subsystem: "STARTD", ReadFile: os.ReadFile})
//	server := &security.Server{Sessions: sessions, Commands: table, ...}
//	server.Configure(settings)
//	request, err := server.Handshake(ctx, conn, peerAddress)
//	if err != nil { return } // refused: the peer has been answered, and it is logged
//	// request.Command may act, conn is at its payload
//
// It must never run a command, listen, or dial (a [Dialer] is handed in); no
// request leaves it before its authorization, and no key, token or secret part
// of a claim id appears in an error, a log line or a printed value.
//
// Everything that comes from a peer is bounded: ads before authentication hold
// at most 100 literals, sessions are counted, and every step has a deadline.
package security
