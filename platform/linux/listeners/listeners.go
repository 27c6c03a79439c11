// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package listeners tells whose socket listens at an address of this machine, as
// the kernel shows it in procfs. It must never open a socket itself.
package listeners

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/machine/proctext"
	"github.com/execpoint/execpoint/platform/linux"
)

// tcpListen is the kernel's number of the state LISTEN.
const tcpListen = 10

// Users returns the users whose sockets take what is sent to a TCP or UDP
// address of this machine, one for each socket and in no order. Several sockets
// may share an address; it fails with NotFound if there is none, as for an
// address of another machine or network namespace.
func Users(r linux.Root, at net.Addr) ([]uint32, error) {
	const op = "listeners.Users"
	to, err := netip.ParseAddrPort(at.String())
	if err != nil {
		return nil, errs.E(op, errs.Invalid, at.String(), err)
	}
	var uids []uint32
	take := func(s proctext.Socket) {
		addr := s.Local.Addr().Unmap()
		if s.Local.Port() == to.Port() && (addr.IsUnspecified() || addr == to.Addr().Unmap()) {
			uids = append(uids, s.UID)
		}
	}
	// Netlink would be faster where there are very many sockets. This is asked when
	// a session begins, and seldom at that.
	var four, six error
	switch network := at.Network(); network {
	case "tcp":
		listens := func(s proctext.Socket) {
			if s.State == tcpListen {
				take(s)
			}
		}
		four, six = sockets(r, network, listens), sockets(r, network+"6", listens)
	case "udp":
		four, six = sockets(r, network, take), sockets(r, network+"6", take)
	default:
		return nil, errs.E(op, errs.Invalid, network, errors.New("want tcp or udp"))
	}
	if errors.Is(six, fs.ErrNotExist) {
		six = nil // a kernel without IPv6
	}
	if err := errors.Join(four, six); err != nil {
		return nil, errs.E(op, errs.Broken, r.Proc, err)
	}
	if len(uids) == 0 {
		return nil, errs.E(op, errs.NotFound, at.String(), fmt.Errorf("no socket of this machine listens there"))
	}
	return uids, nil
}

// sockets calls each with every socket of one of the kernel's lists.
func sockets(r linux.Root, list string, each func(proctext.Socket)) error {
	f, err := os.Open(filepath.Join(r.Proc, "net", list))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }() // it was only read
	lines := bufio.NewScanner(f)
	lines.Scan() // the names of the columns
	for lines.Scan() {
		s, err := proctext.ParseSocket(lines.Bytes())
		if err != nil {
			return err
		}
		each(s)
	}
	return lines.Err()
}
