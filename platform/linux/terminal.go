// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package linux

import (
	"os"

	"golang.org/x/sys/unix"
)

// TerminalWidth returns how many columns the terminal behind f has now; false for
// what is no terminal. One that does not know its size, such as a serial line, has
// the 80 that programs expect.
func TerminalWidth(f *os.File) (columns int, ok bool) {
	const usual = 80
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, false
	}
	var size *unix.Winsize
	var inner error
	if err := raw.Control(func(fd uintptr) { size, inner = unix.IoctlGetWinsize(int(fd), unix.TIOCGWINSZ) }); err != nil || inner != nil {
		return 0, false
	}
	if size.Col == 0 {
		return usual, true
	}
	return int(size.Col), true
}
