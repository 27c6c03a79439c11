// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package lvm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// backing opens the file of a group and makes it if it is not there: without blocks,
// which it gets as jobs write, and no larger than what its file system has free.
func backing(path string, bytes int64) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return makeBacking(path, bytes)
	case err != nil:
		return nil, err
	}
	info, err := f.Stat()
	var st unix.Stat_t
	if err == nil {
		err = unix.Fstat(int(f.Fd()), &st)
	}
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = fmt.Errorf("%s is no file", path)
	case int(st.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0:
		err = fmt.Errorf("%s can be written by others; it is not believed", path)
	case info.Size() < bytes:
		err = fmt.Errorf("%s has %d MiB, and LVM_BACKING_FILE_SIZE_MB wants %d; remove it while no startd runs, and it is made anew", path, info.Size()>>20, bytes>>20)
	default:
		return f, nil
	}
	f.Close()
	return nil, err
}

func makeBacking(path string, bytes int64) (*os.File, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(path), &st); err != nil {
		return nil, &os.PathError{Op: "statfs", Path: filepath.Dir(path), Err: err}
	}
	if free := int64(st.Bavail) * st.Bsize; free < bytes {
		return nil, fmt.Errorf("%s of %d MiB (LVM_BACKING_FILE_SIZE_MB) would not fit: its file system has %d MiB free", path, bytes>>20, free>>20)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err := f.Truncate(bytes); err != nil {
		f.Close()
		return nil, errors.Join(err, os.Remove(path))
	}
	return f, nil
}

// attach returns the loop device of a file: the one that it has, or a new one.
func attach(f *os.File) (device string, err error) {
	if device, err = attached(f); device != "" || err != nil {
		return device, err
	}
	control, err := os.OpenFile("/dev/loop-control", os.O_RDWR, 0)
	if err != nil {
		return "", fmt.Errorf("no loop device: %w", err)
	}
	defer control.Close()
	for range 16 { // somebody else may be quicker
		n, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
		if err != nil {
			return "", os.NewSyscallError("LOOP_CTL_GET_FREE", err)
		}
		device = fmt.Sprintf("/dev/loop%d", n)
		switch err = configure(device, n, f); {
		case err == nil:
			return device, nil
		case !errors.Is(err, unix.EBUSY):
			return "", err
		}
	}
	return "", errors.New("no loop device is free")
}

func configure(device string, n int, f *os.File) error {
	// Without udev nobody makes the files of devices that come later.
	if _, err := os.Stat(device); errors.Is(err, fs.ErrNotExist) {
		const loopMajor = 7
		if err := unix.Mknod(device, unix.S_IFBLK|0o660, int(unix.Mkdev(loopMajor, uint32(n)))); err != nil && !errors.Is(err, unix.EEXIST) {
			return &os.PathError{Op: "mknod", Path: device, Err: err}
		}
	}
	d, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := unix.IoctlSetInt(int(d.Fd()), unix.LOOP_SET_FD, int(f.Fd())); err != nil {
		return os.NewSyscallError("LOOP_SET_FD", err)
	}
	var info unix.LoopInfo64
	copy(info.File_name[:len(info.File_name)-1], f.Name())
	if err := unix.IoctlLoopSetStatus64(int(d.Fd()), &info); err != nil {
		return errors.Join(os.NewSyscallError("LOOP_SET_STATUS64", err), detach(device))
	}
	return nil
}

// attached finds the loop device of a file, "" if it has none.
func attached(f *os.File) (string, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return "", os.NewSyscallError("fstat", err)
	}
	all, err := filepath.Glob("/sys/block/loop*/loop/backing_file")
	if err != nil {
		return "", err
	}
	for _, file := range all {
		device := "/dev/" + strings.Split(file, "/")[3]
		d, err := os.Open(device)
		if err != nil {
			continue // it went
		}
		info, err := unix.IoctlLoopGetStatus64(int(d.Fd()))
		d.Close()
		if err == nil && info.Device == st.Dev && info.Inode == st.Ino {
			return device, nil
		}
	}
	return "", nil
}

// detach frees a loop device.
func detach(device string) error {
	d, err := os.Open(device)
	if err != nil {
		return err
	}
	defer d.Close()
	return os.NewSyscallError("LOOP_CLR_FD", unix.IoctlSetInt(int(d.Fd()), unix.LOOP_CLR_FD, 0))
}
