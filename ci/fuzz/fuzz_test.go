// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/ci/source"
)

func TestListed(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, output, want, err string }{
		{"nothing", "", "[]", ""},
		{"two packages", "FuzzA\nFuzzB\nok  \tx/a\t0.01s\n?   \tx/b\t[no test files]\nok  \tx/c\t0.02s\nFuzzA\nok  \tx/d\t0.01s\n", "[{x/a  [FuzzA FuzzB]} {x/d  [FuzzA]}]", ""},
		{"cut off", "FuzzA\n", "[]", "names no package"},
		{"a failure", "FuzzA\nFAIL\tx/a [build failed]\n", "[]", `want a name or "ok"`},
		{"chatter", "FuzzA\nstarting a pool\nok  \tx/a\t0.01s\n", "[]", "starting a pool"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := listed([]byte(tt.output))
			if (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error is %v, want %q", err, tt.err)
			}
			if err == nil && fmt.Sprint(got) != tt.want {
				t.Errorf("got  %v\nwant %s", got, tt.want)
			}
		})
	}
}

func TestDivide(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		total         time.Duration
		n             int
		properties    bool
		each, checked time.Duration
	}{
		{time.Hour, 100, true, 32400 * time.Millisecond, 6 * time.Minute},
		{time.Hour, 100, false, 36 * time.Second, 0},
		{time.Minute, 0, true, 0, time.Minute},
		{time.Millisecond, 100, false, time.Millisecond, 0},
	} {
		each, checked := divide(tt.total, tt.n, tt.properties)
		if each != tt.each || checked != tt.checked {
			t.Errorf("%v among %d targets is %v, and %v for properties; want %v and %v", tt.total, tt.n, each, checked, tt.each, tt.checked)
		}
	}
}

// TestPropertiesOfRepository finds the properties of this tree, so that none is
// left out unseen.
func TestPropertiesOfRepository(t *testing.T) {
	t.Parallel()
	root, err := source.Root()
	if err != nil {
		t.Fatal(err)
	}
	files, err := source.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	all, written := propertiesOf(files), 0
	for _, f := range files {
		if f.IsTest() && f.Dir() != "lib/rapidtest" && !strings.HasPrefix(f.Path, "ci/") {
			written += strings.Count(string(f.Text), "rapidtest.Check(")
		}
	}
	found := 0
	for _, names := range all {
		found += len(names)
	}
	if !slices.Contains(all["lib/ep"], "TestRandomEvents") || found != written {
		t.Errorf("%d properties are found where rapidtest.Check is written %d times: %v", found, written, all)
	}
}

func TestRanOut(t *testing.T) {
	t.Parallel()
	const end = "--- FAIL: FuzzA (10.01s)\n    context deadline exceeded\nFAIL\n"
	for text, want := range map[string]bool{
		"": false, end: true, "fuzz: elapsed: 9s\n" + end: true,
		"--- FAIL: FuzzA (1.0s)\n    --- FAIL: FuzzA (0.00s)\n        a_test.go:9: context deadline exceeded\nFAIL\n": false,
		"--- FAIL: FuzzA (1.0s)\n    --- FAIL: FuzzA (0.00s)\n" + end:                                                 false,
	} {
		if ranOut([]byte(text)) != want {
			t.Errorf("%q is the end of the time: want %t", text, want)
		}
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ args, err string }{
		{"", ""}, {"-each 1s ./lib/...", ""}, {"-time 0", "-time"}, {"-seed 0", "-seed"}, {"-only (", "-only"}, {"-workers 0", "-workers"}, {"-x", "-x"},
	} {
		if _, err := parseOptions(strings.Fields(tt.args)); (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
			t.Errorf("%q: %v, want %q", tt.args, err, tt.err)
		}
	}
	a, _ := parseOptions(nil)
	b, _ := parseOptions(nil)
	if a.seed == b.seed {
		t.Error("two runs have the same seed")
	}
}

// TestRun fuzzes a module of its own: what is sound passes and leaves its inputs
// in the cache, what is not is a finding with a case in testdata.
func TestRun(t *testing.T) {
	t.Parallel()
	root, cache := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{
		"go.mod":        "module example.org/x\n\ngo 1.26\n",
		"a/a_test.go":   "package a\nimport \"testing\"\nfunc FuzzSound(f *testing.F) { f.Fuzz(func(t *testing.T, s string) { if len(s) > 2 && s[0] == 'x' { _ = s[1:] } }) }\n",
		"b/b_test.go":   "package b\nimport \"testing\"\nfunc FuzzBroken(f *testing.F) { f.Add(\"a\"); f.Fuzz(func(t *testing.T, s string) { if s != \"a\" { t.Fatal(\"not an a\") } }) }\n",
		"c/c_test.go":   "package c\nimport \"testing\"\nfunc TestPlain(t *testing.T) {}\n",
		"d/nothing.go":  "package d\n",
		"a/unlisted.go": "package a\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fuzz := func(args ...string) (string, error) {
		var out bytes.Buffer
		err := run(t.Context(), &out, append([]string{"-root", root, "-cache", cache, "-each", "1s", "-workers", "1"}, args...))
		return out.String(), err
	}
	if said, err := fuzz("-only", "Sound"); err != nil || !strings.Contains(said, "ok ") || strings.Contains(said, "FuzzBroken") {
		t.Errorf("%v\n%s", err, said)
	}
	if kept, _ := os.ReadDir(filepath.Join(cache, "example.org", "x", "a", "FuzzSound")); len(kept) == 0 {
		t.Error("no inputs are kept in the cache")
	}
	said, err := fuzz()
	cases, _ := filepath.Glob(filepath.Join(root, "b", "testdata", "fuzz", "FuzzBroken", "*"))
	if err == nil || len(cases) != 1 || !strings.Contains(said, "not an a") || !strings.Contains(said, "commit this case: b/testdata/fuzz/FuzzBroken/"+filepath.Base(cases[0])) {
		t.Errorf("%v, %q\n%s", err, cases, said)
	}
	if said, err := fuzz("./c"); err == nil {
		t.Errorf("nothing to fuzz passes\n%s", said)
	}
}
