// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package ep

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/policy"
)

const fetches = "STARTD_JOB_HOOK_KEYWORD = FOO\nFOO_HOOK_FETCH_WORK = /hooks/fetch\n"

// fetchStage is a stage whose slots fetch work by a hook that takes half a second, and
// keeps a log of what it and the other hooks were told.
type fetchStage struct {
	*stage
	offer func(n int, f FetchWork) *classad.Ad // the n-th call; nil: there is no work
	unfit error
	n     int
	log   []string
}

func newFetchStage(t testing.TB, cpus int, text string, offer func(n int, f FetchWork) *classad.Ad) *fetchStage {
	t.Helper()
	f := &fetchStage{stage: newStage(t, cpus, text), offer: offer}
	f.eng.cfg.Fetches = true
	f.onOther = f.effect
	f.step(Tick{})
	return f
}

func (f *fetchStage) tell(format string, args ...any) {
	f.log = append(f.log, fmt.Sprintf("%4.1f ", f.elapsed().Seconds())+fmt.Sprintf(format, args...))
}

func (f *fetchStage) effect(eff Effect) {
	switch eff := eff.(type) {
	case FetchWork:
		state, _ := eff.Ad.EvalString("State", nil)
		activity, _ := eff.Ad.EvalString("Activity", nil)
		f.tell("%s fetches for %s in %s/%s", eff.Keyword, eff.Name, state, activity)
		f.n++
		n := f.n
		f.after(time.Second/2, func() { f.step(WorkFetched{Slot: eff.Slot, Job: f.offer(n, eff), Unfit: f.unfit}) })
	case WorkDecided:
		word := "accept"
		if eff.Err != nil {
			word = "reject"
		}
		if eff.Claim.IsZero() != (eff.Err != nil) {
			f.t.Errorf("%s with the claim %v", word, eff.Claim)
		}
		f.tell("%s %s for %s", eff.Keyword, word, eff.Name)
	case WorkEvicted:
		name, _ := eff.Job.EvalString("JobName", nil)
		f.tell("%s evicts %s of %s", eff.Keyword, name, eff.Name)
	}
}

func (f *fetchStage) want(lines string) {
	f.t.Helper()
	var want []string
	for l := range strings.Lines(lines) {
		if l = strings.TrimRight(l, "\n"); strings.TrimSpace(l) != "" {
			want = append(want, strings.TrimLeft(l, "\t"))
		}
	}
	if diff := cmp.Diff(want, f.log); diff != "" {
		f.t.Errorf("hooks (-want +got):\n%s", diff)
	}
}

// offers has the hook offer a job of three seconds in each of the first calls.
func offers(t testing.TB, calls int, more string) func(int, FetchWork) *classad.Ad {
	return func(n int, _ FetchWork) *classad.Ad {
		if n > calls {
			return nil
		}
		return job(t, steady(3*time.Second), fmt.Sprintf("JobName = \"job%d\"\n", n)+more)
	}
}

// A job that is offered to a free slot runs under a claim of its own. After its end
// the hook is called again, and when it has nothing the claim ends and the slot goes
// to Owner. The delay counts from the end of the last call; the hook of a busy slot is
// called as well, and what it offers has to be liked better than the present job.
//
// row: S0-308, S0-309, S0-310, S0-312, S0-326
func TestFetchedWork(t *testing.T) {
	t.Parallel()
	f := newFetchStage(t, 1, static1+fetches+"FetchWorkDelay = ifThenElse(State == \"Claimed\" && Activity == \"Idle\", 0, 2)\n", offers(t, 3, ""))
	f.run(12 * time.Second)
	f.want(`
	 0.0 FOO fetches for slot1 in Unclaimed/Idle
	 0.5 FOO accept for slot1
	 2.5 FOO fetches for slot1 in Claimed/Busy
	 3.0 FOO reject for slot1
	 3.5 FOO fetches for slot1 in Claimed/Idle
	 4.0 FOO accept for slot1
	 6.0 FOO fetches for slot1 in Claimed/Busy
	 7.0 FOO fetches for slot1 in Claimed/Idle
	 7.5 FOO evicts job3 of slot1
	 9.5 FOO fetches for slot1 in Unclaimed/Idle
	12.0 FOO fetches for slot1 in Unclaimed/Idle
	`)
	const want = "Owner/Idle 1 Unclaimed/Idle 5 Claimed/Idle 11 Claimed/Busy 12 Claimed/Cleaning 12 Claimed/Idle " +
		"11 Claimed/Busy 12 Claimed/Cleaning 12 Claimed/Idle 10 Preempting/Vacating 22 Owner/Idle 1 Unclaimed/Idle"
	if got := f.path("slot1", 0); got != want {
		t.Errorf("moves: %s, want %s", got, want)
	}
}

// The claim of fetched work gives way to one that the machine likes better, and its
// own job comes before another's that the machine likes less, never one as good.
//
// row: S0-309, S0-310, S0-311
func TestFetchedWorkByRank(t *testing.T) {
	t.Parallel()
	const ranked = static1 + fetches + "FetchWorkDelay = 2\nRANK = TARGET.Prio\n"
	t.Run("preempts", func(t *testing.T) {
		t.Parallel()
		f := newFetchStage(t, 1, ranked, func(n int, _ FetchWork) *classad.Ad {
			if n == 1 {
				return nil
			}
			return job(t, steady(time.Minute), fmt.Sprintf("JobName = \"job%d\"\nPrio = %d\n", n, min(n, 4)))
		})
		f.run(time.Second)
		g := f.claim(slot1, job(t, steady(time.Minute), "Prio = 2\n"))
		f.activate(g.Claim, job(t, steady(time.Minute), "Prio = 2\n"))
		f.run(10 * time.Second)
		f.want(`
	 0.0 FOO fetches for slot1 in Unclaimed/Idle
	 2.5 FOO fetches for slot1 in Claimed/Busy
	 3.0 FOO reject for slot1
	 5.0 FOO fetches for slot1 in Claimed/Busy
	 5.5 FOO accept for slot1
	 7.5 FOO fetches for slot1 in Claimed/Busy
	 8.0 FOO accept for slot1
	 8.0 FOO evicts job3 of slot1
	10.0 FOO fetches for slot1 in Claimed/Busy
	10.5 FOO reject for slot1
	`)
		if len(f.ended) != 2 || f.ended[0].Client.User != "alice@example" || f.ended[0].Reason != "Preempted for a higher Ranked job" {
			t.Errorf("ended: %+v", f.ended)
		}
	})
	t.Run("yields", func(t *testing.T) {
		t.Parallel()
		f := newFetchStage(t, 1, ranked, offers(t, 1, "SimRuns = 60.0\nPrio = 2\n"))
		f.run(time.Second)
		for _, prio := range []int{2, 3} {
			f.ask(func(ref Ref) Event {
				return ClaimRequested{Ref: ref, Slot: slot1, Job: job(t, steady(time.Minute), fmt.Sprintf("Prio = %d\n", prio))}
			})
			f.run(0)
			if r := f.replies[f.ref]; (r.Granted != nil) != (prio > 2) || (r.Err != nil) != (prio <= 2) {
				t.Errorf("rank %d: %+v", prio, r)
			}
		}
		f.want(`
	 0.0 FOO fetches for slot1 in Unclaimed/Idle
	 0.5 FOO accept for slot1
	 1.0 FOO evicts job1 of slot1
	`)
	})
	t.Run("waits in vain", func(t *testing.T) {
		t.Parallel()
		ready := false
		f := newFetchStage(t, 1, ranked+"MaxJobRetirementTime = 3600\n", func(n int, w FetchWork) *classad.Ad {
			if !ready {
				return nil
			}
			return offers(t, 9, "Prio = 2\n")(n, w)
		})
		f.run(time.Second)
		g := f.claim(slot1, job(t, steady(time.Minute), "Prio = 1\n"))
		f.activate(g.Claim, job(t, steady(time.Minute), "Prio = 1\n"))
		ready = true
		f.run(4 * time.Second)
		f.step(ShutdownRequested{Manner: Fast})
		f.run(time.Second)
		f.want(`
	 0.0 FOO fetches for slot1 in Unclaimed/Idle
	 2.5 FOO fetches for slot1 in Claimed/Busy
	 3.0 FOO accept for slot1
	 5.0 FOO evicts job2 of slot1
	`)
	})
}

// In a partitionable slot a job has to say what it wants. It gets a part, which
// fetches the next one.
//
// row: S0-308, S0-316
func TestFetchedWorkPartitionable(t *testing.T) {
	t.Parallel()
	conf := "NUM_CPUS = 2\nMEMORY = 4096\nPOLLING_INTERVAL = 1\nUPDATE_INTERVAL = 5\n" +
		"SLOT1_JOB_HOOK_KEYWORD = FOO\nFOO_HOOK_FETCH_WORK = /hooks/fetch\nFetchWorkDelay = 2\n"
	for _, missing := range []string{"RequestCpus", "RequestMemory", "RequestDisk"} {
		f := newFetchStage(t, 2, conf, func(int, FetchWork) *classad.Ad {
			ad := job(t, steady(time.Second), "")
			ad.Delete(missing)
			return ad
		})
		f.run(time.Second)
		f.want("\t 0.0 FOO fetches for slot1 in Unclaimed/Idle\n\t 0.5 FOO reject for slot1\n")
	}
	f := newFetchStage(t, 2, conf, offers(t, 3, "RequestCpus = 2\n"))
	f.run(9 * time.Second)
	f.want(`
	 0.0 FOO fetches for slot1 in Unclaimed/Idle
	 0.5 FOO accept for slot1
	 2.5 FOO fetches for slot1_1 in Claimed/Busy
	 3.0 FOO reject for slot1_1
	 5.0 FOO fetches for slot1_1 in Claimed/Idle
	 5.5 FOO accept for slot1_1
	 7.5 FOO fetches for slot1_1 in Claimed/Busy
	`)
}

// When the hook is asked, and when not.
//
// row: S0-315, S0-323, S0-326, S0-327
func TestFetchWhen(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, conf string
		run        time.Duration
		want       string
	}{
		{"no keyword", "FOO_HOOK_FETCH_WORK = /hooks/fetch\n", time.Minute, ""},
		{"no fetch hook", "STARTD_JOB_HOOK_KEYWORD = FOO\nFOO_HOOK_REPLY_FETCH = /hooks/reply\n", time.Minute, ""},
		{"five minutes without FetchWorkDelay", fetches, 700 * time.Second,
			"  0.0 FOO fetches for slot1 in Unclaimed/Idle\n300.5 FOO fetches for slot1 in Unclaimed/Idle\n601.0 FOO fetches for slot1 in Unclaimed/Idle\n"},
		{"five minutes where it is no number", fetches + "FetchWorkDelay = NoSuchAttribute\n", 400 * time.Second,
			"  0.0 FOO fetches for slot1 in Unclaimed/Idle\n300.5 FOO fetches for slot1 in Unclaimed/Idle\n"},
		{"not at once after a call", fetches + "FetchWorkDelay = 0\n", 2 * time.Second,
			" 0.0 FOO fetches for slot1 in Unclaimed/Idle\n 1.5 FOO fetches for slot1 in Unclaimed/Idle\n"},
		{"START is false", fetches + "START = false\n", time.Minute, ""},
		{"START wants a job", fetches + "START = TARGET.Prio > 0\n", time.Minute, " 0.0 FOO fetches for slot1 in Unclaimed/Idle\n"},
		{"IS_OWNER", fetches + "IS_OWNER = true\n", time.Minute, " 0.0 FOO fetches for slot1 in Owner/Idle\n"},
		{"its own keyword", fetches + "SLOT1_JOB_HOOK_KEYWORD = BAR\nBAR_HOOK_FETCH_WORK = /hooks/bar\n", time.Minute, " 0.0 BAR fetches for slot1 in Unclaimed/Idle\n"},
		{"the keyword of another slot", fetches + "SLOT4_JOB_HOOK_KEYWORD = BAR\nBAR_HOOK_FETCH_WORK = /hooks/bar\n", time.Minute, " 0.0 FOO fetches for slot1 in Unclaimed/Idle\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFetchStage(t, 1, static1+c.conf, offers(t, 0, ""))
			f.run(c.run)
			for i, l := range f.log {
				f.log[i] = strings.TrimLeft(l, " ")
			}
			var want []string
			for l := range strings.Lines(c.want) {
				want = append(want, strings.TrimSpace(l))
			}
			if diff := cmp.Diff(want, f.log); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A claim of fetched work that waits for more of it ends when its hook is taken away.
//
// row: S0-312
func TestFetchHookTakenAway(t *testing.T) {
	t.Parallel()
	f := newFetchStage(t, 1, static1+fetches, offers(t, 1, ""))
	f.run(10 * time.Second)
	if got := f.pair(slot1); got != policy.ClaimedIdle {
		t.Fatalf("the slot is %v", got)
	}
	f.ask(func(ref Ref) Event { return Reconfigured{Ref: ref, Snapshot: parse(t, f.inv, static1)} })
	f.run(time.Minute)
	f.want(`
	 0.0 FOO fetches for slot1 in Unclaimed/Idle
	 0.5 FOO accept for slot1
	10.0 FOO evicts job1 of slot1
	`)
	if got := f.pair(slot1); got != policy.UnclaimedIdle {
		t.Errorf("the slot is %v", got)
	}
}

// A job that is known to be unfit is refused, and one that is suspended or told to
// leave is not asked about. The slot's ad says when its hook was called.
//
// row: S0-310
func TestFetchUnfit(t *testing.T) {
	t.Parallel()
	f := newFetchStage(t, 1, static1+fetches+"FetchWorkDelay = 2\n", offers(t, 9, ""))
	f.unfit = errors.New("there is no Cmd")
	f.run(time.Second)
	f.want("\t 0.0 FOO fetches for slot1 in Unclaimed/Idle\n\t 0.5 FOO reject for slot1\n")
	ad := f.eng.SlotAd(slot1)
	at := f.begun.Wall.Unix()
	for name, want := range map[string]int64{"LastFetchWorkSpawned": at, "LastFetchWorkCompleted": at, "NextFetchWorkDelay": 2} {
		if got, _ := ad.EvalInt(name, nil); got != want {
			t.Errorf("%s = %d, want %d", name, got, want)
		}
	}
	g := f.claim(slot1, job(t, steady(time.Minute), ""))
	f.activate(g.Claim, job(t, steady(time.Minute), ""))
	f.run(time.Second)
	f.ask(func(ref Ref) Event { return SuspendRequested{Ref: ref, Claim: g.Claim} })
	f.run(time.Minute)
	if len(f.log) != 2 {
		t.Errorf("a suspended slot fetches: %q", f.log)
	}
	f.step(WorkFetched{Slot: slot1, Job: job(t, steady(time.Minute), "")})
	if len(f.log) != 3 || !strings.Contains(f.log[2], "reject") {
		t.Errorf("work that no slot has asked for: %q", f.log)
	}
}
