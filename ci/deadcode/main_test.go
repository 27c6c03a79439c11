// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"strings"
	"testing"
)

// TestCompare has lists that are right and wrong.
func TestCompare(t *testing.T) {
	t.Parallel()
	files := map[string]string{"lib/a/example_test.go": "x := a.New()\nx.Next()\n", "lib/b/b_test.go": "a.Whole()"}
	const found = "lib/a/a.go:5:6: unreachable func: New\nlib/a/a.go:9:18: unreachable func: Reader.Next\n"
	const list = "# a line for people\nlib/a/a.go\tNew\tlib/a/example_test.go\tlibrary\n"
	for _, tt := range []struct{ name, found, list, want string }{
		{"all of it", found, list + "lib/a/a.go\tReader.Next\tlib/a/example_test.go\tlibrary\n", ""},
		{"a whole file", found, "lib/a/a.go\t*\tlib/b/b_test.go\tlibrary\n", ""},
		{"a new one", found, list, "lib/a/a.go: no program reaches Reader.Next"},
		{"one that is reached", "", list, "lib/a/a.go New is reached by a program, or gone"},
		{"nobody uses it", found, list + "lib/a/a.go\tReader.Next\tlib/b/b_test.go\tlibrary\n", "lib/b/b_test.go does not mention Next of lib/a/a.go"},
		{"its user is gone", found, list + "lib/a/a.go\tReader.Next\tlib/c_test.go\tlibrary\n", "no such file"},
		{"no reason", found, "lib/a/a.go\tNew\tlib/a/example_test.go\t\n", "allowed.tsv:1: want file, function"},
		{"nothing is dead", "", "# a line for people\n", ""},
		{"nothing is dead, without a line", "", "", ""},
		{"twice", found, list + "lib/a/a.go\tReader.Next\tlib/a/example_test.go\tlibrary\n" + "lib/a/a.go\tNew\tlib/a/example_test.go\tlibrary\n", "lib/a/a.go New stands there twice"},
		{"of a type with parameters", "lib/a/a.go:9:18: unreachable func: Set[T].Next\n", "lib/a/a.go\tSet[T].Next\tlib/a/example_test.go\tlibrary\n", ""},
		{"other words", "deadcode: no packages\n", list, "not a line of deadcode"},
	} {
		dead, err := parseFound(strings.NewReader(tt.found))
		var allowed []entry
		if err == nil {
			allowed, err = parseList(tt.list)
		}
		if err == nil {
			err = compare(dead, allowed, func(file string) (string, error) {
				if text, ok := files[file]; ok {
					return text, nil
				}
				return "", errors.New("no such file")
			})
		}
		got := ""
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
