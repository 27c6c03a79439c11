// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import (
	"os"
	"strings"
	"testing"
)

// otherThanPCRE are the expressions of testdata/pcre.tsv that have another
// value here, by the pattern, with the reason. They must go on being different,
// so that a change is noticed.
var otherThanPCRE = map[string]string{
	`regexps("(?|(a)|(b))\\1"`: "groups that begin at the same number in each branch",
	`regexps("a\\Kb"`:          "\\K, a match that begins later",
	`regexps("^(a(?1)?b)$"`:    "recursion",
	`regexps("(?n)(a)(?=b)"`:   "the option n",
	`regexps("(?U)a+(?=b)"`:    "the option U beside an assertion",
	`regexps("(?<=a+)b"`:       "PCRE refuses an assertion that looks behind without a bound",
}

// testdata/pcre.tsv has what classad_eval of HTCondor 25.14.1 answers.
func TestPatternsAsHTCondorHasThem(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/pcre.tsv")
	if err != nil {
		t.Fatal(err)
	}
	different := map[string]bool{}
	n := 0
	for line := range strings.Lines(string(data)) {
		text, want, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if !ok {
			t.Fatalf("%q is no row", line)
		}
		n++
		e, err := ParseExpr(text, New)
		if err != nil {
			t.Fatal(err)
		}
		got := e.Eval(&Env{My: NewAd()}).String()
		if got == want {
			continue
		}
		pattern, _, _ := strings.Cut(text, ", ")
		if _, listed := otherThanPCRE[pattern]; listed {
			different[pattern] = true
			continue
		}
		t.Errorf("%s is %s, HTCondor has %s", text, got, want)
	}
	for pattern := range otherThanPCRE {
		if !different[pattern] {
			t.Errorf("%s has HTCondor's values by now: take it off the list", pattern)
		}
	}
	if n < 300 {
		t.Errorf("only %d rows", n)
	}
}
