// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package starter

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/starter/protocol"
)

// step is one thing that happens to a life and what it then wants done.
type step struct {
	do   func(l *life) []duty
	want []duty
}

func order(o protocol.Order) func(*life) []duty { return func(l *life) []duty { return l.ordered(o) } }

var (
	plan      = func(l *life) []duty { return l.planned(&protocol.Plan{Orphan: protocol.OrphanDie}) }
	planStay  = func(l *life) []duty { return l.planned(&protocol.Plan{Orphan: protocol.OrphanStay}) }
	prepared  = func(l *life) []duty { return l.prepared(nil) }
	noInput   = func(l *life) []duty { return l.prepared(&protocol.Hold{Code: 13}) }
	spawned   = func(l *life) []duty { return l.spawned(nil) }
	noExec    = func(l *life) []duty { return l.spawned(&protocol.Hold{Code: 6}) }
	exited    = func(l *life) []duty { return l.exited() }
	finished  = func(l *life) []duty { return l.finished(nil) }
	noOutput  = func(l *life) []duty { return l.finished(&protocol.Hold{Code: 12}) }
	orphaned  = func(l *life) []duty { return l.orphaned() }
	overdue   = func(l *life) []duty { return l.overdue() }
	stopped   = func(l *life) []duty { return l.stopped() }
	cut       = func(l *life) []duty { return l.cut() }
	overLimit = func(l *life) []duty { return l.starved(&protocol.Hold{Code: 34}, eviction{}) }
	victim    = func(l *life) []duty { return l.starved(nil, eviction{reason: "short of memory", hard: true}) }
	suspend   = order(protocol.Suspend{})
	proceed   = order(protocol.Continue{})
	soft      = order(protocol.SoftKill{Leave: protocol.Leave{Reason: "soft"}})
	softTimed = order(protocol.SoftKill{Leave: protocol.Leave{Reason: "soft"}, Deadline: time.Second})
	hard      = order(protocol.HardKill{Leave: protocol.Leave{Reason: "hard"}})
)

func TestLife(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		steps   []step
		evicted string // reason, "" if not
		hold    int    // code, 0 if not
	}{
		{"from start to end", []step{
			{plan, []duty{dutyPrepare}}, {prepared, []duty{dutySpawn}}, {spawned, nil}, {exited, []duty{dutyFinish}}, {finished, []duty{dutyEnd}}}, "", 0},
		{"no input", []step{{plan, []duty{dutyPrepare}}, {noInput, []duty{dutyEnd}}}, "", 13},
		{"no program", []step{{plan, []duty{dutyPrepare}}, {prepared, []duty{dutySpawn}}, {noExec, []duty{dutyEnd}}}, "", 6},
		{"no output", []step{
			{plan, []duty{dutyPrepare}}, {prepared, []duty{dutySpawn}}, {spawned, nil}, {exited, []duty{dutyFinish}}, {noOutput, []duty{dutyEnd}}}, "", 12},
		{"killed at its own memory limit", []step{
			{plan, []duty{dutyPrepare}}, {prepared, []duty{dutySpawn}}, {spawned, nil}, {exited, []duty{dutyFinish}}, {overLimit, []duty{dutyEnd}}}, "", 34},
		{"killed for a machine short of memory", []step{
			{plan, []duty{dutyPrepare}}, {prepared, []duty{dutySpawn}}, {spawned, nil}, {exited, []duty{dutyFinish}}, {victim, []duty{dutyEnd}}}, "short of memory", 0},
		{"killed for memory while it leaves", []step{
			{plan, []duty{dutyPrepare}}, {prepared, []duty{dutySpawn}}, {spawned, nil}, {soft, []duty{dutySignal}}, {exited, []duty{dutyFinish}},
			{overLimit, nil}, {victim, nil}, {finished, []duty{dutyEnd}}}, "soft", 0},
		{"suspend and continue", []step{
			{plan, []duty{dutyPrepare}}, {prepared, []duty{dutySpawn}}, {spawned, nil},
			{suspend, []duty{dutySuspend}}, {suspend, nil}, {proceed, []duty{dutyContinue}}, {proceed, nil}, {exited, []duty{dutyFinish}}}, "", 0},
		{"suspended before it runs", []step{
			{plan, []duty{dutyPrepare}}, {suspend, nil}, {prepared, []duty{dutySpawn}}, {spawned, []duty{dutySuspend}}}, "", 0},
		{"suspended and continued before it runs", []step{
			{plan, []duty{dutyPrepare}}, {suspend, nil}, {proceed, nil}, {prepared, []duty{dutySpawn}}, {spawned, nil}}, "", 0},
		{"soft kill", []step{
			{plan, []duty{dutyPrepare}}, {prepared, []duty{dutySpawn}}, {spawned, nil}, {soft, []duty{dutySignal}}, {soft, nil},
			{suspend, nil}, {exited, []duty{dutyFinish}}, {finished, []duty{dutyEnd}}}, "soft", 0},
		{"soft kill of a suspended one", []step{
			{plan, []duty{dutyPrepare}}, {prepared, []duty{dutySpawn}}, {spawned, nil}, {suspend, []duty{dutySuspend}},
			{soft, []duty{dutyContinue, dutySignal}}}, "soft", 0},
		{"soft kill, then its deadline", []step{
			{plan, []duty{dutyPrepare}}, {prepared, []duty{dutySpawn}}, {spawned, nil}, {softTimed, []duty{dutySignal, dutyDeadline}},
			{overdue, []duty{dutyKill}}, {overdue, nil}, {exited, []duty{dutyFinish}}}, "soft", 0},
		{"soft kill, then a hard one keeps the reason", []step{
			{plan, []duty{dutyPrepare}}, {prepared, []duty{dutySpawn}}, {spawned, nil}, {soft, []duty{dutySignal}}, {hard, []duty{dutyKill}}, {hard, nil}}, "soft", 0},
		{"hard kill while input comes", []step{
			{plan, []duty{dutyPrepare}}, {hard, []duty{dutyAbort}}, {noInput, []duty{dutyEnd}}}, "hard", 0},
		{"soft kill while input comes", []step{
			{plan, []duty{dutyPrepare}}, {soft, []duty{dutyAbort}}, {prepared, []duty{dutyEnd}}}, "soft", 0},
		{"soft kill of one that has ended", []step{
			{plan, []duty{dutyPrepare}}, {prepared, []duty{dutySpawn}}, {spawned, nil}, {exited, []duty{dutyFinish}}, {soft, nil}, {finished, []duty{dutyEnd}}}, "", 0},
		{"hard kill while output goes", []step{
			{plan, []duty{dutyPrepare}}, {prepared, []duty{dutySpawn}}, {spawned, nil}, {exited, []duty{dutyFinish}}, {hard, []duty{dutySpare}},
			{finished, []duty{dutyEnd}}}, "", 0},
		{"hard kill while output goes, which does not move", []step{
			{plan, []duty{dutyPrepare}}, {prepared, []duty{dutySpawn}}, {spawned, nil}, {exited, []duty{dutyFinish}}, {cut, nil}, {hard, []duty{dutySpare}},
			{cut, []duty{dutyAbort}}, {cut, nil}, {hard, nil}, {noOutput, []duty{dutyEnd}}}, "hard", 0},
		{"hard kill while output of one that was told to leave goes", []step{
			{plan, []duty{dutyPrepare}}, {prepared, []duty{dutySpawn}}, {spawned, nil}, {soft, []duty{dutySignal}}, {exited, []duty{dutyFinish}},
			{hard, []duty{dutyAbort}}, {noOutput, []duty{dutyEnd}}}, "soft", 0},
		{"orphan whose output goes", []step{
			{plan, []duty{dutyPrepare}}, {prepared, []duty{dutySpawn}}, {spawned, nil}, {exited, []duty{dutyFinish}}, {orphaned, []duty{dutySpare}},
			{finished, []duty{dutyEnd}}}, "", 0},
		{"orphan that dies", []step{
			{plan, []duty{dutyPrepare}}, {prepared, []duty{dutySpawn}}, {spawned, nil}, {orphaned, []duty{dutyKill}}, {exited, []duty{dutyFinish}}, {finished, []duty{dutyEnd}}},
			"The startd is gone", 0},
		{"orphan that stays", []step{
			{planStay, []duty{dutyPrepare}}, {prepared, []duty{dutySpawn}}, {spawned, nil}, {orphaned, nil}, {exited, []duty{dutyFinish}}, {finished, []duty{dutyEnd}}}, "", 0},
		{"startd gone before the plan", []step{{orphaned, []duty{dutyEnd}}}, "The startd is gone", 0},
		{"told to end", []step{
			{planStay, []duty{dutyPrepare}}, {prepared, []duty{dutySpawn}}, {spawned, nil}, {stopped, []duty{dutyKill}}}, "The starter was told to end", 0},
		{"a second plan is nothing", []step{{plan, []duty{dutyPrepare}}, {plan, nil}}, "", 0},
		{"an order that is not its own is nothing", []step{{plan, []duty{dutyPrepare}}, {order(protocol.Ping{}), nil}}, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var l life
			for i, s := range c.steps {
				if diff := cmp.Diff(s.want, s.do(&l)); diff != "" {
					t.Fatalf("step %d:\n%s", i, diff)
				}
			}
			evicted, hold := "", 0
			if l.evicted != nil {
				evicted = l.evicted.reason
			}
			if l.hold != nil {
				hold = l.hold.Code
			}
			if evicted != c.evicted || hold != c.hold {
				t.Errorf("evicted %q, hold %d; want %q, %d", evicted, hold, c.evicted, c.hold)
			}
		})
	}
}

// Whatever is ordered in whatever order, the phase never goes back, the family
// is touched only while it is there, and the end comes once.
func TestLifeInvariants(t *testing.T) {
	t.Parallel()
	all := []func(*life) []duty{plan, planStay, prepared, noInput, spawned, noExec, exited, finished, noOutput, orphaned, overdue, stopped, cut, suspend, proceed, soft, softTimed, hard}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 20000 {
		var l life
		ends := 0
		for range 30 {
			before := l.phase
			duties := all[rnd.IntN(len(all))](&l)
			if l.phase < before {
				t.Fatalf("the phase went from %d back to %d", before, l.phase)
			}
			for _, d := range duties {
				switch d {
				case dutyEnd:
					ends++
				case dutySuspend, dutyContinue, dutySignal, dutyKill, dutyDeadline:
					if l.phase != running {
						t.Fatalf("duty %d in phase %d", d, l.phase)
					}
				}
			}
			if ends != 0 && l.phase != over || ends > 1 {
				t.Fatalf("%d ends, phase %d", ends, l.phase)
			}
			if l.phase == over && slices.Contains(duties, dutyFinish) {
				t.Fatal("finishing after the end")
			}
		}
	}
}
