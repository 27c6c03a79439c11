// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
)

// Enter moves the calling thread into the group, so that a process it starts
// is born there. The caller has locked its goroutine to the thread and calls
// Leave when it is done. Version 1 only: on version 2 a process is born into
// the directory of OpenDir by clone itself.
//
// Moving a thread that calls it is cheap, for the kernel needs no global lock;
// moving a whole process would wait for an RCU grace period.
func (g *Group) Enter() error {
	for i, p := range g.parts {
		if err := writeFile(filepath.Join(p.dir, "tasks"), "0"); err != nil {
			return errors.Join(errs.E("cgroup.Enter", errs.Broken, p.dir, err), g.leave(g.parts[:i]))
		}
	}
	return nil
}

// Leave moves the calling thread back to where this process lives.
func (g *Group) Leave() error { return g.leave(g.parts) }

func (g *Group) leave(parts []part) error {
	var all error
	tid := strconv.Itoa(unix.Gettid())
	for _, p := range parts {
		err := writeFile(filepath.Join(p.home, "tasks"), tid)
		if errors.Is(err, fs.ErrNotExist) { // hidden by a mount or a namespace: the root of what we see
			err = writeFile(filepath.Join(mountOf(p.hierarchy), "tasks"), tid)
		}
		if err != nil {
			all = errors.Join(all, errs.E("cgroup.Leave", errs.Broken, p.home, err))
		}
	}
	return all
}

// mountOf walks up from the base to where the groups end.
func mountOf(h hierarchy) string {
	dir := h.base
	for exists(filepath.Dir(dir), "tasks") {
		dir = filepath.Dir(dir)
	}
	return dir
}

// OpenDir opens the directory of a version 2 group for clone. The caller
// closes it.
func (g *Group) OpenDir() (*os.File, error) {
	if g.version != 2 {
		return nil, errs.E("cgroup.OpenDir", errs.Unsupported, g.name, errors.New("version 1 cannot start processes in a group"))
	}
	dir := processes(g.parts[0].dir)
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, errs.E("cgroup.OpenDir", errs.Broken, dir, err)
	}
	return os.NewFile(uintptr(fd), dir), nil
}

// writeFile writes value in one write, for the kernel takes each write as one
// order, and never makes the file.
func writeFile(path, value string) error {
	fd, err := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, []byte(value)); err != nil {
		return &fs.PathError{Op: "write", Path: path, Err: err}
	}
	return nil
}

func rmdir(path string) error {
	if err := unix.Rmdir(path); err != nil {
		return &fs.PathError{Op: "rmdir", Path: path, Err: err}
	}
	return nil
}

func writable(dir string) error {
	if err := unix.Access(dir, unix.W_OK); err != nil {
		return &fs.PathError{Op: "access", Path: dir, Err: err}
	}
	return nil
}

func kill(pid int) error        { return unix.Kill(pid, unix.SIGKILL) }
func isBusy(err error) bool     { return errors.Is(err, unix.EBUSY) || errors.Is(err, unix.ENOTEMPTY) }
func isReadOnly(err error) bool { return errors.Is(err, unix.EROFS) }
