// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package daemon has the real tools and daemons of HTCondor meet what every
// daemon of ours does: its command socket, behind a shared port and a broker
// too, and the commands that all daemons answer. It owns the processes that it
// starts, and must never touch a pool that is there already.
//
// The tests are skipped where package realpool finds no HTCondor. Started by
// root, they run the real programs as the user that EXECPOINT_TEST_USER names,
// or as nobody.
package daemon
