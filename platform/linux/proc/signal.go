// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package proc

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// sigaction begins as the kernel's structure of that name does on every
// architecture, with the handler; what follows is at most this long.
type sigaction struct {
	handler uintptr
	_       [7]uint64
}

// unignore sets signals that are ignored back to their default, because an
// ignored signal stays ignored in every descendant, and jobs expect SIGHUP to
// mean something even if somebody started the daemon with nohup. A signal that
// has a handler keeps it.
func unignore(signals ...unix.Signal) {
	const sigIgn, setSize = 1, 8
	for _, sig := range signals {
		var old, deflt sigaction
		_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), 0, uintptr(unsafe.Pointer(&old)), setSize, 0, 0)
		if errno == 0 && old.handler == sigIgn {
			_, _, _ = unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(sig), uintptr(unsafe.Pointer(&deflt)), 0, setSize, 0, 0)
		}
	}
}
