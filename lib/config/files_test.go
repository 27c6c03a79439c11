// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/execpoint/execpoint/lib/errs"
)

// regularFiles is Options.ReadDir over a real directory.
func regularFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

// TestRealFiles reads from a directory, through a link.
//
// row: S3-003
func TestRealFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	root := write("condor_config", "LOCAL_CONFIG_FILE = $(CONFIG_ROOT)/condor_config.platform\nLOCAL_CONFIG_DIR = $(CONFIG_ROOT)/config.d\n")
	write("platforms/linux", "PLATFORM = linux\n")
	write("config.d/10", "ORDER = $(ORDER)10\n")
	write("config.d/02", "ORDER = $(ORDER)02\n")
	write("config.d/old~", "ORDER = $(ORDER)old\n")
	write("config.d/sub/99", "ORDER = $(ORDER)99\n")
	if err := os.Symlink(filepath.Join(dir, "platforms", "linux"), filepath.Join(dir, "condor_config.platform")); err != nil {
		t.Skip("no links here: ", err)
	}
	s, err := Load(Options{Root: root, ReadFile: os.ReadFile, ReadDir: regularFiles})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.String("PLATFORM"); got != "linux" {
		t.Errorf("PLATFORM = %q", got)
	}
	if got := s.String("ORDER"); got != "0210" {
		t.Errorf("ORDER = %q", got)
	}

	_, err = Load(Options{Root: filepath.Join(dir, "none"), ReadFile: os.ReadFile})
	if !errs.Is(err, errs.NotFound) {
		t.Errorf("a missing root is %v", errs.KindOf(err))
	}
	_, err = Load(Options{Root: write("bad", "bad\n"), ReadFile: os.ReadFile})
	if !errs.Is(err, errs.Invalid) {
		t.Errorf("a bad root is %v", errs.KindOf(err))
	}
	var p *Problem
	if !errors.As(err, &p) || p.Line != 1 || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %+v", p)
	}
}
