// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package admin answers those who administrate the machine and the tools that ask in
// ads: claims are vacated, the machine is drained, its ad is added to, and all slots move
// to another access point (rehome), with a reboot if the owner allows that. It hears of
// condor_kbdd's keyboard, too. It owns the form of these commands, what
// condor_update_machine_ad has added, and the moves that are under way. Settings that are
// made from afar and tokens are every daemon's: lib/daemon answers for them.
//
// It must never decide whether a drain or a vacate is carried out, or do anything for
// whom lib/cedar/security has not allowed it.
package admin
