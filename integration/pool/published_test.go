// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package pool

import (
	"archive/zip"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/execpoint/execpoint/ci/source"
)

const (
	modulePath = "github.com/execpoint/execpoint"
	published  = "v0.7.0" // not the version that the example's go.mod names
)

// publish makes a module proxy that has this checkout as a version, and returns
// its folder. It leaves out what no program imports: tests, and what lies
// elsewhere than the packages.
func publish(t *testing.T, root string) string {
	t.Helper()
	proxy := t.TempDir()
	dir := filepath.Join(proxy, filepath.FromSlash(modulePath), "@v")
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(dir, 0o755))
	gomod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	must(err)
	archive, err := os.Create(filepath.Join(dir, published+".zip"))
	must(err)
	z := zip.NewWriter(archive)
	must(errors.Join(
		os.WriteFile(filepath.Join(dir, "list"), []byte(published+"\n"), 0o644),
		os.WriteFile(filepath.Join(dir, published+".info"), []byte(`{"Version":"`+published+`","Time":"2026-11-23T00:00:00Z"}`), 0o644),
		os.WriteFile(filepath.Join(dir, published+".mod"), gomod, 0o644),
		source.Walk(root, func(name string) error {
			of, _, _ := strings.Cut(name, "/")
			if of != "lib" && of != "platform" && name != "go.mod" && name != "LICENSE" || strings.HasSuffix(name, "_test.go") {
				return nil
			}
			text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
			if err != nil {
				return err
			}
			f, err := z.Create(modulePath + "@" + published + "/" + name)
			if err == nil {
				_, err = f.Write(text)
			}
			return err
		}),
		z.Close(), archive.Close()))
	return proxy
}

// TestCustomEPPublished follows the README of the example with a proxy that has
// this module in a later version: the go command resolves all that the program
// imports, with no word about where a checkout is. Nothing is compiled, which
// TestCustomEP does.
func TestCustomEPPublished(t *testing.T) {
	t.Parallel()
	from := example(t)
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	downloaded := filepath.Join(strings.TrimSpace(string(cache)), "cache", "download")
	proxies := "file://" + publish(t, filepath.Join(from, "..", "..")) + ",file://" + downloaded
	dir := t.TempDir()
	for _, name := range []string{"main.go", "go.mod"} {
		text, err := os.ReadFile(filepath.Join(from, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), text, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	golang := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOWORK=off", "GOSUMDB=off", "GOFLAGS=-modcacherw", "GOPROXY="+proxies, "GOMODCACHE="+filepath.Join(dir, ".cache"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		return string(out)
	}
	readme, err := os.ReadFile(filepath.Join(from, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []string{"mod edit -require " + modulePath + "@latest", "mod tidy"} {
		if !strings.Contains(string(readme), "    go "+step+"\n") {
			t.Errorf("the README does not say go %s", step)
		}
		golang(strings.Fields(step)...)
	}
	if list := golang("list", "-deps", "-f", "{{with .Module}}{{.Path}} {{.Version}}{{end}}", "."); !strings.Contains(list, modulePath+" "+published+"\n") {
		t.Errorf("the program is made of\n%s", list)
	}
}
