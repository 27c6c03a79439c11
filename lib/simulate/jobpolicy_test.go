// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package simulate

import (
	"strings"
	"testing"
)

// TestJobPolicy has the simulated access point do what the submit file says of
// the queue, by the rules of the embedded one.
func TestJobPolicy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, job, events string
		state, why        string
		starts            int
	}{
		{"max_retries", "exit=1\n    max_retries = 2", "", "completed", "", 3},
		{"no retry after success", "exit=0\n    max_retries = 2", "", "completed", "", 1},
		{"retry_until", "exit=4\n    retry_until = ExitCode == 4", "", "completed", "", 1},
		{"on_exit_hold", "exit=4\n    on_exit_hold = ExitCode == 4", "", "held", "on_exit_hold", 1},
		{"periodic_hold", "\n    periodic_hold = JobStatus == 2 && time() - EnteredCurrentStatus > 120", "", "held", "periodic_hold", 1},
		{"periodic_release", "exit=1\n    on_exit_hold = NumJobStarts < 3\n    periodic_release = NumHolds < 5", "", "completed", "", 3},
		{"released no more", "exit=1\n    on_exit_hold = true\n    periodic_release = NumHolds < 3", "", "held", "on_exit_hold", 3},
		{"held by a person", "\n    periodic_release = true", "at 3m hold j\n", "held", "held by its owner", 1},
		{"hold", "\n    hold = true", "", "held", "hold", 0},
		{"hold and release", "\n    hold = true\n    periodic_release = time() - QDate > 300", "", "completed", "", 1},
		{"idle too long", "\n    requirements = false\n    periodic_remove = JobStatus == 1 && time() - QDate > 300", "", "removed", "periodic_remove", 0},
		{"held too long", "exit=1\n    on_exit_hold = true\n    periodic_remove = JobStatus == 5 && time() - EnteredCurrentStatus > 300", "", "removed", "periodic_remove", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			job := strings.TrimSuffix(c.job, "\n")
			res := play(t, c.name, small+"end 2h\njob j runs=5m "+job+"\nat 0s submit j\n"+c.events)
			if j := res.Jobs[0]; j.State != c.state || j.Why != c.why || j.Starts != c.starts {
				t.Errorf("%s %q after %d starts, want %s %q after %d", j.State, j.Why, j.Starts, c.state, c.why, c.starts)
			}
		})
	}
}
