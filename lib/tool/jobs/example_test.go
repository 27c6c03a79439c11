// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package jobs_test

import (
	"os"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/tool/jobs"
)

func Example() {
	list := jobs.NewList(os.Stdout, jobs.Table, time.UTC)
	for _, text := range []string{
		"ClusterId = 3\nProcId = 0\nOwner = \"bob\"\nRemoteHost = \"slot1_1@n\"\nCompletionDate = 1782000000\nRemoteWallClockTime = 61\nExitBySignal = false\nExitCode = 2\nCmd = \"/bin/make\"",
		"ClusterId = 4\nProcId = 0\nOwner = \"eve\"\nRemoteHost = \"slot1_2@n\"\nCompletionDate = 1782000001\nHoldReason = \"no disk\"\nCmd = \"/bin/dd\"",
	} {
		ad, _ := classad.ParseAd(text, classad.Old)
		if err := list.Show(ad); err != nil {
			return
		}
	}
	_ = list.Close()
	// Output:
	// ID   OWNER  SLOT       ENDED                WALL   END       CMD
	// 3.0  bob    slot1_1@n  2026-06-21 00:00:00  61 s   status 2  /bin/make
	// 4.0  eve    slot1_2@n  2026-06-21 00:00:01  0.0 s  held      /bin/dd
}
