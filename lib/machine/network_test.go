// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
)

func prefixes(words ...string) (out []netip.Prefix) {
	for _, w := range words {
		out = append(out, netip.MustParsePrefix(w))
	}
	return out
}

// wired is a machine with a private and a public network.
func wired(inv *Inventory) {
	small(4, 4000)(inv)
	inv.Interfaces = []Interface{
		{Name: "lo", Addresses: prefixes("127.0.0.1/8", "::1/128")},
		{Name: "eno1", HardwareAddress: "ac:1f:6b:00:11:22", Addresses: prefixes("10.1.2.3/24"),
			Wake: Wake{Supported: WakePhysical | WakeMagic | WakeMagicSecure, Enabled: WakeMagic}},
		{Name: "eno2", HardwareAddress: "ac:1f:6b:00:11:23", Addresses: prefixes("198.51.100.17/26", "fe80::1/64", "2001:db8::17/48"),
			Wake: Wake{Supported: WakeUnicast | WakeARP, Enabled: WakeUnicast}},
		{Name: "wg0", Addresses: prefixes("fd00::9/64", "169.254.7.7/16")},
	}
	inv.Learn("found", "Interfaces")
	inv.ChooseAddress("*")
}

func TestChooseAddress(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ pattern, ipv4, ipv6, network string }{
		{"*", "198.51.100.17", "2001:db8::17", "eno2"},
		{"eno1", "10.1.2.3", "", "eno1"},
		{"ENO1, wg*", "10.1.2.3", "fd00::9", "eno1"},
		{"10.1.*", "10.1.2.3", "", "eno1"},
		{"10.1.2.3", "10.1.2.3", "", "eno1"},
		{"lo", "127.0.0.1", "", "lo"},
		{"wg0", "", "fd00::9", ""},
		{"2001:db8::17", "", "2001:db8::17", ""},
		{"203.0.113.77", "203.0.113.77", "", ""}, // of a router before the machine
		{"fd00::9 203.0.113.77", "203.0.113.77", "fd00::9", ""},
		{"eth*", "", "", ""},
		{"", "", "", ""},
		{"[", "", "", ""},
		{"0.0.0.0", "", "", ""},
		{"fe80::1", "", "", ""},
	} {
		inv, _ := Scan(t.Context(), time.Unix(0, 0), found{set: wired})
		ok := inv.ChooseAddress(tt.pattern)
		network := ""
		if inv.Network != nil {
			network = inv.Network.Name
		}
		if inv.IPv4 != tt.ipv4 || inv.IPv6 != tt.ipv6 || network != tt.network || ok != (tt.ipv4+tt.ipv6 != "") {
			t.Errorf("%q: %q %q on %q, %v", tt.pattern, inv.IPv4, inv.IPv6, network, ok)
		}
	}
}

// The interface that NETWORK_INTERFACE names is the one that is woken.
func TestWakeOnLanAttributes(t *testing.T) {
	t.Parallel()
	names := []string{"HardwareAddress", "SubnetMask", "IsWakeOnLanSupported", "IsWakeOnLanEnabled", "IsWakeAble",
		"WakeOnLanSupportedFlags", "WakeOnLanEnabledFlags"}
	for _, tt := range []struct{ config, want string }{
		{"", `"ac:1f:6b:00:11:23" "255.255.255.192" false false true "UniCast Packet,ARP Packet" "UniCast Packet"`},
		{"NETWORK_INTERFACE = eno1", `"ac:1f:6b:00:11:22" "255.255.255.0" true true true "Physical Packet,Magic Packet,Secure Magic Packet" "Magic Packet"`},
		{"NETWORK_INTERFACE = 127.0.0.1", `- "255.0.0.0" false false false "NONE" "NONE"`},
		{"NETWORK_INTERFACE = wg0", "- - - - - - -"},
	} {
		inv, problems := scanWith(t, wired, tt.config)
		if problems != nil {
			t.Fatal(problems)
		}
		var got []string
		for _, n := range names {
			word := "-"
			if e, ok := inv.Attrs.Lookup(n); ok {
				word = e.Text(classad.Old)
			}
			got = append(got, word)
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%q:\ngot  %s\nwant %s", tt.config, s, tt.want)
		}
	}
}

func TestPreferInterface(t *testing.T) {
	t.Parallel()
	// IP_ADDRESS follows, and so does what is made of it.
	inv, problems := scanWith(t, wired, "NETWORK_INTERFACE = eno1\nRESERVED_MEMORY = ifThenElse(\"$(IP_ADDRESS)\" == \"10.1.2.3\", 100, 200)")
	if problems != nil || inv.UsableMemoryMiB != 3900 || inv.Facts["IPv4"].Source != "NETWORK_INTERFACE ep.conf:1" || inv.Known("IPv6") {
		t.Errorf("%d MiB, %v, %v", inv.UsableMemoryMiB, inv.Facts, problems)
	}
	inv, _ = Scan(t.Context(), time.Unix(0, 0), found{set: wired})
	snap, err := config.Parse("ep.conf", "\nNETWORK_INTERFACE = eth0", config.Options{Subsystem: "STARTD"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = inv.Prefer(snap)
	for _, word := range []string{"ep.conf:2", "NETWORK_INTERFACE", "eth0", "lo 127.0.0.1", "eno1 10.1.2.3", "eno2 198.51.100.17"} {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("%q is not in %v", word, err)
		}
	}
	// It ends the start, as it would leave the daemon without an address.
	problems = inv.Apply(t.Context(), time.Unix(0, 0), ConfigScanner(snap))
	if len(problems) != 1 || !errs.Is(problems[0], errs.Invalid) {
		t.Errorf("problems %v", problems)
	}
	// A described machine has no interfaces, and any name is good for it.
	inv, _ = Scan(t.Context(), time.Unix(0, 0), found{set: small(4, 4000)})
	if changed, err := inv.Prefer(snap); changed || err != nil {
		t.Errorf("%v, %v", changed, err)
	}
}
