// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/errs"
)

func getenv(env map[string]string) func(string) string {
	return func(name string) string { return env[name] }
}

func TestNotify(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "notify")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Skip("needs datagram sockets with names: ", err)
	}
	defer l.Close()
	n, err := NewNotifier(getenv(map[string]string{"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "20000", "WATCHDOG_PID": "77"}), 77)
	if err != nil {
		t.Fatal(err)
	}
	heard := func() string {
		b := make([]byte, 1000)
		if err := l.SetReadDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		m, err := l.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:m])
	}
	for want, say := range map[string]func() error{
		"READY=1":                          n.Ready,
		"STOPPING=1":                       n.Stopping,
		"RELOADING=1\nMONOTONIC_USEC=5000": func() error { return n.Reloading(5 * time.Millisecond) },
		"STATUS=3 slots READY=1":           func() error { return n.Status("3 slots\nREADY=1") },
	} {
		if err := say(); err != nil {
			t.Fatal(err)
		}
		if got := heard(); got != want {
			t.Errorf("said %q, want %q", got, want)
		}
	}
	if n.Watchdog() != 10*time.Millisecond {
		t.Errorf("the watchdog is fed every %s, want half of 20ms", n.Watchdog())
	}
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	done := make(chan error)
	go func() { done <- n.Watch(ctx, func(context.Context) bool { asked++; return asked != 2 }) }()
	for range 2 {
		if got := heard(); got != "WATCHDOG=1" {
			t.Errorf("said %q", got)
		}
	}
	cancel()
	if err := <-done; err != nil || asked < 3 {
		t.Errorf("%v after %d questions; want the second to feed nobody", err, asked)
	}
	_ = l.Close()
	if err := n.Ready(); !errs.Is(err, errs.Transient) {
		t.Errorf("nobody listens: %v", err)
	}
}

func TestNotifierOfNobody(t *testing.T) {
	t.Parallel()
	n, err := NewNotifier(getenv(nil), 1)
	if n != nil || err != nil {
		t.Fatalf("%v, %v", n, err)
	}
	if err := errors.Join(n.Ready(), n.Stopping(), n.Alive(), n.Status("x"), n.Watch(t.Context(), nil)); err != nil || n.Watchdog() != 0 {
		t.Errorf("%v, %s", err, n.Watchdog())
	}
}

func TestNewNotifier(t *testing.T) {
	t.Parallel()
	for _, bad := range []map[string]string{
		{"NOTIFY_SOCKET": "relative"},
		{"NOTIFY_SOCKET": "/" + strings.Repeat("x", 200)},
		{"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "soon"},
		{"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "-5"},
		{"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "9223372036854775807"},
	} {
		if n, err := NewNotifier(getenv(bad), 1); !errs.Is(err, errs.Invalid) {
			t.Errorf("%q: %v, %v; want kind Invalid", bad, n, err)
		}
	}
	n, err := NewNotifier(getenv(map[string]string{"NOTIFY_SOCKET": "@x", "WATCHDOG_USEC": "1000000", "WATCHDOG_PID": "2"}), 1)
	if err != nil || n.Watchdog() != 0 {
		t.Errorf("the watchdog of another process: %v, %v", n, err)
	}
}
