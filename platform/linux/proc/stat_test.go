// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Lines of real kernels, with names that were made to mislead.
var statCases = []struct {
	text string
	want Stat
	bad  bool
}{
	{"1 (init) S 0 1 1 0 -1 4194560 100 200 0 0 12 34 56 78 20 0 1 0 9 1048576 300 18446744073709551615 1\n",
		Stat{PID: 1, Comm: "init", State: 'S', Parent: 0, Session: 1, User: 12, Sys: 34, KidUser: 56, KidSys: 78, Start: 9, Size: 1048576, RSS: 300}, false},
	{"77 (a) R 1 (b) S) Z 5 77 76 0 -1 0 0 0 0 0 0 0 -1 0 20 0 1 0 12345678901234 0 0 0",
		Stat{PID: 77, Comm: "a) R 1 (b) S", State: 'Z', Parent: 5, Session: 76, Start: 12345678901234}, false},
	{"8 (x\n9 (y) S 1 8 8 0 -1 0 0 0 0 0 1 2 3 4 20 0 1 0 7 5 6 0",
		Stat{PID: 8, Comm: "x\n9 (y", State: 'S', Parent: 1, Session: 8, User: 1, Sys: 2, KidUser: 3, KidSys: 4, Start: 7, Size: 5, RSS: 6}, false},
	{"", Stat{}, true},
	{"12 (short) S 1 2 3", Stat{}, true},
	{"x (n) S 0 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 9 0 0", Stat{}, true},
	{"-4 (n) S 0 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 9 0 0", Stat{}, true},
	{"1 (n) Sleeping 0 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 9 0 0", Stat{}, true},
	{"1 (n) S 0 1 1 0 -1 0 0 0 0 0 zero 0 0 0 20 0 1 0 9 0 0", Stat{}, true},
	{")( 1 2", Stat{}, true},
}

func TestParseStat(t *testing.T) {
	t.Parallel()
	for _, c := range statCases {
		got, err := ParseStat([]byte(c.text))
		if diff := cmp.Diff(c.want, got); diff != "" || (err != nil) != c.bad {
			t.Errorf("%q: %v\n%s", c.text, err, diff)
		}
	}
	if !(Stat{State: 'Z'}).Dead() || (Stat{State: 'T'}).Dead() {
		t.Error("who is dead")
	}
}

func FuzzParseStat(f *testing.F) {
	for _, c := range statCases {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		s, err := ParseStat(text)
		if err == nil && (s.PID <= 0 || !strings.Contains(string(text), "("+s.Comm+")")) {
			t.Errorf("%q: %+v", text, s)
		}
	})
}

func TestHasEnv(t *testing.T) {
	t.Parallel()
	const text = "A=1\x00B=22\x00_CONDOR_ANCESTOR_5=5:6:abc\x00"
	for entry, want := range map[string]bool{
		"A=1": true, "B=22": true, "B=2": false, "=1": false, "_CONDOR_ANCESTOR_5=5:6:abc": true, "_CONDOR_ANCESTOR_5=5:6:ab": false, "": false,
	} {
		if got := HasEnv([]byte(text), entry); got != want {
			t.Errorf("%q: %v", entry, got)
		}
	}
}

func TestBootOffset(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		text string
		want int64
	}{
		{"monotonic           0         0\nboottime            0         0\n", 0},
		{"monotonic           7         0\nboottime        86400         0\n", 8_640_000},
		{"monotonic           0         0\nboottime         -100 500000000\n", -9_950},
		{"boottime  x 0\n", 0},
		{"boottime 1\n", 0},
		{"", 0},
	} {
		if got := bootOffset([]byte(tt.text)); got != tt.want {
			t.Errorf("%q adds %d clock ticks, want %d", tt.text, got, tt.want)
		}
	}
}

var argsCases = []struct {
	text string
	want []string
}{
	{"", nil}, {"a\x00", []string{"a"}}, {"a\x00run\x00-x\x00", []string{"a", "run", "-x"}}, {"\x00", []string{""}}, {"a\x00\x00", []string{"a", ""}},
	{"a\x00ru", []string{"a", "ru"}}, {"one line of its own", []string{"one line of its own"}},
}

func TestParseArgs(t *testing.T) {
	t.Parallel()
	for _, c := range argsCases {
		if d := cmp.Diff(c.want, ParseArgs([]byte(c.text))); d != "" {
			t.Errorf("%q: %s", c.text, d)
		}
	}
}

func FuzzParseArgs(f *testing.F) {
	for _, c := range argsCases {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if got := strings.Join(ParseArgs(text), "\x00"); got != strings.TrimSuffix(string(text), "\x00") {
			t.Errorf("%q becomes %q", text, got)
		}
	})
}
