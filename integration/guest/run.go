// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package guest

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/execpoint/execpoint/ci/qemu"
	"github.com/execpoint/execpoint/ci/source"
)

// Machine is the virtual machine that tests run in.
type Machine = qemu.Machine

// The control groups of a machine.
const (
	V2     = qemu.V2
	V1     = qemu.V1
	Hybrid = qemu.Hybrid
)

// Tester is the user without rights of every machine.
const Tester = qemu.Tester

// Tests are the tests of a package, built for machines.
type Tests struct {
	pkg    string // below the repository's root
	binary string
}

// Build builds the tests of a package, a path below the repository's root, for one
// or more machines.
func Build(t *testing.T, pkg string) Tests {
	t.Helper()
	Need(t)
	binary, err := qemu.BuildTests(t.Context(), pkg, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return Tests{pkg, binary}
}

// Run runs the tests of a package whose names match a pattern, as go test -run
// takes it, in a machine.
func Run(t *testing.T, m Machine, pkg, run string) {
	t.Helper()
	Build(t, pkg).Run(t, m, run)
}

const (
	usualLimit = 5 * time.Minute
	// spare is what a machine needs beside its tests.
	spare = 45 * time.Second
)

// turns are as many as machines may run at a time.
var turns = make(chan struct{}, runtime.NumCPU())

// Run runs those of the tests that match a pattern in a machine, each as a part of
// t. Other arguments are the test program's, like -test.short.
func (b Tests) Run(t *testing.T, m Machine, run string, args ...string) {
	t.Helper()
	base := NeedFor(t, m)
	root, err := source.Root()
	if err != nil {
		t.Fatal(err)
	}
	if m.Limit == 0 {
		m.Limit = usualLimit
	}
	c := qemu.Command{Program: b.binary, Args: append([]string{
		"-test.v=test2json", "-test.paniconexit0", "-test.run=" + run,
		// A test that hangs tells where before the machine is ended.
		"-test.timeout=" + max(m.Limit-spare, m.Limit/2).String(),
	}, args...)}
	if err := m.AddPackage(&c, filepath.Join(root, b.pkg)); err != nil {
		t.Fatal(err)
	}
	turns <- struct{}{}
	defer func() { <-turns }()
	var said strings.Builder
	done := make(chan error, 1)
	r, w := io.Pipe()
	go func() { done <- b.convert(t.Context(), r, &said) }()
	result, failed := base.Run(t.Context(), m, c, w)
	_ = w.Close() // a pipe in memory
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	b.keep(t, said.String())
	t.Logf("%s in a guest with control groups %v: %.1f s", b.pkg, m.Cgroups, result.Took.Seconds())
	tree, err := parse(said.String())
	if err != nil {
		t.Fatal(err)
	}
	tree.report(t)
	switch {
	case failed != nil:
		t.Errorf("%v\n%s", failed, tree.output)
	case result.Status != 0 && !tree.failed():
		t.Errorf("the tests ended with status %d; what they printed:\n%s\nthe end of the console:\n%s", result.Status, tree.output, result.Console)
	case len(tree.parts) == 0:
		t.Errorf("no test of %s matches %q", b.pkg, run)
	}
}

// convert makes events of what a test program prints, by the program that go test
// does it with.
func (b Tests) convert(ctx context.Context, from io.Reader, to io.Writer) error {
	root, err := source.Root()
	if err != nil {
		return err
	}
	module, err := source.Module(root)
	if err != nil {
		return err
	}
	var problem strings.Builder
	cmd := exec.CommandContext(ctx, "go", "tool", "test2json", "-t", "-p", module+"/"+b.pkg)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = from, to, &problem
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go tool test2json: %w: %s", err, problem.String())
	}
	return nil
}

// keep writes the events where results are wanted.
func (b Tests) keep(t *testing.T, events string) {
	t.Helper()
	dir := os.Getenv(resultsKnob)
	if dir == "" {
		return
	}
	name := "guest-" + strings.ReplaceAll(t.Name(), "/", "-") + ".json"
	if err := os.WriteFile(filepath.Join(dir, name), []byte(events), 0o644); err != nil {
		t.Fatal(err)
	}
}
