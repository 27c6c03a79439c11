// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package shadowjob

import (
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/starter/job"
)

// How a job ended is told in ExitBySignal with either ExitSignal or ExitCode.
//
// row: S1-027
func TestExitAttributes(t *testing.T) {
	t.Parallel()
	start := time.Unix(1_800_000_000, 0)
	for _, tt := range []struct {
		name                 string
		status               host.ExitStatus
		bySignal             string
		signal, code, reason string
	}{
		{"killed", host.ExitStatus{Signal: 9}, "true", "9", "", `"died on signal 9 (Killed)"`},
		{"with a core", host.ExitStatus{Signal: 11, Core: true}, "true", "11", "", `"died on signal 11 (Segmentation fault)"`},
		{"by itself", host.ExitStatus{Exited: true, Code: 3}, "false", "", "3", ""},
		{"well", host.ExitStatus{Exited: true}, "false", "", "0", ""},
	} {
		ad := condition{word: "Exited", State: job.State{Started: start, Ended: start.Add(time.Minute), Status: tt.status}}.ad()
		for name, want := range map[string]string{"ExitBySignal": tt.bySignal, "ExitSignal": tt.signal, "ExitCode": tt.code, "ExitReason": tt.reason} {
			got := ""
			if e, ok := ad.Lookup(name); ok {
				got = e.String()
			}
			if got != want {
				t.Errorf("%s: %s is %q, want %q", tt.name, name, got, want)
			}
		}
	}
	running := condition{word: "Running", State: job.State{Started: start}}.ad()
	for _, name := range []string{"ExitBySignal", "ExitSignal", "ExitCode"} {
		if _, ok := running.Lookup(name); ok {
			t.Errorf("a running job has %s", name)
		}
	}
}
