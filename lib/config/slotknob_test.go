// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import "testing"

func TestForSlot(t *testing.T) {
	t.Parallel()
	s := mustParse(t, `START = 1
SLOT_TYPE_2_START = 2
SLOT3_START = 3
SLOT4_START =
STARTD.SLOT5_START = 5
SLOT6_START = $(SLOT6_START2)
SLOT6_START2 = $(SLOT6_START)
RANK =
`)
	for _, tt := range []struct {
		knob       string
		slot, kind int
		name, want string
		ok         bool
	}{
		{"START", 0, 1, "START", "1", true},
		{"START", 1, 2, "SLOT_TYPE_2_START", "2", true},
		{"START", 3, 2, "SLOT3_START", "3", true},
		{"start", 3, -1, "SLOT3_START", "3", true},
		{"START", 4, 2, "SLOT_TYPE_2_START", "2", true},
		{"START", 4, 0, "START", "1", true},
		{"START", 5, 2, "STARTD.SLOT5_START", "5", true},
		{"RANK", 1, 1, "RANK", "", true},
		{"UPDATE_INTERVAL", 1, 1, "UPDATE_INTERVAL", "300", true},
		{"NO_SUCH", 1, 1, "", "", false},
	} {
		set, ok := s.ForSlot(tt.knob, tt.slot, tt.kind)
		if ok != tt.ok || set.Name != tt.name || set.Value != tt.want {
			t.Errorf("%s of slot %d, type %d: %q = %q, %v", tt.knob, tt.slot, tt.kind, set.Name, set.Value, ok)
		}
	}
	if set, ok := s.ForSlot("START", 6, 2); !ok || set.Name != "SLOT6_START" || set.Err == nil {
		t.Errorf("a broken override was passed over: %+v", set)
	}
}
