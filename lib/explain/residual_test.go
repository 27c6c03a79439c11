// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/execpoint/execpoint/lib/classad"
	"github.com/execpoint/execpoint/lib/rapidtest"
)

// noon is a Friday.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

const desktopSlot = `KeyboardIdle = 34
ConsoleIdle = 34
LoadAvg = 1.5
CondorLoadAvg = 0.3
State = "Unclaimed"
Activity = "Idle"
EnteredCurrentState = 1795174800
EnteredCurrentActivity = 1795176000 - 34
ClockMin = 720
ClockDay = 5
Memory = 4000
Cpus = 4
SlotID = 1
OpSys = "LINUX"
IsDesktop = true
WithinResourceLimits = TARGET.RequestMemory <= MY.Memory && TARGET.RequestCpus <= MY.Cpus
CpuIdle = LoadAvg - CondorLoadAvg <= 0.3
Start = KeyboardIdle > 900 && CpuIdle && TARGET.RequestMemory < 2000
Loop = Pool
Pool = Loop
`

const smallJob = "RequestMemory = 9000\nRequestCpus = 1\nOwner = \"ann\"\nJobUniverse = 5\n"

func ad(t testing.TB, text string) *classad.Ad {
	t.Helper()
	a, err := classad.ParseAd(text, classad.Old)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// asked are expressions of a slot for which the sentences of testdata hold:
// of the documents' policies, of the templates, and of what else can be
// written.
var asked = []string{
	"KeyboardIdle > 15 * 60",
	"CpuIdle && KeyboardIdle > 900",
	"CpuIdle || KeyboardIdle > 900",
	"!(KeyboardIdle < 60)",
	"WithinResourceLimits",
	"Start && WithinResourceLimits",
	"TARGET.Foo",
	"!TARGET.Foo",
	"TARGET.Foo =?= true",
	"Foo > 5",
	"MY.Foo > 5",
	"KeyboardIdle",
	"time() - EnteredCurrentActivity > 600",
	"(ClockMin < 480 || ClockMin >= 1020) || ClockDay == 0 || ClockDay == 6",
	"((ClockMin < 480 || ClockMin >= 1020) || ClockDay == 0 || ClockDay == 6) && KeyboardIdle > 900",
	"KeyboardIdle > 60 && KeyboardIdle < 100",
	"KeyboardIdle > 60 && KeyboardIdle < 50",
	"false",
	"1 > 2",
	"CpuIdle && false",
	"false || KeyboardIdle > 900",
	"Loop",
	"( (CpuIdle || (State != \"Unclaimed\" && State != \"Owner\")) && (IsDesktop =!= True || (KeyboardIdle > 900)) )",
	"ifThenElse(IsDesktop, KeyboardIdle > 900, true)",
	"IsDesktop ? false : KeyboardIdle > 1",
	"TARGET.Big ? false : true",
	"stringListMember(TARGET.Owner, \"bob,eve\")",
	"TARGET.Owner == \"bob\"",
	"OpSys == \"WINDOWS\"",
	"State != \"Unclaimed\"",
	"MissingThing + \"a\" > 5",
	"MY.Memory >= TARGET.RequestMemory * 2",
	"random() > 2",
	"Foo + Bar > 3",
	"MY.None * 2 < TARGET.None2",
	"KeyboardIdle > 900 || \"x\"",
	"(TARGET.Gone && KeyboardIdle > 900) =!= false",
	"(TARGET.Gone && KeyboardIdle > 900) =?= true",
	"(KeyboardIdle > 900) == true",
	"(KeyboardIdle > 20) == false",
	"!((TARGET.Gone && KeyboardIdle > 900) =?= false)",
	"false =!= Start",
	"( (MY.SlotID == 2) && (TARGET.InteractiveJob =?= True) )",
	"IsSuspendableSlot!=True && IsSuspendableJob=!=True",
	"Scheduler =?= \"DedicatedScheduler@full.host.name\"",
	"LoadAvg < 0.3 && KeyboardIdle > 2",
	"(IsDesktop ? KeyboardIdle : LoadAvg) + (Cpus) > 99",
	"{1} == 2",
	"[a = 1].a > 2",
}

func slotAndJob(t testing.TB) (slot, job *classad.Ad) {
	t.Helper()
	slot, job = ad(t, desktopSlot), ad(t, smallJob)
	slot.SetInt("EnteredCurrentActivity", noon.Unix()-34)
	slot.SetInt("EnteredCurrentState", noon.Unix()-1200)
	return slot, job
}

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}

// TestSentences holds what is said of each expression against testdata.
func TestSentences(t *testing.T) {
	t.Parallel()
	slot, job := slotAndJob(t)
	var got strings.Builder
	for _, text := range asked {
		for _, j := range []*classad.Ad{job, nil} {
			r := Find(Question{Expr: classad.MustParseExpr(text), Slot: slot, Job: j, Want: true, Now: noon})
			name := "START"
			if j == nil {
				if r.Need == nil || !r.Need.noJob() {
					continue
				}
				name = "without a job START"
			} else {
				got.WriteString("\n" + text + "\n")
			}
			got.WriteString("  " + strings.ReplaceAll(r.Sentence(name), "\n", "\n  ") + "\n")
			for _, c := range r.Changes {
				got.WriteString("    " + c.Of + " " + c.Attribute + " = " + c.To + "\n")
			}
		}
	}
	golden(t, "sentences.txt", got.String())
}

// What the issue of the machine's owner shows.
func TestKeyboard(t *testing.T) {
	t.Parallel()
	slot, job := slotAndJob(t)
	r := Find(Question{Expr: classad.MustParseExpr("KeyboardIdle > 15 * 60"), Slot: slot, Job: job, Want: true, Now: noon})
	want := "START would be TRUE if KeyboardIdle > 900; it is 34 now, in 14 min 27 s if nobody types"
	if got := r.Sentence("START"); got != want || r.Forecast.After() != 867*time.Second {
		t.Errorf("got %s (%v), want %s", got, r.Forecast, want)
	}
}

// held evaluates an expression with the changes made in copies of the ads.
func held(t failer, q Question, changes []Change) classad.Value {
	t.Helper()
	slot, job := q.Slot.Clone(), classad.NewAd()
	if q.Job != nil {
		job = q.Job.Clone()
	}
	ofJob := q.Job != nil
	for _, c := range changes {
		of := slot
		if c.Of == "job" {
			of, ofJob = job, true
		}
		if err := of.SetText(c.Attribute, c.To); err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
	}
	env := &classad.Env{My: slot, Now: q.Now, MaxSteps: maxSteps}
	if ofJob {
		env.Target = job
	}
	return q.Expr.Eval(env)
}

// claims checks what an answer claims: what it says of now, of changes, and of
// the future.
func claims(t failer, q Question) {
	t.Helper()
	r := Find(q)
	now := held(t, q, nil)
	if r.Is != is(now, goal{truth: q.Want}) || word(now) != r.Value {
		t.Fatalf("%v: said to be %s (%v), is %v", q.Expr, r.Value, r.Is, now)
	}
	if len(r.Changes) > 0 {
		if v := held(t, q, r.Changes); !is(v, goal{truth: q.Want}) {
			t.Fatalf("%v: with %+v it is %v, not %v", q.Expr, r.Changes, v, q.Want)
		}
	}
	if r.Forecast != nil {
		later := q
		later.Now = q.Now.Add(r.Forecast.After())
		later.Slot = q.Slot.Clone()
		sec := r.Forecast.Seconds
		for _, name := range []string{"KeyboardIdle", "ConsoleIdle"} {
			if e, ok := q.Slot.Lookup(name); ok {
				n, _ := e.Eval(nil).AsInt()
				later.Slot.SetInt(name, n+sec)
			}
		}
		if _, ok := q.Slot.Lookup("ClockMin"); ok {
			later.Slot.SetInt("ClockMin", int64(later.Now.Hour()*60+later.Now.Minute()))
			later.Slot.SetInt("ClockDay", int64(later.Now.Weekday()))
		}
		if v := held(t, later, nil); !is(v, goal{truth: q.Want}) {
			t.Fatalf("%v: %v it is %v, not %v", q.Expr, r.Forecast, v, q.Want)
		}
	}
	_ = r.Sentence("X")
}

// TestClaims asks of random conditions: what is said to make them so does.
func TestClaims(t *testing.T) {
	t.Parallel()
	slot, job := slotAndJob(t)
	solved, foretold := 0, 0
	rapidtest.Check(t, func(t *rapid.T) {
		e, err := classad.ParseExpr(condition(t, 0), classad.Old)
		if err != nil {
			t.Fatal(err)
		}
		q := Question{Expr: e, Slot: slot, Job: job, Want: rapid.Bool().Draw(t, "want"), Now: noon}
		if rapid.IntRange(0, 5).Draw(t, "job") == 0 {
			q.Job = nil
		}
		claims(t, q)
		r := Find(q)
		if len(r.Changes) > 0 {
			solved++
		}
		if r.Forecast != nil {
			foretold++
		}
	})
	if solved == 0 || foretold == 0 {
		t.Errorf("%d solved, %d foretold: nothing was tried", solved, foretold)
	}
}

// failer is what of a test the checks use: of rapid's and of the ordinary ones.
type failer interface {
	Helper()
	Fatalf(format string, args ...any)
}

// condition draws a condition.
func condition(t *rapid.T, depth int) string {
	kind := rapid.IntRange(0, 7).Draw(t, "kind")
	if depth > 3 {
		kind = min(kind, 1)
	}
	switch kind {
	case 2:
		return "(" + condition(t, depth+1) + " && " + condition(t, depth+1) + ")"
	case 3:
		return "(" + condition(t, depth+1) + " || " + condition(t, depth+1) + ")"
	case 4:
		return "!(" + condition(t, depth+1) + ")"
	case 5:
		return "ifThenElse(" + condition(t, depth+1) + ", " + condition(t, depth+1) + ", " + condition(t, depth+1) + ")"
	case 6:
		if rapid.Bool().Draw(t, "truth") {
			op := rapid.SampledFrom([]string{"==", "!=", "=?=", "=!="}).Draw(t, "equal")
			return "((" + condition(t, depth+1) + ") " + op + rapid.SampledFrom([]string{" true)", " false)"}).Draw(t, "constant")
		}
		return rapid.SampledFrom([]string{"true", "false", "undefined", "CpuIdle", "IsDesktop", "TARGET.Nice", "Start", "WithinResourceLimits"}).Draw(t, "name")
	}
	side := func() string {
		return rapid.SampledFrom([]string{"KeyboardIdle", "ConsoleIdle", "LoadAvg", "LoadAvg - CondorLoadAvg", "TARGET.RequestMemory", "MY.Memory",
			"time() - EnteredCurrentActivity", "ClockMin", "ClockDay", "Missing", "MY.None", "TARGET.None", "2 * KeyboardIdle + 3", "SlotID"}).Draw(t, "side")
	}
	right := strconv.Itoa(rapid.IntRange(-5, 2000).Draw(t, "number"))
	if rapid.Bool().Draw(t, "attributes on both sides") {
		right = side()
	}
	op := rapid.SampledFrom([]string{"<", "<=", ">", ">=", "==", "!=", "=?=", "=!="}).Draw(t, "op")
	return side() + " " + op + " " + right
}

// FuzzFind asks of any expression: no answer takes long, and each holds.
func FuzzFind(f *testing.F) {
	for _, text := range asked {
		f.Add(text, true)
		f.Add(text, false)
	}
	slot, job := slotAndJob(f)
	f.Fuzz(func(t *testing.T, text string, want bool) {
		e, err := classad.ParseExpr(text, classad.Old)
		if err != nil {
			return
		}
		claims(t, Question{Expr: e, Slot: slot, Job: job, Want: want, Now: noon})
	})
}
