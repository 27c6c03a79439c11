// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package progress_test

import (
	"os"
	"time"

	"github.com/execpoint/execpoint/lib/local"
	"github.com/execpoint/execpoint/lib/tool/progress"
)

func Example() {
	r := progress.Lines(os.Stdout)
	r.Begin(3, 1, "hello.sub")
	r.Change(local.Change{What: "started", Slot: "slot1_1"})
	r.Change(local.Change{What: "completed", Detail: "exited with status 0", Wall: 2 * time.Second})
	r.End(local.Counts{Total: 1, Done: 1}, 3*time.Second, "")
	// Output:
	// cluster 3: 1 job from hello.sub
	// 0.0 started on slot1_1
	// 0.0 done: exited with status 0 after 2.0 s
	// 1 job: 1 done in 3.0 s
}
