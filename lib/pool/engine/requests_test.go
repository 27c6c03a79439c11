// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"testing"

	"github.com/execpoint/execpoint/lib/ep"
)

// A reply goes to the peer that asked, whatever its number is: one to somebody
// else with the same number is not taken, and one to a peer that waits no more is
// nobody else's.
func TestRepliesGoToWhoAsked(t *testing.T) {
	t.Parallel()
	r := NewRequests(nil)
	for _, before := range []uint64{0, 1 << 61, 1<<62 - 1, 1 << 62, 1<<63 - 1, 1 << 63, 1<<64 - 3} {
		r.last = before
		ref, reply := r.New()
		for _, by := range []ep.Asker{ep.Nobody, ep.OwnQueue, ep.ControlSocket, ep.Reload} {
			if r.Deliver(ep.Reply{Ref: ep.Ref{By: by, N: ref.N}}) {
				t.Errorf("the reply %d to %v is taken for a peer's", ref.N, by)
			}
		}
		if len(reply) > 0 || !r.Waiting(ref) {
			t.Fatalf("%v has somebody else's reply", ref)
		}
		if !r.Deliver(ep.Reply{Ref: ref, DrainID: "mine"}) {
			t.Errorf("the reply to %v is not taken", ref)
		}
		select {
		case got := <-reply:
			if got.DrainID != "mine" {
				t.Errorf("%v got %+v", ref, got)
			}
		default:
			t.Errorf("%v got nothing", ref)
		}
		if r.Drop(ref); !r.Deliver(ep.Reply{Ref: ref}) {
			t.Errorf("a late reply to %v is left to others", ref)
		}
	}
}
