// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package pool_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/execpoint/execpoint/lib/cedar"
	"github.com/execpoint/execpoint/lib/cedar/security"
	"github.com/execpoint/execpoint/lib/ep"
)

// answering is a schedd that answers ALIVE with a number as long as it is up.
type answering struct {
	badSchedd
	down  atomic.Bool
	reply int64
}

func newAnswering(reply int64) *answering {
	a := &answering{reply: reply}
	a.serve = func(c *cedar.Conn) {
		if !a.down.Load() {
			c.PutInt(a.reply)
			_ = c.EndMessage()
		}
	}
	return a
}

// heldBy is a station with a claim of a schedd.
func heldBy(t *testing.T, ap *answering, job string) *station {
	t.Helper()
	s := newStation(t, stationOptions{text: twoStatic + "MAXJOBRETIREMENTTIME = 0\nCLAIM_WORKLIFE = -1\n", open: ap})
	s.idle()
	one := s.offered("slot1")
	if g := s.peer(one).claim(one, job); g.code != 1 {
		t.Fatal(g.code)
	}
	return s
}

// claimEnds waits until the claim of slot1 is gone, and returns how long that
// took to the second.
func claimEnds(s *station, atMost time.Duration) time.Duration {
	began := time.Now()
	for s.view("slot1").Claimed && time.Since(began) < atMost {
		pass(time.Second)
	}
	return time.Since(began)
}

// lost is a schedd whose machine is gone: nothing says that it does not answer.
type lost struct{}

func (lost) Command(ctx context.Context, _ cedar.Sinful, _ int, _ security.Options) (*cedar.Conn, *security.Session, error) {
	<-ctx.Done()
	return nil, nil, context.Cause(ctx)
}

// A schedd that is out of reach does not hold up the end of the daemon for
// longer than all have to hear of it.
func TestLostScheddHoldsUpNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStation(t, stationOptions{text: twoStatic, open: lost{}})
		s.idle()
		for _, name := range []string{"slot1", "slot2"} {
			if g := s.peer(s.offered(name)).claim(s.offered(name), smallJob); g.code != 1 {
				t.Fatal(g.code)
			}
		}
		s.Step(t, ep.ShutdownRequested{Manner: ep.Fast})
		synctest.Wait()
		began := time.Now()
		s.end()
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("the end took %v, want at most 5 s", took)
		}
	})
}

// A claim lives while its schedd answers, far longer than its lease, and is
// dropped a lease after the last answer. The schedd, which is gone, is told
// nothing.
//
// row: S0-118, S0-121, S2-006
func TestLeaseIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ap := newAnswering(20)
		s := heldBy(t, ap, smallJob) // without JobLeaseDuration: 6 times 20 s
		pass(10*time.Minute + 5*time.Second)
		if !s.view("slot1").Claimed {
			t.Fatal("the claim is gone while its schedd answers")
		}
		if n := ap.asked(); n != 15 {
			t.Errorf("asked %d times in ten minutes, want every 40 s", n)
		}
		ap.down.Store(true)
		if took := claimEnds(s, time.Hour); took < 110*time.Second || took > 120*time.Second {
			t.Errorf("dropped %v after a stop 5 s after the last answer", took)
		}
		synctest.Wait()
		if len(ap.others) > 0 {
			t.Errorf("the schedd was sent %v", ap.others)
		}
	})
}

// The interval that comes with the claim holds, whatever the schedd says later.
//
// row: S0-122, S2-006
func TestLeaseUsesTheFirstInterval(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ap := newAnswering(1)
		s := heldBy(t, ap, smallJob)
		pass(41 * time.Second)
		if ap.asked() != 1 {
			t.Fatalf("asked %d times", ap.asked())
		}
		ap.down.Store(true)
		if took := claimEnds(s, time.Hour); took < 118*time.Second || took > 120*time.Second {
			t.Errorf("dropped after %v", took)
		}
	})
}

// A job's lease of 40 minutes, without a word of the schedd: the job is
// evicted then. Here the schedd says that the starter's word does not count.
//
// row: S0-119, S1-030, S2-006
func TestLeaseOfJobExpires(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ap := newAnswering(20)
		s := heldBy(t, ap, smallJob+"_condor_StartdHandlesAlives = false\n")
		s.startJob(s.view("slot1").Claim, smallJob+"JobLeaseDuration = 2400\n")
		pass(5 * time.Minute)
		if ap.asked() < 5 {
			t.Errorf("asked %d times while the job ran", ap.asked())
		}
		ap.down.Store(true)
		began := time.Now()
		for len(effectsOf[ep.OrderStarter](s)) == 0 && time.Since(began) < time.Hour {
			pass(time.Second)
		}
		if took := time.Since(began); took < 2358*time.Second || took > 2401*time.Second {
			t.Errorf("the job was told to end after %v", took)
		}
		if orders := effectsOf[ep.OrderStarter](s); len(orders) == 0 || orders[0].Op != ep.HardKill {
			t.Errorf("%+v", orders)
		}
	})
}

// While a starter runs, nobody else need show a sign of life.
func TestNoAliveWhileAJobRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ap := newAnswering(20)
		s := heldBy(t, ap, smallJob)
		s.startJob(s.view("slot1").Claim, smallJob)
		pass(time.Hour)
		if n := ap.asked(); n != 0 {
			t.Errorf("asked %d times", n)
		}
		s.endJob()
		pass(41 * time.Second)
		if n := ap.asked(); n == 0 {
			t.Error("not asked after the job")
		}
		if !s.view("slot1").Claimed {
			t.Error("the claim is gone")
		}
	})
}

// A schedd that sends ALIVE itself, as old ones do, keeps the lease and is
// asked within ten seconds.
//
// row: S0-118
func TestAliveFromTheSchedd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ap := newAnswering(20)
		ap.down.Store(true)
		s := heldBy(t, ap, smallJob)
		id := s.view("slot1").Claim
		p := s.peer(id)
		for range 5 {
			pass(100 * time.Second)
			before := ap.asked()
			if got := p.aboutClaim(441, id.Public, id); got != "" {
				t.Errorf("ALIVE was answered %q", got)
			}
			pass(11 * time.Second)
			if ap.asked() == before {
				t.Error("the schedd was not asked")
			}
		}
		if !s.view("slot1").Claimed {
			t.Error("the claim is gone")
		}
	})
}

// A whole partitionable slot is held for a fixed time: its schedd is not asked.
func TestWholeSlotHasNoLease(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ap := newAnswering(20)
		s := newStation(t, stationOptions{text: inBits + "ENABLE_CLAIMABLE_PARTITIONABLE_SLOTS = true\n", open: ap})
		s.idle()
		one := s.offered("slot1")
		p := s.peer(one)
		if g := p.claim(one, smallJob+"_condor_CLAIM_PARTITIONABLE_SLOT = true\n_condor_NUM_DYNAMIC_SLOTS = 0\n_condor_PARTITIONABLE_SLOT_CLAIM_TIME = 1000\n"); g.code != 1 {
			t.Fatal(g.code)
		}
		if took := claimEnds(s, time.Hour); took < 999*time.Second || took > 1001*time.Second {
			t.Errorf("held for %v", took)
		}
		if ap.asked() != 0 || !strings.Contains(s.log.String(), "claim granted") {
			t.Errorf("asked %d times", ap.asked())
		}
	})
}

// The lease of a job is that of its claim when the job is over, too: a schedd that
// keeps the claim for its next job is asked often enough for it.
//
// row: S0-122
func TestLeaseOfAShortJobIsKept(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ap := newAnswering(20)
		s := heldBy(t, ap, smallJob) // 6 times 20 s, asked every 40 s
		s.startJob(s.view("slot1").Claim, smallJob+"JobLeaseDuration = 30\n")
		pass(time.Minute)
		s.endJob()
		before := ap.asked()
		pass(10*time.Minute + 5*time.Second)
		if !s.view("slot1").Claimed {
			t.Error("the claim is gone while its schedd answers")
		}
		if n := ap.asked() - before; n < 59 || n > 62 {
			t.Errorf("asked %d times in ten minutes, want every 10 s", n)
		}
		s.startJob(s.view("slot1").Claim, smallJob) // without a lease of its own
		s.endJob()
		before = ap.asked()
		pass(10*time.Minute + 5*time.Second)
		if n := ap.asked() - before; n < 14 || n > 17 {
			t.Errorf("asked %d times in ten minutes after a job without JobLeaseDuration, want every 40 s", n)
		}
	})
}

// A schedd that does not answer is asked again soon, so that one that is started anew
// finds its claims. The log has one line for each silence.
func TestSilentScheddIsAskedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ap := newAnswering(20)
		s := heldBy(t, ap, smallJob) // a lease of 120 s, asked every 40 s
		pass(45 * time.Second)
		for range 5 { // it answers for 10 s every two minutes, at other times than each 40 s
			ap.down.Store(true)
			pass(90 * time.Second)
			ap.down.Store(false)
			pass(10 * time.Second)
			if !s.view("slot1").Claimed {
				t.Fatal("the claim is gone, though its schedd answered before its lease was over")
			}
		}
		if n := strings.Count(s.log.String(), `level=WARN msg="the schedd of a claim does not answer"`); n != 5 {
			t.Errorf("the log has %d lines for 5 silences", n)
		}
	})
}
