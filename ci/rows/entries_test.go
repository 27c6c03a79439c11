// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"testing"
)

func TestEntries(t *testing.T) {
	t.Parallel()
	const (
		fields = "struct{ n int; name, want string }"
		loop   = "for _, tt := range table { t.Run(tt.name, func(t *testing.T) {}) }\n"
	)
	in := func(body string) string { return "func TestA(t *testing.T) {\n" + body + "}\n" }
	for _, tt := range []struct {
		name, text string
		want       []string // none: the whole function counts
	}{
		{"by its place", in("table := []" + fields + "{\n// row: S0-001\n{1, `a b`, ``},\n{2, `c`, ``},\n}\n" + loop), []string{"a_b"}},
		{"by its name", in("table := []" + fields + "{\n{name: `c`},\n// row: S0-001\n{want: `x`, name: `d/e`},\n}\n" + loop), []string{"d/e"}},
		{"in the loop", in("for _, tt := range []" + fields + "{\n// row: S0-001\n{1, `a`, ``},\n} {\nt.Run(tt.name, nil)\n}\n"), []string{"a"}},
		{"beside it", in("table := []" + fields + "{\n{2, `c`, ``},\n{1, `a`, ``}, // row: S0-001\n}\n" + loop), []string{"a"}},
		{"inside it", in("table := []" + fields + "{\n{1, `a`,\n// row: S0-001\n``},\n}\n" + loop), []string{"a"}},
		{"above more words", in("table := []" + fields + "{\n// row: S0-001\n// as the manual says\n{1, `a`, ``},\n}\n" + loop), []string{"a"}},
		{"of the package", "var table = []" + fields + "{\n// row: S0-001\n{1, `a`, ``},\n}\n" + in(loop), []string{"a"}},
		{"of a named type", "type c " + fields + "\n" + in("table := []*c{\n// row: S0-001\n{1, `a`, ``},\n}\n"+loop), []string{"a"}},
		{"of a map", in("for name, tt := range map[string]int{\n// row: S0-001\n`a\\tb`: 1,\n} {\nt.Run(name, nil)\n}\n"), []string{`a\tb`}},
		{"of a map by a field", in("for _, tt := range map[int]" + fields + "{\n// row: S0-001\n1: {name: `a`},\n} {\nt.Run(tt.name, nil)\n}\n"), []string{"a"}},
		{"two entries", in("table := []" + fields + "{\n// row: S0-001\n{1, `a`, ``},\n// row: S0-001\n{2, `b`, ``},\n}\n" + loop), []string{"a", "b"}},
		{"of another field", in("table := []" + fields + "{\n// row: S0-001\n{1, `a`, `b c`},\n}\nfor _, tt := range table { t.Run(tt.want, nil) }\n"), []string{"b_c"}},

		{"above the function, too", "// row: S0-001\n" + in("table := []"+fields+"{\n// row: S0-001\n{1, `a`, ``},\n}\n"+loop), nil},
		{"a line between", in("table := []" + fields + "{\n// row: S0-001\n\n{1, `a`, ``},\n}\n" + loop), nil},
		{"no parts", in("table := []" + fields + "{\n// row: S0-001\n{1, `a`, ``},\n}\nfor range table { }\n"), nil},
		{"two kinds of parts", in("table := []" + fields + "{\n// row: S0-001\n{1, `a`, ``},\n}\nfor _, tt := range table { t.Run(tt.name, nil); t.Run(tt.want, nil) }\n"), nil},
		{"a name that is made", in("table := []" + fields + "{\n// row: S0-001\n{1, `a`, ``},\n}\nfor _, tt := range table { t.Run(tt.name+`x`, nil) }\n"), nil},
		{"a name from elsewhere", in("table := []" + fields + "{\n// row: S0-001\n{1, a(), ``},\n}\n" + loop), nil},
		{"a name that comes twice", in("table := []" + fields + "{\n// row: S0-001\n{1, `a`, ``},\n{2, `a`, ``},\n}\n" + loop), nil},
		{"a table that is changed", in("table := []" + fields + "{\n// row: S0-001\n{1, `a`, ``},\n}\ntable = more()\n" + loop), nil},
		{"a type from elsewhere", in("table := []other.T{\n// row: S0-001\n{1, `a`, ``},\n}\n" + loop), nil},
		{"before the entries", in("table := []" + fields + "{\n// row: S0-001\n}\n" + loop), nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			proofs, faults := findProofs(someTable(t), parsed(t, map[string]string{"lib/a/a_test.go": "package a\n\n" + tt.text}))
			list := proofs["S0-001"]
			if len(faults) > 0 || len(list) != 1 {
				t.Fatalf("got %v, %q", list, faults)
			}
			p := list[0]
			if tt.want == nil && !p.whole || tt.want != nil && (p.whole || !slices.Equal(p.entries, tt.want)) {
				t.Errorf("got %+v, want %q", p, tt.want)
			}
		})
	}
}
