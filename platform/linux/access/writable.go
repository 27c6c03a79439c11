// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package access

import (
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Writable is nil if the calling thread may write the file at path, or where there is
// none make it. Nothing is opened, so that a pipe without an other end holds nobody up,
// and nothing is made.
func Writable(path string) error {
	mode := uint32(unix.W_OK)
	// The rights over files of a thread, which As changes, are not those of its user.
	err := unix.Faccessat(unix.AT_FDCWD, path, mode, unix.AT_EACCESS)
	if errors.Is(err, unix.ENOENT) {
		path, mode = filepath.Dir(path), unix.W_OK|unix.X_OK
		err = unix.Faccessat(unix.AT_FDCWD, path, mode, unix.AT_EACCESS)
	}
	if err != nil {
		return &os.PathError{Op: "access", Path: path, Err: err}
	}
	return nil
}
