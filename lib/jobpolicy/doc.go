// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jobpolicy is what a job's own ad and the owner of the access point say
// about a job's stay in the queue: when it is held, released, sent back, removed,
// and whether a job that ended is done. It holds the rules of HTCondor's schedd and shadow, for the two access
// points of this tree: the embedded one (lib/local) and the one that is
// simulated (lib/simulate).
//
// It decides and does nothing: it takes a job's ad and the time, and answers
// with a Verdict. It must never change a job's status, nor keep jobs: the queue
// is the access point's.
//
//	system := jobpolicy.SystemFrom(snapshot) // the owner's
//	v := system.Periodic(ad, env)
//	if v.Action == jobpolicy.Hold {
//		hold(job, v.Code, v.Subcode, v.Why)
//	}
package jobpolicy
