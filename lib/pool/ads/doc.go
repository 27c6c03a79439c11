// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ads completes the ads that leave this machine: where the daemon is reached
// and since when it runs, how busy it is, what it uses itself. A Source makes them in
// turns of the goroutine that owns the engine, for collectors, for those who ask and
// for answers to administrators. It owns the spelling of the attributes that the
// packages below lib/pool share.
//
// It must never let a private attribute out, or put one in: claim ids and the
// capability for administration are lib/pool/collector's to add.
package ads
