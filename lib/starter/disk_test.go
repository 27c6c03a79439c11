// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/sandbox"
)

// However often an owner wants reports and however many files a job has, the looks
// at its scratch directory take less than 1 % of a core, and each figure is the
// newest there is.
func TestWalksTakeLittle(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		every, walk time.Duration
		most        time.Duration // the age of a figure
	}{
		{"a report each second, many files", time.Second, 800 * time.Millisecond, 82 * time.Second},
		{"a report each second, some files", time.Second, 30 * time.Millisecond, 4 * time.Second},
		{"usual reports, some files", 5 * time.Minute, 30 * time.Millisecond, 0},
		{"usual reports, many files", 5 * time.Minute, 2 * time.Second, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var d diskLooks
				var is sandbox.Usage
				var walked time.Duration
				var fresh time.Time
				began := time.Now()
				walk := func() sandbox.Usage {
					time.Sleep(tt.walk)
					walked += tt.walk
					fresh = time.Now()
					return sandbox.Usage{Files: is.Files + 1}
				}
				for time.Since(began) < 4*time.Hour {
					is = d.look(walk, is)
					if age := time.Since(fresh); age > tt.most {
						t.Fatalf("the figure is %v old", age)
					}
					time.Sleep(tt.every)
				}
				if all := time.Since(began); walked > all/restOfWalk || is.Files < 40 {
					t.Errorf("%d walks took %v of %v", is.Files, walked, all)
				}
			})
		})
	}
}
