// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/claim"
)

// coalesce asks for one slot in place of those of the ids, for a small job that
// asks for more. cpus is what the slot of the answer has.
func (s *station) coalesce(job string, ids ...claim.ID) (result, why string, id claim.ID, cpus int64) {
	s.t.Helper()
	var list []string
	for _, id := range ids {
		list = append(list, id.Wire())
	}
	conn, done := s.handle(522, "", func(c *cedar.Conn) {
		c.PutAd(adOf(s.t, "ClaimIdList = "+quoted(strings.Join(list, ", "))), cedar.AdOptions{})
		c.PutAd(adOf(s.t, smallJob+job), cedar.AdOptions{})
	})
	return s.remade(conn, done)
}

// remade reads the answer to a command that makes a slot of others.
func (s *station) remade(conn *cedar.Conn, done <-chan error) (result, why string, id claim.ID, cpus int64) {
	s.t.Helper()
	answer, err := conn.Ad(cedar.AdOptions{})
	if err != nil {
		return "", (<-done).Error(), claim.ID{}, 0
	}
	slotAd, err := conn.Ad(cedar.AdOptions{})
	if err = errors.Join(err, conn.EndOfMessage(), <-done); err != nil {
		s.t.Fatal(err)
	}
	result, _ = answer.EvalString("Result", nil)
	why, _ = answer.EvalString("ErrorString", nil)
	text, _ := answer.EvalString("ClaimId", nil)
	id, _ = claim.ParseID(text)
	cpus, _ = slotAd.EvalInt("Cpus", nil)
	if (cpus != 0) != (result == "Success") {
		s.t.Errorf("%s with the ad of a slot of %d processors", result, cpus)
	}
	if _, shown := slotAd.Lookup("ClaimId"); shown {
		s.t.Error("the slot's ad has the claim id")
	}
	return
}

// One slot of two for a job that wants both, under a new id with a session.
func TestCoalesceCommand(t *testing.T) {
	bubble(t, inBits, func(t *testing.T, s *station) {
		first := s.offered("slot1")
		one := s.peer(first).claim(first, smallJob)
		second := s.offered("slot1")
		two := s.peer(second).claim(second, smallJob)
		if one.code == 0 || two.code == 0 {
			t.Fatal(one.code, two.code)
		}
		ask := func(job string, ids ...claim.ID) (result, why string, id claim.ID, cpus int64) {
			return s.coalesce(job, ids...)
		}
		if r, why, _, _ := ask("RequestCpus = 5\n", one.ids[0], two.ids[0]); r != "Failure" || why != "Unable to coalesce any slots" {
			t.Errorf("%s: %s", r, why)
		}
		if got := strings.Join(s.slots(), ", "); got != "slot1 Unclaimed/Idle, slot1_1 Claimed/Idle, slot1_2 Claimed/Idle" {
			t.Errorf("after a refusal: %s", got)
		}
		r, why, id, cpus := ask("RequestCpus = 2\n", one.ids[0], two.ids[0])
		if r != "Success" || cpus != 2 || id == one.ids[0] || id == two.ids[0] {
			t.Fatalf("%s: %s, %d processors", r, why, cpus)
		}
		if got := strings.Join(s.slots(), ", "); got != "slot1 Unclaimed/Idle, slot1_1 Claimed/Idle" {
			t.Errorf("%s", got)
		}
		if r, why, _, _ := ask("", one.ids[0]); r != "InvalidRequest" || why != "can't find slot with given claim ID" {
			t.Errorf("%s: %s", r, why)
		}
		// The new id's own session lets its holder in.
		if got := s.peer(id).aboutClaim(443, id.Public, id); got != "" {
			t.Errorf("released with %q", got)
		}
		if got := strings.Join(s.slots(), ", "); got != "slot1 Unclaimed/Idle" {
			t.Errorf("after the release: %s", got)
		}
	})
}

// COALESCE_FAILURE_MODE has condor_now fail as HTCondor's own test of it wants.
// Whatever it is, no slot is lost.
func TestCoalesceFailures(t *testing.T) {
	t.Parallel()
	const apart, joined = "slot1 Unclaimed/Idle, slot1_1 Claimed/Idle, slot1_2 Claimed/Idle", "slot1 Unclaimed/Idle, slot1_1 Claimed/Idle"
	for mode, tt := range map[string]struct {
		result, why string
		id          bool
		took        time.Duration
		slots       string
		deactivated string
	}{
		"0": {"Success", "", true, 0, joined, "Start = true"},
		"1": {"", "claims.COALESCE_SLOTS COALESCE_FAILURE_MODE: expired: it is 1: the access point has waited in vain", false, 21 * time.Second, apart, "Start = true"},
		"2": {"Failure", "FAILURE INJECTION: 2", false, 0, apart, "Start = true"},
		"3": {"InvalidState", "FAILURE INJECTION: 3", false, 0, apart, "Start = true"},
		"4": {"Success", "", false, 0, joined, "Start = true"},
		"5": {"Success", "", true, 0, joined, ""},
		"6": {"Success", "", true, 0, joined, "Start = true"},
	} {
		fails := func(t *testing.T, s *station) {
			first := s.offered("slot1")
			one := s.peer(first).claim(first, smallJob)
			second := s.offered("slot1")
			p := s.peer(second)
			two := p.claim(second, smallJob)
			if one.code == 0 || two.code == 0 {
				t.Fatal(one.code, two.code)
			}
			if got := p.aboutClaim(403, second.Public, two.ids[0]); got != tt.deactivated {
				t.Errorf("deactivated with %q, want %q", got, tt.deactivated)
			}
			begun := time.Now()
			result, why, id, _ := s.coalesce("RequestCpus = 2\n", one.ids[0], two.ids[0])
			if result != tt.result || why != tt.why || id.IsZero() == tt.id {
				t.Errorf("%s: %s, id %v", result, why, id)
			}
			if took := time.Since(begun); took != tt.took {
				t.Errorf("answered after %v, want %v", took, tt.took)
			}
			if got := strings.Join(s.slots(), ", "); got != tt.slots {
				t.Errorf("%s, want %s", got, tt.slots)
			}
			// A schedd that learned of no claim keeps none alive: all of it is free again.
			pass(time.Hour)
			synctest.Wait()
			if got := strings.Join(s.slots(), ", "); got != "slot1 Unclaimed/Idle" {
				t.Errorf("an hour later: %s", got)
			}
		}
		t.Run(mode, func(t *testing.T) { bubble(t, inBits+"COALESCE_FAILURE_MODE = "+mode+"\n", fails) })
	}
}
