// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/machine"
	"github.com/execpoint/execpoint/lib/policy"
)

// person uses the keyboard of a stage from time to time.
type person struct {
	*stage
	last time.Duration // when the keyboard was last used, since the start
	busy time.Duration // until when it is in use
	load float64       // of the whole machine
}

// watch samples the machine every five seconds, as a polling EP does.
func (p *person) watch() {
	at := p.elapsed()
	if at <= p.busy {
		p.last = at
	}
	p.step(Sampled{Sample: machine.Sample{At: p.now, LoadAvg: p.load, KeyboardIdle: at - p.last, ConsoleIdle: at - p.last, HasConsole: true, Fresh: machine.AllReadings}})
	p.after(5*time.Second, p.watch)
}

// types uses the keyboard for a while, beginning now.
func (p *person) types(d time.Duration) { p.last, p.busy = p.elapsed(), p.elapsed()+d }

// TestDesktop is a day at a desktop machine under the template's policy.
// row: S0-104, S0-106, S0-150, S0-152, S0-156, S0-157, S0-158, S0-169
func TestDesktop(t *testing.T) {
	t.Parallel()
	p := &person{stage: newStage(t, 1, "use POLICY : Desktop\nNUM_SLOTS = 1\nSLOT_TYPE_0_PARTITIONABLE = false\nUPDATE_INTERVAL = 60\n")}
	p.types(time.Minute)
	p.watch()
	seen := 0
	expect := func(what, path string) {
		t.Helper()
		if got := p.path("slot1", seen); got != path {
			t.Fatalf("%s: got %q, want %q", what, got, path)
		}
		seen = len(p.moves)
	}
	p.run(15 * time.Minute)
	expect("the owner was there a quarter of an hour ago", "")
	p.run(4 * time.Minute)
	expect("left alone", "Owner/Idle 1 Unclaimed/Idle")

	ad := job(t, steady(3*time.Hour), "")
	g := p.claim(slot1, ad)
	p.activate(g.Claim, ad)
	p.run(10 * time.Minute)
	expect("a job", "Unclaimed/Idle 5 Claimed/Idle 11 Claimed/Busy")

	p.types(2 * time.Minute)
	p.run(30 * time.Second)
	expect("the owner is back", "Claimed/Busy 14 Claimed/Suspended")
	p.run(6 * time.Minute)
	expect("the owner may come again", "")
	p.run(2 * time.Minute)
	expect("the owner was away for five minutes", "Claimed/Suspended 15 Claimed/Busy")
	v, _ := p.eng.SlotView(slot1)
	if want := 11 * time.Minute; v.RunTime < want || v.RunTime > want+time.Minute {
		t.Errorf("run time %v, want about %v without the suspension", v.RunTime, want)
	}

	p.types(time.Hour)
	p.run(10 * time.Second)
	expect("the owner stays", "Claimed/Busy 14 Claimed/Suspended")
	p.run(9 * time.Minute)
	expect("not for long yet", "")
	p.run(2 * time.Minute)
	expect("suspended for ten minutes", "Claimed/Suspended 16 Claimed/Retiring 18 Preempting/Vacating 22 Owner/Idle")
	if n := len(p.ended); n != 1 || p.ended[0].Code != 1011 {
		t.Errorf("the client was told %+v", p.ended)
	}
	p.run(2 * time.Hour)
	expect("the owner went home", "Owner/Idle 1 Unclaimed/Idle")
	if got := p.pair(slot1); got != policy.UnclaimedIdle {
		t.Errorf("in the end %v", got)
	}
}

// TestDesktopStubbornJob lets one that will not leave use up what the policy
// grants, and not more.
// row: S0-167
func TestDesktopStubbornJob(t *testing.T) {
	t.Parallel()
	p := &person{stage: newStage(t, 1, "use POLICY : Desktop\nKILL = $(ActivityTimer) > 60\nWANT_SUSPEND = False\nNUM_SLOTS = 1\nSLOT_TYPE_0_PARTITIONABLE = false\nUPDATE_INTERVAL = 60\n")}
	p.last, p.busy = -time.Hour, -time.Hour
	p.watch()
	p.run(2 * time.Minute)
	ad := job(t, script{runs: 3 * time.Hour, onSoft: -1, onHard: -1, onKill: time.Second}, "")
	g := p.claim(slot1, ad)
	p.activate(g.Claim, ad)
	p.run(10 * time.Minute)
	from := len(p.moves)
	p.types(time.Hour)
	p.run(5 * time.Minute)
	const want = "Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating 21 Preempting/Killing 25 Owner/Idle"
	if got := p.path("slot1", from); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if len(p.killed) != 1 {
		t.Errorf("ended by force %d times", len(p.killed))
	}
}
