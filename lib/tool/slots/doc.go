// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package slots divides a machine into slots as a configuration would have it, without
// starting anything that takes jobs: this machine, or one that is described. It owns
// the way from a configuration to the ads of slots, which is the daemon's own (what is
// there, what the owner says of it, the slots, their ads), the form in which a machine
// is described, and how slots are shown. It runs the inventory and periodic programs of
// the configuration where the caller hands it a hook.Runner, and no others. It must
// never claim a slot, open another file than the description of a machine, or find out
// the machine by itself: scanners, the time and the configuration are handed in.
package slots
