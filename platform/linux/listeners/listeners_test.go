// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package listeners

import (
	"net"
	"os"
	"runtime"
	"slices"
	"syscall"
	"testing"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/platform/linux"
)

// The user is that of the socket which listens, whatever address it listens at.
func TestUsers(t *testing.T) {
	t.Parallel()
	root := linux.DefaultRoot()
	users := []uint32{uint32(os.Geteuid())}
	if users[0] == 0 {
		users = append(users, 54321) // root opens sockets for others
	}
	for _, uid := range users {
		for _, tt := range []struct{ network, listen, dial string }{
			{"tcp", "127.0.0.1:0", "127.0.0.1"},
			{"tcp", "0.0.0.0:0", "127.0.0.2"},
			{"tcp", "[::]:0", "127.0.0.1"},
			{"udp", "127.0.0.1:0", "127.0.0.1"},
			{"udp", "0.0.0.0:0", "127.0.0.2"},
		} {
			var at net.Addr
			as(t, uid, func() {
				switch tt.network {
				case "tcp":
					l, err := net.Listen("tcp", tt.listen)
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = l.Close() })
					at = &net.TCPAddr{IP: net.ParseIP(tt.dial), Port: l.Addr().(*net.TCPAddr).Port}
				case "udp":
					c, err := net.ListenPacket("udp", tt.listen)
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = c.Close() })
					at = &net.UDPAddr{IP: net.ParseIP(tt.dial), Port: c.LocalAddr().(*net.UDPAddr).Port}
				}
			})
			if got, err := Users(root, at); err != nil || !slices.Equal(got, []uint32{uid}) {
				t.Errorf("%v: %v, %v, want %d", tt, got, err, uid)
			}
		}
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nc, err := net.Dial("tcp", free.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	_ = free.Close()
	if got, err := Users(root, free.Addr()); !errs.Is(err, errs.NotFound) {
		t.Errorf("nobody listens, yet %v, %v", got, err)
	}
	if got, err := Users(root, &net.UnixAddr{Name: "/x", Net: "unix"}); !errs.Is(err, errs.Invalid) {
		t.Errorf("of a Unix socket: %v, %v", got, err)
	}
}

// as runs f with the rights of a user for files and sockets.
func as(t *testing.T, uid uint32, f func()) {
	t.Helper()
	if int(uid) == os.Geteuid() {
		f()
		return
	}
	runtime.LockOSThread() // the rights are a thread's
	defer runtime.UnlockOSThread()
	if err := syscall.Setfsuid(int(uid)); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Setfsuid(os.Geteuid()) }()
	f()
}
