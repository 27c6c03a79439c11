// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package space makes what a family of processes sees of a Linux machine: a tree of
// mounts, a network and process numbers of its own (host.Space). It owns the steps
// (PlanOf, pure), their doing on one thread (Make, Join), and the first process of a
// PID namespace (Init).
//
// A thread that is locked to its goroutine leaves the namespaces of the process,
// mounts what the plan says, and starts the family: a child inherits the namespaces
// of the thread that forks it. So nothing is executed twice, and nothing is ever
// mounted where another process sees it: the kernel takes all of it away with the last
// process and thread that is in there, however they end.
//
// The calling thread must be used for nothing else afterwards, and must not be the
// main thread, whose view everybody takes for that of the process (/proc/PID). The
// package must never mount anything before the thread is alone, and never open what a
// user may have made with other rights than that user's.
//
//	runtime.LockOSThread() // for good
//	err := space.Make(host.Space{Mounts: []host.Mount{{Source: "/scratch/tmp", Target: "/tmp"}}}, user)
//	… // what this thread starts now sees its own /tmp
package space
