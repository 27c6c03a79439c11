// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package source

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// write makes a file below dir, and its folders.
func write(t *testing.T, dir, name, text string) {
	t.Helper()
	full := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestWalkSkipsWhatGoSkips(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{
		"go.mod", "lib/a/a.go", "lib/a/testdata/b.go", ".git/c.go", "_old/d.go", ".ci/run", "lib/a/.e.go", "lib/a/_f.go", "dist/g.go",
	} {
		write(t, dir, name, "package x\n")
	}
	var got []string
	if err := Walk(dir, func(name string) error { got = append(got, name); return nil }); err != nil {
		t.Fatal(err)
	}
	slices.Sort(got)
	if want := []string{".ci/run", "go.mod", "lib/a/a.go"}; !slices.Equal(got, want) {
		t.Errorf("walked %q, want %q", got, want)
	}
}

func TestLoadNamesBrokenFilesAndKeepsTheRest(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "a/a.go", "package a\n\nvar X = 1\n")
	write(t, dir, "a/bad.go", "package a\n\nfunc {\n")
	files, err := Load(dir)
	if err == nil || !strings.Contains(err.Error(), "a/bad.go:3") {
		t.Errorf("the error does not name the place: %v", err)
	}
	if len(files) != 1 || files[0].Path != "a/a.go" || files[0].Dir() != "a" || files[0].IsTest() {
		t.Fatalf("loaded %+v", files)
	}
	if got := files[0].Where(files[0].AST.Decls[0].Pos()); got != "a/a.go:3" {
		t.Errorf("the declaration is at %s", got)
	}
}

func TestModule(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := Module(dir); err == nil {
		t.Error("a folder without go.mod has a module")
	}
	write(t, dir, "go.mod", "// words\nmodule example.org/x\n\ngo 1.26\n")
	if got, err := Module(dir); err != nil || got != "example.org/x" {
		t.Errorf("module %q, %v", got, err)
	}
	write(t, dir, "go.mod", "go 1.26\n")
	if _, err := Module(dir); err == nil {
		t.Error("a go.mod without module line is taken")
	}
}

func TestRootIsTheModule(t *testing.T) {
	t.Parallel()
	root, err := Root()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "ci", "layers.txt")); err != nil {
		t.Errorf("%s is not the repository: %v", root, err)
	}
}
