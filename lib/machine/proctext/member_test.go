// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package proctext

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func membershipTexts() []string {
	return []string{
		"0::/user.slice/user-1000.slice\n",
		"12:cpu,cpuacct:/htcondor\n3:name=systemd:/a:b\n0::/\n",
		"", "0:/\n", "x::/\n", "\n", ":::\n",
	}
}

func TestMemberships(t *testing.T) {
	t.Parallel()
	want := [][]Membership{
		{{Path: "/user.slice/user-1000.slice"}},
		{{[]string{"cpu", "cpuacct"}, "/htcondor"}, {[]string{"name=systemd"}, "/a:b"}, {Path: "/"}},
		nil,
	}
	for i, text := range membershipTexts() {
		got, err := Memberships([]byte(text))
		if bad := i >= len(want); bad != (err != nil) || !bad && !cmp.Equal(got, want[i]) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func FuzzMemberships(f *testing.F) {
	for _, text := range membershipTexts() {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		all, err := Memberships(text)
		if err != nil && all != nil {
			t.Errorf("%q: %v, %v", text, all, err)
		}
	})
}

func socketTexts() []string {
	return []string{
		"   0: 0100007F:2382 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 49181 1 0000000000000000 100 0 0 10 0\n",
		"   1: 00000000000000000000000001000000:0016 00000000000000000000000000000000:0000 07 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0",
		"  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n",
		"", "0: 0100007F:2382 0:0 0A\n",
		"0: 0100007:2382 00000000:0000 0A 0:0 0:0 0 1000\n",
		"0: 0100007F 00000000:0000 0A 0:0 0:0 0 1000\n",
		"0: 0100007G:2382 00000000:0000 0A 0:0 0:0 0 1000\n",
		"0: 0100007F:2382 00000000:0000 0A 0:0 0:0 0 -1\n",
	}
}

func TestParseSocket(t *testing.T) {
	t.Parallel()
	want := []Socket{
		{netip.MustParseAddrPort("127.0.0.1:9090"), 10, 1000},
		{netip.MustParseAddrPort("[::1]:22"), 7, 0},
	}
	for i, text := range socketTexts() {
		got, err := ParseSocket([]byte(text))
		if bad := i >= len(want); bad != (err != nil) || !bad && got != want[i] {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

func FuzzParseSocket(f *testing.F) {
	for _, text := range socketTexts() {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if s, err := ParseSocket(line); err == nil && !s.Local.IsValid() {
			t.Errorf("%q: %v", line, s)
		}
	})
}
