// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package quota

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/platform/linux/mount"
)

// Commands of quotactl, for projects, and of ioctl.
const (
	projects  = 2
	readOne   = 0x800007<<8 | projects // Q_GETQUOTA
	readState = 0x5808<<8 | projects   // Q_XGETQSTATV, which ext4 answers, too

	getAttributes = 0x801c581f // FS_IOC_FSGETXATTR
	setAttributes = 0x401c5820 // FS_IOC_FSSETXATTR
)

// kernel is the books of the file system that dir is on.
type kernel struct {
	dir *os.File
	// device is that of the file system, for a kernel before 5.14, which takes no
	// descriptor; empty for others.
	device string
}

// open looks at the file system of a directory.
func open(dir *os.File) (*kernel, error) {
	k := &kernel{dir: dir}
	err := k.counts()
	if errors.Is(err, unix.ENOSYS) { // an old kernel says so, and a file system without quotas
		return openDevice(dir)
	}
	return k, err
}

// openDevice is open for a kernel that has to be told the device.
func openDevice(dir *os.File) (k *kernel, err error) {
	k = &kernel{dir: dir}
	if k.device, err = deviceOf(dir); err != nil {
		return nil, err
	}
	return k, k.counts()
}

// counts is nil where projects are counted.
func (k *kernel) counts() error {
	state := [stateSize]byte{1} // the version of it that is asked for
	err := k.quotactl(readState, 0, unsafe.Pointer(&state))
	if err == nil && !counting(&state) {
		err = errors.New("its file system does not count projects")
	}
	return err
}

// quotactl is one command about projects.
func (k *kernel) quotactl(command uintptr, id uint32, to unsafe.Pointer) error {
	defer runtime.KeepAlive(k.dir)
	var no unix.Errno
	if k.device == "" {
		_, _, no = unix.Syscall6(unix.SYS_QUOTACTL_FD, k.dir.Fd(), command, uintptr(id), uintptr(to), 0, 0)
	} else {
		name, err := unix.BytePtrFromString(k.device)
		if err != nil {
			return err
		}
		_, _, no = unix.Syscall6(unix.SYS_QUOTACTL, command, uintptr(unsafe.Pointer(name)), uintptr(id), uintptr(to), 0, 0)
	}
	if no != 0 {
		return os.NewSyscallError("quotactl", no)
	}
	return nil
}

func (k *kernel) read(id uint32) (entry, error) {
	var b [entrySize]byte
	err := k.quotactl(readOne, id, unsafe.Pointer(&b))
	if errors.Is(err, unix.ENOENT) { // xfs has nothing of it
		return entry{}, nil
	}
	return readEntry(&b), err
}

func (k *kernel) attributes() (a attributes, err error) {
	return a, k.ioctl(getAttributes, &a)
}

func (k *kernel) ioctl(command uintptr, a *attributes) error {
	defer runtime.KeepAlive(k.dir)
	if _, _, no := unix.Syscall(unix.SYS_IOCTL, k.dir.Fd(), command, uintptr(unsafe.Pointer(a))); no != 0 {
		return os.NewSyscallError("ioctl", no)
	}
	return nil
}

func (k *kernel) change(id uint32, inherits bool) error {
	a, err := k.attributes()
	if err != nil {
		return err
	}
	a.set(id, inherits)
	return k.ioctl(setAttributes, &a)
}

func (k *kernel) join(id uint32) error { return k.change(id, true) }
func (k *kernel) leave() error         { return k.change(0, false) }

// deviceOf finds the device of the file system that dir is on, by the kernel's list of
// mounts. It is looked at whether it is that one: the list has the name that whoever
// mounted it gave.
func deviceOf(dir *os.File) (string, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &st); err != nil {
		return "", os.NewSyscallError("fstat", err)
	}
	number := fmt.Sprintf("%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev))
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		p, ok := mount.ParsePoint(lines.Text())
		if !ok || p.Number != number {
			continue
		}
		var on unix.Stat_t
		if unix.Stat(p.Source, &on) == nil && on.Mode&unix.S_IFMT == unix.S_IFBLK && on.Rdev == st.Dev {
			return p.Source, nil
		}
	}
	if err := lines.Err(); err != nil {
		return "", err
	}
	return "", &fs.PathError{Op: "find the device of", Path: dir.Name(), Err: fs.ErrNotExist}
}
