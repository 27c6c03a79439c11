// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package guest_test

import (
	"testing"

	"github.com/execpoint/execpoint/ci/qemu"
	"github.com/execpoint/execpoint/integration/guest"
)

// TestControlGroups runs what is about control groups with every layout of them:
// a build machine has one at most, and seldom one with all controllers.
func TestControlGroups(t *testing.T) {
	for _, of := range []struct{ name, pkg, run string }{
		{"cgroup", "platform/linux/cgroup", "."},
		{"proc", "platform/linux/proc", "."},
		{"system", "platform/linux/system", "."},
	} {
		t.Run(of.name, func(t *testing.T) {
			t.Parallel()
			tests := guest.Build(t, of.pkg)
			for _, layout := range []qemu.Cgroups{guest.V2, guest.V1, guest.Hybrid} {
				t.Run(layout.String(), func(t *testing.T) { tests.Run(t, guest.Machine{Cgroups: layout}, of.run) })
			}
		})
	}
}
