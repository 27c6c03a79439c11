// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package lawtest

import (
	"slices"
	"testing"
)

func TestDocPaths(t *testing.T) {
	t.Parallel()
	tree := map[string]string{"lib/ep": "", "lib/ep/step.go": "func Step() {}", "docs/a.md": "", "README.md": "", ".ci/run": ""}
	read := func(p string) (string, bool) { text, ok := tree[p]; return text, ok }
	for _, tt := range []struct {
		text string
		want []string
	}{
		{"see [a](a.md), [up](../README.md#top), [web](https://example.org/x), [here](#there)", nil},
		{"`lib/ep`, `lib/ep/`, `lib/ep/step.go`, `lib/ep/step.go:Step`, `.ci/run`, `ci/check` is a command", []string{"docs/b.md:1: names ci/check, which is not there"}},
		{"patterns: `lib/*`, `platform/<os>`, `lib/...`, `bin/{a,b}`; others: `libx/y`, `go run ./bin/x`", nil},
		{"\n[b](b.md)", []string{"docs/b.md:2: a link to b.md, which is not there"}},
		{"`lib/gone/x.go`", []string{"docs/b.md:1: names lib/gone/x.go, which is not there"}},
		{"`lib/ep/step.go:Ste`", []string{"docs/b.md:1: names Ste, but lib/ep/step.go does not contain it"}},
	} {
		if got := DocPaths("docs/b.md", tt.text, read); !slices.Equal(got, tt.want) {
			t.Errorf("%q\ngot  %q\nwant %q", tt.text, got, tt.want)
		}
	}
}

func TestDocTests(t *testing.T) {
	t.Parallel()
	there := func(pkg, test string) bool {
		return test == "TestA" && (pkg == "" || pkg == "lib/a") || test == "BenchmarkB" && (pkg == "" || pkg == "lib/b")
	}
	for _, tt := range []struct {
		text string
		want []string
	}{
		{"| it holds | `lib/a` `TestA`, `lib/b` BenchmarkB |", nil},
		{"`lib/a/x_test.go:TestA` and TestA; Testing is not one, nor is Tests", nil},
		{"| `lib/a` | `BenchmarkB` |\n`lib/a` has none, BenchmarkB is elsewhere", nil},
		{"`lib/b`, `TestA`", nil}, // two of a list
		{"`lib/b` BenchmarkB, `TestA`", []string{"docs/b.md:1: names the test TestA, which lib/b does not have"}},
		{"\n`lib/b` `TestA`", []string{"docs/b.md:2: names the test TestA, which lib/b does not have"}},
		{"`TestGone`", []string{"docs/b.md:1: names the test TestGone, which the tree does not have"}},
	} {
		if got := DocTests("docs/b.md", tt.text, there); !slices.Equal(got, tt.want) {
			t.Errorf("%q\ngot  %q\nwant %q", tt.text, got, tt.want)
		}
	}
}

func TestModulesExplained(t *testing.T) {
	t.Parallel()
	const gomod = "module example.org/m\n\ngo 1.26\n\nrequire (\n\tgolang.org/x/sys v0.1.0\n\texample.org/x v1.0.0\n\texample.org/y v1.0.0 // indirect\n)\n\nrequire example.org/z v1.2.3\n"
	got := ModulesExplained(gomod, "| `golang.org/x/sys` | because |\n")
	want := []string{"go.mod:7: example.org/x has no row in docs/dependencies.md", "go.mod:11: example.org/z has no row in docs/dependencies.md"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}
