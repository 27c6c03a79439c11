// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Command realpool runs programs beside real HTCondor daemons. It makes root
// directories with Debian's HTCondor packages, keeps them outside the
// repository, and runs commands or a personal pool inside them.
//
//	go run ./ci/realpool make   [-htcondor V]                  make the root directory, or find the one that is there
//	go run ./ci/realpool exec   [-htcondor V] -- COMMAND...    run a command inside, with this checkout and Go
//	go run ./ci/realpool up     [-htcondor V] [-with-original] start a personal pool whose startd is ours
//	go run ./ci/realpool in     [COMMAND...]                   run a command, or a shell, in the pool
//	go run ./ci/realpool down                                  end the pool
//	go run ./ci/realpool sweep                                 remove what killed commands left
//
// V is a Debian release (sid, trixie) or the version of HTCondor that is wanted
// from it (25.14, 23.9). realpool COMMAND -h lists the options.
//
// A command inside has a mount, PID, network and host name namespace of its own:
// the kernel ends its processes and removes its mounts with its first process,
// also when realpool is killed. What a killed realpool leaves on disk is removed
// at the next start. The root directory itself is mounted read-only. Root may
// run realpool, and so may an ordinary user where user namespaces are allowed
// and /etc/subuid gives the user a range.
//
// realpool must never start or change anything outside its namespaces and its
// store, and never signal a process that is not its own child.
package main

import "os"

func main() { os.Exit(run(os.Stdin, os.Stdout, os.Stderr, os.Args[1:])) }
