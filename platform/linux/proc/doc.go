// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package proc starts processes on Linux and keeps hold of all that descends
// from them: it implements host.Spawner, host.Family and host.Census.
//
// What catches descendants, in the order of its strength: a control group,
// where one may be made; parentage, because the process is a subreaper, so
// that whatever loses its parent becomes its child, and because "no child
// left" said by the kernel is a proof; and a mark in the environment, which
// finds what a dead starter has left. A child that has emptied its environment
// is found by the starter's record, which lists those it saw. A child never outlives its starter if it
// is bound: the kernel kills it with the thread that started it, and that
// thread is kept until the family is closed.
//
// The package must never signal a process by its bare pid when that pid could
// have become another's, and must never signal what it cannot prove to be of
// the family.
package proc
