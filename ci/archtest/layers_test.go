// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"strings"
	"testing"
)

func TestParseLayersRefusesBadLines(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, text, want string }{
		{"package before a level", "lib/a\n", "layers.txt:1: lib/a stands before the first level"},
		{"level without name", "level\n", "layers.txt:1: want: level NAME"},
		{"area without sees", "area bin *\n", "layers.txt:1: want: area NAME sees X..."},
		{"module without in", "module golang.org/x/sys bin\n", "layers.txt:1: want: module PATH in X..."},
		{"listed twice", "level L0\nlib/a\nlib/a\n", "layers.txt:3: lib/a is listed twice, first in line 2"},
		{"unknown mark", "level L0\nlib/a clean\n", `layers.txt:2: unknown mark "clean"`},
		{"edge to nothing", "level L0\nlib/a <- lib/b\n", "layers.txt:2: lib/a may import lib/b, which is not listed"},
		{"edge to another level", "level L0\nlib/a\nlevel L1\nlib/b <- lib/a\n", "layers.txt:4: lib/b and lib/a are not in the same level"},
		{"test edge to nothing", "level L0\nlib/a test<- lib/b\n", "layers.txt:2: tests of lib/a may import lib/b, which is not listed"},
		{"area that sees nothing known", "area bin sees L9\nbin/x\n", "layers.txt:1: area bin sees L9"},
		{"every problem is told", "lib/a\nlevel\n", "layers.txt:2: want: level NAME"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseLayers("layers.txt", tt.text)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

func TestParseLayersReadsMarks(t *testing.T) {
	t.Parallel()
	l, err := ParseLayers("layers.txt", `
# words
level L0   # more words
  lib/a  pure
  lib/b  testonly later <- lib/a, lib/c test<- bin/x
  lib/c
area bin sees L0 lib/a
  bin/x
module golang.org/x/sys in bin/... tests
`)
	if err != nil {
		t.Fatal(err)
	}
	a, b := l.Packages["lib/a"], l.Packages["lib/b"]
	if !a.Pure || a.Later || a.TestOnly || !b.Later || !b.TestOnly || b.Pure {
		t.Errorf("marks: a %+v, b %+v", a, b)
	}
	if strings.Join(b.May, " ") != "lib/a lib/c" || strings.Join(b.TestMay, " ") != "bin/x" {
		t.Errorf("edges of b: %q, tests %q", b.May, b.TestMay)
	}
	if g := l.Packages["bin/x"].Group; g.Level || strings.Join(g.Sees, " ") != "L0 lib/a" {
		t.Errorf("area %+v", g)
	}
	if m := l.Modules[0]; m.Path != "golang.org/x/sys" || strings.Join(m.In, " ") != "bin/... tests" {
		t.Errorf("module %+v", m)
	}
}

func FuzzParseLayers(f *testing.F) {
	f.Add("level L0\nlib/a pure <- lib/b\nlib/b\narea bin sees *\nbin/x\nmodule m in tests\n")
	f.Add("level\narea\nmodule\n<-\n")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := ParseLayers("layers.txt", text)
		if err != nil {
			return
		}
		for path, r := range l.Packages {
			if r.Path != path || r.Group == nil {
				t.Errorf("%q has rule %+v", path, r)
			}
		}
	})
}
