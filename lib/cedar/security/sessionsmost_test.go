// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package security

import (
	"fmt"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/clock"
)

// A store without a number of its own keeps the usual one of what peers
// negotiated: a tool comes back with its session after others were there.
func TestSessionsByDefault(t *testing.T) {
	t.Parallel()
	for most, want := range map[int]int{0: 50, 7: 7} {
		s := NewSessions(clock.NewFake(time.Unix(1_700_000_000, 0)), most)
		for i := range 50 {
			if err := s.Add(&Session{ID: fmt.Sprint(i), Peer: Peer{User: "a@b", Method: "FS"}, Negotiated: true}, time.Minute); err != nil {
				t.Fatal(err)
			}
		}
		if s.Len() != want {
			t.Errorf("of 50 sessions a store for %d keeps %d, want %d", most, s.Len(), want)
		}
	}
}
