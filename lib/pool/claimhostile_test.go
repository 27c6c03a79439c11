// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/ep"
)

// claimCommands are those with a payload from whoever has a claim's session.
var claimCommandNumbers = []int{401, 402, 403, 404, 413, 441, 442, 443, 444, 522, 554, 561, 501}

// closed reports whether the other end says no more than an answer of a few
// bytes and then hangs up.
func closed(conn *cedar.Conn) error {
	if _, err := conn.Rest(); err != nil {
		if errors.Is(err, io.EOF) {
			return nil
		}
		return err
	}
	conn.DiscardMessage()
	if _, err := conn.Int(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("after the answer: %w", err)
	}
	return nil
}

// Payloads that are none: whoever has a session can break its own connection
// and nothing else.
func TestHostilePayloads(t *testing.T) {
	t.Parallel()
	id := func(c *cedar.Conn, id claim.ID) { c.PutSecret(claim.Secret(id.Wire())) }
	payloads := map[string]func(c *cedar.Conn, mine claim.ID){
		"nothing but zeros": func(c *cedar.Conn, _ claim.ID) { c.PutBytes(make([]byte, 4096)) },
		"ones":              func(c *cedar.Conn, _ claim.ID) { c.PutBytes([]byte(strings.Repeat("\xff", 4096))) },
		"noise": func(c *cedar.Conn, _ claim.ID) {
			b := make([]byte, 1<<16)
			r := rand.New(rand.NewPCG(1, 2))
			for i := range b {
				b[i] = byte(r.Uint32())
			}
			c.PutBytes(b)
		},
		"the id alone": id,
		"too much":     func(c *cedar.Conn, mine claim.ID) { id(c, mine); c.PutInt(1); c.PutString("x"); c.PutInt(2) },
		"a huge id":    func(c *cedar.Conn, _ claim.ID) { c.PutSecret(claim.Secret("<" + strings.Repeat("a", 1<<20))) },
		"a negative list": func(c *cedar.Conn, mine claim.ID) {
			id(c, mine)
			c.PutAd(adOf(t, smallJob), cedar.AdOptions{})
			c.PutString("<1.2.3.4:5>")
			c.PutInt(20)
			c.PutInt(-1)
		},
		"a list without end": func(c *cedar.Conn, mine claim.ID) {
			id(c, mine)
			c.PutAd(adOf(t, smallJob), cedar.AdOptions{})
			c.PutString("<1.2.3.4:5>")
			c.PutInt(20)
			c.PutInt(1 << 40)
			id(c, mine)
		},
		"a list that is short": func(c *cedar.Conn, mine claim.ID) {
			id(c, mine)
			c.PutAd(adOf(t, smallJob), cedar.AdOptions{})
			c.PutString("<1.2.3.4:5>")
			c.PutInt(20)
			c.PutInt(4000)
			id(c, mine)
		},
		"an ad that is short": func(c *cedar.Conn, mine claim.ID) { id(c, mine); c.PutInt(1 << 30); c.PutString("A = 1") },
	}
	for name, put := range payloads {
		t.Run(name, func(t *testing.T) {
			bubble(t, twoStatic, func(t *testing.T, s *station) {
				mine, other := s.offered("slot1"), s.offered("slot2")
				p := s.peer(mine, other)
				if g := p.claim(mine, smallJob); g.code != 1 {
					t.Fatal(g.code)
				}
				for _, command := range claimCommandNumbers {
					if name == "the id alone" && command != 442 && command != 444 && command != 522 {
						continue // that is right
					}
					conn := p.open(command, other.Public)
					put(conn, mine)
					if err := conn.EndMessage(); err != nil && !errors.Is(err, io.ErrClosedPipe) {
						t.Errorf("%d: %v", command, err)
					}
					if err := closed(conn); err != nil {
						t.Errorf("%d: %v", command, err)
					}
					_ = conn.Close()
				}
				synctest.Wait()
				if v := s.view("slot1"); !v.Claimed || v.Claim != mine {
					t.Errorf("the claim is gone: %v", s.slots())
				}
				if log := s.log.String(); strings.Contains(log, keyOf(mine)) || strings.Contains(log, "panic") {
					t.Error("a secret or a panic in the log")
				}
			})
		})
	}
}

// Names in a request are shown for as long as the claim lives: one that is far too long
// is refused, and the log has a line for that.
func TestLongNames(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"User", "ScheddName", "AccountingGroup", "ProjectName"} {
		s := newStation(t, stationOptions{text: twoStatic})
		s.idle()
		id := s.offered("slot1")
		conn := s.peer(id).open(442, id.Public)
		job := adOf(t, smallJob)
		job.SetString(name, strings.Repeat("x", 1<<20))
		if err := putRequest(conn, id, job); err != nil {
			t.Fatal(err)
		}
		if n, err := conn.Int(); err == nil {
			t.Errorf("a request with a long %s is answered %d", name, n)
		}
		_ = conn.Close()
		if got := s.slots()[0]; got != "slot1 Unclaimed/Idle" {
			t.Errorf("after a request with a long %s: %s", name, got)
		}
		for line := range strings.Lines(s.log.String()) {
			if len(line) > 4096 {
				t.Errorf("a peer wrote a line of %d bytes into the log", len(line))
			}
		}
	}
}

// Whoever connects and says no more, or stops in the middle, is hung up on.
func TestSilentClaimers(t *testing.T) {
	bubble(t, twoStatic, func(t *testing.T, s *station) {
		one := s.offered("slot1")
		p := s.peer(one)
		for _, command := range claimCommandNumbers {
			if command == 501 {
				continue // refused whatever is said
			}
			conn := p.open(command, one.Public)
			if command%2 == 0 { // a packet that is not the last
				conn.SetPacketSize(64)
				conn.PutSecret(claim.Secret(one.Wire()))
				conn.PutBytes(make([]byte, 256))
			}
			began := time.Now()
			conn.SetTimeout(time.Hour)
			if _, err := conn.Int(); err == nil {
				t.Errorf("%d was answered", command)
			}
			if took := time.Since(began); took > time.Minute {
				t.Errorf("%d: hung up after %v", command, took)
			}
			_ = conn.Close()
		}
		// And the slot can be claimed all the while.
		if g := p.claim(one, smallJob); g.code != 1 {
			t.Error(g.code)
		}
	})
}

// Claims of others cannot be ended: neither by naming their public parts, nor
// as those that a request is to end, nor by repeating what somebody else said.
func TestClaimsOfOthers(t *testing.T) {
	bubble(t, inBits, func(t *testing.T, s *station) {
		first := s.offered("slot1")
		mine := s.peer(first)
		g := mine.claim(first, smallJob+"_condor_SEND_LEFTOVERS = true\n")
		second := g.rest
		thief := s.peer(second)
		guess := claim.ID{Public: g.ids[0].Public, Secret: second.Secret}
		for _, command := range []int{402, 403, 404, 443} {
			if got := thief.aboutClaim(command, second.Public, guess); got != "0" && got != "Start = false" {
				t.Errorf("%d with a guessed id: %q", command, got)
			}
		}
		conn := thief.open(442, second.Public)
		defer conn.Close()
		if err := putRequest(conn, second, adOf(t, smallJob), guess); err != nil {
			t.Fatal(err)
		}
		if g, err := readGrants(conn); err != nil || g.code != 0 {
			t.Errorf("evicting a guessed claim: %d, %v", g.code, err)
		}
		if v, ok := s.find("slot1_1"); !ok || !v.Claimed {
			t.Errorf("the claim is gone: %v", s.slots())
		}
	})
}

// What was recorded of one connection says nothing on another.
func TestReplayedClaim(t *testing.T) {
	bubble(t, twoStatic, func(t *testing.T, s *station) {
		one := s.offered("slot1")
		p := s.peer(one)
		tap := &recorder{}
		dial := p.Dial
		p.Dial = tap.around(dial)
		if got := p.aboutClaim(443, one.Public, one); got != "0" {
			t.Fatal(got)
		}
		if g := p.claim(one, smallJob); g.code != 1 {
			t.Fatal(g.code)
		}
		// The recorded RELEASE_CLAIM once more, byte for byte.
		nc, err := dial(t.Context(), cedar.Sinful{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := nc.Write(tap.first); err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, nc)
		_ = nc.Close()
		synctest.Wait()
		if v := s.view("slot1"); !v.Claimed || v.Claim != one {
			t.Error("a replay has released the claim")
		}
	})
}

// A flood of requests for ids that nobody has, from many connections: each is
// refused, memory stays, and the holder of a real id is served meanwhile.
func TestFloodOfRequests(t *testing.T) {
	bubble(t, twoStatic, func(t *testing.T, s *station) {
		one, two := s.offered("slot1"), s.offered("slot2")
		flood := s.peer(one)
		job := adOf(t, smallJob)
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				for n := range 50 {
					conn, _, err := flood.Command(t.Context(), mustSinful(t), 442, security.Options{Session: one.Public})
					if err != nil {
						continue // one too many at the same time
					}
					_ = putRequest(conn, claim.ID{Public: fmt.Sprintf("<1.2.3.4:5>#1#%d", n), Secret: "s"}, job)
					if g, err := readGrants(conn); err == nil && g.code != 0 {
						t.Errorf("answer %d", g.code)
					}
					_ = conn.Close()
				}
			})
		}
		if g := s.peer(two).claim(two, smallJob); g.code != 1 {
			t.Errorf("answer %d to the holder of an id", g.code)
		}
		wg.Wait()
		synctest.Wait()
		runtime.GC()
		runtime.ReadMemStats(&after)
		if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 16<<20 {
			t.Errorf("%d bytes more are in use", grown)
		}
		if got := strings.Join(s.slots(), " "); got != "slot1 Unclaimed/Idle slot2 Claimed/Idle" {
			t.Error(got)
		}
		if n := len(effectsOf[ep.ClaimEnded](s)); n != 0 {
			t.Errorf("%d claims ended", n)
		}
	})
}

func mustSinful(t testing.TB) cedar.Sinful {
	at, err := cedar.ParseSinful(ourAddress)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// A schedd that says nothing, or nonsense, costs its claims their lease and
// nobody else anything.
func TestHostileSchedds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		serve func(c *cedar.Conn)
	}{
		{"silent", func(c *cedar.Conn) { c.SetTimeout(time.Hour); _, _ = c.Int() }},
		{"noise", func(c *cedar.Conn) { c.PutBytes([]byte(strings.Repeat("\xff", 1000))); _ = c.EndMessage() }},
		{"gone", func(c *cedar.Conn) {}},
		{"too much", func(c *cedar.Conn) { c.PutInt(20); c.PutInt(20); _ = c.EndMessage() }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ap := &badSchedd{serve: tt.serve}
				s := newStation(t, stationOptions{text: twoStatic, open: ap})
				s.idle()
				one := s.offered("slot1")
				if g := s.peer(one).claim(one, smallJob); g.code != 1 {
					t.Fatal(g.code)
				}
				time.Sleep(100 * time.Second)
				if ap.asked() < 2 {
					t.Errorf("asked %d times", ap.asked())
				}
				if !s.view("slot1").Claimed {
					t.Error("the claim is gone before its lease is over")
				}
				time.Sleep(30 * time.Second)
				if s.view("slot1").Claimed {
					t.Error("the claim is there after its lease")
				}
				two := s.offered("slot2")
				if g := s.peer(two).claim(two, smallJob); g.code != 1 {
					t.Error(g.code)
				}
			})
		})
	}
}
