// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package classad

import "testing"

func TestUserMap(t *testing.T) {
	t.Parallel()
	m, problems := ParseUserMap(`
# a comment
* alice physics
* alice late
* "b \"o\" b" quoted
* /^(.*)@ab$/i \1,\0,\9
* /[/ broken
* /x+y/U \0
fs carol files
* lonely
@include other
`, MapExact)
	want := []string{
		`line 7: regular expression "[" is wrong or not supported`,
		"line 10: expected: method principal result",
		"line 11: @include is not supported here",
	}
	for i, p := range problems {
		if i >= len(want) || p.Error() != want[i] {
			t.Errorf("problem %d: %v", i, p)
		}
	}
	if len(problems) != len(want) {
		t.Errorf("%d problems", len(problems))
	}
	maps := UserMaps{"Groups": m}
	for _, c := range []struct {
		name, input, want string
		ok                bool
	}{
		{"groups", "alice", "physics", true},
		{"GROUPS", "Alice", "", false},
		{"Groups", `b "o" b`, "quoted", true},
		{"Groups", "Eve@AB", `Eve,Eve@AB,\9`, true},
		{"Groups", "axxyb", "xxy", true},
		{"Groups", "carol", "", false},
		{"Groups.FS", "carol", "files", true},
		{"Other", "alice", "", false},
	} {
		got, ok := maps.Lookup(c.name, c.input)
		if got != c.want || ok != c.ok {
			t.Errorf("%s of %s: %q %v, want %q %v", c.name, c.input, got, ok, c.want, c.ok)
		}
	}
}
