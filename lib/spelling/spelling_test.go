// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package spelling

import "testing"

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"START", "start", 0}, {"STRAT", "START", 1}, {"START", "STARTD", 1}, {"SUSPENDED", "SUSPEND", 2},
		{"KILL", "PULL", 2}, {"ABCD", "WXYZ", 3}, {"A", "ABCDEFG", 3},
	} {
		if got := Distance(tt.a, tt.b, 2); got != tt.want {
			t.Errorf("%s, %s: %d, want %d", tt.a, tt.b, got, tt.want)
		}
		if got := Distance(tt.b, tt.a, 2); got != tt.want {
			t.Errorf("%s, %s: %d, want %d", tt.b, tt.a, got, tt.want)
		}
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	words := []string{"run", "drain", "status", "history"}
	for s, want := range map[string]string{
		"drian": "drain", "runn": "run", "STATSU": "status", "histroy": "history", "hostory": "history", "drop": "", "": "", "run": "", "fly": "",
	} {
		if got := Nearest(s, words); got != want {
			t.Errorf("%q: %q, want %q", s, got, want)
		}
	}
}

// FuzzDistance: no word is too long or too strange, and the order of the two
// does not matter.
func FuzzDistance(f *testing.F) {
	f.Add("START", "strat")
	f.Add("\u023a", "\xff")
	f.Fuzz(func(t *testing.T, a, b string) {
		if len(a) > longest || len(b) > longest {
			_ = Distance(a, b, 2)
			return
		}
		if there, back := Distance(a, b, 3), Distance(b, a, 3); there != back && len(b) < longest/2 && len(a) < longest/2 {
			t.Errorf("%q, %q: %d and %d", a, b, there, back)
		}
	})
}

func TestCount(t *testing.T) {
	t.Parallel()
	for n, want := range map[int]string{0: "0 jobs are", 1: "1 job is", 2: "2 jobs are"} {
		if got := Count(n, "job") + " " + Are(n); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
