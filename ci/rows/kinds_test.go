// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/ci/source"
)

func parsed(t *testing.T, texts map[string]string) []source.File {
	t.Helper()
	var files []source.File
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		f, err := source.Parse(name, []byte(texts[name]))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

func TestKinds(t *testing.T) {
	t.Parallel()
	const (
		inPool = "package a\nimport \"example.org/m/integration/realpool\"\n"
		inBin  = "package main\nimport \"os/exec\"\n"
	)
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  kind // of TestA
	}{
		{"a package of ours", map[string]string{"lib/a/a_test.go": inPool + "func TestA(t *testing.T) { realpool.New(t) }"}, inCore},
		{"makes a pool", map[string]string{"integration/a/a_test.go": inPool + "func TestA(t *testing.T) { realpool.New(t) }"}, pool},
		{"looks at a log only", map[string]string{"integration/a/a_test.go": inPool + "func TestA(t *testing.T) { realpool.ReadLog(t) }\nfunc TestB(t *testing.T) { realpool.New(t) }"}, inCore},
		{"by a function of another file", map[string]string{"integration/a/a_test.go": "package a\nfunc TestA(t *testing.T) { rig(t) }",
			"integration/a/rig_test.go": inPool + "func rig(t *testing.T) { x(t) }\nfunc x(t *testing.T) { realpool.Make(t); rig(t) }"}, pool},
		{"by a method", map[string]string{"integration/a/a_test.go": inPool + "type w struct{ *realpool.Pool }\nfunc (w *w) begin(t *testing.T) { realpool.New(t) }\n" +
			"func TestA(t *testing.T) { for range 3 { t.Run(`x`, func(t *testing.T) { w := &w{}; w.begin(t) }) } }"}, pool},
		{"by a variable", map[string]string{"integration/a/a_test.go": inPool + "var steps = []func(*testing.T){ func(t *testing.T) { realpool.New(t) } }\nfunc TestA(t *testing.T) { for _, s := range steps { s(t) } }"}, pool},
		{"by a generic function", map[string]string{"integration/a/a_test.go": inPool + "func with[T any](t T) { realpool.New(t) }\nfunc TestA(t *testing.T) { with[int](3); with(`x`) }"}, pool},
		{"under another name", map[string]string{"integration/a/a_test.go": "package a\nimport rp \"example.org/m/integration/realpool\"\nfunc TestA(t *testing.T) { rp.New(t) }"}, pool},
		{"a variable of the function's name", map[string]string{"integration/a/a_test.go": inPool + "func rig(t *testing.T) { realpool.Make(t) }\nfunc TestA(t *testing.T) { rig := 3; _ = rig }"}, inCore},
		{"a variable of the package's name", map[string]string{"integration/a/a_test.go": inPool + "func TestA(t *testing.T) { realpool := x(); realpool.New(t) }"}, inCore},
		{"a realpool of others", map[string]string{"integration/a/a_test.go": "package a\nimport \"example.org/other/integration/realpool\"\nfunc TestA(t *testing.T) { realpool.New(t) }"}, inCore},
		{"a folder of a similar name", map[string]string{"integrations/a/a_test.go": inPool + "func TestA(t *testing.T) { realpool.New(t) }"}, inCore},

		{"starts a program", map[string]string{"bin/a/a_test.go": inBin + "func TestA(t *testing.T) { exec.Command(`x`).Run() }"}, program},
		{"hands over a command line", map[string]string{"bin/a/a.go": "package main\nfunc main() { tool(nil) }\nfunc tool(args []string, out io.Writer) int { return 0 }",
			"bin/a/a_test.go": "package main\nfunc TestA(t *testing.T) { tool([]string{`x`}) }"}, program},
		{"a command line of the test's own", map[string]string{"bin/a/a_test.go": "package main\nfunc tool(args []string) int { return 0 }\nfunc TestA(t *testing.T) { tool(nil) }"}, inCore},
		{"only reads flags", map[string]string{"bin/a/a.go": "package main\nfunc parse(args []string) (flags, error) { return }", "bin/a/a_test.go": "package main\nfunc TestA(t *testing.T) { parse(nil) }"}, inCore},
		{"a pool from there", map[string]string{"bin/a/a_test.go": "package main\nimport \"example.org/m/integration/realpool\"\nfunc TestA(t *testing.T) { realpool.New(t) }"}, inCore},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			files := parsed(t, tt.files)
			if got := kindsOf(testModule, files)[testKey{files[0].Dir(), "TestA"}]; got != tt.want {
				t.Errorf("got %s, want %s", kindNames[got], kindNames[tt.want])
			}
		})
	}
}

// TestRulesNameFunctions fails where a function of ours that a rule names is no
// longer there: its tests would silently count as tests of the core.
func TestRulesNameFunctions(t *testing.T) {
	t.Parallel()
	root, err := source.Root()
	if err != nil {
		t.Fatal(err)
	}
	files, err := source.Load(root)
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, f := range files {
		for _, d := range f.AST.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil {
				there[f.Dir()+"."+fn.Name.Name] = true
			}
		}
	}
	for _, r := range rules {
		for _, name := range r.calls {
			if strings.HasPrefix(name, "integration/") && !there[name] {
				t.Errorf("there is no function %s", name)
			}
		}
	}
}
