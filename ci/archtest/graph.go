// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Graph is who imports whom in one module.
type Graph struct {
	Module   string
	Packages []Package // by path, no path twice
}

// Package is one folder with Go files, path relative to the module. Imports
// are those of the program, TestImports those that only its tests add.
type Package struct {
	Path        string
	Imports     []Import
	TestImports []Import
}

// Import is one import line. Path is as written; Where is file:line relative
// to the root of the module.
type Import struct {
	Path  string
	Where string
}

// listed is what is read of the output of go list.
type listed struct {
	ImportPath, Dir   string
	GoFiles, CgoFiles []string
	TestGoFiles       []string
	XTestGoFiles      []string
	Error             *struct{ Err string }
}

// Load asks the go command which packages the module at root has for each of
// the operating systems, and unites the answers. Packages that do not build
// are an error.
func Load(root, module string, systems ...string) (Graph, error) {
	byPath := map[string]*Package{}
	var bad []error
	for _, goos := range systems {
		pkgs, err := list(root, goos)
		if err != nil {
			return Graph{}, err
		}
		for _, l := range pkgs {
			if l.Error != nil {
				bad = append(bad, fmt.Errorf("GOOS=%s: %s: %s", goos, l.ImportPath, l.Error.Err))
			}
			rel := relative(module, l.ImportPath)
			p := byPath[rel]
			if p == nil {
				p = &Package{Path: rel}
				byPath[rel] = p
			}
			bad = append(bad,
				addImports(&p.Imports, root, l.Dir, slices.Concat(l.GoFiles, l.CgoFiles)),
				addImports(&p.TestImports, root, l.Dir, slices.Concat(l.TestGoFiles, l.XTestGoFiles)))
		}
	}
	g := Graph{Module: module}
	for _, p := range byPath {
		g.Packages = append(g.Packages, *p)
	}
	slices.SortFunc(g.Packages, func(a, b Package) int { return strings.Compare(a.Path, b.Path) })
	return g, errors.Join(bad...)
}

func list(root, goos string) ([]listed, error) {
	cmd := exec.Command("go", "list", "-e", "-json=ImportPath,Dir,GoFiles,CgoFiles,TestGoFiles,XTestGoFiles,Error", "./...")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH=amd64", "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("GOOS=%s go list: %w: %s", goos, err, stderr.String())
	}
	var pkgs []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := dec.Decode(&l); errors.Is(err, io.EOF) {
			return pkgs, nil
		} else if err != nil {
			return nil, fmt.Errorf("GOOS=%s go list: %w", goos, err)
		}
		pkgs = append(pkgs, l)
	}
}

// addImports appends the import lines of the files to list, each once.
func addImports(list *[]Import, root, dir string, files []string) error {
	for _, name := range files {
		full := filepath.Join(dir, name)
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, full, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, full)
		if err != nil {
			return err
		}
		for _, spec := range tree.Imports {
			p, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			imp := Import{Path: p, Where: fmt.Sprintf("%s:%d", filepath.ToSlash(rel), set.Position(spec.Pos()).Line)}
			if !slices.Contains(*list, imp) {
				*list = append(*list, imp)
			}
		}
	}
	return nil
}

// relative cuts the module off an import path: "." is the module itself.
func relative(module, path string) string {
	if path == module {
		return "."
	}
	return strings.TrimPrefix(path, module+"/")
}
