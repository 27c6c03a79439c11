// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ask puts the questions and orders of people to daemons of a pool, over
// HTCondor's wire: where a daemon is, what it is set to, which jobs ran there, how it
// stands, that it is to move to another access point. It owns what is sent, what an
// answer means, and which daemons are those of this machine, whose files say where they
// are. Who asks is the business of the directory.Opener that is handed in: it
// must never read credentials or a configuration, nor try again: an order might then
// be carried out twice.
//
// Every call is bounded by its context alone: an answer that does not come is waited
// for until it ends.
package ask
