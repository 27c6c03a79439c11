// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package handover

import (
	"errors"
	"io"
	"net"
	"os"
	"runtime"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
)

// Input is the standard input of a process that may be passed a connection. One
// goroutine reads it. Like the standard input of any program it is read by a
// thread that waits: a process that only does this needs nothing to poll.
type Input struct {
	file *os.File // keeps the descriptor
	fd   int

	mu    sync.Mutex
	given int // the descriptor that came and was not taken, -1 for none
}

// rightsRoom is room for the descriptors of one message. Only one is ever sent;
// what a wrong parent sends beyond that room is closed by the system.
func rightsRoom() int { return unix.CmsgSpace(4 * 4) }

// From returns f as an Input, or false where f is no socket.
func From(f *os.File) (*Input, bool) {
	fd := int(f.Fd())
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	if err != nil || domain != unix.AF_UNIX {
		return nil, false
	}
	return &Input{file: f, fd: fd, given: -1}, true
}

// Read implements io.Reader. The connection that came with the bytes is there
// for Socket when it returns.
func (in *Input) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	room := make([]byte, rightsRoom())
	defer runtime.KeepAlive(in.file)
	for {
		n, oobn, _, _, err := unix.Recvmsg(in.fd, b, room, unix.MSG_CMSG_CLOEXEC)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ECONNRESET): // closed over there with something unread
			return 0, io.EOF
		case err != nil:
			return 0, os.NewSyscallError("recvmsg", err)
		}
		if oobn > 0 {
			in.take(room[:oobn])
		}
		if n == 0 {
			return 0, io.EOF
		}
		return n, nil
	}
}

// take keeps the last descriptor that came and closes every other one.
func (in *Input) take(control []byte) {
	messages, err := unix.ParseSocketControlMessage(control)
	if err != nil {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	for i := range messages {
		fds, err := unix.ParseUnixRights(&messages[i])
		if err != nil {
			continue
		}
		for _, fd := range fds {
			if in.given >= 0 {
				_ = unix.Close(in.given)
			}
			in.given = fd
		}
	}
}

// Socket returns the connection that came, once; the caller closes it. Without
// one it is NotFound.
func (in *Input) Socket() (net.Conn, error) {
	const op = "handover.Socket"
	in.mu.Lock()
	fd := in.given
	in.given = -1
	in.mu.Unlock()
	if fd < 0 {
		return nil, errs.E(op, errs.NotFound, "", errors.New("no connection came"))
	}
	f := os.NewFile(uintptr(fd), "passed")
	defer f.Close() // the connection has a descriptor of its own
	nc, err := net.FileConn(f)
	if err != nil {
		return nil, errs.E(op, errs.Invalid, "", err)
	}
	return nc, nil
}
