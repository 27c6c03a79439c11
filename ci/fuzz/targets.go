// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/execpoint/execpoint/ci/source"
)

// pkg is a package with the tests of it that are to be run.
type pkg struct {
	path  string // import path
	dir   string // where its tests run
	names []string
}

// divide says how long each of n targets is fuzzed and how long the properties
// are checked, which get a tenth of the time. A target is never given no time:
// the fuzzer would take that for one without end.
func divide(total time.Duration, n int, properties bool) (each, checked time.Duration) {
	if properties {
		checked = total / 10
	}
	if n == 0 {
		return 0, total
	}
	return max((total-checked)/time.Duration(n), time.Millisecond).Round(time.Millisecond), checked
}

// listed reads what go test -list prints: the names of a package's tests, and
// then a line "ok" with its import path. What begins with another word is of a
// package without tests.
func listed(output []byte) (all []pkg, err error) {
	var names []string
	lines := bufio.NewScanner(bytes.NewReader(output))
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) == 1 && isTest(words[0]):
			names = append(names, words[0])
		case len(words) >= 2 && words[0] == "ok":
			if len(names) > 0 {
				all = append(all, pkg{path: words[1], names: names})
			}
			names = nil
		case len(words) > 0 && words[0] != "?":
			return nil, fmt.Errorf("go test -list says %q, want a name or \"ok\" and a package", lines.Text())
		}
	}
	if len(names) > 0 {
		return nil, fmt.Errorf("go test -list names no package for %q", names)
	}
	return all, lines.Err()
}

func isTest(name string) bool {
	return strings.HasPrefix(name, "Fuzz") || strings.HasPrefix(name, "Test")
}

// propertiesOf returns the tests of each folder that check a property with
// rapidtest, by the folder's path relative to the root.
func propertiesOf(files []source.File) map[string][]string {
	all := map[string][]string{}
	for _, f := range files {
		for _, d := range f.AST.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if ok && f.IsTest() && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") && calls(fn, "rapidtest", "Check") {
				all[f.Dir()] = append(all[f.Dir()], fn.Name.Name)
			}
		}
	}
	return all
}

// calls reports whether fn has a call of pkg.name.
func calls(fn *ast.FuncDecl, pkg, name string) (found bool) {
	ast.Inspect(fn, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok && sel.Sel.Name == name {
			x, ok := sel.X.(*ast.Ident)
			found = found || ok && x.Name == pkg
		}
		return !found
	})
	return found
}

// find fills in what there is to be run.
func (j *job) find(ctx context.Context) error {
	out, err := j.goCommand(ctx, append([]string{"list", "-f", "{{.ImportPath}}\t{{.Dir}}"}, j.packages...)...)
	if err != nil {
		return err
	}
	dirs := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), "\t")
		dirs[path] = dir
	}
	if out, err = j.goCommand(ctx, append([]string{"test", "-list", "^Fuzz"}, j.packages...)...); err != nil {
		return err
	}
	if j.fuzzed, err = listed(out); err != nil {
		return err
	}
	files, err := source.Load(j.root)
	if err != nil {
		return err
	}
	for dir, names := range propertiesOf(files) {
		for path, at := range dirs {
			if at == filepath.Join(j.root, filepath.FromSlash(dir)) {
				j.properties = append(j.properties, pkg{path: path, names: names})
			}
		}
	}
	j.fuzzed, j.properties = j.chosen(j.fuzzed, dirs), j.chosen(j.properties, dirs)
	if len(j.fuzzed)+len(j.properties) == 0 {
		return fmt.Errorf("fuzz: nothing in %q matches -only %q", j.packages, j.only)
	}
	return nil
}

// chosen are those packages, in order of their paths, that have names which the
// command line asks for.
func (j *job) chosen(all []pkg, dirs map[string]string) (some []pkg) {
	for _, p := range all {
		p.dir = dirs[p.path]
		p.names = slices.DeleteFunc(slices.Clone(p.names), func(name string) bool { return !j.only.MatchString(name) })
		if slices.Sort(p.names); len(p.names) > 0 {
			some = append(some, p)
		}
	}
	slices.SortFunc(some, func(a, b pkg) int { return strings.Compare(a.path, b.path) })
	return some
}

func (j *job) targets() (n int) {
	for _, p := range j.fuzzed {
		n += len(p.names)
	}
	return n
}

// goCommand runs the go command in the root of the repository and returns what
// it prints.
func (j *job) goCommand(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = j.root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w\n%s%s", strings.Join(args, " "), err, out, stderr.Bytes())
	}
	return out, nil
}
