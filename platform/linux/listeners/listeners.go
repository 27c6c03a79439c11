// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

// Package listeners tells whose socket listens at an address of this machine, as
// the kernel shows it in procfs. It must never open a socket itself.
package listeners

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"

	"github.com/prometheus/procfs"

	"github.com/execpoint/execpoint/lib/errs"
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
	proc, err := procfs.NewFS(r.Proc)
	if err != nil {
		return nil, errs.E(op, errs.Broken, r.Proc, err)
	}
	var uids []uint32
	take := func(local net.IP, port, uid uint64) {
		addr, ok := netip.AddrFromSlice(local)
		if addr = addr.Unmap(); ok && port == uint64(to.Port()) && (addr.IsUnspecified() || addr == to.Addr().Unmap()) {
			uids = append(uids, uint32(uid))
		}
	}
	var four, six error
	switch at.Network() {
	case "tcp":
		for _, read := range []struct {
			sockets func() (procfs.NetTCP, error)
			err     *error
		}{
			// procfs would have us use netlink, which is faster where there are very
			// many sockets. This is asked when a session begins, and seldom at that.
			//lint:ignore SA1019 see above
			{proc.NetTCP, &four},
			//lint:ignore SA1019 see above
			{proc.NetTCP6, &six},
		} {
			var all procfs.NetTCP
			all, *read.err = read.sockets()
			for _, s := range all {
				if s.St == tcpListen {
					take(s.LocalAddr, s.LocalPort, s.UID)
				}
			}
		}
	case "udp":
		for _, read := range []struct {
			sockets func() (procfs.NetUDP, error)
			err     *error
		}{{proc.NetUDP, &four}, {proc.NetUDP6, &six}} {
			var all procfs.NetUDP
			all, *read.err = read.sockets()
			for _, s := range all {
				take(s.LocalAddr, s.LocalPort, s.UID)
			}
		}
	default:
		return nil, errs.E(op, errs.Invalid, at.Network(), errors.New("want tcp or udp"))
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
