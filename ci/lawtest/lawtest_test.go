// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package lawtest

import (
	"bytes"
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/ci/source"
)

// TestRepository applies every law to this tree.
func TestRepository(t *testing.T) {
	t.Parallel()
	root, err := source.Root()
	if err != nil {
		t.Fatal(err)
	}
	files, err := source.Load(root)
	if err != nil {
		t.Errorf("some files cannot be read:\n%v", err)
	}
	var broken []string
	for _, law := range []func([]source.File) []string{PackageDocs, Licences, NoInit, NoSleep, SkipsSayWhy, NothingPutOff, OneTableOfCommands} {
		broken = append(broken, law(files)...)
	}
	text, err := os.ReadFile(filepath.Join(root, "ci", "lawtest", "tables.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	tables, err := ReadTables(string(text))
	if err != nil {
		t.Fatal(err)
	}
	broken = append(broken, SmallTypes(files, tables)...)
	gomod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	modules, err := os.ReadFile(filepath.Join(root, "docs", "dependencies.md"))
	if err != nil {
		t.Fatal(err)
	}
	broken = append(broken, ModulesExplained(string(gomod), string(modules))...)
	read := func(name string) (string, bool) {
		full := filepath.Join(root, filepath.FromSlash(name))
		if _, err := os.Stat(full); err != nil {
			return "", false
		}
		text, err := os.ReadFile(full)
		if err != nil { // a folder
			return "", true
		}
		return string(text), true
	}
	there := testsOf(files)
	err = source.Walk(root, func(name string) error {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		// The tests of this law must spell out what it refuses.
		if name != "ci/lawtest/laws_test.go" && !bytes.ContainsRune(text, 0) {
			broken = append(broken, NoOwnFolders(name, string(text), root+string(filepath.Separator))...)
		}
		if path.Base(name) == "go.mod" { // examples/customep has its own
			broken = append(broken, NoReplace(name, string(text))...)
		}
		if strings.HasSuffix(name, ".md") && name != "docs/coverage.md" {
			broken = append(broken, DocPaths(name, string(text), read)...)
			if !strings.Contains(name, "/testdata/") && name != "CONTRIBUTING.md" && name != "docs/knobs.md" { // examples, and knobs
				broken = append(broken, DocTests(name, string(text), there)...)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	for _, b := range broken {
		t.Error(b)
	}
}

// testsOf says which packages have which tests; "" is any of them.
func testsOf(files []source.File) func(pkg, test string) bool {
	type key struct{ pkg, test string }
	there := make(map[key]bool)
	for _, f := range files {
		for _, d := range f.AST.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && f.IsTest() {
				there[key{f.Dir(), fn.Name.Name}] = true
				there[key{"", fn.Name.Name}] = true
			}
		}
	}
	return func(pkg, test string) bool { return there[key{pkg, test}] }
}
