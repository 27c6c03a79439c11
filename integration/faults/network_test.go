// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package faults

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/integration/realpool"
	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/security"
)

// network is a network namespace and a thread that is in it. A nil network is
// the test's own.
type network struct {
	file *os.File
	work chan func()
}

// newNetwork makes a namespace that is there as long as the test, and whose
// loopback interface is up.
func newNetwork(t *testing.T) *network {
	t.Helper()
	n := &network{work: make(chan func())}
	made := make(chan error)
	go func() {
		// The thread is not given back: it ends with the goroutine. Processes
		// that it starts live on.
		runtime.LockOSThread()
		err := unix.Unshare(unix.CLONE_NEWNET)
		if err == nil {
			n.file, err = os.Open("/proc/thread-self/ns/net")
		}
		made <- err
		for f := range n.work {
			f()
		}
	}()
	if err := <-made; err != nil {
		t.Fatalf("a network namespace: %v", err)
	}
	t.Cleanup(func() { close(n.work); _ = n.file.Close() })
	n.ip(t, "link", "set", "lo", "up")
	return n
}

// do calls f in the namespace. Sockets that it opens and processes that it
// starts stay there.
func (n *network) do(f func() error) error {
	if n == nil {
		return f()
	}
	done := make(chan error)
	n.work <- func() { done <- f() }
	return <-done
}

// ip configures the namespace.
func (n *network) ip(t *testing.T, args ...string) {
	t.Helper()
	err := n.do(func() error {
		out, err := exec.Command("ip", args...).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("ip %q: %w: %s", args, err, out)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// dialer connects from the namespace.
func (n *network) dialer() security.Dialer {
	return func(ctx context.Context, to cedar.Sinful) (nc net.Conn, err error) {
		err = n.do(func() error {
			var d net.Dialer
			nc, err = d.DialContext(ctx, "tcp4", fmt.Sprintf("%s:%d", to.Host, to.Port))
			return err
		})
		return nc, err
	}
}

// The addresses of the two ends of a link.
const (
	near = "192.0.2.1"
	far  = "192.0.2.2"
)

// link is two networks joined by a cable.
type link struct {
	t         *testing.T
	near, far *network
}

// newLink makes it, or skips the test where it cannot be made.
func newLink(t *testing.T) *link {
	t.Helper()
	realpool.Patient(t)
	realpool.NeedRoot(t)
	if _, err := exec.LookPath("ip"); err != nil {
		realpool.Missing(t, err.Error(), "install the package iproute2 of Debian")
	}
	l := &link{t: t, near: newNetwork(t), far: newNetwork(t)}
	l.near.ip(t, "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), l.far.file.Fd()))
	l.near.join(t, near)
	mac := l.far.join(t, far)
	// Nobody notices at the near end that the far end is gone: it sends on, and
	// no question of its own goes unanswered.
	l.near.ip(t, "neigh", "replace", far, "lladdr", mac, "dev", "cable", "nud", "permanent")
	return l
}

// join gives the namespace its end of the cable, and returns the hardware address
// of that.
func (n *network) join(t *testing.T, at string) string {
	t.Helper()
	n.ip(t, "addr", "add", at+"/24", "dev", "cable")
	n.ip(t, "link", "set", "cable", "up")
	mac := ""
	if err := n.do(func() error {
		i, err := net.InterfaceByName("cable")
		if err == nil {
			mac = i.HardwareAddr.String()
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return mac
}

// cut has the far end vanish: what is sent there is lost, nothing comes back, and
// no connection is ended.
func (l *link) cut() {
	l.t.Helper()
	l.far.ip(l.t, "addr", "del", far+"/24", "dev", "cable")
}

// mend has the far end come back.
func (l *link) mend() {
	l.t.Helper()
	l.far.ip(l.t, "addr", "add", far+"/24", "dev", "cable")
}
