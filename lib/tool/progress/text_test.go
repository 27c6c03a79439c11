// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/ep"
)

func TestLeavingText(t *testing.T) {
	t.Parallel()
	for want, v := range map[string]ep.ShutdownView{
		"told to end: no job runs, and no other begins":                                                                                  {Manner: ep.Graceful},
		"told to end at once: 3 jobs are killed; output of 1 job that ended is on its way":                                               {Manner: ep.Fast, Jobs: 3, Sending: 1, Left: time.Minute},
		"told to end at once; output of 2 jobs that ended is on its way":                                                                 {Manner: ep.Fast, Sending: 2},
		"told to end: no other job begins; output of 1 job that ended is on its way; a second Ctrl-C (or SIGTERM) kills what still runs": {Manner: ep.Graceful, Sending: 1},
		"told to end: no other job begins, 2 jobs are asked to end and have time for it, at most 10 min 0 s; a second Ctrl-C (or SIGTERM) kills what still runs": {
			Manner: ep.Graceful, Jobs: 2, Left: 10 * time.Minute,
		},
		"told to end: no other job begins, 2 jobs may go on for the time of MAXJOBRETIREMENTTIME and are then asked to end, without a limit; a second Ctrl-C (or SIGTERM) kills what still runs": {
			Manner: ep.Graceful, Jobs: 2, Retiring: 1, Left: 10 * endless,
		},
	} {
		if got := LeavingText(v); got != want {
			t.Errorf("%+v: %s\nwant %s", v, got, want)
		}
	}
}
