// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestChanges(t *testing.T) {
	t.Parallel()
	before := mustParse(t, "START = True\nUPDATE_INTERVAL = 5 * $(N)\nN = 1\nGONE = x\nNUM_SLOTS = 1\nSAME = $(UNSET)\n")
	after := mustParse(t, "start = False\nUPDATE_INTERVAL = 5 * $(N)\nN = 2\nNUM_SLOTS = 2\nNEW = y\nSAME =\n")
	want := []Change{
		{Name: "GONE", Before: "x"},
		{Name: "N", Before: "1", After: "2"},
		{Name: "NEW", After: "y"},
		{Name: "NUM_SLOTS", Before: "1", After: "2", Reconfig: ReconfigRestarts},
		{Name: "START", Before: "True", After: "False", Reconfig: ReconfigApplies},
		{Name: "UPDATE_INTERVAL", Before: "5 * 1", After: "5 * 2", Reconfig: ReconfigApplies},
	}
	if d := cmp.Diff(want, before.Changes(after)); d != "" {
		t.Error(d)
	}
	if got := before.Changes(before); got != nil {
		t.Errorf("changes to itself: %v", got)
	}
}
