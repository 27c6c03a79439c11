// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package realpool

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/execpoint/execpoint/ci/source"
)

// exampleNeeds is the version of this module that examples/customep requires. No
// proxy is asked for it: a workspace says that it is this checkout.
const exampleNeeds = "github.com/execpoint/execpoint v0.1.0"

// BuildExample builds examples/customep, which is a module of its own, with the
// packages of this checkout for an operating system, and returns the program. It
// is a person's build of the published module in all but where the packages come
// from; nothing is downloaded that this module does not need itself.
func BuildExample(tb testing.TB, goos string) string {
	tb.Helper()
	root, err := source.Root()
	if err != nil {
		tb.Fatal(err)
	}
	dir := tb.TempDir()
	work, program := filepath.Join(dir, "go.work"), filepath.Join(dir, "customep")
	text := fmt.Sprintf("go 1.26.0\n\nuse (\n\t%q\n\t%q\n)\n\nreplace %s => %q\n", root, filepath.Join(root, "examples", "customep"), exampleNeeds, root)
	if err := os.WriteFile(work, []byte(text), 0o644); err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-o", program, ".")
	cmd.Dir = filepath.Join(root, "examples", "customep")
	cmd.Env = append(os.Environ(), "GOWORK="+work, "CGO_ENABLED=0", "GOOS="+goos)
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("go build of examples/customep for %s: %v\n%s", goos, err, out)
	}
	return program
}
