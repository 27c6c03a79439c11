// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package linux

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
)

// controlMode lets every user connect: who asks is seen from the connection.
const controlMode = 0o666

// ListenControl makes a socket at path to which every user of the machine may
// connect who can reach it. One that a dead process left is replaced; if somebody
// listens there it is a Conflict.
func ListenControl(path string) (net.Listener, error) {
	const op = "linux.ListenControl"
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if errors.Is(err, unix.EADDRINUSE) {
		c, derr := net.DialTimeout("unix", path, time.Second)
		if derr == nil {
			_ = c.Close()
		}
		info, serr := os.Lstat(path)
		if !errors.Is(derr, unix.ECONNREFUSED) || serr != nil || info.Mode()&os.ModeSocket == 0 {
			return nil, errs.E(op, errs.Conflict, path, err)
		}
		if err := os.Remove(path); err != nil {
			return nil, errs.E(op, errs.Denied, path, err)
		}
		l, err = net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	}
	if err != nil {
		return nil, errs.E(op, errs.Broken, path, err)
	}
	if err := openToAll(path); err != nil {
		return nil, errs.E(op, errs.Broken, path, errors.Join(err, l.Close()))
	}
	return l, nil
}

// openToAll gives a socket the mode by which every user can connect. The
// directory may be another user's, who may put anything in its place: nothing but
// a socket of ours gets that mode.
func openToAll(path string) error {
	dir, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer dir.Close()
	d, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer d.Close()
	fd, err := unix.Openat(int(d.Fd()), filepath.Base(path), unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK || int64(st.Uid) != int64(os.Geteuid()) || st.Nlink != 1 {
		return errors.New("it is not the socket that was made")
	}
	// The handle takes no fchmod; its name below /proc does, and is the handle's.
	return os.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), controlMode)
}
