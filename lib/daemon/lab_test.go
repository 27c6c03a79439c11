// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"net/netip"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar/endpoint"
	"github.com/execpoint/execpoint/lib/config"
)

func snapshot(t testing.TB, text string) *config.Snapshot {
	t.Helper()
	s, err := config.Parse("test.conf", text, config.Options{Subsystem: "STARTD", Facts: map[string]string{"FULL_HOSTNAME": "ep.example"}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// lab is a machine with a public and a private network.
var lab = []endpoint.Interface{
	{Name: "lo", Up: true, Addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1")}},
	{Name: "eth0", Up: true, Addrs: []netip.Addr{netip.MustParseAddr("10.1.2.3")}},
	{Name: "eth1", Up: true, Addrs: []netip.Addr{netip.MustParseAddr("192.0.2.5")}},
}
