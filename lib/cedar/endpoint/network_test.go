// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/errs"
)

func snapshot(t testing.TB, text string) *config.Snapshot {
	t.Helper()
	s, err := config.Parse("test.conf", text, config.Options{Subsystem: "STARTD", Facts: map[string]string{"FULL_HOSTNAME": "ep.example"}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func ip(s string) netip.Addr {
	if s == "" {
		return netip.Addr{}
	}
	return netip.MustParseAddr(s)
}

// lab is a machine with a public and a private network.
var lab = []Interface{
	{Name: "lo", Up: true, Addrs: []netip.Addr{ip("127.0.0.1"), ip("::1")}},
	{Name: "eth0", Up: true, Addrs: []netip.Addr{ip("10.1.2.3"), ip("fe80::1%eth0")}},
	{Name: "eth1", Up: true, Addrs: []netip.Addr{ip("192.0.2.5"), ip("2001:db8::5")}},
	{Name: "wlan0", Addrs: []netip.Addr{ip("198.51.100.1")}},
}

func TestPick(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, knobs string
		machine     []Interface
		v4, v6      string
		kind        errs.Kind
	}{
		{name: "best there is", machine: lab, v4: "192.0.2.5", v6: "2001:db8::5"},
		{name: "by name", knobs: "NETWORK_INTERFACE = eth0", machine: lab, v4: "10.1.2.3"},
		{name: "by address", knobs: "NETWORK_INTERFACE = 10.1.2.3", machine: lab, v4: "10.1.2.3"},
		{name: "by pattern of addresses", knobs: "NETWORK_INTERFACE = 10.*", machine: lab, v4: "10.1.2.3"},
		{name: "by several patterns", knobs: "NETWORK_INTERFACE = wlan*, eth?", machine: lab, v4: "192.0.2.5", v6: "2001:db8::5"},
		{name: "one that is down", knobs: "NETWORK_INTERFACE = wlan0", machine: lab, v4: "198.51.100.1"},
		{name: "loopback", knobs: "NETWORK_INTERFACE = 127.0.0.1", machine: lab, v4: "127.0.0.1"},
		{name: "IPv6 address", knobs: "NETWORK_INTERFACE = 2001:db8::5", machine: lab, v6: "2001:db8::5"},
		{name: "no IPv6", knobs: "ENABLE_IPV6 = false", machine: lab, v4: "192.0.2.5"},
		{name: "no IPv4", knobs: "ENABLE_IPV4 = false", machine: lab, v6: "2001:db8::5"},
		{name: "machine without network", machine: lab[:1], v4: "127.0.0.1", v6: "::1"},
		{name: "IPv6 for itself only", machine: lab[:2], v4: "10.1.2.3"},
		{name: "nobody's address", knobs: "NETWORK_INTERFACE = 203.0.113.1", machine: lab, kind: errs.NotFound},
		{name: "nobody's name", knobs: "NETWORK_INTERFACE = ib*", machine: lab, kind: errs.NotFound},
		{name: "address of a protocol that is off", knobs: "NETWORK_INTERFACE = 10.1.2.3\nENABLE_IPV4 = false", machine: lab, kind: errs.Conflict},
		{name: "protocol demanded in vain", knobs: "NETWORK_INTERFACE = eth0\nENABLE_IPV6 = true", machine: lab, kind: errs.NotFound},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n, err := NetworkFrom(snapshot(t, tt.knobs+"\n"), "STARTD")
			if err != nil {
				t.Fatal(err)
			}
			v4, v6, err := n.Pick(n.Interface, tt.machine)
			if errs.KindOf(err) != tt.kind {
				t.Fatalf("error is %v, want kind %v", err, tt.kind)
			}
			if err == nil && (v4 != ip(tt.v4) || v6 != ip(tt.v6)) {
				t.Errorf("picked %s and %s, want %s and %s", v4, v6, tt.v4, tt.v6)
			}
		})
	}
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	reach := Reach{Port: 9618, V4: ip("192.0.2.5")}
	tests := []struct {
		name, knobs   string
		reach         Reach
		public, local string
	}{
		{name: "plain", reach: reach,
			public: "<192.0.2.5:9618?addrs=192.0.2.5-9618&alias=ep.example&noUDP>",
			local:  "<192.0.2.5:9618?addrs=192.0.2.5-9618&alias=ep.example>"},
		{name: "datagrams too", reach: Reach{Port: 9618, V4: ip("192.0.2.5"), UDP: true},
			public: "<192.0.2.5:9618?addrs=192.0.2.5-9618&alias=ep.example>"},
		{name: "both protocols", reach: Reach{Port: 9618, V4: ip("192.0.2.5"), V6: ip("2001:db8::5")},
			public: "<192.0.2.5:9618?addrs=192.0.2.5-9618+[2001-db8--5]-9618&alias=ep.example&noUDP>"},
		{name: "IPv6 first", knobs: "PREFER_IPV4 = false", reach: Reach{Port: 9618, V4: ip("192.0.2.5"), V6: ip("2001:db8::5")},
			public: "<192.0.2.5:9618?addrs=[2001-db8--5]-9618+192.0.2.5-9618&alias=ep.example&noUDP>"},
		{name: "IPv6 alone", reach: Reach{Port: 9618, V6: ip("2001:db8::5")},
			public: "<[2001:db8::5]:9618?addrs=[2001-db8--5]-9618&alias=ep.example&noUDP>"},
		{name: "forwarded", knobs: "TCP_FORWARDING_HOST = 203.0.113.9", reach: Reach{Port: 9618, V4: ip("10.1.2.3"), Forward: ip("203.0.113.9"), UDP: true},
			public: "<203.0.113.9:9618?addrs=203.0.113.9-9618&alias=ep.example&noUDP>",
			local:  "<203.0.113.9:9618?addrs=10.1.2.3-9618&alias=ep.example>"},
		{name: "forwarded, and private network", knobs: "TCP_FORWARDING_HOST = 203.0.113.9\nPRIVATE_NETWORK_NAME = lab",
			reach:  Reach{Port: 9618, V4: ip("192.0.2.5"), Forward: ip("203.0.113.9"), Private: ip("10.1.2.3")},
			public: "<203.0.113.9:9618?PrivAddr=%3c10.1.2.3:9618%3e&PrivNet=lab&addrs=203.0.113.9-9618&alias=ep.example&noUDP>",
			local:  "<10.1.2.3:9618?addrs=192.0.2.5-9618>"},
		{name: "private network that is the public one", knobs: "PRIVATE_NETWORK_NAME = lab", reach: Reach{Port: 9618, V4: ip("192.0.2.5"), Private: ip("192.0.2.5")},
			public: "<192.0.2.5:9618?addrs=192.0.2.5-9618&alias=ep.example&noUDP>"},
		{name: "behind a broker", knobs: "PRIVATE_NETWORK_NAME = lab\nHOST_ALIAS =",
			reach:  Reach{Port: 9618, V4: ip("10.1.2.3"), Contacts: []cedar.Broker{{Address: "203.0.113.1:9618", ID: "12"}}},
			public: "<10.1.2.3:9618?CCBID=203.0.113.1:9618#12&PrivNet=lab&addrs=10.1.2.3-9618&noUDP>"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n, err := NetworkFrom(snapshot(t, tt.knobs+"\n"), "STARTD")
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(tt.knobs, "HOST_ALIAS") {
				n.Alias = ""
			}
			if got := n.Public(tt.reach).String(); got != tt.public {
				t.Errorf("public address is\n%s, want\n%s", got, tt.public)
			}
			if got := n.Local(tt.reach).String(); tt.local != "" && got != tt.local {
				t.Errorf("local address is\n%s, want\n%s", got, tt.local)
			}
		})
	}
}

func TestNetworkFrom(t *testing.T) {
	t.Parallel()
	n, err := NetworkFrom(snapshot(t, `
LOWPORT = 20000
HIGHPORT = 20100
OUT_LOWPORT = 30000
OUT_HIGHPORT = 30001
USE_SHARED_PORT = true
STARTD_USE_SHARED_PORT = false
CCB_ADDRESS = cm1.example, cm2.example
BIND_ALL_INTERFACES = false
LOCK = /run/lock/condor
`), "STARTD")
	if err != nil {
		t.Fatal(err)
	}
	if n.In != (listen.Ports{Low: 20000, High: 20100}) || n.Out != (listen.Ports{Low: 30000, High: 30001}) {
		t.Errorf("ports are %v and %v", n.In, n.Out)
	}
	if n.SharedPort || n.BindAll || len(n.Brokers) != 2 || n.Interface != "*" || filepath.ToSlash(n.SocketDir) != "/run/lock/condor/daemon_sock" {
		t.Errorf("network is %+v", n)
	}
	for text, want := range map[string][2]listen.Ports{
		"LOWPORT = 9600 + 100\nHIGHPORT = 2 * $(LOWPORT)\n":                                              {{Low: 9700, High: 19300}, {Low: 9700, High: 19300}},
		"IN_LOWPORT = 0\nIN_HIGHPORT = 0\nLOWPORT = 20000\nHIGHPORT = 20001\n":                           {{Low: 20000, High: 20001}, {Low: 20000, High: 20001}},
		"LOWPORT = 0\nHIGHPORT = 0\nOUT_LOWPORT = 5\nOUT_HIGHPORT = OUT_LOWPORT =?= undefined ? 6 : 7\n": {{}, {Low: 5, High: 6}},
	} {
		if n, err := NetworkFrom(snapshot(t, text), "STARTD"); err != nil || n.In != want[0] || n.Out != want[1] {
			t.Errorf("%q: %v and %v, %v; want %v", text, n.In, n.Out, err, want)
		}
	}
	for text, want := range map[string]string{
		"NETWORK_INTERFACE = $INT(x)\n":                   "NETWORK_INTERFACE", // not every interface
		"LOWPORT = 0\nHIGHPORT = 5\n":                     "a port from 1 to 65535",
		"LOWPORT = x\nHIGHPORT = 5\n":                     `test.conf:1:1: knob LOWPORT: is not an integer`,
		"IN_LOWPORT = 500\nIN_HIGHPORT = 400\n":           "IN_LOWPORT (500) or more",
		"ENABLE_IPV4 = maybe\n":                           "true, false or auto",
		"ENABLE_IPV4 = false\nENABLE_IPV6 = false\n":      "without either there is no network",
		"OUT_LOWPORT = 65000\nOUT_HIGHPORT = 70000\n":     "a port from 1 to 65535",
		"USE_SHARED_PORT = perhaps\nLOWPORT = 5\n":        "USE_SHARED_PORT",
		"STARTD_USE_SHARED_PORT = true\nLOWPORT = 1024\n": "",
	} {
		n, err := NetworkFrom(snapshot(t, text), "STARTD")
		if want == "" {
			if err != nil || !n.SharedPort || n.In.Low != 0 {
				t.Errorf("%q: %+v, %v", text, n, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want an error with %q", text, err, want)
		}
	}
}

func TestListen(t *testing.T) {
	t.Parallel()
	n := Network{}
	all, err := n.Listen(t.Context(), 0, ip("127.0.0.1"), netip.Addr{})
	if err != nil {
		t.Fatal(err)
	}
	defer all[0].Close()
	port := all[0].Addr().(*net.TCPAddr).Port
	if len(all) != 1 || !all[0].Addr().(*net.TCPAddr).IP.IsLoopback() {
		t.Errorf("listening at %v", all[0].Addr())
	}
	if _, err := n.Listen(t.Context(), port, ip("127.0.0.1"), netip.Addr{}); !errs.Is(err, errs.Conflict) {
		t.Errorf("port %d twice: %v, want kind Conflict", port, err)
	}
	n.In = listen.Ports{Low: port, High: port}
	if _, err := n.Listen(t.Context(), 0, ip("127.0.0.1"), netip.Addr{}); !errs.Is(err, errs.Conflict) && !errs.Is(err, errs.Exhausted) {
		t.Errorf("a range of one taken port: %v", err)
	}
	if _, err := n.Listen(t.Context(), 0, netip.Addr{}, netip.Addr{}); !errs.Is(err, errs.Invalid) {
		t.Errorf("nowhere: %v", err)
	}
}

// What outgoing connections come from follows what is listened at.
func TestSource(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]listen.Source{
		"":                             {},
		"NETWORK_INTERFACE = 10.1.2.3": {}, // every interface all the same
		"BIND_ALL_INTERFACES = false":  {V4: ip("192.0.2.5"), V6: ip("2001:db8::5")},
		"BIND_ALL_INTERFACES = false\nNETWORK_INTERFACE = eth0":                         {V4: ip("10.1.2.3")},
		"BIND_ALL_INTERFACES = false\nNETWORK_INTERFACE = 2001:db8::5":                  {V6: ip("2001:db8::5")},
		"BIND_ALL_INTERFACES = false\nENABLE_IPV6 = false":                              {V4: ip("192.0.2.5")},
		"BIND_ALL_INTERFACES = false\nTCP_FORWARDING_HOST = 203.0.113.9\nLOWPORT = 500": {V4: ip("192.0.2.5"), V6: ip("2001:db8::5")},
	} {
		n, err := NetworkFrom(snapshot(t, text+"\n"), "STARTD")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := n.Source(lab); err != nil || got != want {
			t.Errorf("%q: from %v, %v; want %v", text, got, err, want)
		}
	}
	n := Network{Interface: "eth7"}
	if got, err := n.Source(lab); !errs.Is(err, errs.NotFound) || !strings.Contains(err.Error(), "NETWORK_INTERFACE") {
		t.Errorf("an interface that is not there: %v, %v", got, err)
	}
}

// A process without command socket opens one to be called back.
func TestReturn(t *testing.T) {
	t.Parallel()
	resolve := func(_ context.Context, host string) (netip.Addr, error) {
		if host != "gate.example" {
			return netip.Addr{}, errors.New("no such host")
		}
		return ip("203.0.113.9"), nil
	}
	mine := []Interface{{Name: "lo", Up: true, Addrs: []netip.Addr{ip("127.0.0.1")}}}
	n := Network{Interface: "*", Brokers: []string{"cm.example"}}
	all, at, err := n.Return(t.Context(), mine, resolve)
	if err != nil {
		t.Fatal(err)
	}
	defer all[0].Close()
	want := fmt.Sprintf("<127.0.0.1:%d?addrs=127.0.0.1-%[1]d&noUDP>", all[0].Addr().(*net.TCPAddr).Port)
	if len(all) != 1 || at.String() != want {
		t.Errorf("%d sockets at %s, want %s", len(all), at, want)
	}
	n.Forwarding = "gate.example"
	all, at, err = n.Return(t.Context(), mine, resolve)
	if err != nil {
		t.Fatal(err)
	}
	defer all[0].Close()
	if at.Host != "203.0.113.9" || at.Port != all[0].Addr().(*net.TCPAddr).Port {
		t.Errorf("behind a host that forwards: %s", at)
	}
	n.Forwarding = "nowhere.example"
	if _, _, err := n.Return(t.Context(), mine, resolve); !errs.Is(err, errs.NotFound) {
		t.Errorf("a host that nobody knows: %v", err)
	}
	n.Forwarding, n.Interface = "", "eth7"
	if _, _, err := n.Return(t.Context(), mine, resolve); !errs.Is(err, errs.NotFound) {
		t.Errorf("an interface that is not there: %v", err)
	}
}
