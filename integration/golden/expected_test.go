// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package golden

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// row is a line of testdata/expected.tsv: the facts of some cases that differ, and why.
type row struct {
	cases, fact, state, reason string // the first two are patterns
	met                        bool
}

// expected are the lines of testdata/expected.tsv.
type expected struct {
	rows   []*row
	differ []string // what differed, as lines
}

// states say why a fact differs: HTCondor's is a defect (of the list of the notes), ours
// is chosen, or it is to be built. A case that is not run has no fact, but a dash.
// What varies depends on the moment or on the slot that a job was given, and may agree.
var states = []string{"defect", "chosen", "missing", "varies", "unrun"}

func expectations(t *testing.T) *expected {
	t.Helper()
	b, err := os.ReadFile("testdata/expected.tsv")
	if err != nil {
		t.Fatal(err)
	}
	x := &expected{}
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "#") || strings.HasPrefix(line, "case\t") {
			continue
		}
		f := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(f) != 4 || f[3] == "" || !slices.Contains(states, f[2]) || (f[1] == "-") != (f[2] == "unrun") {
			t.Fatalf("expected.tsv: %q: want case, fact, state and reason", line)
		}
		x.rows = append(x.rows, &row{cases: f[0], fact: f[1], state: f[2], reason: f[3]})
	}
	return x
}

func (r *row) is(id, fact string) bool {
	return matches(r.cases, id) && (r.fact == "-") == (fact == "-") && matches(r.fact, fact)
}

// matches is for names and beginnings of names with a star behind.
func matches(pattern, name string) bool {
	if start, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(name, start)
	}
	return pattern == name
}

// unrun says that a case is listed as one that is not run.
func (x *expected) unrun(id string) bool {
	for _, r := range x.rows {
		if r.is(id, "-") {
			r.met = true
			return true
		}
	}
	return false
}

// judge compares the facts of a case.
func (x *expected) judge(t *testing.T, id string, want, got facts) {
	t.Helper()
	names := maps.Clone(want)
	maps.Copy(names, got)
	for _, fact := range slices.Sorted(maps.Keys(names)) {
		w, inWant := want[fact]
		g, inGot := got[fact]
		if !inWant {
			w = "nothing"
		}
		if !inGot {
			g = "nothing"
		}
		if strings.HasPrefix(fact, "cgroup.cpu.") && !inWant || g == "-" {
			continue // the recording machine did not always have it; the test cannot know
		}
		listed := false
		for _, r := range x.rows {
			if !r.is(id, fact) {
				continue
			}
			listed = true
			if w != g {
				r.met = true
			} else if r.cases == id && r.fact == fact && r.state != "varies" {
				t.Errorf("%s agrees (%q) and is listed as one that differs: %s", fact, w, r.reason)
			}
		}
		if w == g {
			continue
		}
		x.differ = append(x.differ, fmt.Sprintf("%s\t%s\t%q\t%q", id, fact, w, g))
		if !listed {
			t.Errorf("%s: HTCondor %q, ours %q", fact, w, g)
		}
	}
}

// report fails for a row that is about nothing, where all cases ran.
func (x *expected) report(t *testing.T, all bool) {
	t.Helper()
	for _, r := range x.rows {
		if all && !r.met && r.state != "varies" {
			t.Errorf("expected.tsv: nothing differs as %s %s says: %s", r.cases, r.fact, r.reason)
		}
	}
	if file := os.Getenv("EXECPOINT_GOLDEN_DIFFER"); file != "" {
		if err := os.WriteFile(file, []byte(strings.Join(x.differ, "\n")+"\n"), 0o644); err != nil {
			t.Error(err)
		}
	}
}
