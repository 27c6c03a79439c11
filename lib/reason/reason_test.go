// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package reason

import (
	"encoding/json"
	"os"
	"testing"
)

// The numbers in testdata/codes.json are those of HTCondor 25.14, by its names.
func TestNumbersAreHTCondors(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/codes.json")
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]Code
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	seen := map[Code]bool{}
	for _, n := range names {
		if seen[n.code] {
			t.Errorf("code %d has two names", n.code)
		}
		seen[n.code] = true
		if w, ok := want[n.name]; !ok || w != n.code {
			t.Errorf("%s is %d, want %d (known: %v)", n.name, n.code, w, ok)
		}
		if got := n.code.String(); got != n.name {
			t.Errorf("Code(%d).String() = %q, want %q", n.code, got, n.name)
		}
	}
}

func TestHolds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		code    Code
		subcode int
		want    bool
	}{
		{FailedToCreateProcess, 2, true},
		{JobOutOfResources, OutOfMemory, true},
		{Unspecified, 0, false},
		{TransferInputError, -1000, false},
		{TransferInputError, -999, true},
		{VacateBase, 0, false},
		{StartdPreemptExpression, 0, false},
	} {
		if got := Holds(c.code, c.subcode); got != c.want {
			t.Errorf("Holds(%v, %d) = %v, want %v", c.code, c.subcode, got, c.want)
		}
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	if got, want := From("slot1_1@node1", "Failed"), "Error from slot1_1@node1: Failed"; got != want {
		t.Errorf("From = %q, want %q", got, want)
	}
	if got := Code(777).String(); got != "777" {
		t.Errorf("an unknown code prints as %q", got)
	}
}
