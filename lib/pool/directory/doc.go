// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package directory says where the daemons of a pool are: the collectors that the
// configuration names, daemons of this machine by the files in which they show their
// addresses, and all others by asking collectors.
//
// It must never believe a file that anybody but a daemon of this machine could have
// written (its callers give it what reads such files alone), or keep an answer: a
// daemon that starts again has another address.
package directory
