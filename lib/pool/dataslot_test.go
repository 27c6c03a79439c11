// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/claim"
)

// The holder of an idle claim has its slot made a data slot, and keeps the claim: its id
// and its session are those that it had.
func TestDataSlotCommand(t *testing.T) {
	bubble(t, inBits, func(t *testing.T, s *station) {
		offered := s.offered("slot1")
		p := s.peer(offered)
		held := p.claim(offered, smallJob+"RequestCpus = 2\n")
		if held.code == 0 {
			t.Fatal(held.code)
		}
		s.asker = security.Peer{User: security.SubmitSide, Method: security.MethodMatch}
		ask := func(command, job string) (result, why string, id claim.ID, cpus int64) {
			t.Helper()
			return s.remade(s.handle(563, "", func(c *cedar.Conn) {
				c.PutAd(adOf(t, command), cedar.AdOptions{})
				c.PutAd(adOf(t, smallJob+job), cedar.AdOptions{})
			}))
		}
		mine := "ClaimId = " + quoted(held.ids[0].Wire()) + "\nDesiredSlotPrefix = "
		forged := held.ids[0]
		forged.Secret += "x"
		const before = "slot1 Unclaimed/Idle, slot1_1 Claimed/Idle"
		for _, tt := range []struct{ command, job, result, why string }{
			{"ClaimId = " + quoted(forged.Wire()), "", "InvalidRequest", "can't find slot with given claim ID"},
			{mine + `"../x"`, "", "InvalidRequest", `"../x" cannot begin the name of a slot`},
			{mine + `"data"`, "RequestCpus = 3\n", "Failure", "command_data_slot(): create_dslot() failed"},
			{"Claim = 1", "", "", "claims.COMMAND_DATA_SLOT ClaimId: invalid: want a claim id"},
		} {
			if result, why, _, _ := ask(tt.command, tt.job); result != tt.result || !strings.Contains(why, tt.why) {
				t.Errorf("%.20s %s: %s: %s", tt.command, tt.job, result, why)
			}
			if got := strings.Join(s.slots(), ", "); got != before {
				t.Fatalf("after a refusal: %s", got)
			}
		}
		result, why, id, cpus := ask(mine+`"data"`, "RequestCpus = 1\n")
		if result != "Success" || id != held.ids[0] || cpus != 1 {
			t.Fatalf("%s: %s, %v, %d processors", result, why, id, cpus)
		}
		if got := strings.Join(s.slots(), ", "); got != "data1_2 Claimed/Idle, slot1 Unclaimed/Idle" {
			t.Errorf("the slots are %s", got)
		}
		if !strings.Contains(s.log.String(), `msg="command_data_slot(): authenticated via MATCH." cat=D_TEST`) {
			t.Error("the log does not say how the asker was authenticated")
		}
		if strings.Contains(s.log.String(), keyOf(held.ids[0])) {
			t.Error("the log has a secret")
		}
		pass(time.Minute) // after which sessions of slots that are gone have ended
		if got := p.aboutClaim(443, id.Public, id); got != "" {
			t.Errorf("released with %q", got)
		}
		if got := strings.Join(s.slots(), ", "); got != "slot1 Unclaimed/Idle" {
			t.Errorf("after the release: %s", got)
		}
	})
}
