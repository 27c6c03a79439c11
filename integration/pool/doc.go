// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pool puts an Execution Point into a pool of real HTCondor daemons and
// looks at it with the real tools. It owns the daemons that it starts, on free
// ports of the loopback interface and as a user without rights, and ends them
// by their process ids. It must never touch a pool that is there already.
//
// The tests are skipped where package realpool finds no HTCondor. Started by
// root, they run the daemons as the user that EXECPOINT_TEST_USER names, or as
// nobody.
package pool
