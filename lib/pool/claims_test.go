// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/ep"
	"github.com/execpoint/execpoint/lib/pool"
	"github.com/execpoint/execpoint/lib/pool/engine"
)

const twoStatic = `
SLOT_TYPE_1 = 50%
SLOT_TYPE_1_PARTITIONABLE = false
NUM_SLOTS_TYPE_1 = 2
`

const inBits = `
SLOT_TYPE_1 = 100%
SLOT_TYPE_1_PARTITIONABLE = true
NUM_SLOTS_TYPE_1 = 1
`

// bubble runs a test of a station in a bubble of its own.
func bubble(t *testing.T, text string, f func(t *testing.T, s *station)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStation(t, stationOptions{text: text})
		s.idle()
		f(t, s)
	})
}

// pass lets virtual time go by in the bubble of the test.
func pass(d time.Duration) { <-time.After(d) }

// What a request is answered with, by what it asks for and what the slot is.
func TestRequestForms(t *testing.T) {
	t.Parallel()
	whole := "\nENABLE_CLAIMABLE_PARTITIONABLE_SLOTS = true\n"
	for _, tt := range []struct {
		name, text, job string
		code            int64
		names           []string
		leftover        string // its LastSlotName
		slots           []string
	}{
		{"static", twoStatic, "", 1, []string{"slot1"}, "", []string{"slot1 Claimed/Idle", "slot2 Unclaimed/Idle"}},
		{"static, leftovers asked", twoStatic, "_condor_SEND_LEFTOVERS = true", 1, []string{"slot1"}, "", []string{"slot1 Claimed/Idle", "slot2 Unclaimed/Idle"}},
		{"static, parts asked", twoStatic, "_condor_NUM_DYNAMIC_SLOTS = 3\n_condor_CLAIM_PARTITIONABLE_SLOT = true", 1, []string{"slot1"}, "", []string{"slot1 Claimed/Idle", "slot2 Unclaimed/Idle"}},
		{"no slot ad", twoStatic, "_condor_SEND_CLAIMED_AD = false", 1, nil, "", []string{"slot1 Claimed/Idle", "slot2 Unclaimed/Idle"}},
		{"part", inBits, "", 1, []string{"slot1_1"}, "", []string{"slot1 Unclaimed/Idle", "slot1_1 Claimed/Idle"}},
		{"part with leftovers", inBits, "_condor_SEND_LEFTOVERS = true", 5, []string{"slot1_1"}, "slot1_1@ep.wirev.test", []string{"slot1 Unclaimed/Idle", "slot1_1 Claimed/Idle"}},
		{"leftovers in clear", inBits, "_condor_SEND_LEFTOVERS = true\n_condor_SECURE_CLAIM_ID = false", 3, []string{"slot1_1"}, "slot1_1@ep.wirev.test", []string{"slot1 Unclaimed/Idle", "slot1_1 Claimed/Idle"}},
		{"leftovers not given", inBits + "CLAIM_PARTITIONABLE_LEFTOVERS = false\n", "_condor_SEND_LEFTOVERS = true", 1, []string{"slot1_1"}, "", []string{"slot1 Unclaimed/Idle", "slot1_1 Claimed/Idle"}},
		{"three parts", inBits, "_condor_NUM_DYNAMIC_SLOTS = 3\n_condor_SEND_LEFTOVERS = true", 5, []string{"slot1_1", "slot1_2", "slot1_3"}, "slot1_1@ep.wirev.test",
			[]string{"slot1 Unclaimed/Idle", "slot1_1 Claimed/Idle", "slot1_2 Claimed/Idle", "slot1_3 Claimed/Idle"}},
		{"as many as there are", inBits, "_condor_NUM_DYNAMIC_SLOTS = 9", 1, []string{"slot1_1", "slot1_2", "slot1_3", "slot1_4"}, "",
			[]string{"slot1 Unclaimed/Idle", "slot1_1 Claimed/Idle", "slot1_2 Claimed/Idle", "slot1_3 Claimed/Idle", "slot1_4 Claimed/Idle"}},
		{"less than none", inBits, "_condor_NUM_DYNAMIC_SLOTS = -1", 0, nil, "", []string{"slot1 Unclaimed/Idle"}},
		{"more than anybody has", inBits, "_condor_NUM_DYNAMIC_SLOTS = 1000000000000", 1, []string{"slot1_1", "slot1_2", "slot1_3", "slot1_4"}, "",
			[]string{"slot1 Unclaimed/Idle", "slot1_1 Claimed/Idle", "slot1_2 Claimed/Idle", "slot1_3 Claimed/Idle", "slot1_4 Claimed/Idle"}},
		{"whole, not given", inBits, "_condor_CLAIM_PARTITIONABLE_SLOT = true", 1, []string{"slot1_1"}, "", []string{"slot1 Unclaimed/Idle", "slot1_1 Claimed/Idle"}},
		{"whole", inBits + whole, "_condor_CLAIM_PARTITIONABLE_SLOT = true\n_condor_NUM_DYNAMIC_SLOTS = 0", 1, nil, "", []string{"slot1 Claimed/Idle"}},
		{"whole and a part", inBits + whole, "_condor_CLAIM_PARTITIONABLE_SLOT = true", 1, []string{"slot1_1"}, "", []string{"slot1 Claimed/Idle", "slot1_1 Claimed/Idle"}},
		{"START says no", twoStatic + "START = TARGET.Owner != \"alice\"\n", "", 0, nil, "", []string{"slot1 Unclaimed/Idle", "slot2 Unclaimed/Idle"}},
		{"START says no to a part", inBits + "START = TARGET.Owner != \"alice\"\n", "", 0, nil, "", []string{"slot1 Unclaimed/Idle"}},
		{"too large", inBits, "RequestCpus = 99", 0, nil, "", []string{"slot1 Unclaimed/Idle"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, tt.text, func(t *testing.T, s *station) {
				id := s.offered("slot1")
				p := s.peer(id)
				g := p.claim(id, smallJob+tt.job+"\n")
				if g.code != tt.code {
					t.Fatalf("answer %d, want %d", g.code, tt.code)
				}
				var names []string
				for _, ad := range g.ads {
					name, _ := ad.EvalString("Name", nil)
					names = append(names, strings.TrimSuffix(name, "@ep.wirev.test"))
					for _, private := range []string{"ClaimId", "Capability", "ClaimIdList", "ChildClaimIds"} {
						if _, ok := ad.Lookup(private); ok {
							t.Errorf("%s shows %s", name, private)
						}
					}
				}
				if !slices.Equal(names, tt.names) {
					t.Errorf("slots %v, want %v", names, tt.names)
				}
				if len(g.ids) > 0 && !slices.Contains(tt.names, "slot1_1") && g.ids[0] != id {
					t.Errorf("claim %v, want the id presented", g.ids[0])
				}
				if g.later != nil {
					if last, _ := g.later.EvalString("LastSlotName", nil); last != tt.leftover {
						t.Errorf("LastSlotName = %q, want %q", last, tt.leftover)
					}
					if g.rest != s.offered("slot1") {
						t.Error("the leftovers' id is not the one that is offered")
					}
				}
				if got := s.slots(); !slices.Equal(got, tt.slots) {
					t.Errorf("slots are %v, want %v", got, tt.slots)
				}
				// Taken or refused, the id that was shown is offered no more.
				if !strings.HasPrefix(tt.name, "whole") && s.offered("slot1") == id {
					t.Error("the id is still offered")
				}
				if strings.Contains(s.log.String(), keyOf(id)) {
					t.Error("the log has the id's secret")
				}
			})
		})
	}
}

// ENABLE_CLAIMABLE_PARTITIONABLE_SLOTS holds until a restart, in all of the startd: what
// a reload says of it changes no answer.
func TestWholeClaimsAfterReload(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		before string
		after  bool
		want   []string
	}{
		{"false", true, []string{"slot1 Unclaimed/Idle", "slot1_1 Claimed/Idle"}},
		{"true", false, []string{"slot1 Claimed/Idle", "slot1_1 Claimed/Idle"}},
	} {
		t.Run(tt.before, func(t *testing.T) {
			bubble(t, inBits+"ENABLE_CLAIMABLE_PARTITIONABLE_SLOTS = "+tt.before+"\n", func(t *testing.T, s *station) {
				settings := s.Settings(t)
				settings.Claims.WholeClaims = tt.after
				s.pool.Reconfigure(settings)
				g := s.peer(s.offered("slot1")).claim(s.offered("slot1"), smallJob+"_condor_CLAIM_PARTITIONABLE_SLOT = true\n")
				if got := s.slots(); g.code != 1 || !slices.Equal(got, tt.want) {
					t.Errorf("answer %d, slots are %v, want %v", g.code, got, tt.want)
				}
			})
		})
	}
}

// An id that was refused is dead, and the slot is offered by another one at
// once.
func TestRefusedIDIsReplaced(t *testing.T) {
	bubble(t, twoStatic, func(t *testing.T, s *station) {
		s.Step(t, ep.DrainRequested{Reason: "no more"})
		old := s.offered("slot1")
		p := s.peer(old)
		if g := p.claim(old, smallJob); g.code != 0 {
			t.Fatalf("answer %d while draining", g.code)
		}
		s.Step(t, ep.DrainCancelled{})
		s.idle()
		if g := p.claim(old, smallJob); g.code != 0 {
			t.Error("the refused id was taken")
		}
		fresh := s.offered("slot1")
		p.know(fresh)
		if g := p.claim(fresh, smallJob); g.code != 1 || g.ids[0] != fresh {
			t.Errorf("answer %d to the new id", g.code)
		}
	})
}

// A shutdown takes no claims.
func TestNoClaimsWhileShuttingDown(t *testing.T) {
	bubble(t, twoStatic, func(t *testing.T, s *station) {
		one, two := s.offered("slot1"), s.offered("slot2")
		p := s.peer(one, two)
		if g := p.claim(one, smallJob); g.code != 1 {
			t.Fatal(g.code)
		}
		s.Step(t, ep.ShutdownRequested{Manner: ep.Peaceful})
		if g := p.claim(two, smallJob); g.code != 0 {
			t.Errorf("answer %d", g.code)
		}
	})
}

// What every command about a claim does with ids of all kinds.
func TestCommandsAboutClaims(t *testing.T) {
	t.Parallel()
	const yes, no = "Start = true", "Start = false"
	for _, tt := range []struct {
		command                        int
		unknown, forged, offered, mine string
		after                          string // the claimed slot after the right id
	}{
		{401, "0", "0", "0", "", "slot1 Claimed/Idle"},
		{402, "0", "0", "0", "", "slot1 Claimed/Idle"},
		{403, no, no, no, yes, "slot1 Claimed/Idle"},
		{404, no, no, no, yes, "slot1 Claimed/Idle"},
		{413, no, no, no, yes, "slot1 Claimed/Idle"},
		{554, no, no, no, yes, "slot1 Claimed/Idle"},
		{561, no, no, no, yes, "slot1 Claimed/Idle"},
		{441, "", "", "", "", "slot1 Claimed/Idle"},
		{443, "0", "0", "0", "", "slot1 Unclaimed/Idle"},
	} {
		bubbled := func(t *testing.T, s *station) {
			mine, other := s.offered("slot1"), s.offered("slot2")
			p := s.peer(mine, other)
			if g := p.claim(mine, smallJob); g.code != 1 {
				t.Fatal(g.code)
			}
			unknown := claim.ID{Public: mine.Public + "9", Secret: mine.Secret}
			forged := mine
			last := forged.Secret[len(forged.Secret)-1] ^ 1
			forged.Secret = forged.Secret[:len(forged.Secret)-1] + claim.Secret(last)
			for _, x := range []struct {
				what string
				id   claim.ID
				want string
			}{
				{"an id nobody has", unknown, tt.unknown}, {"a wrong secret", forged, tt.forged},
				{"no id", claim.ID{}, tt.unknown}, {"an offered id", other, tt.offered}, {"the claim", mine, tt.mine},
			} {
				if got := p.aboutClaim(tt.command, other.Public, x.id); got != x.want {
					t.Errorf("%d with %s: %q, want %q", tt.command, x.what, got, x.want)
				}
				if x.id != mine && s.slots()[0] != "slot1 Claimed/Idle" {
					t.Fatalf("%d with %s: %v", tt.command, x.what, s.slots())
				}
			}
			synctest.Wait()
			if got := s.slots()[0]; got != tt.after {
				t.Errorf("%s, want %s", got, tt.after)
			}
			for _, id := range []claim.ID{mine, other, forged} {
				if strings.Contains(s.log.String(), keyOf(id)) {
					t.Error("the log has a secret")
				}
			}
		}
		t.Run(itoa(tt.command), func(t *testing.T) { bubble(t, twoStatic, bubbled) })
	}
}

// pending requests the claim of a slot that somebody else has, and returns
// the connection on which the answer will come.
func (p *peer) pending(id claim.ID, job string) *cedar.Conn {
	p.s.t.Helper()
	conn := p.open(442, id.Public)
	if err := putRequest(conn, id, adOf(p.s.t, job)); err != nil {
		p.s.t.Fatal(err)
	}
	synctest.Wait()
	return conn
}

// A request for a slot whose claim must end first is answered when it has. As
// long as it waits it can be taken back.
func TestPreemptingRequest(t *testing.T) {
	t.Parallel()
	const ranked = twoStatic + "RANK = TARGET.Prio\nMAXJOBRETIREMENTTIME = 0\n"
	for _, tt := range []struct {
		name string
		prio string
		do   func(t *testing.T, s *station, p *peer, conn *cedar.Conn, id claim.ID)
		want int // who has the slot after all: 1 the first, 2 the second
	}{
		{"granted for its rank", "2", func(t *testing.T, s *station, _ *peer, conn *cedar.Conn, _ claim.ID) {
			g, err := readGrants(conn)
			if err != nil || g.code != 1 {
				t.Errorf("%d, %v", g.code, err)
			}
		}, 2},
		// The negotiator prefers the user, or it would not have matched.
		{"granted for its user", "1", func(t *testing.T, s *station, _ *peer, conn *cedar.Conn, _ claim.ID) {
			g, err := readGrants(conn)
			if err != nil || g.code != 1 {
				t.Errorf("%d, %v", g.code, err)
			}
		}, 2},
		{"not good enough", "0", func(t *testing.T, s *station, _ *peer, conn *cedar.Conn, _ claim.ID) {
			g, err := readGrants(conn)
			if err != nil || g.code != 0 {
				t.Errorf("%d, %v", g.code, err)
			}
		}, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, ranked, func(t *testing.T, s *station) {
				first := s.offered("slot1")
				p := s.peer(first)
				if g := p.claim(first, smallJob+"Prio = 1\n"); g.code != 1 {
					t.Fatal(g.code)
				}
				second := s.offered("slot1")
				p.know(second)
				conn := p.pending(second, smallJob+"Prio = "+tt.prio+"\n")
				defer conn.Close()
				tt.do(t, s, p, conn, second)
				synctest.Wait()
				v := s.view("slot1")
				if want := []claim.ID{first, second}[tt.want-1]; !v.Claimed || v.Claim != want {
					t.Errorf("the slot has %v, %v", v.Claimed, v.Claim)
				}
			})
		})
	}
}

// While a job keeps the slot a request waits, and whoever hangs up or gives it
// back wants it no more.
func TestWaitingRequestIsWithdrawn(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		end  func(t *testing.T, s *station, p *peer, conn *cedar.Conn, id claim.ID)
		got  int64 // the answer to the request, -1 for none
		has  int
	}{
		{"answered when the job is gone", func(t *testing.T, s *station, _ *peer, conn *cedar.Conn, _ claim.ID) {
			pass(10 * time.Minute)
			s.endJob()
		}, 1, 2},
		{"hung up", func(t *testing.T, s *station, _ *peer, conn *cedar.Conn, _ claim.ID) { _ = conn.Close() }, -1, 1},
		{"given back", func(t *testing.T, s *station, p *peer, _ *cedar.Conn, id claim.ID) {
			if got := p.aboutClaim(443, id.Public, id); got != "" {
				t.Errorf("RELEASE_CLAIM was answered %q", got)
			}
		}, -1, 1},
		{"talks out of turn", func(t *testing.T, s *station, _ *peer, conn *cedar.Conn, _ claim.ID) {
			conn.PutInt(1)
			_ = conn.EndMessage()
		}, -1, 1},
		{"waited half an hour", func(*testing.T, *station, *peer, *cedar.Conn, claim.ID) { pass(31 * time.Minute) }, -1, 1},
		{"another with a better rank", func(t *testing.T, s *station, p *peer, _ *cedar.Conn, _ claim.ID) {
			third := s.offered("slot1")
			p.know(third)
			other := p.pending(third, smallJob+"Prio = 3\n")
			t.Cleanup(func() { _ = other.Close() })
		}, 0, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, twoStatic+"RANK = TARGET.Prio\nMAXJOBRETIREMENTTIME = 24*3600\nCLAIM_WORKLIFE = -1\n", func(t *testing.T, s *station) {
				first := s.offered("slot1")
				p := s.peer(first)
				if g := p.claim(first, smallJob+"Prio = 1\n"); g.code != 1 {
					t.Fatal(g.code)
				}
				s.startJob(first, smallJob+"Prio = 1\nJobLeaseDuration = 1000000\n")
				second := s.offered("slot1")
				p.know(second)
				conn := p.pending(second, smallJob+"Prio = 2\n")
				defer conn.Close()
				if got := s.slots()[0]; got != "slot1 Claimed/Retiring" {
					t.Fatal(got)
				}
				tt.end(t, s, p, conn, second)
				pass(6 * time.Second) // until the policy is looked at again
				synctest.Wait()
				if v := s.view("slot1"); !v.Claimed || v.Claim != []claim.ID{first, second}[tt.has-1] {
					t.Errorf("%v %v", v.Pair, v.Claim)
				}
				if tt.got != 0 && tt.has == 1 && s.slots()[0] != "slot1 Claimed/Busy" {
					t.Errorf("the job does not go on: %s", s.slots()[0])
				}
				g, err := readGrants(conn)
				if tt.got < 0 && err == nil || tt.got >= 0 && (err != nil || g.code != tt.got) {
					t.Errorf("answered %d, %v", g.code, err)
				}
			})
		})
	}
}

// startJob starts a job under a claim, as a shadow would have it.
func (s *station) startJob(id claim.ID, job string) {
	s.t.Helper()
	s.Step(s.t, ep.ActivateRequested{Ref: ep.Ref{By: ep.OwnQueue, N: 7}, Claim: id, Job: adOf(s.t, job)})
	started := effectsOf[ep.StartStarter](s)
	if len(started) == 0 {
		s.t.Fatalf("no starter: %+v", effectsOf[ep.Reply](s))
	}
	act := started[len(started)-1].Activation
	s.Step(s.t, ep.StarterStarted{Activation: act})
	s.Step(s.t, ep.JobRunning{Activation: act})
}

// endJob ends the job that was started last.
func (s *station) endJob() {
	s.t.Helper()
	started := effectsOf[ep.StartStarter](s)
	act := started[len(started)-1].Activation
	s.Step(s.t, ep.JobEnded{Activation: act})
	s.Step(s.t, ep.StarterExited{Activation: act})
	synctest.Wait()
}

// Claims whose schedd cannot be told of them are given back, and dynamic slots
// go away with them.
func TestGrantThatCannotBeTold(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, want string }{
		{"static", twoStatic, "slot1 Unclaimed/Idle"},
		{"parts", inBits, "slot1 Unclaimed/Idle"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			bubble(t, tt.text, func(t *testing.T, s *station) {
				id := s.offered("slot1")
				p := s.peer(id)
				conn := p.open(442, id.Public)
				if err := putRequest(conn, id, adOf(t, smallJob+"_condor_NUM_DYNAMIC_SLOTS = 3\n")); err != nil {
					t.Fatal(err)
				}
				_ = conn.Close()
				synctest.Wait()
				if len(effectsOf[ep.ClaimEnded](s)) == 0 {
					t.Error("nothing was granted and given back")
				}
				got := s.slots()
				if got[0] != tt.want || strings.Contains(strings.Join(got, " "), "slot1_") {
					t.Errorf("slots are %v", got)
				}
				if len(s.dialed) != 0 {
					t.Error("the schedd was told of a claim that it never had")
				}
			})
		})
	}
}

// Dynamic slots make room for a request of the same schedd.
func TestRequestEvicts(t *testing.T) {
	bubble(t, inBits, func(t *testing.T, s *station) {
		id := s.offered("slot1")
		p := s.peer(id)
		g := p.claim(id, smallJob+"RequestCpus = 4\n_condor_SEND_LEFTOVERS = true\n")
		if g.code != 5 {
			t.Fatal(g.code)
		}
		p.know(g.rest)
		conn := p.open(442, g.rest.Public)
		defer conn.Close()
		if err := putRequest(conn, g.rest, adOf(t, smallJob+"RequestCpus = 3\n"), g.ids[0]); err != nil {
			t.Fatal(err)
		}
		got, err := readGrants(conn)
		if err != nil || got.code != 1 || len(got.ads) != 1 {
			t.Fatalf("%+v, %v", got.code, err)
		}
		if n, _ := got.ads[0].EvalInt("Cpus", nil); n != 3 {
			t.Errorf("%d processors", n)
		}
	})
}

// A command is under its level: the session of a claim is no right to
// administer.
func TestClaimIsNoRightToAdminister(t *testing.T) {
	bubble(t, twoStatic, func(t *testing.T, s *station) {
		id := s.offered("slot1")
		p := s.peer(id)
		if g := p.claim(id, smallJob); g.code != 1 {
			t.Fatal(g.code)
		}
		for _, command := range []int{447, 474, 465, 475, 512, 513, 562} {
			to, err := cedar.ParseSinful(ourAddress)
			if err != nil {
				t.Fatal(err)
			}
			conn, _, err := p.Command(t.Context(), to, command, sessionOf(id))
			if err == nil {
				_, err = conn.Int()
				_ = conn.Close()
			}
			if err == nil {
				t.Errorf("command %d was let through", command)
			}
		}
		if got := s.slots()[0]; got != "slot1 Claimed/Idle" {
			t.Error(got)
		}
		if err := s.Do(t.Context(), func(turn engine.Turn) {
			if _, draining := turn.Engine.(*ep.Engine).Drain(); draining {
				t.Error("it drains")
			}
		}); err != nil {
			t.Error(err)
		}
	})
}

// A claim that is about to end says so when its job is over, and is given back
// without a word to the schedd, which was told.
func TestClosingClaims(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		closing func(t *testing.T, s *station, p *peer)
	}{
		{"draining", func(t *testing.T, s *station, _ *peer) { s.Step(t, ep.DrainRequested{Reason: "disks"}) }},
		{"shutting down", func(t *testing.T, s *station, _ *peer) { s.Step(t, ep.ShutdownRequested{Manner: ep.Graceful}) }},
		{"vacated", func(t *testing.T, s *station, _ *peer) { s.Step(t, ep.VacateRequested{Manner: ep.Graceful}) }},
		{"another waits", func(t *testing.T, s *station, p *peer) {
			next := s.offered("slot1")
			p.know(next)
			conn := p.pending(next, smallJob+"Prio = 2\n")
			t.Cleanup(func() { _ = conn.Close() })
		}},
		{"worklife over", func(*testing.T, *station, *peer) { pass(1201 * time.Second) }},
	} {
		for _, command := range []int{403, 404, 561} {
			t.Run(tt.name+" "+itoa(command), func(t *testing.T) {
				bubble(t, twoStatic+"RANK = TARGET.Prio\nMAXJOBRETIREMENTTIME = 24*3600\n", func(t *testing.T, s *station) {
					id := s.offered("slot1")
					p := s.peer(id)
					if g := p.claim(id, smallJob+"Prio = 1\n"); g.code != 1 {
						t.Fatal(g.code)
					}
					s.startJob(id, smallJob+"Prio = 1\n")
					tt.closing(t, s, p)
					synctest.Wait()
					if got := p.aboutClaim(command, id.Public, id); got != "Start = false" {
						t.Errorf("answer %q", got)
					}
					if len(effectsOf[ep.OrderStarter](s)) == 0 {
						t.Error("the job goes on")
					}
					// It has ended for those who ask again.
					if got := p.aboutClaim(403, id.Public, id); s.slots()[0] == "slot1 Preempting/Vacating" && got != "" {
						t.Errorf("answer %q while the claim ends", got)
					}
					s.endJob()
					for _, e := range effectsOf[ep.ClaimEnded](s) {
						if !e.ByClient {
							t.Errorf("%+v", e)
						}
					}
					if len(effectsOf[ep.ClaimEnded](s)) == 0 || len(s.dialed) > 0 {
						t.Errorf("%s, %d connections to the schedd", s.slots()[0], len(s.dialed))
					}
				})
			})
		}
	}
}

// Once its claim is released a dynamic slot is gone, and the slot it was made
// of is whole.
//
// row: S0-008
func TestReleasedPartGoesBack(t *testing.T) {
	bubble(t, inBits, func(t *testing.T, s *station) {
		amounts := func() (all []string) {
			if err := s.Do(t.Context(), func(turn engine.Turn) {
				ad := turn.Engine.PublicAd(s.mustID(turn, "slot1"))
				for _, name := range []string{"Cpus", "Memory", "Disk", "NumDynamicSlots"} {
					e, _ := ad.Lookup(name)
					all = append(all, name+" "+e.Text(classad.Old))
				}
			}); err != nil {
				t.Fatal(err)
			}
			return all
		}
		before := amounts()
		id := s.offered("slot1")
		p := s.peer(id)
		g := p.claim(id, smallJob+"RequestCpus = 3\n")
		if g.code != 1 || slices.Equal(before, amounts()) {
			t.Fatal(g.code, amounts())
		}
		if got := p.aboutClaim(443, id.Public, g.ids[0]); got != "" {
			t.Errorf("RELEASE_CLAIM was answered %q", got)
		}
		synctest.Wait()
		if after := amounts(); !slices.Equal(after, before) {
			t.Errorf("%v, before %v", after, before)
		}
		gone := effectsOf[ep.AdWithdrawn](s)
		if len(gone) != 1 || gone[0].Name != "slot1_1" {
			t.Errorf("%+v", gone)
		}
		if got := strings.Join(s.slots(), " "); got != "slot1 Unclaimed/Idle" {
			t.Error(got)
		}
	})
}

// The negotiator says of which slot it has made a match by that slot's claim
// id. An id that nobody was offered, or whose secret is wrong, matches nothing.
//
// row: S0-105, S0-140
func TestMatchInfo(t *testing.T) {
	bubble(t, twoStatic+"ALLOW_NEGOTIATOR = *\n", func(t *testing.T, s *station) {
		one, two := s.offered("slot1"), s.offered("slot2")
		p := s.peer()
		to, err := cedar.ParseSinful(one.Public[:strings.IndexByte(one.Public, '>')+1])
		if err != nil {
			t.Fatal(err)
		}
		forged := one
		forged.Secret = forged.Secret[:len(forged.Secret)-1] + claim.Secret(forged.Secret[len(forged.Secret)-1]^1)
		for _, x := range []struct {
			id   claim.ID
			want string
		}{
			{claim.ID{Public: one.Public + "9", Secret: one.Secret}, "slot1 Unclaimed/Idle, slot2 Unclaimed/Idle"},
			{forged, "slot1 Unclaimed/Idle, slot2 Unclaimed/Idle"},
			{one, "slot1 Matched/Idle, slot2 Unclaimed/Idle"},
			{two, "slot1 Matched/Idle, slot2 Matched/Idle"},
		} {
			conn, _, err := p.Command(t.Context(), to, 440, security.Options{})
			if err != nil {
				t.Fatal(err)
			}
			conn.PutSecret(claim.Secret(x.id.Wire()))
			if err := conn.EndMessage(); err != nil {
				t.Error(err)
			}
			synctest.Wait()
			_ = conn.Close()
			if got := strings.Join(s.slots(), ", "); got != x.want {
				t.Errorf("%s, want %s", got, x.want)
			}
		}
	})
}

// SEC_ENABLE_MATCH_PASSWORD_AUTHENTICATION counts from a reconfig on, for the ids that
// are made then. An id that says it has a session has one, and no other has.
func TestMatchSessionsReconfigured(t *testing.T) {
	bubble(t, twoStatic, func(t *testing.T, s *station) {
		set := s.Settings(t)
		use := func(on bool, name string) {
			t.Helper()
			set.Claims.MatchSessions = on
			if err := s.Do(t.Context(), func(engine.Turn) { s.pool.Reconfigure(set) }); err != nil {
				t.Fatal(err)
			}
			s.Step(t, ep.ClaimRequested{Capability: s.offered(name), Job: adOf(t, smallJob), Client: claim.Client{User: "alice@example"}}) // another id is offered then
			id := s.offered(name)
			_, known := s.sessions.Get(id.Public)
			if says := strings.HasPrefix(id.Secret.Reveal(), "["); says != on || known != on {
				t.Errorf("with the setting %v an id of %s says that it has a session: %v; it has one: %v", on, name, says, known)
			}
		}
		held := s.offered("slot1")
		use(false, "slot1")
		if _, known := s.sessions.Get(held.Public); !known {
			t.Error("an id from before has lost its session")
		}
		use(true, "slot2")
		if log := s.log.String(); strings.Contains(log, "no session for a claim id") {
			t.Errorf("%s", log)
		}
	})
}

// first has something happen before the next turn of the engine's owner.
type first struct {
	engine.Owner
	happens atomic.Pointer[func()]
}

func (o *first) Do(ctx context.Context, f func(engine.Turn)) error {
	if h := o.happens.Swap(nil); h != nil {
		(*h)()
	}
	return o.Owner.Do(ctx, f)
}

// A schedd that gives a claim back while its request is on the way to the engine is
// told that this is done, and then it does not get the claim.
func TestGivenBackBeforeItIsGranted(t *testing.T) {
	t.Parallel()
	owner := &first{}
	s := newStation(t, stationOptions{text: twoStatic, change: func(cfg *pool.Config) { owner.Owner, cfg.Owner = cfg.Owner, owner }})
	s.idle()
	id := s.offered("slot1")
	p := s.peer(id)
	release := func() {
		if got := p.aboutClaim(443, id.Public, id); got != "" {
			t.Errorf("RELEASE_CLAIM is answered %q", got)
		}
	}
	conn := p.open(442, id.Public)
	defer conn.Close()
	owner.happens.Store(&release)
	if err := putRequest(conn, id, adOf(t, smallJob)); err != nil {
		t.Fatal(err)
	}
	if g, err := readGrants(conn); err == nil {
		t.Errorf("the request is answered %+v", g)
	}
	if got := s.slots()[0]; got == "slot1 Claimed/Idle" {
		t.Errorf("a claim that was given back is there: %s", got)
	}
}
