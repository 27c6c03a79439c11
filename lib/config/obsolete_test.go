// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestObsoleteNames reads every old name of the 6.8 manual: none is an error,
// each warning names the modern form and the line.
//
// row: S1-020, S1-063
func TestObsoleteNames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ line, want string }{
		{"STARTD_EXPRS = Site", "knob STARTD_EXPRS: is the old name of a list and only added to the modern one (want STARTD_ATTRS)"},
		{"SLOT2_STARTD_EXPRS = Site", "knob SLOT2_STARTD_EXPRS: is the old name of a list and only added to the modern one (want SLOT2_STARTD_ATTRS)"},
		{"STARTD_VM_EXPRS = State", "knob STARTD_VM_EXPRS: is obsolete and has no effect (want STARTD_SLOT_ATTRS)"},
		{"STARTD_JOB_EXPRS = X", "knob STARTD_JOB_EXPRS: is the old name of a list and only added to the modern one (want STARTD_JOB_ATTRS)"},
		{"NUM_VIRTUAL_MACHINES = 2", "knob NUM_VIRTUAL_MACHINES: is obsolete and has no effect (want NUM_SLOTS)"},
		{"NUM_VIRTUAL_MACHINES_TYPE_3 = 2", "knob NUM_VIRTUAL_MACHINES_TYPE_3: is obsolete and has no effect (want NUM_SLOTS_TYPE_3)"},
		{"VIRTUAL_MACHINE_TYPE_1 = 1/2", "knob VIRTUAL_MACHINE_TYPE_1: is obsolete and has no effect (want SLOT_TYPE_1)"},
		{"VIRTUAL_MACHINES_CONNECTED_TO_CONSOLE = 1", "knob VIRTUAL_MACHINES_CONNECTED_TO_CONSOLE: is obsolete and has no effect (want SLOTS_CONNECTED_TO_CONSOLE)"},
		{"VM2_USER = u", "knob VM2_USER: is obsolete and has no effect (want SLOT2_USER)"},
		{"VACATE = False", "knob VACATE: is obsolete and has no effect (want PREEMPT (when to evict) and WANT_VACATE (how))"},
		{"START = CurrentTime > 5", `knob START: refers to CurrentTime, which is obsolete (value "CurrentTime > 5", want time())`},
		{"START = VirtualMachineID == 1", `knob START: refers to VirtualMachineID, which is obsolete and undefined (value "VirtualMachineID == 1", want SlotID)`},
		{"SLOT_TYPE_1_START = MY.vm12_Activity == 1", `knob SLOT_TYPE_1_START: refers to vm12_Activity, which is obsolete and undefined (value "MY.vm12_Activity == 1", want slot12_Activity)`},
		{`START = Owner == "CurrentTime \" vm1_X" && $(CurrentTime:1)`, ""},
		{"JOB_DIR = CurrentTimes", ""},
	} {
		s := mustParse(t, tt.line+"\n")
		var got []string
		for _, p := range s.Warnings() {
			if p.Class == ObsoleteName {
				got = append(got, p.Error())
			}
		}
		var want []string
		if tt.want != "" {
			want = []string{"test.conf:1:1: warning: " + tt.want}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: %s", tt.line, d)
		}
		name, value, _ := strings.Cut(tt.line, " = ")
		if set := mustLookup(t, s, name); set.Raw != value {
			t.Errorf("%s: reads as %q", tt.line, set.Raw)
		}
	}
}
