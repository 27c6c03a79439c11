// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package handover passes connections from one process of ours to another that
// it has started, beside the bytes of its standard input: a socket pair instead
// of a pipe. It owns the descriptors on their way. It must never read or write
// what a passed connection carries.
//
//	child, parent, err := handover.New()
//	// … child is standard input of the process …
//	err = parent.Pass(line, nc) // there: Input.Read, then Input.Socket
package handover

import (
	"errors"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
)

// Channel is the end of the process that passes connections. Its methods but
// Close are for one goroutine at a time.
type Channel struct{ *net.UnixConn }

// New returns the standard input for a process, for the caller to close once
// the process has it, and the end that writes to it.
func New() (child *os.File, parent *Channel, err error) {
	const op = "handover.New"
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, errs.E(op, errs.Exhausted, "", os.NewSyscallError("socketpair", err))
	}
	child = os.NewFile(uintptr(fds[0]), "orders")
	ours := os.NewFile(uintptr(fds[1]), "orders")
	nc, err := net.FileConn(ours) // another descriptor
	_ = ours.Close()
	if err != nil {
		_ = child.Close()
		return nil, nil, errs.E(op, errs.Broken, "", err)
	}
	return child, &Channel{nc.(*net.UnixConn)}, nil
}

// Pass writes line with the descriptor of nc, which stays the caller's. A
// connection without a descriptor is Unsupported.
func (c *Channel) Pass(line []byte, nc net.Conn) error {
	const op = "handover.Pass"
	sc, ok := nc.(syscall.Conn)
	if !ok || len(line) == 0 {
		return errs.E(op, errs.Unsupported, "", errors.New("the connection has no descriptor"))
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return errs.E(op, errs.NotFound, "", err)
	}
	n := 0
	var werr error
	if err := raw.Control(func(fd uintptr) {
		n, _, werr = c.WriteMsgUnix(line, unix.UnixRights(int(fd)), nil)
	}); err != nil {
		return errs.E(op, errs.NotFound, "", err)
	}
	if werr == nil && n < len(line) {
		_, werr = c.Write(line[n:])
	}
	return werr
}
