// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package detect

import (
	"net"
	"net/netip"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/execpoint/execpoint/lib/errs"
)

// What the kernel says over netlink must be what the Go library finds.
func TestInterfacesOfThisMachine(t *testing.T) {
	t.Parallel()
	got, err := interfaces()
	if err != nil {
		t.Fatal(err)
	}
	byName := make(map[string]int)
	for i, one := range got {
		byName[one.Name] = i
		if one.Wake.Err != nil && one.Wake.Supported|one.Wake.Enabled != 0 {
			t.Errorf("%s: %+v", one.Name, one.Wake)
		}
		if e := one.Wake.Err; e != nil && !errs.Is(e, errs.Unsupported) && !errs.Is(e, errs.Denied) {
			t.Errorf("%s: %v", one.Name, e)
		}
		if one.Wake.Enabled&^one.Wake.Supported != 0 {
			t.Errorf("%s is woken by what it does not support: %+v", one.Name, one.Wake)
		}
	}
	all, err := net.Interfaces()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range all {
		i, ok := byName[want.Name]
		if ok != (want.Flags&net.FlagUp != 0) {
			t.Errorf("%s: listed %v, flags %v", want.Name, ok, want.Flags)
		}
		if !ok {
			continue
		}
		if got[i].HardwareAddress != want.HardwareAddr.String() {
			t.Errorf("%s: %q, want %q", want.Name, got[i].HardwareAddress, want.HardwareAddr)
		}
		addrs, err := want.Addrs()
		if err != nil || len(addrs) != len(got[i].Addresses) {
			t.Fatalf("%s: %v, want %v, %v", want.Name, got[i].Addresses, addrs, err)
		}
		for n, a := range addrs {
			if p := netip.MustParsePrefix(a.String()); p != got[i].Addresses[n] {
				t.Errorf("%s: %v, want %v", want.Name, got[i].Addresses[n], p)
			}
		}
	}
}

// The sizes are those of the kernel, and a card that is not there cannot wake.
func TestAskCard(t *testing.T) {
	t.Parallel()
	if n := unsafe.Sizeof(wakeInfo{}); n != 20 {
		t.Errorf("struct ethtool_wolinfo has 20 bytes, ours %d", n)
	}
	if n := unsafe.Sizeof(wakeRequest{}); n != unix.IFNAMSIZ+24 {
		t.Errorf("struct ifreq has %d bytes, ours %d", unix.IFNAMSIZ+24, n)
	}
	control, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(control)
	for _, name := range []string{"no-such-card", "a-name-that-is-much-too-long-for-the-kernel"} {
		w := askCard(control, name)
		if w.Err == nil || w.Supported|w.Enabled != 0 || !errs.Is(w.Err, errs.Unsupported) && !errs.Is(w.Err, errs.Denied) {
			t.Errorf("%s: %+v", name, w)
		}
	}
}
