// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"testing"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/config"
)

func TestOver(t *testing.T) {
	t.Parallel()
	s, err := config.Parse("test.conf", "SUSPEND = KeyboardIdle < 10\nPREEMPT = SUSPEND && Memory > 1\nSLOT_TYPE_2_START = Memory > 5\n", config.Options{Subsystem: "STARTD"})
	if err != nil {
		t.Fatal(err)
	}
	x, err := ExpressionsFrom(s, 2)
	if err != nil {
		t.Fatal(err)
	}
	slot, err := classad.ParseAd("KeyboardIdle = 3\nMemory = 4\nStart = true\n", classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	over := x.Over(slot)
	if v := over.Eval("PREEMPT", nil); !v.IsTrue() {
		t.Errorf("PREEMPT, which asks for SUSPEND, is %v", v)
	}
	if v := over.Eval("Start", nil); v.IsTrue() {
		t.Errorf("START of the type is %v, want that of type 2", v)
	}
	if _, ok := slot.Lookup("SUSPEND"); ok {
		t.Error("the slot's own ad was changed")
	}
	for k, e := range x.All() {
		if k == Start && e.Name != "SLOT_TYPE_2_START" {
			t.Errorf("START was read from %s", e.Name)
		}
	}
}
