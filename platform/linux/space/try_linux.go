// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package space

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
)

// tryPatience bounds how long the kernel may take for a try.
const tryPatience = 5 * time.Second

// TryUsers says why a starter in a user namespace could not make spaces; nil is that it
// can. It has a child do all that a space may need, in namespaces that go with it: that a
// namespace of users can be made tells little, for AppArmor takes the rights in it away,
// and containers hide parts of /proc, of which the kernel shows no other then.
func TryUsers() error {
	const op = "space.TryUsers"
	attr := &syscall.SysProcAttr{Setsid: true}
	Users(attr)
	attr.Cloneflags |= unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET
	in, err := execute(tryCalls(), nil, attr)
	if err != nil {
		return errs.E(op, errs.Unsupported, "a user namespace", hinted(err))
	}
	defer func() {
		if in.PidFD >= 0 {
			unix.Close(in.PidFD)
		}
	}()
	// The only end of the pipe that can be written is the child's, and it ends within
	// the time or is killed: so the wait below ends too.
	_ = in.ready.SetReadDeadline(time.Now().Add(tryPatience))
	done := in.Ready()
	_ = unix.Kill(in.PID, unix.SIGKILL) // the pid is still its own, as nobody has waited for it
	var ws unix.WaitStatus
	for {
		if _, err = unix.Wait4(in.PID, &ws, 0, nil); !errors.Is(err, unix.EINTR) {
			break
		}
	}
	switch {
	case done:
		return nil
	case err != nil:
		return errs.E(op, errs.Broken, "wait4", err)
	case ws.Exited():
		return errs.E(op, errs.Unsupported, "mounts in a user namespace", hinted(unix.Errno(ws.ExitStatus())))
	}
	return errs.E(op, errs.Unsupported, "mounts in a user namespace", fmt.Errorf("not made within %v", tryPatience))
}

// tryCalls are those of a child that has its namespaces already: its mounts are kept
// from the machine, /proc and a file system in memory are mounted, and lo comes up.
func tryCalls() *calls {
	c := new(calls)
	none, root, proc, memory := c.word("none"), c.word("/"), c.word("/proc"), c.word("tmpfs")
	c.do(unix.SYS_MOUNT, none, root, none, unix.MS_SLAVE|unix.MS_REC, 0)
	c.mountProc("/proc")
	c.do(unix.SYS_MOUNT, memory, proc, memory, unix.MS_NOSUID|unix.MS_NODEV, 0)
	const socket = 4 // the next descriptor after that of ready
	lo := make([]byte, 40)
	copy(lo, "lo")
	binary.LittleEndian.PutUint16(lo[unix.IFNAMSIZ:], unix.IFF_UP)
	c.do(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	c.do(unix.SYS_IOCTL, socket, unix.SIOCSIFFLAGS, c.at(lo))
	c.ready()
	return c
}

// hinted adds to a refusal of the kernel what refuses, where a setting of it says so.
func hinted(err error) error {
	for _, h := range []struct{ file, value, hint string }{
		{"user/max_user_namespaces", "0", "the sysctl user.max_user_namespaces is 0"},
		{"kernel/unprivileged_userns_clone", "0", "the sysctl kernel.unprivileged_userns_clone is 0"},
		{"kernel/apparmor_restrict_unprivileged_userns", "1", "the sysctl kernel.apparmor_restrict_unprivileged_userns is 1"},
		{"user/max_net_namespaces", "0", "the sysctl user.max_net_namespaces is 0"},
		{"user/max_pid_namespaces", "0", "the sysctl user.max_pid_namespaces is 0"},
		{"user/max_mnt_namespaces", "0", "the sysctl user.max_mnt_namespaces is 0"},
		{"vm/memfd_noexec", "2", "the sysctl vm.memfd_noexec is 2"},
	} {
		if text, rerr := os.ReadFile("/proc/sys/" + h.file); rerr == nil && strings.TrimSpace(string(text)) == h.value {
			return fmt.Errorf("%w: %s", err, h.hint)
		}
	}
	return err
}
