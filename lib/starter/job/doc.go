// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package job is what an activation and the source of its job tell each other of
// that job, whichever access point it comes from: what its ad says about running
// it here (Job), where it is on this machine (Place), how it is at one moment
// (State), what is to be sent when it has ended (Ending), and why it cannot go on
// (Held, Unfit, ErrAway).
//
// It owns these words and the texts of holds. It must never run a job, move a
// file or speak with an access point: that is done by lib/starter/runner,
// lib/starter/localjob and lib/starter/shadowjob.
package job
