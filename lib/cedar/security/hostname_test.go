// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"testing"

	"github.com/execpoint/execpoint/lib/cedar"
)

// A certificate is compared with the name by which a server was called: as its
// address has it, or as the configuration names the host.
func TestHostName(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		at   cedar.Sinful
		want string
	}{
		{cedar.Sinful{Host: "192.0.2.7", Port: 9618, Alias: "cm.pool.test"}, "cm.pool.test"},
		{cedar.Sinful{Host: "central.pool.test", Port: 9618, Alias: "cm.pool.test"}, "cm.pool.test"},
		{cedar.Sinful{Host: "central.pool.test", Port: 9618}, "central.pool.test"},
		{cedar.Sinful{Host: "192.0.2.7", Port: 9618}, ""},
		{cedar.Sinful{Host: "2001:db8::7", Port: 9618}, ""},
	} {
		if got := hostName(tt.at); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.at, got, tt.want)
		}
	}
}
