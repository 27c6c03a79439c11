// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package clock

import "time"

// Longer is the pause that follows one of that length (0 is none yet) where a
// listener cannot accept: out of descriptors or of memory, which those that are
// served will give back.
func Longer(pause time.Duration) time.Duration {
	return min(max(2*pause, 5*time.Millisecond), time.Second)
}
