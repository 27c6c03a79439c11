// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/policy"
)

// What programs say later is told at once, and the policy that reads it is asked; but
// nothing is told before the first update.
func TestAbilitiesFound(t *testing.T) {
	t.Parallel()
	for offset, want := range map[string][]time.Duration{
		"0": {0, 100 * time.Second, 400 * time.Second},
		"7": {7 * time.Second, 100 * time.Second, 400 * time.Second},
	} {
		s := newStage(t, 1, static1+"UPDATE_OFFSET = "+offset+"\nUPDATE_INTERVAL = 300\nIS_OWNER = HasGopher =!= true\n")
		u := s.watchUpdates()
		found := func(gopher bool) {
			inv := *s.inv
			inv.Attrs = inv.Attrs.Clone()
			inv.Attrs.SetBool("HasGopher", gopher)
			s.step(AbilitiesFound{Inventory: &inv})
			s.step(Tick{})
		}
		reconfigured := s.eng.DaemonAd(nil)
		s.run(time.Second)
		if offset != "0" {
			found(false)
		}
		s.run(99 * time.Second)
		if got := s.pair(slot1); got != policy.OwnerIdle {
			t.Errorf("offset %s: %v without it", offset, got)
		}
		found(true)
		if got := s.pair(slot1); got != policy.UnclaimedIdle {
			t.Errorf("offset %s: %v with it", offset, got)
		}
		if has, _ := s.eng.PublicAd(slot1).EvalBool("HasGopher", nil); !has {
			t.Errorf("offset %s: the ad does not show it", offset)
		}
		s.run(310 * time.Second)
		if d := cmp.Diff(want, u.all); d != "" {
			t.Errorf("offset %s: %s", offset, d)
		}
		const reread = "DaemonLastReconfigTime"
		was, _ := reconfigured.EvalInt(reread, nil)
		if is, _ := s.eng.DaemonAd(nil).EvalInt(reread, nil); is != was {
			t.Errorf("offset %s: %s went from %d to %d", offset, reread, was, is)
		}
	}
}
