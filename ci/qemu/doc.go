// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package qemu runs one program in a virtual machine with a kernel of Debian's, for
// tests of what the kernel of the build machine lacks or must not be asked for:
// control groups of either version, device-mapper and LVM, file systems, a user to
// whom a group is delegated. QEMU needs no rights for it, and no KVM.
//
// It owns the store, where the kernel and the first file system are kept, and the
// machines that it starts: each ends with its context and with this process. It
// must never change anything outside the store and temporary directories of its
// own, and never be imported by what is not for tests.
//
//	store, err := qemu.OpenStore("")
//	base, err := store.Find()          // after "go run ./ci/guest make"
//	result, err := base.Run(ctx, qemu.Machine{Cgroups: qemu.V1}, qemu.Command{Program: "x.test"}, os.Stdout)
package qemu
