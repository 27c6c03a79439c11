// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

const (
	controlName = "control" // the socket in the directory of a run
	stopLine    = "stop\n"  // what asks the run to end
)

// control is a connection to the first process of a run. While it is open and
// not at its end, the process lives and its number is not another's.
type control struct {
	conn *net.UnixConn
	pid  int // as this process sees it
}

// connect returns nil if no such run is there.
func connect(run string) (*control, error) {
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: filepath.Join(run, controlName), Net: "unix"})
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("realpool: %w", err)
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return nil, err
	}
	var cred *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) { cred, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err = errors.Join(err, failed); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &control{conn, int(cred.Pid)}, nil
}

func (c *control) close() { _ = c.conn.Close() }

// stop asks for the end.
func (c *control) stop() error {
	_, err := c.conn.Write([]byte(stopLine))
	return err
}

// command is a program in the namespaces of the run, with the user, the
// environment and the directory of its order.
func (c *control) command(o order, command ...string) *exec.Cmd {
	line := []string{"--target", strconv.Itoa(c.pid), "--mount", "--uts", "--net", "--pid", "--root"}
	if os.Geteuid() != 0 {
		line = append(line, "--user")
	}
	line = append(line, "--", "/usr/bin/env", "-i", "-C", o.Dir)
	line = append(line, o.Env...)
	line = append(line, asUser(o.User, command)...)
	return exec.Command("nsenter", line...)
}

// released waits until no process has the lock of the run any more.
func released(run string, limit time.Duration) error {
	deadline := time.Now().Add(limit)
	for {
		lock, err := flock(filepath.Join(run, "lock"), unix.LOCK_SH, false)
		switch {
		case err == nil:
			return lock.Close()
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case !errors.Is(err, errBusy):
			return err
		case time.Now().After(deadline):
			return fmt.Errorf("realpool: the run in %s has not ended within %v", run, limit)
		}
		time.Sleep(50 * time.Millisecond)
	}
}
