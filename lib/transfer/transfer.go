// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package transfer brings a job's files into its scratch directory and back.
// Which files those are is read from the job ad by pure functions (InputOf,
// OutputOf, PlanOutput). Copying between the submit directory and the scratch
// directory of the same machine is done by CopyIn and CopyOut; over the wire,
// between a starter and a shadow, by Receive and Send.
//
// The scratch directory is reached through os.Root alone, so that no name in
// an ad or from the wire and no link that the job made leads out of it. The
// package must never decide what a failure means for the job: it returns a
// *Failure or a *WireFailure. It must never start a process: plugins are run
// by a Runner that it is given.
//
//	in, err := transfer.InputOf(job, iwd)
//	got, err := in.CopyIn(ctx, sandbox.Root())   // *Failure: which file, reading or writing
//	before, err := transfer.List(sandbox.Root())
//	// … the job runs …
//	sent, err := transfer.OutputOf(job, iwd).CopyOut(ctx, sandbox.Root(), before)
//
// With a shadow:
//
//	err := transfer.Begin(conn, key)             // after command.FiletransUpload
//	got, err := transfer.Receive(ctx, transfer.Side{Conn: conn}, root, transfer.ReceiveOptions{})
//	// … the job runs; then, on a new connection, after command.FiletransDownload …
//	changed, err := transfer.Changed(root, before)
//	plan, err := transfer.PlanOutput(job, transfer.Ending{Changed: changed})
//	sent, err := transfer.Send(ctx, transfer.Side{Conn: conn}, root, plan, transfer.SendOptions{})
//
// # Hostile peers
//
// Names from the wire must be local, without "..", NUL or line breaks; what
// is wrong with one is noted, and the transfer is followed to its end. The
// numbers of files and URLs are bounded, memory does not depend on announced
// sizes, and half a file is removed. Waiting has no limit while the other end
// says that it is there, and ends by Side.Timeout when it does not.
package transfer

import (
	"fmt"
)

// Result is what was moved.
type Result struct {
	Files int
	Bytes int64
}

// Failure is the first thing that went wrong in a transfer.
type Failure struct {
	Path    string // the file
	Writing bool   // it was being written; otherwise read
	Total   int    // files that failed in all
	Err     error
}

// Error says "reading from file /x/in: no such file or directory".
func (f *Failure) Error() string { return fmt.Sprintf("%s file %s: %v", f.Verb(), f.Path, f.Err) }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// Verb is "reading from" or "writing to".
func (f *Failure) Verb() string {
	if f.Writing {
		return "writing to"
	}
	return "reading from"
}

// failures collects: the first counts, the others are numbered.
type failures struct{ first *Failure }

func (f *failures) add(one *Failure) {
	if f.first == nil {
		f.first = one
	}
	f.first.Total++
}

func (f *failures) err() error {
	if f.first == nil {
		return nil
	}
	return f.first
}
