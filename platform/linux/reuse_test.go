// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package linux

import (
	"io"
	"net"
	"strconv"
	"testing"
)

// A port at which a connection that we ended still lingers can be had again,
// for another other end; without the option it cannot.
func TestReuseAddress(t *testing.T) {
	t.Parallel()
	listen := func() net.Listener {
		l, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	first, second := listen(), listen()
	var dialer net.Dialer
	lingers := ReuseAddress(&dialer)
	once, err := dialer.DialContext(t.Context(), "tcp4", first.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	port := once.LocalAddr().(*net.TCPAddr).Port
	theirs, err := first.Accept()
	if err != nil {
		t.Fatal(err)
	}
	// Who closes first is left with what lingers.
	_ = once.Close()
	_, _ = io.Copy(io.Discard, theirs)
	_ = theirs.Close()

	at := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port}
	plain := net.Dialer{LocalAddr: at}
	if nc, err := plain.DialContext(t.Context(), "tcp4", second.Addr().String()); err == nil {
		_ = nc.Close()
		t.Skip("nothing lingers on this system")
	}
	dialer.LocalAddr = at
	nc, err := dialer.DialContext(t.Context(), "tcp4", second.Addr().String())
	if err != nil {
		t.Fatalf("port %s again: %v", strconv.Itoa(port), err)
	}
	// While this one lasts there can be no other between the same two.
	if twice, err := dialer.DialContext(t.Context(), "tcp4", second.Addr().String()); !lingers(err) {
		t.Errorf("twice from one port to one address: %v, %v", twice, err)
	}
	_ = nc.Close()
	if _ = second.Close(); !t.Failed() {
		if _, err := new(net.Dialer).DialContext(t.Context(), "tcp4", second.Addr().String()); err == nil || lingers(err) {
			t.Errorf("nobody listens, and the error is %v", err)
		}
	}
}
