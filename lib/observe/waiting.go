// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import "time"

// patience is how long something may take before it is said that it is waited
// for: a person who looks wonders after a second.
const patience = 500 * time.Millisecond

// Waiting has say called, by another goroutine, unless the function it returns
// is called soon. That function waits for a say that is under way.
func Waiting(say func()) (over func()) {
	said := make(chan struct{})
	t := time.AfterFunc(patience, func() {
		defer close(said)
		say()
	})
	return func() {
		if !t.Stop() {
			<-said
		}
	}
}
