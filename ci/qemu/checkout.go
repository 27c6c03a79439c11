// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package qemu

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"

	"github.com/execpoint/execpoint/ci/source"
)

// checkout is where a guest has what it has of the repository.
const checkout = "/src"

// AddPackage has the command run as go test runs the tests of a package: in the
// package's directory, with its testdata and the go.mod by which the repository is
// found. Outside the repository it does nothing.
func (m *Machine) AddPackage(c *Command, dir string) error {
	root, err := source.Root()
	if err != nil {
		return nil // a program of somebody's, who is anywhere
	}
	rel, err := filepath.Rel(root, dir)
	if err != nil || !filepath.IsLocal(rel) {
		return nil
	}
	files := map[string]string{checkout + "/go.mod": filepath.Join(root, "go.mod")}
	maps.Copy(files, m.Files)
	c.Dir = path.Join(checkout, filepath.ToSlash(rel))
	testdata := filepath.Join(dir, "testdata")
	if _, err := os.Stat(testdata); err == nil {
		files[path.Join(c.Dir, "testdata")] = testdata
	}
	m.Files = files
	return nil
}

// BuildTests builds the tests of a package, so that they run in a guest, as the
// file NAME.test in a directory. The package is a path below the repository's root.
func BuildTests(ctx context.Context, pkg, dir string) (string, error) {
	file := filepath.Join(dir, path.Base(pkg)+".test")
	return file, build(ctx, "test", "-c", "-ldflags=-s -w", "-o", file, "./"+pkg)
}

// buildPrograms builds programs of ours.
func buildPrograms(ctx context.Context, names []string, dir string) (map[string]string, error) {
	built := map[string]string{}
	for _, name := range names {
		built[name] = filepath.Join(dir, name)
		if err := build(ctx, "build", "-o", built[name], "./bin/"+name); err != nil {
			return nil, err
		}
	}
	return built, nil
}

// build runs the go command in the repository, for something that needs no
// libraries.
func build(ctx context.Context, args ...string) error {
	root, err := source.Root()
	if err != nil {
		return fmt.Errorf("qemu: %w", err)
	}
	cmd := exec.CommandContext(ctx, "go", append(args[:1:1], append([]string{"-buildvcs=false"}, args[1:]...)...)...)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("qemu: go %s %s: %w\n%s", args[0], args[len(args)-1], err, out)
	}
	return nil
}
