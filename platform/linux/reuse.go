// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package linux

import (
	"errors"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// ReuseAddress has a dialer take a port of its own at which an ended connection
// still lingers (SO_REUSEADDR). lingers tells whether connecting failed because
// that one was to the same address.
func ReuseAddress(d *net.Dialer) (lingers func(error) bool) {
	d.Control = func(_, _ string, c syscall.RawConn) error {
		var bad error
		err := c.Control(func(fd uintptr) {
			bad = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEADDR, 1)
		})
		if err != nil {
			return err
		}
		return bad
	}
	return func(err error) bool { return errors.Is(err, unix.EADDRNOTAVAIL) || errors.Is(err, unix.EADDRINUSE) }
}
