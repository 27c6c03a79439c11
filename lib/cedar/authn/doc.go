// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package authn is how two ends of a CEDAR stream find out who the other is:
// the choice of a method, the methods FS, TOKEN (IDTOKENS), PASSWORD, SSL,
// CLAIMTOBE and ANONYMOUS in both roles, and the tokens and signing keys that
// two of them rest on.
//
// It owns the exchange from the method mask up to, and not including, the
// key-exchange message. It must never decide which methods a level allows, map
// a name to another, say what an identity may do, log, or let a key, password,
// signature or token text get into an error: that is for its callers and for
// nobody.
//
//	settings, err := authn.SettingsFrom(snapshot, "STARTD")
//	client := &authn.Client{Settings: settings, System: system}
//	result, err := client.Authenticate(ctx, conn, authn.Peer{TrustDomain: "pool.example", IssuerKeys: keys}, offered)
//	// result.Identity: who the server is
//
// Everything from the peer is hostile: lengths are bounded before anything is
// kept, a name from a peer is never a path, and each method may be tried once.
package authn
