// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTypedValues(t *testing.T) {
	t.Parallel()
	s := mustParse(t, `
T = true
ONE = 1
EXPR = 3 > 2
NUMBER = 2 * 21
REAL = 2.5 * 2
NOTHING =
LIST = a, b c,,d
SECONDS = 90
STARTD_CRON_A_PERIOD = 10m
STARTD_CRON_B_PERIOD = 2H
BAD_PERIOD_X = 5m
UPDATE_INTERVAL = $(SECONDS)
MASTER.UPDATE_INTERVAL = 7
NUM_CPUS =
`)
	check := func(name string, got any, err error, want any) {
		t.Helper()
		if err != nil || got != want {
			t.Errorf("%s: got %v, %v, want %v", name, got, err, want)
		}
	}
	for name, want := range map[string]bool{"T": true, "ONE": true, "EXPR": true, "NOTHING": false, "UNSET": false, "ENABLE_SSH_TO_JOB": true, "WANT_HOLD": false} {
		got, err := s.Bool(name)
		check(name, got, err, want)
	}
	for name, want := range map[string]int64{"NUMBER": 42, "REAL": 5, "T": 1, "UNSET": 0, "UPDATE_INTERVAL": 90, "CLAIM_WORKLIFE": 1200, "NUM_CPUS": 8} {
		got, err := s.Int(name)
		check(name, got, err, want)
	}
	for name, want := range map[string]float64{"REAL": 5, "NUMBER": 42, "BackgroundLoad": 0.3, "STARTD_CRON_MAX_JOB_LOAD": 0.1} {
		got, err := s.Float(name)
		check(name, got, err, want)
	}
	for name, want := range map[string]time.Duration{"SECONDS": 90 * time.Second, "STARTD_CRON_A_PERIOD": 10 * time.Minute, "startd_cron_b_period": 2 * time.Hour, "UNSET": 0, "KILLING_TIMEOUT": 30 * time.Second} {
		got, err := s.Duration(name)
		check(name, got, err, want)
	}
	if got := s.List("LIST"); !slices.Equal(got, []string{"a", "b", "c", "d"}) {
		t.Errorf("LIST: %q", got)
	}
	for _, name := range []string{"NOTHING", "UNSET", "WANT_HOLD_REASON"} {
		if e, err := s.Expr(name); e != nil || err != nil {
			t.Errorf("%s: got %v, %v, want no expression", name, e, err)
		}
	}
	if e, err := s.Expr("EXPR"); err != nil || !e.Eval(nil).IsTrue() {
		t.Errorf("EXPR: %v, %v", e, err)
	}
	if e, err := s.Expr("WANT_HOLD"); err != nil || e == nil || e.Eval(nil).IsTrue() {
		t.Errorf("WANT_HOLD has the default %v, %v, want false", e, err)
	}
	if _, err := s.Duration("BAD_PERIOD_X"); err == nil {
		t.Error("a suffix was taken outside of a period")
	}
}

func TestBadValues(t *testing.T) {
	t.Parallel()
	s := mustParse(t, "A = maybe\nUPDATE_INTERVAL = 0\nPORT = 7x\nD = 99999999999999\nE = (1 +\n\n\n  NUM_SLOTS = -4\nADVERTISE_PSLOT_ROLLUP_INFORMATION = perhaps\nSTART = a b\nSLOT_TYPE_1_PARTITIONABLE = 2 +\n_X = $INT(foo)\nUPDATE_OFFSET=soon\nSTARTD.UPDATE_INTERVAL = x\nJOB_RENICE_INCREMENT = 3\n")
	for _, tt := range []struct {
		ask  func() error
		want string
	}{
		{func() error { _, err := s.Bool("A"); return err }, `test.conf:1:1: knob A: is not a boolean (value "maybe", want True or False)`},
		{func() error { _, err := s.Int("PORT"); return err }, `test.conf:3:1: knob PORT: is not an integer (value "7x", want a whole number)`},
		{func() error { _, err := s.Float("A"); return err }, `test.conf:1:1: knob A: is not a number (value "maybe", want a number)`},
		{func() error { _, err := s.Duration("D"); return err }, `test.conf:4:1: knob D: is too long a time (value "99999999999999", want a number of seconds)`},
		{func() error { _, err := s.Duration("A"); return err }, `test.conf:1:1: knob A: is not a time (value "maybe", want a whole number of seconds)`},
	} {
		var p *Problem
		if err := tt.ask(); !errors.As(err, &p) || err.Error() != tt.want {
			t.Errorf("got  %v\nwant %s", err, tt.want)
		}
	}
	if _, err := s.Expr("E"); err == nil || !strings.HasPrefix(err.Error(), "test.conf:5:1: knob E: is not an expression: ") {
		t.Errorf("got %v", err)
	}
	var got []string
	for _, p := range s.Check() {
		got = append(got, fmt.Sprintf("%d %s %s", p.Line, p.Knob, p.Class))
	}
	want := []string{"9 ADVERTISE_PSLOT_ROLLUP_INFORMATION bad-value", "10 START bad-value", "11 SLOT_TYPE_1_PARTITIONABLE bad-value",
		"12 _X macro-function", "13 UPDATE_OFFSET bad-value", "14 STARTD.UPDATE_INTERVAL bad-value"}
	for _, k := range []struct {
		name string
		line int
	}{{"UPDATE_INTERVAL", 2}, {"NUM_SLOTS", 8}} {
		if knob, _ := LookupKnob(k.name); knob.Min.Set {
			want = append(want, fmt.Sprintf("%d %s bad-value", k.line, k.name))
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestRanges(t *testing.T) {
	t.Parallel()
	tested := 0
	for k := range allKnobs() {
		if k.IsFamily() || k.Type != TypeInt && k.Type != TypeDuration && k.Type != TypeFloat {
			continue
		}
		try := func(value float64, good bool) {
			tested++
			s := mustParse(t, fmt.Sprintf("%s = %.0f\n", k.Name, value))
			_, err := s.Float(k.Name)
			if (err == nil) != good {
				t.Errorf("%s = %.0f: %v", k.Name, value, err)
			}
			if (len(s.Check()) == 0) != good {
				t.Errorf("%s = %.0f: Check says %v", k.Name, value, s.Check())
			}
		}
		if k.Min.Set && k.Min.Value == float64(int64(k.Min.Value)) {
			try(k.Min.Value, true)
			try(k.Min.Value-1, false)
		}
		if k.Max.Set {
			try(k.Max.Value, true)
			try(k.Max.Value+1, false)
		}
	}
	if tested < 40 {
		t.Errorf("only %d values tested", tested)
	}
}

// TestDefaultsAreGood holds the table against its own types and ranges.
func TestDefaultsAreGood(t *testing.T) {
	t.Parallel()
	s := mustParse(t, "")
	for k := range allKnobs() {
		if k.IsFamily() || k.Obsolete != "" {
			continue
		}
		var err error
		switch k.Type {
		case TypeBool:
			_, err = s.Bool(k.Name)
		case TypeInt:
			_, err = s.Int(k.Name)
		case TypeFloat:
			_, err = s.Float(k.Name)
		case TypeDuration:
			_, err = s.Duration(k.Name)
		case TypeExpr:
			_, err = s.Expr(k.Name)
		default:
			_, err = s.Expand(k.Default)
		}
		if err != nil {
			t.Errorf("%s: %v", k.Name, err)
		}
	}
}

// TestPrefixes limits a knob to one daemon, and draws a number for it.
//
// row: S4-025
func TestPrefixes(t *testing.T) {
	t.Parallel()
	const text = "startd.UPDATE_INTERVAL = 301\nstartd.UPDATE_OFFSET = $RANDOM_INTEGER(0,300)\nOTHER = $RANDOM_INTEGER(0,300)\n"
	seen := map[int64]bool{}
	for seed := range uint64(50) {
		s, err := Parse("a", text, Options{Subsystem: "STARTD", Seed: seed + 1})
		if err != nil {
			t.Fatal(err)
		}
		n, err := s.Int("UPDATE_OFFSET")
		if err != nil || n < 0 || n > 300 {
			t.Fatalf("seed %d: %d, %v", seed, n, err)
		}
		seen[n] = true
		if again, _ := s.Int("UPDATE_OFFSET"); again != n {
			t.Fatalf("seed %d: %d, then %d", seed, n, again)
		}
	}
	if len(seen) < 25 {
		t.Errorf("only %d different numbers in 50", len(seen))
	}
	other, err := Parse("a", text, Options{Subsystem: "MASTER"})
	if err != nil {
		t.Fatal(err)
	}
	if n, _ := other.Int("UPDATE_OFFSET"); n != 0 {
		t.Errorf("the master has UPDATE_OFFSET %d", n)
	}
	if n, _ := other.Int("UPDATE_INTERVAL"); n != 300 {
		t.Errorf("the master has UPDATE_INTERVAL %d", n)
	}
}

func TestNamesAndDefaults(t *testing.T) {
	t.Parallel()
	s, err := Parse("a", "zebra = 1\nApple = 2\nZEBRA = 3\n", Options{Windows: true})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := s.Names(), []string{"Apple", "CONDOR_VERSION", "CONFIG_ROOT", "LOCALNAME", "SUBSYSTEM", "zebra"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if set := mustLookup(t, s, "sbin"); set.Name != "SBIN" || !set.IsDefault || set.Raw != "$(BIN)" || set.Value != `c:\condor\bin` {
		t.Errorf("default on Windows: %+v", set)
	}
	if set := mustLookup(t, s, "WANT_HOLD"); !set.Implied || !set.IsDefault || set.Value != "false" {
		t.Errorf("implied default: %+v", set)
	}
	if got, _ := s.Expand("[$(WANT_HOLD)]"); got != "[]" {
		t.Errorf("an implied default was seen by the macro language: %s", got)
	}
	if _, ok := s.Lookup("NO_SUCH"); ok {
		t.Error("NO_SUCH was found")
	}
	for subsystem, want := range map[string]string{"STARTD": "startd", "MASTER": "no"} {
		s, err := Parse("a", "A = no\nif $(IsStartd)\nA = startd\nendif\n", Options{Subsystem: subsystem})
		if err != nil || s.String("A") != want {
			t.Errorf("%s: A = %q, %v", subsystem, s.String("A"), err)
		}
	}
}

// TestConcurrentUse is for the race detector: a Snapshot is only read.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	s := mustParse(t, ordinary())
	done := make(chan string)
	for range 4 {
		go func() {
			var b strings.Builder
			for _, name := range s.Names() {
				set, _ := s.Lookup(name)
				b.WriteString(set.Value)
			}
			fmt.Fprint(&b, len(s.Warnings()), len(s.Check()))
			done <- b.String()
		}()
	}
	first := <-done
	for range 3 {
		if got := <-done; got != first {
			t.Error("two readers saw different values")
		}
	}
}
