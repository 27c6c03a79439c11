// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reach is how others reach into a job that runs: the command socket
// of a starter. It owns where that socket is and what its address says, who
// may come in, the form of the commands, and the two of them that look at the
// job: STARTER_PEEK (condor_tail) and START_SSHD (condor_ssh_to_job).
//
//	socket, err := reach.Open(ctx, reach.Config{Claim: id, Address: startd, Job: handler, …})
//	report(socket.Address())
//	err = socket.Serve(ctx) // until ctx ends or Close
//
// It must never decide by itself who a visitor is: a visitor has a session of the
// claim, or one that the schedd asked for with CREATE_JOB_OWNER_SEC_SESSION. It
// must never end or change a job by itself, read a file outside the scratch
// directory, or let a key into a log.
//
// A starter lives for milliseconds, so opening is one socket and a few small
// maps; everything else waits for the first visitor.
package reach
