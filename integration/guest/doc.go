// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package guest runs tests in virtual machines, for what the kernel of this machine
// lacks or must not be asked for: control groups of either version with all
// controllers, device-mapper and LVM, file systems with quotas, a user to whom a
// group is delegated. It owns the machines and what is built for them (ci/qemu makes
// and boots them). It must never be imported by anything but tests.
//
// A test of the package that a guest is for stays where it is, and is skipped where
// it lacks something. A line here has it run where it does not:
//
//	func TestThinVolumes(t *testing.T) {
//		guest.Run(t, guest.Machine{Disks: []int{512}}, "platform/linux/lvm", "Thin")
//	}
//
// Each test inside is a part of the one outside, passed, failed or skipped as it
// was, with what it printed. Inside, EXECPOINT_GUEST_INSIDE says which control groups
// the machine has. While a test is written, ci/guest runs it alone by go test -exec.
//
// The environment says the rest:
//
//	EXECPOINT_GUEST=required      a test that lacks QEMU, a program or the kernel fails;
//	                              without it the test is skipped and says what to install
//	                              or to do. no skips all of them
//	EXECPOINT_GUEST_STORE=DIR     where the kernel and the first file system are kept
//	EXECPOINT_GUEST_RESULTS=DIR   what go test -json would say of the tests inside is
//	                              written there, a file for each machine
package guest
