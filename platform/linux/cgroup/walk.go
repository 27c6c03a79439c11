// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cgroup

import (
	"errors"
	"io"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// walk calls enter for dir and each group below it, before those that are below that
// one, and leave, if there is one, when these are done. Both get an open directory,
// leave that above, and the name. A job makes groups as deep as it likes, on version 1
// deeper than any path may be long, and renames and removes them meanwhile: so the
// walk has one directory open and goes from there, and what is not there any more is
// passed over. Errors end it.
func walk(dir string, enter func(fd int) error, leave func(above int, name string) error) error {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: dir, Err: err}
	}
	defer func() { unix.Close(fd) }()
	type level struct {
		name string
		rest []string // those below it that are still to be seen
	}
	at := func(name string) (level, error) {
		if err := enter(fd); err != nil {
			return level{}, err
		}
		rest, err := below(fd)
		return level{name, rest}, err
	}
	top, err := at("")
	if err != nil {
		return err
	}
	for stack := []level{top}; ; {
		here := &stack[len(stack)-1]
		if n := len(here.rest); n > 0 {
			name := here.rest[n-1]
			here.rest = here.rest[:n-1]
			next, err := unix.Openat(fd, name, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
			if errors.Is(err, unix.ENOENT) {
				continue
			}
			if err != nil {
				return &fs.PathError{Op: "open", Path: name, Err: err}
			}
			unix.Close(fd)
			fd = next
			l, err := at(name)
			if err != nil {
				return err
			}
			stack = append(stack, l)
			continue
		}
		if len(stack) == 1 {
			return nil
		}
		above, err := unix.Openat(fd, "..", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return &fs.PathError{Op: "open", Path: "..", Err: err}
		}
		unix.Close(fd)
		fd = above
		if leave != nil {
			if err := leave(fd, here.name); err != nil {
				return err
			}
		}
		stack = stack[:len(stack)-1]
	}
}

// below names the groups in an open directory.
func below(fd int) ([]string, error) {
	own, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		if errors.Is(err, unix.ENOENT) { // removed meanwhile
			return nil, nil
		}
		return nil, err
	}
	dir := os.NewFile(uintptr(own), ".")
	defer dir.Close()
	entries, err := dir.ReadDir(-1)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// readAt reads a file in an open directory; nothing if it is not there.
func readAt(fd int, file string) ([]byte, error) {
	own, err := unix.Openat(fd, file, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) {
			return nil, nil
		}
		return nil, &fs.PathError{Op: "open", Path: file, Err: err}
	}
	f := os.NewFile(uintptr(own), file)
	defer f.Close()
	text, err := io.ReadAll(f)
	if errors.Is(err, unix.ENODEV) { // the group was removed meanwhile
		return nil, nil
	}
	return text, err
}
