// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"testing"

	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// The recorded starter's cases cg-hard, cg-static and starter-identity-owner.
func TestGroupName(t *testing.T) {
	t.Parallel()
	for _, c := range [][3]string{
		{"/var/lib/condor/execute", "slot1@node1.example.org", "_var_lib_condor_execute_slot1@node1.example.org"},
		{"/x", "a/b@h", "_x_a_b@h"},
	} {
		if got := groupName(&protocol.Plan{Execute: c[0], SlotFullName: c[1]}); got != c[2] {
			t.Errorf("groupName(%q, %q) = %q, want %q", c[0], c[1], got, c[2])
		}
	}
}
