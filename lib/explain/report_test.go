// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/claim"
	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/clock"
	"github.com/execpoint/execpoint/lib/config"
	"github.com/execpoint/execpoint/lib/policy"
)

// policies are the examples of whole policies that the documents print, and
// templates.
func policies(t *testing.T) map[string]*config.Snapshot {
	t.Helper()
	out := map[string]*config.Snapshot{}
	add := func(name, text string) {
		s, err := config.Parse(name, text, config.Options{Subsystem: "STARTD"})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		out[name] = s
	}
	for _, use := range []string{"Desktop", "Desktop_Idle", "Always_Run_Jobs", "UWCS_Desktop", "Limit_Job_Runtimes(3600)", "Preempt_If_Runtime_Exceeds(60)",
		"Hold_If_Memory_Exceeded", "Preempt_If_Cpus_Exceeded"} {
		add("use POLICY:"+use, "use POLICY : "+use+"\n")
	}
	files, err := filepath.Glob("../check/testdata/documents/*.conf")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		// An example that cannot be read by itself is not the matter here.
		name := strings.TrimSuffix(filepath.Base(file), ".conf")
		if s, err := config.Parse(name, string(text), config.Options{Subsystem: "STARTD"}); err == nil {
			out[name] = s
		}
	}
	return out
}

// TestPolicies asks of every expression of the documents' policies and of the
// templates what would make it TRUE and FALSE. What is claimed must hold, and
// what is said of START, SUSPEND and PREEMPT is in testdata.
func TestPolicies(t *testing.T) {
	t.Parallel()
	slot, job := slotAndJob(t)
	all := policies(t)
	var names []string
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	var said strings.Builder
	expressions := 0
	for _, name := range names {
		x, err := policy.ExpressionsFrom(all[name], 1)
		if err != nil {
			continue
		}
		my := x.Over(slot)
		for k, e := range x.All() {
			expressions++
			for _, want := range []bool{true, false} {
				claims(t, Question{Expr: e.Expr, Slot: my, Job: job, Want: want, Now: noon})
			}
			if e.Origin.Kind == config.Default || !slices.Contains([]policy.Key{policy.Start, policy.SuspendExpr, policy.PreemptExpr}, k) {
				continue
			}
			r := Find(Question{Expr: e.Expr, Slot: my, Job: job, Want: true, Now: noon})
			fmt.Fprintf(&said, "%s: %s\n", name, strings.ReplaceAll(r.Sentence(e.Name), "\n", "\n  "))
		}
	}
	if expressions < 500 {
		t.Errorf("only %d expressions were asked", expressions)
	}
	golden(t, "policies.txt", said.String())
}

const desktopConf = `# the machine on the desk
StartIdleTime = 15 * 60
START = KeyboardIdle > $(StartIdleTime) && LoadAvg < 2
WANT_SUSPEND = true
SUSPEND = KeyboardIdle < 60
CONTINUE = KeyboardIdle > 300
PREEMPT = Activity == "Suspended" && time() - EnteredCurrentActivity > 600
IS_OWNER = START =?= false
MachineMaxVacateTime = 600
`

// slotUnder is a slot of a configuration in a state, with the policy's word of
// now.
func slotUnder(t *testing.T, text string, pair policy.Pair, job *classad.Ad) (Source, Slot) {
	t.Helper()
	s, err := config.Parse("desk.conf", text, config.Options{Subsystem: "STARTD"})
	if err != nil {
		t.Fatal(err)
	}
	x, err := policy.ExpressionsFrom(s, 0)
	if err != nil {
		t.Fatal(err)
	}
	my, _ := slotAndJob(t)
	my.SetString("State", pair.State.String())
	my.SetString("Activity", pair.Activity.String())
	now := clock.Instant{Wall: noon, Boot: time.Hour}
	v := policy.View{Now: now, Pair: pair, Slot: my, Exprs: x}
	if pair.State == policy.Claimed || pair.State == policy.Preempting {
		v.Job = job
	}
	if job != nil && pair.State == policy.Claimed {
		v.Claim = &claim.Claim{}
		v.Activation = &claim.Activation{Universe: policy.UniverseVanilla, Job: job}
	}
	return Source{Lookup: s.Lookup, Now: noon}, Slot{
		Name: "slot1", Pair: pair, Since: noon.Add(-34 * time.Second), Ad: my, Policy: x, Present: policy.Explain(&v), Target: v.Job, Job: job,
	}
}

// TestReports holds whole answers against testdata.
func TestReports(t *testing.T) {
	t.Parallel()
	_, job := slotAndJob(t)
	var got strings.Builder
	show := func(title string, r *Report) {
		fmt.Fprintf(&got, "=== %s\n%s\n", title, r.Text(noon))
		b, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		var back Report
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(r.Text(noon), back.Text(noon)); d != "" {
			t.Errorf("%s: not the same after a trip as JSON: %s", title, d)
		}
	}
	for _, c := range []struct {
		title string
		pair  policy.Pair
		job   *classad.Ad
	}{
		{"the owner types", policy.OwnerIdle, nil},
		{"the slot is free, though START is false", policy.UnclaimedIdle, job},
		{"a job runs", policy.ClaimedBusy, job},
		{"a job is suspended", policy.ClaimedSuspended, job},
		{"a job goes", policy.PreemptingVacating, job},
		{"the machine is drained", policy.DrainedRetiring, nil},
		{"matched", policy.MatchedIdle, nil},
	} {
		src, s := slotUnder(t, desktopConf, c.pair, c.job)
		if c.pair.State == policy.Claimed {
			s.JobID = "3.0"
			s.Last = policy.Decision{From: policy.ClaimedIdle, To: policy.ClaimedBusy, Number: 11, Reason: "claim-activation protocol successful"}
			s.LastAt = s.Since
		}
		show(c.title, OfSlot(src, s))
	}
	src, s := slotUnder(t, "START = TARGET.Owner == \"bob\"\n", policy.UnclaimedIdle, nil)
	show("it depends on the job", OfSlot(src, s))
	src, s = slotUnder(t, "START = true\n", policy.UnclaimedIdle, nil)
	show("any job", OfSlot(src, s))
	s.Job = job
	show("this job", OfSlot(src, s))
	// An owner who lets some jobs in and not others.
	for _, c := range []struct{ title, text string }{
		{"for bob", "IS_OWNER = TARGET.Owner =!= \"bob\"\n"},
		{"for ann", "IS_OWNER = TARGET.Owner =!= \"ann\"\n"},
		{"not for ann", "IS_OWNER = TARGET.Owner =?= \"ann\"\n"},
		{"for bob, by START", "START = TARGET.Owner =?= \"bob\"\nIS_OWNER = START =?= false\n"},
	} {
		pair := policy.OwnerIdle
		if strings.HasPrefix(c.title, "not") {
			pair = policy.UnclaimedIdle
		}
		src, s := slotUnder(t, c.text, pair, nil)
		show("the owner's "+c.title, OfSlot(src, s))
		s.Job = job
		show("the owner's "+c.title+", and ann's job", OfSlot(src, s))
		s.Job = nil
		show("the owner's "+c.title+", judged for ann's job", &Report{Job: "this job", State: "idle", Slots: Judge(src, job, []Slot{s})})
		src, s = slotUnder(t, c.text, policy.ClaimedIdle, job)
		s.Present.Trace = s.Present.Trace[:1]
		show("the owner's "+c.title+", claimed for ann's job", OfSlot(src, s))
	}
	s.Broken = "Not enough Cpus (1.00 short)"
	show("broken", OfSlot(src, s))
	same := s
	same.Name = "slot2"
	for _, r := range Together([]*Report{OfSlot(src, s), OfSlot(src, same)}) {
		show("two broken ones", r)
	}
	golden(t, "reports.txt", got.String())
}

// TestJudge holds a job against slots: those that say the same are one line.
func TestJudge(t *testing.T) {
	t.Parallel()
	_, job := slotAndJob(t)
	if err := job.SetText("Requirements", `TARGET.OpSys == "LINUX" && TARGET.HasDocker`); err != nil {
		t.Fatal(err)
	}
	src, desk := slotUnder(t, desktopConf, policy.OwnerIdle, nil)
	var slots []Slot
	for i := range 8 {
		s := desk
		s.Name = fmt.Sprintf("slot%d", i+1)
		slots = append(slots, s)
	}
	_, busy := slotUnder(t, "START = true\n", policy.ClaimedBusy, job)
	busy.Name = "slot9"
	busy.Ad.SetInt("Memory", 16000)
	busy.Ad.SetBool("HasDocker", true)
	free := busy
	free.Name, free.Pair = "slot10", policy.UnclaimedIdle
	var got strings.Builder
	for _, list := range [][]Slot{slots, append(slots, busy), append(slots, busy, free), {busy}, nil} {
		r := &Report{State: "not submitted", Slots: Judge(src, job, list)}
		r.Answer = JobAnswer(r.Slots)
		got.WriteString(r.Text(noon) + "---\n")
	}
	golden(t, "verdicts.txt", got.String())
}

// A job that is held against very many slots is answered in bounded time: of
// the last ones it is only said who refuses.
func TestJudgeMany(t *testing.T) {
	t.Parallel()
	_, job := slotAndJob(t)
	src, desk := slotUnder(t, desktopConf, policy.OwnerIdle, nil)
	var slots []Slot
	for i := range 6000 {
		s := desk
		s.Name = fmt.Sprintf("slot%d", i+1)
		slots = append(slots, s)
	}
	verdicts := Judge(src, job, slots)
	if len(verdicts) < 2 || len(verdicts) > 3 {
		t.Fatalf("%d verdicts", len(verdicts))
	}
	last := verdicts[len(verdicts)-1]
	want := []string{"START is FALSE [desk.conf:3]", "WithinResourceLimits is FALSE"}
	if d := cmp.Diff(want, last.lines()); d != "" || last.Slots[len(last.Slots)-1] != "slot6000" {
		t.Errorf("%v: %s", last.Slots[len(last.Slots)-1], d)
	}
	n := 0
	for _, v := range verdicts {
		n += len(v.Slots)
	}
	if n != len(slots) {
		t.Errorf("%d slots were judged", n)
	}
}

// BenchmarkFind looks for what a desktop's START lacks.
func BenchmarkFind(b *testing.B) {
	slot, job := slotAndJob(b)
	e := classad.MustParseExpr("(CpuIdle || (State != \"Unclaimed\" && State != \"Owner\")) && (IsDesktop =!= True || (KeyboardIdle > 900))")
	b.ReportAllocs()
	for b.Loop() {
		if r := Find(Question{Expr: e, Slot: slot, Job: job, Want: true, Now: noon}); len(r.Changes) == 0 {
			b.Fatal("nothing found")
		}
	}
}
