// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package collector is what the daemon has to do with collectors, and with those who ask
// it for ads as they ask collectors. Updates send the ads of slots and daemon:
// the package owns the ads as they are sent, what each collector was sent and may
// still have, and the token that is requested of one which refuses us. Queries answer
// condor_status -direct, condor_who and condor_history.
//
// It must never hold the engine up, let a slow collector delay another one, or let a
// claim id or the capability for administration out but in an ad for a collector that
// nobody else can read.
package collector
