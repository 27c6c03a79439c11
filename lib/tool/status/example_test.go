// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package status_test

import (
	"os"
	"time"

	"github.com/execpoint/execpoint/lib/observe"
	"github.com/execpoint/execpoint/lib/tool/status"
)

func ExamplePrint() {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	status.Print(os.Stdout, &observe.Status{
		Name: "node7", PID: 4711, Started: now.Add(-90 * time.Second),
		Slots: []observe.Slot{{
			Name: "slot1_1", Type: "Dynamic", State: "Claimed", Activity: "Busy", Since: now.Add(-5 * time.Second),
			Cpus: 2, MemoryMiB: 1536, DiskKiB: 1 << 20, Job: "3.0", User: "bob",
		}},
		Jobs: &observe.JobCount{Running: 1, Done: 2, Total: 3},
	}, now)
	// Output:
	// node7, pid 4711, up 90 s
	//   SLOT     TYPE     STATE    ACTIVITY  SINCE  CPUS  MEMORY   DISK   JOB  USER
	//   slot1_1  Dynamic  Claimed  Busy      5.0 s  2     1.5 GiB  1 GiB  3.0  bob
	//   jobs: 0 idle, 1 running, 0 held, 2 of 3 done
}
