// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shadow is the starter's conversation with the shadow of its job: the
// remote calls, and how long a job outlives a conversation that broke off. It
// owns the form of every call and answer and the place of a conversation in a
// stream. It must never start or end a job, open a local file, choose what a
// job may do with its files at the submit machine, or make a connection: those
// are handed in.
//
//	caller := shadow.New(conn, shadow.Options{Log: log})
//	job, err := caller.JobInfo(ctx)
//	…
//	err = caller.JobExit(ctx, shadow.WaitStatus(0, 0), shadow.Exited, final)
//
// The starter asks and the shadow answers, never the other way round. A Caller
// is safe for concurrent use: one call is under way at a time, others wait. A
// call that the shadow refuses is a *CallError and the conversation goes on;
// when the connection breaks, times out or carries something else than the
// answer, every call fails with ErrLost until Replace brings the connection on
// which the shadow, or its successor, came back.
//
// Ending the context of a call that was sent does not hurt the conversation:
// the call returns, and its answer is dropped when it comes.
package shadow
