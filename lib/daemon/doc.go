// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package daemon is what every daemon of HTCondor does apart from its work: it
// takes over what condor_master hands down, tells its parent that it lives and
// is ready, says where it listens, answers the commands that all daemons
// answer, and keeps the service manager content.
//
// It must never decide anything about slots, claims or jobs: shutdown and
// reconfiguration are orders that it passes on through Control. It must never
// let a session key, a cookie or a claim id reach a log, an error or a file.
//
//	in, err := daemon.ParseInherit(env["CONDOR_INHERIT"], env["CONDOR_PRIVATE_INHERIT"])
//	…
//	table, err := listen.NewTable(daemon.Commands(options)...)
package daemon
