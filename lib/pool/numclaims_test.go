// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/pool/pooltest"
)

const threeClaims = "CONSUMPTION_POLICY = true\nNUM_CLAIMS = 3\n"

// A negotiator is told of as many ids as there are claims to give, each with a
// session of its own that ends with it; nobody else is.
func TestClaimIDsOfAConsumptionPolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cm := pooltest.NewCollector("25.14.0")
		r := newRig(t, onePart+threeClaims, cm, nil)
		if got := len(r.sessions.IDs()); got != 4 {
			t.Fatalf("%d sessions at the start, want 3 and that of the slot's own id", got)
		}
		listed := func() []string {
			t.Helper()
			time.Sleep(2 * time.Second)
			synctest.Wait()
			m, _ := cm.Ad("Machine/slot1@host.example")
			list := strings.Fields(text(t, m.Private, "ClaimIdList"))
			if own := text(t, m.Private, "ClaimId"); own == "" || strings.Contains(strings.Join(list, " "), own) {
				t.Errorf("the slot's own id is %.60q", own)
			}
			for _, ad := range []string{text(t, m.Private, "NumClaims"), text(t, m.Public, "NumClaims")} {
				if ad != "3" || len(list) != 3 {
					t.Errorf("NumClaims = %s, %d ids", ad, len(list))
				}
			}
			if _, ok := m.Public.Lookup("ClaimIdList"); ok {
				t.Error("the public ad has the list")
			}
			return list
		}
		first := listed()
		for i, one := range first {
			id, err := claim.ParseID(one)
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := r.sessions.Get(id.Public); !ok {
				t.Errorf("the %d. id has no session", i+1)
			}
		}
		taken, err := claim.ParseID(first[1])
		if err != nil {
			t.Fatal(err)
		}
		if reply := r.claimBy(taken, ""); reply.Granted == nil || reply.Granted.Claim != taken {
			t.Fatalf("%+v", reply)
		}
		next := listed()
		if next[0] != first[0] || next[1] == first[1] || next[2] != first[2] {
			t.Error("not one id was replaced, and that which was spent")
		}
		time.Sleep(2 * security.ClaimLinger)
		if _, ok := r.sessions.Get(taken.Public); !ok {
			t.Error("the session of the claim is gone while the claim lasts")
		}
		if got := len(r.sessions.IDs()); got != 6 { // with the id by which the d-slot can be claimed
			t.Errorf("%d sessions", got)
		}
	})
}

// A cycle's requests come at once, under the sessions of their ids, and each
// makes its own part; what was spent or refused is none any more.
func TestRequestsOfOneCycle(t *testing.T) {
	bubble(t, inBits+threeClaims, func(t *testing.T, s *station) {
		ids := append([]claim.ID(nil), s.view("slot1").FurtherClaims...)
		p := s.peer(ids...)
		for i, id := range ids[:2] {
			if g := p.claim(id, smallJob); g.code != 1 || len(g.ids) != 1 || g.ids[0] != id {
				t.Fatalf("claim %d: %+v", i, g)
			}
		}
		if g := p.claim(ids[2], smallJob+"RequestCpus = 99\n"); g.code != 0 {
			t.Errorf("answer %d to what does not fit", g.code)
		}
		for _, id := range ids {
			if g := p.claim(id, smallJob); g.code != 0 {
				t.Errorf("answer %d to an id that is spent", g.code)
			}
		}
		if got := strings.Join(s.slots(), ", "); got != "slot1 Unclaimed/Idle, slot1_1 Claimed/Idle, slot1_2 Claimed/Idle" {
			t.Errorf("slots are %s", got)
		}
		for _, id := range append(ids, s.view("slot1").FurtherClaims...) {
			if strings.Contains(s.log.String(), keyOf(id)) {
				t.Error("the log has an id's secret")
			}
		}
	})
}
