// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package lawtest

import (
	"slices"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/ci/source"
)

func TestSmallTypes(t *testing.T) {
	t.Parallel()
	fields := func(n int) string { return strings.Repeat("\tx, y int\n", n/2) + strings.Repeat("\tz\n", n%2) }
	methods := func(n int) string { return strings.Repeat("\tf()\n", n) }
	const head = "package a\n"
	for _, tt := range []struct {
		name, file, text string
		tables           map[string]string
		want             []string
	}{
		{"twenty", "lib/a/a.go", head + "type T struct {\n" + fields(20) + "}\n", nil, nil},
		{"more", "lib/a/a.go", head + "type T struct {\n" + fields(21) + "}\n", nil,
			[]string{"lib/a/a.go:2: lib/a.T has 21 fields; the most is 20: give those that belong together a type, or name it in ci/lawtest/tables.tsv if it is a table of facts"}},
		{"a table", "lib/a/a.go", head + "type T struct {\n" + fields(21) + "}\n", map[string]string{"lib/a.T": "facts"}, nil},
		{"a small table", "lib/a/a.go", head + "type T struct {\n" + fields(2) + "}\n", map[string]string{"lib/a.T": "facts"},
			[]string{"ci/lawtest/tables.tsv: lib/a.T is no struct of more than 20 fields; take it out"}},
		{"no table", "lib/a/a.go", head, map[string]string{"lib/a.T": "facts"},
			[]string{"ci/lawtest/tables.tsv: lib/a.T is no struct of more than 20 fields; take it out"}},
		{"of a test", "lib/a/a_test.go", head + "type T struct {\n" + fields(30) + "}\n", nil, nil},
		{"interface", "lib/starter/b/b.go", head + "type T interface {\n" + methods(7) + "}\n", nil,
			[]string{"lib/starter/b/b.go:2: lib/starter/b.T has 7 methods; the most is 6: put it together from small interfaces"}},
		{"interface elsewhere", "lib/starters/b.go", head + "type T interface {\n" + methods(7) + "}\n", nil, nil},
		{"put together", "lib/starter/b.go", head + "type T interface {\n\tA\n\tB\n" + methods(4) + "}\n", nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f, err := source.Parse(tt.file, []byte(tt.text))
			if err != nil {
				t.Fatal(err)
			}
			if got := SmallTypes([]source.File{f}, tt.tables); !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestReadTables(t *testing.T) {
	t.Parallel()
	got, err := ReadTables("type\twhy\nlib/a.T\tfacts of a\nlib/b.T\tfacts of b\n")
	if err != nil || len(got) != 2 || got["lib/a.T"] != "facts of a" {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"h\nlib/a.T\n", "h\nlib/a.T\t\n", "h\nlib/a.T\tx\nlib/a.T\ty\n", "h\n\n"} {
		if got, err := ReadTables(bad); err == nil {
			t.Errorf("ReadTables(%q) = %v, no error", bad, got)
		}
	}
}
