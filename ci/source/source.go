// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

// Package source reads this repository's own files for the checks beside it:
// where the root is, which Go files there are, and their syntax trees. It
// knows no rule; archtest, lawtest and rows bring theirs. It never writes.
//
//	root, err := source.Root()
//	files, err := source.Load(root)
package source

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// File is one parsed Go file. Path is relative to the repository's root and
// has forward slashes on every system.
type File struct {
	Path string
	Text []byte
	AST  *ast.File
	Set  *token.FileSet
}

// Dir is the folder of f relative to the root, "." for the root itself.
func (f File) Dir() string { return path.Dir(f.Path) }

// IsTest says whether only the test build sees f.
func (f File) IsTest() bool { return strings.HasSuffix(f.Path, "_test.go") }

// Line is the line of p in f, counted from 1.
func (f File) Line(p token.Pos) int { return f.Set.Position(p).Line }

// Where prints p as path:line, which editors can open.
func (f File) Where(p token.Pos) string { return fmt.Sprintf("%s:%d", f.Path, f.Line(p)) }

// Parse reads one Go file given as text; name is the path to be shown.
func Parse(name string, text []byte) (File, error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, name, text, parser.ParseComments)
	if err != nil {
		return File{}, err
	}
	return File{Path: name, Text: text, AST: tree, Set: set}, nil
}

// Root finds the repository: the nearest folder at or above the working
// directory that holds a go.mod.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod here or above")
		}
		dir = up
	}
}

// Module returns the module path written in the go.mod of root.
func Module(root string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "module "); ok {
			return strings.TrimSpace(name), nil
		}
	}
	return "", errors.New("go.mod names no module")
}

// Load parses every Go file of the tree under root in path order, whatever its
// build tags say. A file that does not parse is part of the error, and the
// others are still returned.
func Load(root string) ([]File, error) {
	var files []File
	var bad []error
	err := Walk(root, func(name string) error {
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if err != nil {
			return err
		}
		f, err := Parse(name, text)
		if err != nil {
			bad = append(bad, err)
			return nil
		}
		files = append(files, f)
		return nil
	})
	return files, errors.Join(err, errors.Join(bad...))
}

// Walk calls visit with the path of every file under root, relative and with
// forward slashes, and skips what the go command skips too: testdata, and
// names that begin with a dot or an underscore. The folder .ci is visited.
func Walk(root string, visit func(name string) error) error {
	return filepath.WalkDir(root, func(full string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, full)
		if err != nil {
			return err
		}
		name := filepath.ToSlash(rel)
		base := path.Base(name)
		hidden := name != "." && name != ".ci" && strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_")
		switch {
		case d.IsDir() && (hidden || base == "testdata" || base == "dist"):
			return fs.SkipDir
		case !d.Type().IsRegular() || hidden:
			return nil
		}
		return visit(name)
	})
}
