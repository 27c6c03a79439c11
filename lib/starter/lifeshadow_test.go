// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/starter/protocol"
)

var (
	planShadow = func(l *life) []duty {
		return l.planned(&protocol.Plan{Orphan: protocol.OrphanDie, Shadow: &protocol.ShadowSide{}})
	}
	told           = func(l *life) []duty { return l.toldShadow() }
	restarted      = func(l *life) []duty { return l.again() }
	parted         = func(l *life) []duty { return l.parted() }
	rejoined       = func(l *life) []duty { return l.rejoined() }
	leaseOver      = func(l *life) []duty { return l.leaseOver() }
	unsent         = func(l *life) []duty { return l.unheard(dutyOutput, away) }
	untold         = func(l *life) []duty { return l.unheard(dutyTell, away) }
	untoldBack     = func(l *life) []duty { return l.unheard(dutyTell, back) }
	holdOrder      = order(protocol.SoftKill{Leave: protocol.Leave{Manner: protocol.MannerHold, Reason: "hold", Code: 21}})
	userHold       = order(protocol.SoftKill{Leave: protocol.Leave{Manner: protocol.MannerHold, Reason: "hold", Code: 1}})
	shadowRunning  = []step{{planShadow, []duty{dutyPrepare}}, {prepared, []duty{dutySpawn}}, {spawned, nil}}
	shadowFinished = append(append([]step(nil), shadowRunning...), step{exited, []duty{dutyFinish}})
)

// A life of which a shadow hears.
func TestLifeOfShadowJob(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		from  []step
		steps []step
		lost  bool
		hold  int
	}{
		{"from start to end", shadowFinished, []step{{finished, []duty{dutyTell}}, {told, []duty{dutyEnd}}, {told, nil}}, false, 0},
		{"no input", nil, []step{{planShadow, []duty{dutyPrepare}}, {noInput, []duty{dutyTell}}, {told, []duty{dutyEnd}}}, false, 13},
		{"no program", nil, []step{{planShadow, []duty{dutyPrepare}}, {prepared, []duty{dutySpawn}}, {noExec, []duty{dutyTell}}, {told, []duty{dutyEnd}}}, false, 6},
		{"state saved, once more", shadowFinished, []step{{restarted, []duty{dutySpawn}}, {spawned, nil}, {exited, []duty{dutyFinish}}}, false, 0},
		{"state saved, but it has to leave", shadowFinished, []step{{hard, []duty{dutySpare}}, {restarted, []duty{dutyTell}}}, false, 0},
		{"killed while output goes", shadowFinished, []step{{hard, []duty{dutySpare}}, {finished, []duty{dutyTell, dutyBoundFarewell}}, {hard, nil}, {told, []duty{dutyEnd}}}, false, 0},
		{"killed while output goes, then the shadow is lost", shadowFinished, []step{{hard, []duty{dutySpare}}, {parted, []duty{dutyLease}}, {unsent, []duty{dutyEnd}}}, false, 0},
		{"killed while output goes, which does not move", shadowFinished, []step{{stopped, []duty{dutySpare}}, {cut, []duty{dutyAbort}}, {finished, []duty{dutyTell}}, {told, []duty{dutyEnd}}}, false, 0},
		{"the lease ends while output goes", shadowFinished, []step{{parted, []duty{dutyLease}}, {leaseOver, []duty{dutyAbort}}, {unsent, []duty{dutyEnd}}}, true, 0},
		{"away and back while it runs", shadowRunning, []step{{parted, []duty{dutyLease}}, {parted, nil}, {rejoined, []duty{dutyRejoin}}, {rejoined, nil}}, false, 0},
		{"away for too long", shadowRunning, []step{{parted, []duty{dutyLease}}, {leaseOver, []duty{dutyKill}}, {exited, []duty{dutyFinish}}, {finished, []duty{dutyTell}}, {untold, []duty{dutyEnd}}}, true, 0},
		{"away before it ran", nil, []step{{planShadow, []duty{dutyPrepare}}, {parted, []duty{dutyAbort}}, {prepared, []duty{dutyTell}}, {told, []duty{dutyEnd}}}, true, 0},
		{"output owed", shadowFinished, []step{{parted, []duty{dutyLease}}, {unsent, nil}, {rejoined, []duty{dutyRejoin, dutyOutput}}, {finished, []duty{dutyTell}}}, false, 0},
		{"output owed, nobody had noticed", shadowFinished, []step{{unsent, []duty{dutyLease}}, {parted, nil}, {rejoined, []duty{dutyRejoin, dutyOutput}}}, false, 0},
		{"the end owed", shadowFinished, []step{{finished, []duty{dutyTell}}, {untold, []duty{dutyLease}}, {rejoined, []duty{dutyRejoin, dutyTell}}, {told, []duty{dutyEnd}}}, false, 0},
		{"the end owed for too long", shadowFinished, []step{{finished, []duty{dutyTell}}, {untold, []duty{dutyLease}}, {leaseOver, []duty{dutyEnd}}}, true, 0},
		{"the end owed, but it has to leave", shadowFinished, []step{{finished, []duty{dutyTell}}, {untold, []duty{dutyLease}}, {soft, nil}, {hard, []duty{dutyEnd}}}, false, 0},
		{"killed while it tells", shadowFinished, []step{{finished, []duty{dutyTell}}, {hard, []duty{dutyBoundFarewell}}, {hard, nil}, {told, []duty{dutyEnd}}}, false, 0},
		{"killed while a shadow does not listen", shadowFinished, []step{{finished, []duty{dutyTell}}, {hard, []duty{dutyBoundFarewell}}, {parted, nil}, {untold, []duty{dutyEnd}}}, false, 0},
		{"orphaned while it tells", shadowFinished, []step{{finished, []duty{dutyTell}}, {orphaned, []duty{dutyBoundFarewell}}, {untold, []duty{dutyEnd}}}, false, 0},
		{"asked to leave, then killed while it tells", shadowRunning, []step{{soft, []duty{dutySignal}}, {exited, []duty{dutyFinish}}, {finished, []duty{dutyTell}}, {hard, []duty{dutyBoundFarewell}}, {untold, []duty{dutyEnd}}}, false, 0},
		{"back before it was missed", shadowFinished, []step{{finished, []duty{dutyTell}}, {parted, nil}, {rejoined, []duty{dutyRejoin}}, {untoldBack, []duty{dutyTell}}, {told, []duty{dutyEnd}}}, false, 0},
		{"the shadow goes once it has heard", shadowFinished, []step{{finished, []duty{dutyTell}}, {parted, nil}, {leaseOver, nil}, {told, []duty{dutyEnd}}}, false, 0},
		{"the shadow goes once it has heard of the hold", nil, []step{{planShadow, []duty{dutyPrepare}}, {noInput, []duty{dutyTell}}, {soft, nil}, {parted, nil}, {leaseOver, nil}, {told, []duty{dutyEnd}}}, false, 13},
		{"the shadow goes with the hold half heard", nil, []step{{planShadow, []duty{dutyPrepare}}, {noInput, []duty{dutyTell}}, {parted, nil}, {untold, []duty{dutyEnd}}}, false, 13},
		{"the shadow goes and has not heard", shadowFinished, []step{{finished, []duty{dutyTell}}, {parted, nil}, {untold, []duty{dutyLease}}, {leaseOver, []duty{dutyEnd}}}, true, 0},
		{"held by the startd", shadowRunning, []step{{holdOrder, []duty{dutyHold, dutySignal}}, {parted, nil}, {exited, []duty{dutyFinish}}, {finished, []duty{dutyEnd}}}, false, 21},
		{"held while the shadow is away", shadowRunning, []step{{parted, []duty{dutyLease}}, {holdOrder, []duty{dutySignal}}, {exited, []duty{dutyFinish}}, {unsent, nil},
			{rejoined, []duty{dutyRejoin, dutyOutput}}, {finished, []duty{dutyTell}}, {told, []duty{dutyEnd}}}, false, 21},
		{"told to leave while the shadow is away", shadowRunning, []step{{parted, []duty{dutyLease}}, {soft, []duty{dutySignal}}, {exited, []duty{dutyFinish}}, {untold, []duty{dutyEnd}}}, false, 0},
		{"told to leave, then the shadow is lost", shadowRunning, []step{{soft, []duty{dutySignal}}, {exited, []duty{dutyFinish}}, {finished, []duty{dutyTell}}, {untold, []duty{dutyEnd}}}, false, 0},
		{"told to leave, the shadow is back before it was missed", shadowRunning, []step{{soft, []duty{dutySignal}}, {exited, []duty{dutyFinish}}, {finished, []duty{dutyTell}},
			{parted, nil}, {rejoined, []duty{dutyRejoin}}, {untoldBack, []duty{dutyTell}}, {told, []duty{dutyEnd}}}, false, 0},
		{"told to leave while the shadow is away, with output", shadowRunning, []step{{parted, []duty{dutyLease}}, {soft, []duty{dutySignal}}, {exited, []duty{dutyFinish}}, {unsent, nil},
			{rejoined, []duty{dutyRejoin, dutyOutput}}}, false, 0},
		{"ended by itself while the shadow is away", shadowRunning, []step{{parted, []duty{dutyLease}}, {exited, []duty{dutyFinish}}, {untold, nil}, {soft, nil},
			{rejoined, []duty{dutyRejoin, dutyOutput}}}, false, 0},
		{"held by its user", shadowRunning, []step{{userHold, []duty{dutySignal}}, {exited, []duty{dutyFinish}}, {finished, []duty{dutyTell}}}, false, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var l life
			for i, s := range append(append([]step(nil), c.from...), c.steps...) {
				if diff := cmp.Diff(s.want, s.do(&l)); diff != "" {
					t.Fatalf("step %d (-want +got):\n%s", i, diff)
				}
			}
			hold := 0
			if l.hold != nil {
				hold = l.hold.Code
			}
			if l.lost != c.lost || hold != c.hold {
				t.Errorf("lost %v, hold %d", l.lost, hold)
			}
		})
	}
}

// Whatever happens in whatever order, the family is touched only while it is
// there, nothing happens after the end, and a shadow that is away is not told.
func TestLifeOfShadowJobInvariants(t *testing.T) {
	t.Parallel()
	all := []func(*life) []duty{
		planShadow, prepared, noInput, spawned, noExec, exited, finished, noOutput, told, restarted, parted, rejoined, leaseOver,
		unsent, untold, untoldBack, orphaned, overdue, stopped, cut, suspend, proceed, soft, softTimed, hard, holdOrder, userHold,
	}
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 20000 {
		var l life
		for range 40 {
			was := l.phase
			for _, d := range all[rnd.IntN(len(all))](&l) {
				switch d {
				case dutySuspend, dutyContinue, dutySignal, dutyKill, dutyDeadline:
					if l.phase != running {
						t.Fatalf("duty %d in phase %d", d, l.phase)
					}
				case dutyOutput, dutyRejoin:
					if l.apart {
						t.Fatalf("duty %d while the shadow is away", d)
					}
				case dutyEnd:
					if was == over || l.phase != over {
						t.Fatalf("the end comes from phase %d and leaves phase %d", was, l.phase)
					}
				}
			}
			if was == over && l.phase != over {
				t.Fatalf("phase %d after the end", l.phase)
			}
		}
	}
}
