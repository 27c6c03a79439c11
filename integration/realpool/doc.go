// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package realpool is a pool of real HTCondor daemons for tests that look at an
// Execution Point from outside: the original or ours is put into it, and what
// its processes use and leave behind can be read. It owns the daemons that it
// starts, on free ports of the loopback interface and as a user without rights,
// and ends them by their process ids. It must never touch a pool that is there
// already, and never be imported by anything but tests.
//
// A test is skipped where neither condor_collector nor condor_ping is in PATH.
// Started by root, the daemons run as the user that EXECPOINT_TEST_USER names,
// or as nobody.
package realpool
