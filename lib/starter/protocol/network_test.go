// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"net/netip"
	"testing"

	"github.com/execpoint/execpoint/lib/cedar/listen"
	"github.com/execpoint/execpoint/lib/errs"
)

// Connections to the shadow come from where the configuration lets them.
func TestOutgoing(t *testing.T) {
	t.Parallel()
	loopback := listen.Source{V4: netip.MustParseAddr("127.0.0.1")}
	for _, tt := range []struct {
		name   string
		knobs  map[string]string
		ports  listen.Ports
		source listen.Source
		kind   errs.Kind
	}{
		{name: "anywhere"},
		{name: "every interface", knobs: map[string]string{"BIND_ALL_INTERFACES": "True", "NETWORK_INTERFACE": "127.0.0.1"}},
		{name: "one", knobs: map[string]string{"BIND_ALL_INTERFACES": "False", "NETWORK_INTERFACE": " 127.0.0.1 "}, source: loopback},
		{
			name:  "one, with ports",
			knobs: map[string]string{"BIND_ALL_INTERFACES": "false", "NETWORK_INTERFACE": "127.0.0.1", "LOWPORT": "20000", "HIGHPORT": "20010"},
			ports: listen.Ports{Low: 20000, High: 20010}, source: loopback,
		},
		{
			name:  "ports of their own",
			knobs: map[string]string{"LOWPORT": "20000", "HIGHPORT": "20010", "OUT_LOWPORT": "30000", "OUT_HIGHPORT": "30000"},
			ports: listen.Ports{Low: 30000, High: 30000},
		},
		{name: "none there", knobs: map[string]string{"BIND_ALL_INTERFACES": "False", "NETWORK_INTERFACE": "192.0.2.1"}, kind: errs.NotFound},
	} {
		text := ""
		for name, value := range tt.knobs {
			text += name + " = " + value + "\n"
		}
		n := configured(t, text).Pool.Reach.Network
		source, err := n.Outgoing()
		if errs.KindOf(err) != tt.kind || source != tt.source || n.Out != tt.ports {
			t.Errorf("%s: from %v and %v, %v; want %v and %v, kind %v", tt.name, source, n.Out, err, tt.source, tt.ports, tt.kind)
		}
	}
}
