// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package linux

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"strconv"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
)

// PeerUser names the user whose process is at the other end of a Unix socket,
// as the kernel vouches for it. A user without a name is "uid 1234". ours says
// that it is root or the user of this program, who can do with it what they like
// anyway.
func PeerUser(c net.Conn) (name string, ours bool, err error) {
	cred, err := Peer(c)
	if err != nil {
		return "", false, err
	}
	ours = cred.Uid == 0 || int64(cred.Uid) == int64(os.Geteuid())
	id := strconv.FormatUint(uint64(cred.Uid), 10)
	who, err := user.LookupId(id)
	if err != nil || who.Username == "" {
		return "uid " + id, ours, nil
	}
	return who.Username, ours, nil
}

// Peer is the process at the other end of a Unix socket, as the kernel vouches for it:
// the one that connected, or the one that listens.
func Peer(c net.Conn) (*unix.Ucred, error) {
	const op = "linux.Peer"
	u, ok := c.(*net.UnixConn)
	if !ok {
		return nil, errs.E(op, errs.Invalid, fmt.Sprintf("%T", c), errors.New("not a Unix socket"))
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return nil, errs.E(op, errs.Broken, "", err)
	}
	var cred *unix.Ucred
	var inner error
	err = raw.Control(func(fd uintptr) { cred, inner = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err = errors.Join(err, inner); err != nil {
		return nil, errs.E(op, errs.Broken, "", err)
	}
	return cred, nil
}
