// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"testing"

	"github.com/execpoint/execpoint/lib/policy"
)

// A slot that found no more work of its own gives an idle claim back at once,
// and is refused while there is a job.
func TestWorkEnded(t *testing.T) {
	t.Parallel()
	busy := newPlay(t)
	busy.busy()
	busy.step(WorkEnded{Claim: busy.held})
	if got := busy.pair(theSlot); got != policy.ClaimedBusy {
		t.Errorf("with a job the slot is %v, want it as it was", got)
	}

	idle := newPlay(t)
	idle.claimed()
	idle.step(WorkEnded{Claim: idle.held})
	if got := idle.pair(theSlot); got.State == policy.Claimed {
		t.Errorf("without one it is %v, want the claim gone", got)
	}
}
