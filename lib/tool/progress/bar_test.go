// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package progress

import (
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/local"
	"github.com/execpoint/execpoint/lib/tool/words"
)

// TestBar draws the progress in terminals of every width: it never takes more than
// there is, and what matters least goes first.
func TestBar(t *testing.T) {
	t.Parallel()
	c := local.Counts{Total: 1234, Done: 617, Running: 16, Idle: 600, Held: 1}
	const elapsed = 10 * time.Minute
	for width, want := range map[int]string{
		200: "[############------------] 617/1234 done, 16 running, 600 idle, 1 held, about 9 min 59 s left",
		80:  "[#####------] 617/1234 done, 16 running, 600 idle, 1 held, about 9 min 59 s left",
		70:  "617/1234 done, 16 running, 600 idle, 1 held, about 9 min 59 s left",
		60:  "[#######-------] 617/1234 done, 16 running, 600 idle, 1 held",
		40:  "617/1234 done, 16 running, 600 idle",
		20:  "617/1234 done",
		5:   "617/1",
		0:   "",
		-1:  "",
	} {
		if got := bar(c, elapsed, width); got != want {
			t.Errorf("in %d columns\n%s, want\n%s", width, got, want)
		}
	}
	for width := range 120 {
		if got := bar(c, elapsed, width); words.Columns(got) > width {
			t.Errorf("in %d columns: %s", width, got)
		}
	}
	if got, want := bar(local.Counts{}, 0, 80), "[------------------------] 0/0 done, 0 running, 0 idle"; got != want {
		t.Errorf("no jobs: %s", got)
	}
}
