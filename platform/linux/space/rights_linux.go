// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package space

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
)

// A process without the rights of root gets those that spaces need from the kernel
// within a user namespace of its own. The system call unshare refuses that to a process
// with several threads, which every Go program is, so the parent starts the process in
// one (Users). In it is one user, the one that it has outside, by the same number. So it
// is still who it was, to the machine and to itself, and what it makes belongs to that
// user. The rights are lent: they hold for what the namespace owns, which are the
// mounts, numbers and networks that are made in it, and for nothing of the machine.

// rights are those that spaces need: for mounts and namespaces, for the network of a
// space, and to enter the mounts of another thread.
var rights = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SYS_CHROOT}

// Users has a process begin in a user namespace of its own, with the rights of which a
// starter has to make spaces. What it starts has them only if it is lent them again:
// Unlend.
func Users(attr *syscall.SysProcAttr) {
	uid, gid := os.Geteuid(), os.Getegid()
	attr.Cloneflags |= unix.CLONE_NEWUSER
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	attr.GidMappingsEnableSetgroups = false
	attr.AmbientCaps = rights
}

// Able says why this process cannot make spaces; nil is that it can. HTCondor asks
// for the rights of root, and the capability that a container may lack.
func Able() error {
	const op = "space.Able"
	if os.Geteuid() != 0 {
		if Lent() {
			return nil
		}
		return errs.E(op, errs.Unsupported, "", errors.New("mounts and namespaces need the rights of root, or a user namespace"))
	}
	has, err := effective()
	if err != nil {
		return errs.E(op, errs.Broken, "capget", err)
	}
	if has&(1<<unix.CAP_SYS_ADMIN) == 0 {
		return errs.E(op, errs.Unsupported, "", errors.New("mounts and namespaces need CAP_SYS_ADMIN, which this process lacks"))
	}
	return nil
}

// Lent reports whether this process has its rights from a user namespace that Users
// has made for it. That does not change, and a thread in a PID namespace could not find
// it out.
var Lent = sync.OnceValue(lent)

func lent() bool {
	uid := os.Geteuid()
	if uid == 0 {
		return false
	}
	text, err := os.ReadFile("/proc/self/uid_map")
	if f := strings.Fields(string(text)); err != nil || len(f) != 3 || f[0] != fmt.Sprint(uid) || f[2] != "1" {
		return false
	}
	has, err := effective()
	for _, right := range rights {
		if err != nil || has&(1<<right) == 0 {
			return false
		}
	}
	return true
}

// effective are the capabilities of the calling thread.
func effective() (uint64, error) {
	_, caps, err := capabilities()
	return uint64(caps[1].Effective)<<32 | uint64(caps[0].Effective), err
}

func capabilities() (head unix.CapUserHeader, caps [2]unix.CapUserData, err error) {
	head.Version = unix.LINUX_CAPABILITY_VERSION_3
	err = unix.Capget(&head, &caps[0])
	return head, caps, err
}

// Unlend keeps what the calling thread executes from here on from the rights that were
// lent to this process. The thread has them still.
func Unlend() error {
	head, caps, err := capabilities()
	if err != nil {
		return errs.E("space.Unlend", errs.Broken, "capget", err)
	}
	caps[0].Inheritable, caps[1].Inheritable = 0, 0 // the ambient ones go with them
	if err := unix.Capset(&head, &caps[0]); err != nil {
		return errs.E("space.Unlend", errs.Broken, "capset", err)
	}
	return nil
}
