// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"testing"
	"testing/synctest"
	"time"
)

// What takes long is said once, within a second; what does not, never.
func TestWaiting(t *testing.T) {
	t.Parallel()
	for took, want := range map[time.Duration]int{0: 0, 400 * time.Millisecond: 0, time.Second: 1, time.Hour: 1} {
		synctest.Test(t, func(t *testing.T) {
			said := 0
			began := time.Now()
			over := Waiting(func() {
				if said++; time.Since(began) > time.Second {
					t.Errorf("it is said after %v", time.Since(began))
				}
			})
			time.Sleep(took)
			over()
			synctest.Wait()
			if said != want {
				t.Errorf("after %v it was said %d times, want %d", took, said, want)
			}
		})
	}
}
