// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package realpool

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// ourPrograms are those of ours that an Execution Point consists of.
var ourPrograms = [...]string{"condor_startd", "condor_starter"}

// sideBySide is how many tests run at a time, whatever the number of processors:
// most of the time they wait for the clocks of their pools.
const sideBySide = "6"

// Main runs the tests of a package and removes what Install built for all of
// them. It is for TestMain.
func Main(m *testing.M) int {
	flag.Parse()
	told := false
	flag.Visit(func(f *flag.Flag) { told = told || f.Name == "test.parallel" })
	if !told {
		_ = flag.Set("test.parallel", sideBySide)
	}
	defer func() { _ = os.RemoveAll(buildDir()) }()
	return m.Run()
}

// buildDir is where this process builds our programs.
func buildDir() string {
	return filepath.Join(os.TempDir(), fmt.Sprintf("eppool-bin%d", os.Getpid()))
}

// build builds our programs once for all tests of a process: linking them takes
// two seconds of a processor. They are built without cgo, as packages are.
var build = sync.OnceValue(func() error {
	// One that was killed and had the same process id may have left it.
	if err := os.RemoveAll(buildDir()); err != nil {
		return err
	}
	if err := os.Mkdir(buildDir(), 0o755); err != nil {
		return err
	}
	if os.Getenv("EXECPOINT_GUEST_INSIDE") != "" { // a virtual machine has them, and no compiler
		return linkThere()
	}
	args := []string{"build", "-o", buildDir() + "/"}
	for _, name := range ourPrograms {
		args = append(args, "github.com/execpoint/execpoint/bin/"+name)
	}
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
})

// linkThere puts the programs that lie in PATH where they would be built.
func linkThere() error {
	for _, name := range ourPrograms {
		file, err := exec.LookPath(name)
		if err == nil {
			err = os.Symlink(file, filepath.Join(buildDir(), name))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Programs builds our programs and returns the directory in which they are, for
// tests that need no HTCondor. It is there until Main returns.
func Programs(tb testing.TB) string {
	tb.Helper()
	if err := build(); err != nil {
		tb.Fatal(err)
	}
	return buildDir()
}

// Install puts our condor_startd and condor_starter into a directory.
func (p *Pool) Install(dir string) {
	p.TB.Helper()
	p.Must(build())
	for _, name := range ourPrograms {
		// A link, not a copy: a file that was just written cannot be run while a
		// child of another test holds it open.
		p.Must(os.Link(filepath.Join(buildDir(), name), filepath.Join(dir, name)))
	}
}
