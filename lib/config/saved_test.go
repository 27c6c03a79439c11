// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSave writes a configuration of which some was asked for and reads it
// back.
func TestSave(t *testing.T) {
	t.Parallel()
	s := mustParse(t, "A = $(B) <x>\nB = 1\nC = 2\nSTART = true\nHERE @=end\nx\ny\n@end\nUPDATE_INTERVAL = 7\nSTARTD.D = 4\n")
	if got := s.String("A"); got != "1 <x>" {
		t.Fatal(got)
	}
	if n, err := s.Int("POLLING_INTERVAL"); n != 5 || err != nil {
		t.Fatal(n, err)
	}
	if _, ok := s.Lookup("d"); !ok {
		t.Fatal("d is not set")
	}
	if set, ok := s.ForSlot("KILL", 1, 1); !ok {
		t.Fatal(set)
	}
	s.Check()
	s.Warnings()
	s.Changes(mustParse(t, "B = 2\n"))

	var b bytes.Buffer
	if err := s.Save(&b); err != nil {
		t.Fatal(err)
	}
	saved, err := ReadSaved(&b)
	if err != nil {
		t.Fatal(err)
	}
	if saved.Subsystem != "STARTD" || saved.Version != Version {
		t.Errorf("header %+v", saved)
	}
	def := func(s string) *string { return &s }
	want := []SavedSetting{
		{Name: "A", Raw: "$(B) <x>", Value: "1 <x>", At: "test.conf, line 1", Used: true},
		{Name: "B", Raw: "1", Value: "1", At: "test.conf, line 2", Used: true},
		{Name: "C", Raw: "2", Value: "2", At: "test.conf, line 3"},
		{Name: "HERE", Raw: "x\ny", Value: "x\ny", At: "test.conf, line 8"},
		{Name: "KILL", Raw: "False", Value: "False", At: "<Default>", Default: def("False"), Used: true},
		{Name: "POLLING_INTERVAL", Raw: "5", Value: "5", At: "<Default>", Default: def("5"), Used: true},
		{Name: "START", Raw: "True", Value: "True", At: "<Default>", Default: def("True")},
		{Name: "STARTD.D", Raw: "4", Value: "4", At: "test.conf, line 10", Used: true},
		{Name: "UPDATE_INTERVAL", Raw: "7", Value: "7", At: "test.conf, line 9", Default: def("300")},
	}
	var got, used []SavedSetting
	for _, one := range saved.Settings {
		if slices.ContainsFunc(want, func(w SavedSetting) bool { return w.Name == one.Name }) {
			got = append(got, one)
		}
		if one.Used {
			used = append(used, one)
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if len(used) != 5 {
		t.Errorf("used: %+v", used)
	}
	if !slices.IsSortedFunc(saved.Settings, func(a, b SavedSetting) int { return compareFold(a.Name, b.Name) }) {
		t.Error("not in order")
	}
}

func TestReadSavedBad(t *testing.T) {
	t.Parallel()
	const first = `{"format":"execpoint configuration 1"}` + "\n"
	for _, text := range []string{"", "x", "{}", `{"format":"other"}`, first + "x", first + "{}", first + `{"name":1}`, first + `{"name":"A"`} {
		got, err := ReadSaved(strings.NewReader(text))
		if p := (*Problem)(nil); got != nil || !errors.As(err, &p) || p.Class != Syntax || p.Want == "" && !strings.Contains(p.Message, "no name") {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	if got, err := ReadSaved(strings.NewReader(first)); err != nil || len(got.Settings) != 0 {
		t.Errorf("%v, %v", got, err)
	}
}

func FuzzReadSaved(f *testing.F) {
	f.Add(`{"format":"execpoint configuration 1"}{"name":"A","raw":"1"}`)
	f.Add("{}")
	f.Fuzz(func(t *testing.T, text string) {
		saved, err := ReadSaved(strings.NewReader(text))
		if (saved == nil) == (err == nil) {
			t.Errorf("%v, %v", saved, err)
		}
	})
}
