// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shadowtest is a shadow for tests and benchmarks: it answers the calls
// of a starter on a stream, keeps what it was asked, serves the files of its
// job from a directory, and misbehaves if it is told to. Its Startd client also
// plays the schedd's part, so that an EP can be driven without one. It must
// never be imported by anything but tests.
//
//	s := shadowtest.New(shadowtest.Job{Ad: job, Claim: id, Root: root})
//	end, err := s.Serve(ctx, conn)
//	// end.Exit says how the job ended; s.Calls() what was asked
package shadowtest
