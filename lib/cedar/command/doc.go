// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package command is the table of commands: their numbers on the wire, their
// names in logs, what a peer must be allowed and must have proven to send them
// to condor_startd or to a condor_starter, and the numbers of replies and
// refusals. Dispatchers, authorization, logs and clients read it, and
// docs/security.md and the tables in testdata are held to it by tests.
//
// The numbers and names are HTCondor's (src/condor_includes/condor_commands.h);
// the levels are those with which its daemons register the commands, except
// where a row says why not. It must never hold a handler or decide about a peer:
// whose level is enough is decided by lib/cedar/security.
//
//	row, ok := command.Startd.Row(command.RequestClaim)
//	fmt.Println(row.Name, row.Level) // REQUEST_CLAIM DAEMON
package command
