// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"strings"
	"testing"

	"github.com/execpoint/execpoint/lib/eventlog"
)

// TestWantHold has PREEMPT send a job away that WANT_HOLD puts on hold: the
// job's log says so, with the owner's words and number, or else with stock ones.
// A job that ends before its retirement is over is not held.
//
// row: S4-005, S4-007, S4-008
func TestWantHold(t *testing.T) {
	t.Parallel()
	const policy = "POLLING_INTERVAL = 1\nPREEMPT = JobStart =!= undefined && time() - JobStart > 1\nMachineMaxVacateTime = 5\nWANT_HOLD = True\n"
	for _, tt := range []struct {
		name, policy, sleep string
		reason              string // "" if it is not held
		subcode             int
	}{
		{"reason and subcode", policy + "WANT_HOLD_REASON = strcat(\"Too long for \", Owner)\nWANT_HOLD_SUBCODE = 7 * 6\n", "60", "Too long for ", 42},
		{"neither", policy, "60", "WANT_HOLD = true", 0},
		{"retirement", policy + "MAXJOBRETIREMENTTIME = 60\n", "4", "", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := newPlace(t)
			p.write(t, "ep.conf", tt.policy)
			p.write(t, "job.sub", small+"executable = /bin/sleep\ntransfer_executable = false\narguments = "+tt.sleep+"\nlog = job.log\nqueue\n")
			status, stdout, stderr := p.ep(t, "run", "-config", "ep.conf", "job.sub")
			want, events := exitSomeFailed, "error evicted held" // in the order that was recorded
			if tt.reason == "" {
				want, events = exitOK, ""
			}
			if status != want {
				t.Fatalf("status %d, want %d\n%s%s", status, want, stdout, stderr)
			}
			var order []string
			for _, r := range p.events(t, "job.log") {
				switch e := r.Event.(type) {
				case eventlog.RemoteError:
					order = append(order, "error")
				case eventlog.Evicted:
					order = append(order, "evicted")
				case eventlog.Held:
					order = append(order, "held")
					if e.ReasonCode != 21 || e.ReasonSubcode != tt.subcode || !strings.HasPrefix(e.Reason, "Error from slot1_1@") || !strings.Contains(e.Reason, tt.reason) {
						t.Errorf("held with %+v", e)
					}
				}
			}
			if got := strings.Join(order, " "); got != events {
				t.Errorf("events %q, want %q", got, events)
			}
			p.nothingLeft(t)
		})
	}
}
