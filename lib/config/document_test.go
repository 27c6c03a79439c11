// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/lib/classad"
)

// document reads an example of HTCondor's manuals.
func document(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "documents", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// sameExpr compares two texts as expressions: blanks and outer parentheses of
// the documents differ from those of the table.
func sameExpr(t *testing.T, a, b string) bool {
	t.Helper()
	strip := func(s string) string {
		s = strings.Join(strings.Fields(s), "")
		for strings.HasPrefix(s, "(") && closeBrace(s, 0, 50) == len(s)-1 {
			s = s[1 : len(s)-1]
		}
		return s
	}
	return strip(a) == strip(b)
}

// helperMacros are the macros of the default policy, expanded.
var helperMacros = map[string]string{
	"MINUTE": "60", "StateTimer": "(time() - EnteredCurrentState)", "ActivityTimer": "(time() - EnteredCurrentActivity)",
	"ActivationTimer": "(time() - JobStart)", "NonCondorLoadAvg": "(LoadAvg - CondorLoadAvg)", "BackgroundLoad": "0.3", "HighLoad": "0.5",
	"StartIdleTime": "15 * 60", "ContinueIdleTime": "5 * 60", "MaxSuspendTime": "10 * 60",
	"KeyboardBusy": "KeyboardIdle < 60", "ConsoleBusy": "(ConsoleIdle < 60)",
	"CPUIdle": "(LoadAvg - CondorLoadAvg) <= 0.3", "CPUBusy": "(LoadAvg - CondorLoadAvg) >= 0.5",
	"KeyboardNotBusy": "((KeyboardIdle < 60) == False)",
	"MachineBusy":     "(((LoadAvg - CondorLoadAvg) >= 0.5) || (KeyboardIdle < 60))",
}

// TestHelperMacros expands the macros of the default policy, as the manual
// lists them and as they are without any file.
//
// row: S0-205
func TestHelperMacros(t *testing.T) {
	t.Parallel()
	s := mustParse(t, "")
	for name, want := range helperMacros {
		if got := s.String(name); !sameExpr(t, got, want) {
			t.Errorf("without a file %s expands to %q, want %q", name, got, want)
		}
	}
	s = mustParse(t, document(t, "default-policy.conf"))
	inner := map[string]string{ // the manual leaves out parentheses that the table has
		"KeyboardNotBusy": "(KeyboardIdle < 60 == False)",
		"MachineBusy":     "((LoadAvg - CondorLoadAvg) >= 0.5 || KeyboardIdle < 60",
	}
	for name, want := range helperMacros {
		if other, ok := inner[name]; ok {
			want = other
		}
		if got := s.String(name); !sameExpr(t, got, want) {
			t.Errorf("in the manual's example %s expands to %q, want %q", name, got, want)
		}
	}
	// The manual's MachineBusy lacks a parenthesis, which Check finds.
	ps := s.Check()
	if len(ps) != 1 || ps[0].Knob != "MachineBusy" || ps[0].Line == 0 {
		t.Errorf("Check found %v", ps)
	}
}

// TestShippedPolicy is what holds when no file says anything.
//
// row: S0-206
func TestShippedPolicy(t *testing.T) {
	t.Parallel()
	for _, s := range []*Snapshot{mustParse(t, ""), mustParse(t, document(t, "default-policy.conf"))} {
		for name, want := range map[string]bool{"WANT_SUSPEND": false, "START": true, "SUSPEND": false, "CONTINUE": true, "PREEMPT": false, "KILL": false} {
			e, err := s.Expr(name)
			if err != nil || e == nil || e.Eval(nil).IsTrue() != want {
				t.Errorf("%s is %v, %v, want %v", name, e, err, want)
			}
		}
		if d, err := s.Duration("MachineMaxVacateTime"); d != 10*time.Minute || err != nil {
			t.Errorf("MachineMaxVacateTime is %v, %v", d, err)
		}
	}
}

// TestTestJobPolicy adds to the earlier values.
//
// row: S0-208, S1-060
func TestTestJobPolicy(t *testing.T) {
	t.Parallel()
	s := mustParse(t, document(t, "default-policy.conf")+"START = KeyboardIdle > $(StartIdleTime)\n"+document(t, "test-job.conf"))
	for name, want := range map[string]string{
		"START":    `(KeyboardIdle > 15 * 60) || Owner == "coltrane"`,
		"SUSPEND":  `(False) && Owner != "coltrane"`,
		"CONTINUE": "True",
		"PREEMPT":  `(False) && Owner != "coltrane"`,
		"KILL":     "False",
	} {
		if got := s.String(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	start, err := s.Expr("START")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		idle  int64
		owner string
		want  bool
	}{{0, "coltrane", true}, {0, "alice", false}, {901, "alice", true}} {
		machine, job := classad.NewAd(), classad.NewAd()
		machine.SetInt("KeyboardIdle", tt.idle)
		job.SetString("Owner", tt.owner)
		if got := start.Eval(&classad.Env{My: machine, Target: job}).IsTrue(); got != tt.want {
			t.Errorf("idle %d, %s: START is %v", tt.idle, tt.owner, got)
		}
	}
}

// TestTimeOfDayPolicy evaluates the expressions of the manual at given times.
func TestTimeOfDayPolicy(t *testing.T) {
	t.Parallel()
	s := mustParse(t, document(t, "time-of-day.conf"))
	start, err := s.Expr("START")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		day, minute int64
		want        bool
	}{{1, 600, false}, {1, 1080, true}, {1, 480, false}, {1, 479, true}, {5, 1019, false}, {5, 1020, true}, {0, 600, true}, {6, 600, true}} {
		machine := classad.NewAd()
		machine.SetInt("ClockMin", tt.minute)
		machine.SetInt("ClockDay", tt.day)
		if got := start.Eval(&classad.Env{My: machine}).IsTrue(); got != tt.want {
			t.Errorf("day %d, minute %d: START is %v", tt.day, tt.minute, got)
		}
	}
}

// TestDesktopPolicy evaluates the toggled policy of the manual.
func TestDesktopPolicy(t *testing.T) {
	t.Parallel()
	text := strings.Replace(document(t, "desktop.conf"), "(IsDesktop =!= True) * 0", "(IsDesktop =!= True) * 3600", 1)
	for _, tt := range []struct {
		text       string
		suspend    bool
		retirement int64
	}{{text, false, 3600}, {text + "IsDesktop = True\n", true, 0}} {
		s := mustParse(t, tt.text)
		if w := s.Warnings(); len(w) > 0 {
			t.Errorf("warnings %v", w)
		}
		if ps := s.Check(); len(ps) > 0 {
			t.Errorf("problems %v", ps)
		}
		machine, job := classad.NewAd(), classad.NewAd()
		for _, name := range s.List("STARTD_ATTRS") {
			e, err := s.Expr(name)
			if err != nil {
				t.Fatal(err)
			}
			if e != nil {
				machine.Set(name, e)
			}
		}
		machine.SetInt("KeyboardIdle", 0)
		machine.SetInt("CpuBusyTime", 0)
		machine.SetReal("LoadAvg", 1)
		machine.SetReal("CondorLoadAvg", 1)
		machine.SetInt("JobStart", 1000)
		env := &classad.Env{My: machine, Target: job, Now: time.Unix(5000, 0)}
		eval := func(name string) classad.Value {
			e, err := s.Expr(name)
			if err != nil || e == nil {
				t.Fatalf("%s: %v, %v", name, e, err)
			}
			return e.Eval(env)
		}
		if got := eval("SUSPEND").IsTrue(); got != tt.suspend {
			t.Errorf("SUSPEND is %v, want %v", got, tt.suspend)
		}
		if got, ok := eval("MAXJOBRETIREMENTTIME").AsInt(); !ok || got != tt.retirement {
			t.Errorf("MAXJOBRETIREMENTTIME is %v, want %d", got, tt.retirement)
		}
	}
}

// TestOldPolicy reads the block of the 6.8 manual. It parses; the helper of a
// universe that is gone, and the missing parenthesis, are reported.
//
// row: S1-053
func TestOldPolicy(t *testing.T) {
	t.Parallel()
	s := mustParse(t, document(t, "policy-6.8.conf"))
	for name, want := range map[string]string{
		"StateTimer":   "(CurrentTime - EnteredCurrentState)",
		"LastCkpt":     "(CurrentTime - LastPeriodicCheckpoint)",
		"WANT_SUSPEND": "( (TARGET.ImageSize <  (15 * 1024)) || (KeyboardIdle < 60 == False) ||  || (TARGET.JobUniverse == 5) )",
	} {
		if got := s.String(name); got != want {
			t.Errorf("%s = %q, want %q", name, got, want)
		}
	}
	if d, err := s.Duration("MaxVacateTime"); d != 10*time.Minute || err != nil {
		t.Errorf("MaxVacateTime is %v, %v", d, err)
	}
	var reported []string
	for _, p := range s.Warnings() {
		if p.Class == UnsetReference {
			reported = append(reported, p.Knob+" "+p.Message)
		}
	}
	if got := strings.Join(reported, "; "); got != "WANT_SUSPEND refers to $(IsPVM), which nothing sets; WANT_VACATE refers to $(IsPVM), which nothing sets" {
		t.Errorf("reported %s", got)
	}
	for _, p := range s.Check() {
		if p.Knob != "MachineBusy" && p.Knob != "WANT_SUSPEND" && p.Knob != "WANT_VACATE" {
			t.Errorf("unexpected problem: %v", p)
		}
	}
}

// TestDoubledMachine multiplies what was detected.
func TestDoubledMachine(t *testing.T) {
	t.Parallel()
	s := mustParse(t, "NUM_CPUS = $(DETECTED_CORES)*2\nMEMORY = $(DETECTED_MEMORY)*2\n")
	for name, want := range map[string]int64{"NUM_CPUS": 16, "MEMORY": 32000} {
		if got, err := s.Int(name); got != want || err != nil {
			t.Errorf("%s = %d, %v, want %d", name, got, err, want)
		}
	}
}
