// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/policy"
	"github.com/execpoint/execpoint/lib/slot"
)

// document returns examples of a configuration as the documents print them.
func document(t testing.TB, names ...string) string {
	t.Helper()
	var b strings.Builder
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join("testdata", "documents", name+".conf"))
		if err != nil {
			t.Fatal(err)
		}
		b.Write(text)
		b.WriteString("\n")
	}
	return b.String()
}

// story is a machine with somebody at it, told step by step.
type story struct {
	*person
	seen map[string]int // moves that were looked at, by slot
}

func tell(t testing.TB, cpus int, text string) *story {
	t.Helper()
	s := &story{person: &person{stage: newStage(t, cpus, text)}, seen: map[string]int{}}
	s.last, s.busy = -1000*time.Hour, -1000*time.Hour
	s.watch()
	s.run(time.Second)
	return s
}

// expect demands the moves of a slot since the last look at it, "" for none.
func (s *story) expect(what, name, path string) {
	s.t.Helper()
	if got := s.path(name, s.seen[name]); got != path {
		s.t.Fatalf("%s, after %v: %s went %q, want %q", what, s.elapsed(), name, got, path)
	}
	s.seen[name] = len(s.moves)
}

// skip passes over the moves so far.
func (s *story) skip() {
	for v := range s.eng.Views() {
		s.seen[v.Name] = len(s.moves)
	}
}

// busyWith claims a slot and runs a job in it.
func (s *story) busyWith(id slot.ID, sc script, more string) Grant {
	s.t.Helper()
	ad := job(s.t, sc, more)
	g := s.claim(id, ad)
	s.activate(g.Claim, ad)
	return g
}

// wants asks for a slot that nobody has and says whether it was granted; the
// claim is given back.
func (s *story) wants(id slot.ID, more string) bool {
	s.t.Helper()
	r := s.request(ClaimRequested{Slot: id}, job(s.t, steady(time.Minute), more))
	if r.Granted == nil {
		if !errs.Is(r.Err, errs.Denied) {
			s.t.Fatalf("refused with %v", r.Err)
		}
		return false
	}
	s.step(ReleaseRequested{Claim: r.Granted.Claim})
	s.run(time.Second)
	s.skip()
	return true
}

// sixEight is the default policy of the 6.8 manual as it is printed, on a
// machine with one slot that feels the keyboard. What the text takes for granted
// is set: nothing is a PVM job any more, and a machine that would start no job
// is its owner's.
func sixEight(t testing.TB) string {
	return document(t, "s1-default-policy-837+869+875+881+886+892+896+900", "s1-default-policy-862") + oneDesk + "IsPVM = False\n"
}

const oneDesk = "NUM_SLOTS = 1\nSLOT_TYPE_0_PARTITIONABLE = False\nSLOTS_CONNECTED_TO_KEYBOARD = 1\nSLOTS_CONNECTED_TO_CONSOLE = 1\n" +
	"IS_OWNER = (START =?= False)\nUPDATE_INTERVAL = 60\nRunBenchmarks = False\nCLAIM_WORKLIFE = -1\n"

// TestSixEightStart begins a job after a quarter of an hour without keyboard,
// under low load or under a claim that is there already.
//
// row: S1-054
func TestSixEightStart(t *testing.T) {
	t.Parallel()
	s := tell(t, 1, sixEight(t))
	s.types(time.Minute)
	s.run(15 * time.Minute)
	if s.wants(slot1, "") || s.pair(slot1) != policy.OwnerIdle {
		t.Errorf("14 minutes after the last key: %v", s.pair(slot1))
	}
	s.run(2 * time.Minute)
	if !s.wants(slot1, "") {
		t.Error("16 minutes after the last key no job is taken")
	}
	s.load = 0.31
	s.run(time.Minute)
	if s.wants(slot1, "") || s.pair(slot1) != policy.OwnerIdle {
		t.Errorf("under load: %v", s.pair(slot1))
	}
	s.load = 0.29
	s.run(time.Minute)
	s.skip()
	g := s.busyWith(slot1, steady(10*time.Second), "")
	s.run(time.Minute)
	s.expect("the first job", "slot1", "Unclaimed/Idle 5 Claimed/Idle 11 Claimed/Busy 12 Claimed/Cleaning 12 Claimed/Idle")
	s.load = 3
	s.run(10 * time.Second)
	ad := job(t, steady(10*time.Second), "")
	s.activate(g.Claim, ad)
	s.run(time.Minute)
	s.expect("claimed already, under load", "slot1", "Claimed/Idle 11 Claimed/Busy 12 Claimed/Cleaning 12 Claimed/Idle")
	s.types(time.Second)
	s.run(10 * time.Second)
	r, _ := s.ask(func(ref Ref) Event { return ActivateRequested{Ref: ref, Claim: g.Claim, Job: ad} })
	if r.Err == nil {
		t.Error("a job was begun while somebody types")
	}
}

// TestSixEightDesk suspends for the keyboard, goes on after five minutes
// without it, and evicts after ten minutes of suspension.
//
// row: S1-055, S1-056, S1-057
func TestSixEightDesk(t *testing.T) {
	t.Parallel()
	s := tell(t, 1, sixEight(t))
	s.run(time.Minute)
	s.skip()
	s.busyWith(slot1, steady(6*time.Hour), "ImageSize = 20000\n")
	s.run(time.Hour)
	s.expect("nobody there", "slot1", "Unclaimed/Idle 5 Claimed/Idle 11 Claimed/Busy")

	s.types(time.Second)
	s.run(10 * time.Second)
	s.expect("a key", "slot1", "Claimed/Busy 14 Claimed/Suspended")
	s.run(4*time.Minute + 40*time.Second)
	s.expect("keyboard idle for less than five minutes", "slot1", "")
	s.run(30 * time.Second)
	s.expect("keyboard idle for more than five minutes", "slot1", "Claimed/Suspended 15 Claimed/Busy")

	// A load that is not the job's counts after two minutes. The job's own is 1.
	s.load = 3
	s.run(115 * time.Second)
	s.expect("busy for less than two minutes", "slot1", "")
	s.run(20 * time.Second)
	s.expect("busy for more than two minutes", "slot1", "Claimed/Busy 14 Claimed/Suspended")
	s.load = 0
	s.run(5 * time.Second)
	s.expect("suspended for less than ten seconds", "slot1", "")
	s.run(15 * time.Second)
	s.expect("low load again", "slot1", "Claimed/Suspended 15 Claimed/Busy")

	s.load = 3
	s.run(135 * time.Second)
	s.expect("busy again", "slot1", "Claimed/Busy 14 Claimed/Suspended")
	s.run(9*time.Minute + 40*time.Second)
	s.expect("suspended for less than ten minutes", "slot1", "")
	s.run(30 * time.Second)
	s.expect("suspended for more than ten minutes", "slot1", "Claimed/Suspended 16 Claimed/Retiring 18 Preempting/Vacating 22 Owner/Idle")
	if len(s.ended) != 1 || s.ended[0].Code != 1011 {
		t.Errorf("the client was told %+v", s.ended)
	}
}

// TestSixEightYoungJob does not suspend a job for load in its first 90 seconds,
// however long the processor was busy before.
//
// row: S1-055
func TestSixEightYoungJob(t *testing.T) {
	t.Parallel()
	s := tell(t, 1, sixEight(t))
	s.run(time.Minute)
	g := s.busyWith(slot1, steady(time.Second), "")
	s.load = 3
	s.run(10 * time.Minute)
	s.skip()
	s.activate(g.Claim, job(t, steady(time.Hour), ""))
	s.run(85 * time.Second)
	s.expect("a young job", "slot1", "Claimed/Idle 11 Claimed/Busy")
	s.run(15 * time.Second)
	s.expect("older than 90 s", "slot1", "Claimed/Busy 14 Claimed/Suspended")
}

// TestSixEightUnsuspendable evicts at once what is not worth suspending: a job
// that is neither small nor vanilla, when the keyboard is used. One that ran
// for more than ten minutes may leave by itself, others may not.
//
// row: S1-057
func TestSixEightUnsuspendable(t *testing.T) {
	t.Parallel()
	const java = "JobUniverse = 10\nImageSize = 20000\n"
	for _, tt := range []struct {
		name, more string
		ran        time.Duration
		want       string
	}{
		{"old", java, 11 * time.Minute, "Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating 22 Owner/Idle"},
		{"young", java, 9 * time.Minute, "Claimed/Busy 13 Claimed/Retiring 18 Preempting/Killing 25 Owner/Idle"},
		{"small", "JobUniverse = 10\nImageSize = 10000\n", 9 * time.Minute, "Claimed/Busy 14 Claimed/Suspended"},
	} {
		s := tell(t, 1, sixEight(t))
		s.run(time.Minute)
		s.busyWith(slot1, steady(6*time.Hour), tt.more)
		s.run(tt.ran)
		s.skip()
		s.types(time.Hour)
		s.run(10 * time.Second)
		s.expect(tt.name, "slot1", tt.want)
	}
}

// TestSixEightKill kills after ten minutes of vacating, even where the machine
// pledges more.
//
// row: S1-058
func TestSixEightKill(t *testing.T) {
	t.Parallel()
	s := tell(t, 1, sixEight(t)+"MachineMaxVacateTime = 24 * $(HOUR)\n")
	s.run(time.Minute)
	s.busyWith(slot1, script{runs: 6 * time.Hour, onSoft: -1, onHard: 3 * time.Second}, "")
	s.run(time.Hour)
	s.skip()
	s.types(time.Hour)
	s.run(11 * time.Minute)
	s.expect("told to leave", "slot1", "Claimed/Busy 14 Claimed/Suspended 16 Claimed/Retiring 18 Preempting/Vacating")
	vacating := s.at[len(s.at)-1]
	s.run(600*time.Second - (s.elapsed() - vacating))
	s.expect("ten minutes are not over", "slot1", "")
	s.run(6 * time.Second)
	s.expect("ten minutes are over", "slot1", "Preempting/Vacating 21 Preempting/Killing")
	s.run(5 * time.Second)
	s.expect("gone", "slot1", "Preempting/Killing 25 Owner/Idle")
	if n := len(s.orders); s.orders[n-1].Op != HardKill || s.orders[n-2].Op != SoftKill {
		t.Errorf("orders: %+v", s.orders)
	}
}

// until lets time pass up to a moment of the week, in UTC.
func (s *story) until(day time.Weekday, hour, minute int) {
	s.t.Helper()
	at := time.Date(s.now.Wall.Year(), s.now.Wall.Month(), s.now.Wall.Day(), hour, minute, 0, 0, time.UTC)
	for at.Before(s.now.Wall) || at.Weekday() != day {
		at = at.AddDate(0, 0, 1)
	}
	s.run(at.Sub(s.now.Wall))
}

// TestSixEightTimeOfDay starts jobs at night on an idle desktop only, and in
// the morning evicts them without suspending them first. The text says that
// SUSPEND and PREEMPT are to take MachineBusy in.
//
// row: S1-061, S1-062
func TestSixEightTimeOfDay(t *testing.T) {
	t.Parallel()
	s := tell(t, 1, sixEight(t)+document(t, "s1-time-of-day-policy-975", "s1-time-of-day-policy-984", "s1-time-of-day-policy-995")+
		"SUSPEND = $(MachineBusy)\nKeyboardBusy = KeyboardIdle < $(MINUTE)\n")
	s.until(time.Monday, 10, 0)
	if s.wants(slot1, "") || s.pair(slot1) != policy.OwnerIdle {
		t.Errorf("on Monday at ten: %v", s.pair(slot1))
	}
	s.types(8 * time.Hour)
	s.until(time.Monday, 18, 10)
	if s.wants(slot1, "") {
		t.Error("at ten past six, ten minutes after the last key, a job is taken")
	}
	s.load = 0.5
	s.until(time.Monday, 18, 30)
	if s.wants(slot1, "") {
		t.Error("a job is taken under load")
	}
	s.load = 0
	s.until(time.Monday, 18, 40)
	s.skip()
	s.busyWith(slot1, steady(100*time.Hour), "")
	s.until(time.Monday, 19, 0)
	s.types(time.Second)
	s.run(10 * time.Second)
	s.expect("a key at night", "slot1", "Unclaimed/Idle 5 Claimed/Idle 11 Claimed/Busy 14 Claimed/Suspended")
	s.until(time.Monday, 19, 10)
	s.expect("five minutes later", "slot1", "Claimed/Suspended 15 Claimed/Busy")
	s.until(time.Tuesday, 7, 59)
	s.expect("at night", "slot1", "")
	s.until(time.Tuesday, 8, 0)
	s.run(10 * time.Second)
	s.expect("in the morning", "slot1", "Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating 22 Owner/Idle")
	s.until(time.Saturday, 10, 0)
	if !s.wants(slot1, "") {
		t.Error("on Saturday at ten no job is taken")
	}
}

// TestTwoDaysOfRetirement lets a job run for two days from its start, although
// it is told to go and a better claim waits for the slot. The claim is gone
// with the job: the better one has it then.
//
// row: S1-065, S1-066
func TestTwoDaysOfRetirement(t *testing.T) {
	t.Parallel()
	const text = static1 + "HOUR = 3600\nRANK = TARGET.Prio\nMachineMaxVacateTime = 10\nPOLLING_INTERVAL = 5\nUPDATE_INTERVAL = 300\nCLAIM_WORKLIFE = -1\n"
	two := document(t, "s1-disabling-preemption-1070")
	for _, tt := range []struct {
		name string
		tell func(s *stage)
		want string
	}{
		{"PREEMPT", func(s *stage) { s.publish("Busy = True\n") }, "Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating 22 Owner/Idle 1 Unclaimed/Idle"},
		{"condor_vacate", func(s *stage) { s.step(VacateRequested{Slot: slot1, Manner: Graceful}) },
			"Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating 22 Owner/Idle 1 Unclaimed/Idle"},
		{"a better claim", func(s *stage) {
			s.ask(func(ref Ref) Event {
				return ClaimRequested{Ref: ref, Slot: slot1, Job: job(t, steady(time.Hour), "Prio = 2\n"), Lease: 100 * time.Hour, Client: claim.Client{User: "bob@example"}}
			})
		}, "Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating 23 Claimed/Idle"},
	} {
		s := newStage(t, 1, text+two+"PREEMPT = Busy =?= True\n")
		ad := job(t, script{runs: 1000 * time.Hour, onSoft: -1}, "Prio = 1\n")
		s.activate(s.claim(slot1, ad).Claim, ad)
		gone := time.Duration(0)
		s.onGone = func(a *actor) { gone = s.now.Sub(a.first) }
		s.run(time.Hour)
		from := len(s.moves)
		tt.tell(s)
		s.run(46*time.Hour + 58*time.Minute)
		if got := s.pair(slot1); got != policy.ClaimedRetiring {
			t.Errorf("%s: two minutes before the end: %v", tt.name, got)
		}
		s.run(5 * time.Minute)
		if got := s.path("slot1", from); got != tt.want {
			t.Errorf("%s: got  %s\nwant %s", tt.name, got, tt.want)
		}
		// Evicted ten seconds before, so that the last of its vacate time is the end.
		if d := gone - 172800*time.Second; d < -5*time.Second || d > 5*time.Second {
			t.Errorf("%s: gone after %v, want two days", tt.name, gone)
		}
	}
	// A job that ends of itself frees the slot for the better claim at once.
	s := newStage(t, 1, text+two)
	ad := job(t, steady(2*time.Hour), "Prio = 1\n")
	s.activate(s.claim(slot1, ad).Claim, ad)
	s.run(time.Hour)
	s.ask(func(ref Ref) Event {
		return ClaimRequested{Ref: ref, Slot: slot1, Job: job(t, steady(time.Hour), "Prio = 2\n"), Lease: 100 * time.Hour, Client: claim.Client{User: "bob@example"}}
	})
	if _, answered := s.replies[s.ref]; answered {
		t.Error("the better claim was answered before the job was gone")
	}
	s.run(2 * time.Hour)
	if r := s.replies[s.ref]; r.Granted == nil {
		t.Errorf("the better claim got %+v", r)
	}
	if v, _ := s.eng.SlotView(slot1); v.Client.User != "bob@example" || len(s.orders) != 0 {
		t.Errorf("claimed by %q, orders %+v", v.Client.User, s.orders)
	}
}

// TestNoPreemptionOfClaims disables preemption as the text says: nobody takes
// the slot from who has it, until CLAIM_WORKLIFE is over.
//
// row: S1-068
func TestNoPreemptionOfClaims(t *testing.T) {
	t.Parallel()
	for _, worklife := range []bool{false, true} {
		text := static1 + document(t, "s1-disabling-preemption-1082") + "CLAIM_WORKLIFE = -1\n"
		if worklife {
			text += "CLAIM_WORKLIFE = 3600\n"
		}
		s := newStage(t, 1, text)
		ad := job(t, steady(10*time.Minute), "Prio = 1\n")
		g := s.claim(slot1, ad)
		began := s.elapsed()
		jobs := 0
		for s.pair(slot1).State == policy.Claimed && jobs < 50 {
			s.refused(s.request(ClaimRequested{Slot: slot1, Client: claim.Client{User: "bob@example"}}, job(t, steady(time.Hour), "Prio = 9\n")), errs.Denied, "rank")
			s.activate(g.Claim, ad)
			jobs++
			s.run(10*time.Minute + time.Second)
		}
		switch {
		case !worklife && jobs != 50:
			t.Errorf("without a worklife the claim ended after %d jobs", jobs)
		case worklife && (jobs != 6 || s.dropped()-began < time.Hour || s.dropped()-began > 71*time.Minute):
			t.Errorf("with a worklife of an hour there were %d jobs of ten minutes, until %v", jobs, s.dropped())
		}
		if worklife {
			if r := s.request(ClaimRequested{Slot: slot1, Client: claim.Client{User: "bob@example"}}, ad); r.Granted == nil {
				t.Errorf("then bob got %+v", r)
			}
		}
	}
}

// TestOldVacate evaluates no VACATE, and KILL only while vacating.
//
// row: S1-071
func TestOldVacate(t *testing.T) {
	t.Parallel()
	s := newStage(t, 1, static1+"VACATE = True\nKILL = True\nMachineMaxVacateTime = 600\n")
	ad := job(t, script{runs: 10 * time.Hour, onSoft: -1, onHard: time.Second}, "")
	s.activate(s.claim(slot1, ad).Claim, ad)
	s.run(time.Hour)
	if got := s.pair(slot1); got != policy.ClaimedBusy || len(s.orders) != 0 {
		t.Fatalf("VACATE and KILL are true: %v, orders %+v", got, s.orders)
	}
	from := len(s.moves)
	s.step(VacateRequested{Slot: slot1, Manner: Graceful})
	if got := s.pair(slot1); got != policy.PreemptingVacating {
		t.Errorf("at first %v", got)
	}
	s.run(5 * time.Second)
	const want = "Claimed/Busy 13 Claimed/Retiring 18 Preempting/Vacating 21 Preempting/Killing 25 Owner/Idle 1 Unclaimed/Idle"
	if got := s.path("slot1", from); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
