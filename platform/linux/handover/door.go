// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package handover

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/platform/linux"
	"github.com/execpoint/execpoint/platform/linux/proc"
)

// Door is a named socket by which a process lets others of its own user in, but none
// that it has started itself.
type Door struct {
	l *net.UnixListener
}

// in is the name of a file in an open directory. The path of a socket has room for no
// long one, and nobody can put another directory in the place of one that is open.
func in(dir *os.File, name string) string {
	return "/proc/self/fd/" + strconv.Itoa(int(dir.Fd())) + "/" + name
}

// Listen makes the socket name in an open directory, which nobody but this process's
// user can connect to. It goes with the directory.
func Listen(dir *os.File, name string) (*Door, error) {
	const op = "handover.Listen"
	path := in(dir, name)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, errs.E(op, errs.Broken, name, err)
	}
	l.SetUnlinkOnClose(false) // its path means another file by then
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, errs.E(op, errs.Broken, name, err)
	}
	return &Door{l}, nil
}

// Accept waits for the next one who knocks and returns its pid. problem says why it
// was turned away; err is the end of the door.
func (d *Door) Accept() (nc net.Conn, pid int, problem, err error) {
	u, err := d.l.AcceptUnix()
	if err != nil {
		return nil, 0, nil, errs.E("handover.Accept", errs.NotFound, "", err)
	}
	pid, problem = admit(u)
	if problem != nil {
		u.Close()
		return nil, pid, problem, nil
	}
	return u, pid, nil, nil
}

// admit says why the process at the other end of u may not come in: it is another
// user's, or this process has started it.
func admit(u net.Conn) (pid int, err error) {
	const op = "handover.admit"
	cred, err := linux.Peer(u)
	if err != nil {
		return 0, err
	}
	pid = int(cred.Pid)
	who := "process " + strconv.Itoa(pid)
	if int64(cred.Uid) != int64(os.Geteuid()) {
		return pid, errs.E(op, errs.Denied, who, fmt.Errorf("it is of user %d", cred.Uid))
	}
	below, err := isBelow(pid, os.Getpid())
	if err != nil {
		return pid, errs.E(op, errs.Denied, who, fmt.Errorf("nothing says that it is none of the job's: %w", err))
	}
	if below {
		return pid, errs.E(op, errs.Denied, who, errors.New("it is one of the job's"))
	}
	return pid, nil
}

// mostAncestors bounds how many parents of a process are asked for.
const mostAncestors = 4096

// isBelow reports whether pid descends from top. A process whose parent has died is
// the child of the nearest ancestor that asked for such children, which a starter does:
// so nothing of a job is ever found elsewhere.
func isBelow(pid, top int) (bool, error) {
	for range mostAncestors {
		if pid == top {
			return true, nil
		}
		if pid <= 1 {
			return false, nil
		}
		text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		if err != nil {
			return false, err
		}
		st, err := proc.ParseStat(text)
		if err != nil {
			return false, err
		}
		pid = st.Parent
	}
	return false, errors.New("it has too many ancestors")
}

// Close shuts the door. Connections stay.
func (d *Door) Close() error { return d.l.Close() }

// Dial knocks at the door name in an open directory, and returns the pid of the process
// that opened it. One of another user is Denied, one that is shut NotFound.
func Dial(dir *os.File, name string) (net.Conn, int, error) {
	const op = "handover.Dial"
	nc, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: in(dir, name), Net: "unix"})
	switch {
	case errors.Is(err, unix.EACCES):
		return nil, 0, errs.E(op, errs.Denied, name, err)
	case err != nil:
		return nil, 0, errs.E(op, errs.NotFound, name, err)
	}
	cred, err := linux.Peer(nc)
	if err == nil && int64(cred.Uid) != int64(os.Geteuid()) {
		err = errs.E(op, errs.Denied, name, fmt.Errorf("user %d listens there", cred.Uid))
	}
	if err != nil {
		nc.Close()
		return nil, 0, err
	}
	return nc, int(cred.Pid), nil
}
