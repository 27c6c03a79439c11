// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Command guest runs tests in a virtual machine with a kernel of Debian's: as root
// or not, with the control groups, disks and programs that they want, on any amd64
// machine that has QEMU (ci/qemu).
//
//	go run ./ci/guest make                 download the kernel and make the first file system, or find them
//	go run ./ci/guest make -systemd        the same, and a file system with systemd (as root, 500 MB)
//	go run ./ci/guest exec -- FILE ARGS... run a program of this machine that needs no libraries
//	go run ./ci/guest sh 'COMMANDS'        run commands of the guest's shell
//
// With exec as the -exec of go test the tests of a package run in guests, those of
// each package in one:
//
//	go build -o /tmp/guest ./ci/guest
//	CGO_ENABLED=0 go test -exec '/tmp/guest exec -cgroups v1 -disks 512,512 --' -run TestThin ./platform/linux/...
//
// The package's directory with its testdata is the working directory. guest exec -h
// lists the options. integration/guest does the same for tests in CI.
package main

import "os"

func main() { os.Exit(run(os.Stdout, os.Stderr, os.Args[1:])) }
