// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package access

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/host"
)

// Outside opens a regular file or a directory by its absolute path, to be read
// by this process with the rights of u; of a nil u, with its own.
//
// The path is chosen by u's job, so it may lead to whatever u may read, and must
// lead to nothing that only this process reaches. That is /proc: to the kernel
// this process is itself there, whatever its thread's rights. A link of
// /proc/self/fd leads to an open directory past all above it, and a file below
// /proc/self tells of this process. The first are not followed (openat2 with
// RESOLVE_NO_MAGICLINKS; a kernel without it, before 5.6, opens nothing), the
// second are refused. What is no file and no directory is looked at and not
// opened: opening a device may do something, and opening a pipe waits.
func Outside(u *host.Identity, path string) (*os.File, error) {
	var f *os.File
	open := func() (err error) {
		f, err = openOutside(path)
		return err
	}
	as := func() error { return new(Files).As(u, open) }
	if u == nil {
		as = open
	}
	if err := as(); err != nil {
		return nil, err
	}
	return f, nil
}

func openOutside(path string) (*os.File, error) {
	fail := func(err error) (*os.File, error) { return nil, &os.PathError{Op: "open", Path: path, Err: err} }
	at, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return fail(err)
	}
	defer unix.Close(at)
	var st unix.Stat_t
	var fs unix.Statfs_t
	if err := unix.Fstat(at, &st); err != nil {
		return fail(err)
	}
	if err := unix.Fstatfs(at, &fs); err != nil {
		return fail(err)
	}
	switch t := st.Mode & unix.S_IFMT; {
	case fs.Type == unix.PROC_SUPER_MAGIC:
		return fail(unix.EACCES)
	case t != unix.S_IFREG && t != unix.S_IFDIR:
		return fail(fmt.Errorf("it is no regular file and no directory: %w", unix.EINVAL))
	}
	// The very file that was looked at, and whether it may be read is asked now.
	fd, err := unix.Open("/proc/self/fd/"+strconv.Itoa(at), unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return fail(err)
	}
	return os.NewFile(uintptr(fd), path), nil
}
