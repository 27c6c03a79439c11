// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
)

func TestDirsAreNumberedForEver(t *testing.T) {
	t.Parallel()
	base := filepath.Join(t.TempDir(), "base")
	me := Owner{Proc: host.ProcID{PID: 1, Start: 2}}
	a, err := NewDir(base, me)
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewDir(base, me)
	if err != nil {
		t.Fatal(err)
	}
	if a.Number != 1 || b.Number != 2 || a.Path == b.Path {
		t.Fatalf("got %+v, %+v", a, b)
	}
	if err := errors.Join(a.Remove(), b.Remove()); err != nil {
		t.Fatal(err)
	}
	c, err := NewDir(base, me)
	if err != nil || c.Number != 3 {
		t.Errorf("a number must not be given out again: %+v, %v", c, err)
	}
	st, err := os.Stat(base)
	if err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("others can look in: %v, %v", st.Mode(), err)
	}
}

func TestBaseThatIsNotOurs(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Skipf("needs symbolic links: %v", err)
	}
	if err := OpenBase(link); !errs.Is(err, errs.Denied) {
		t.Errorf("a link that somebody prepared must be refused, got %v", err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := OpenBase(file); err == nil {
		t.Error("a file is no base")
	}
}

func TestSweepDirs(t *testing.T) {
	t.Parallel()
	base := filepath.Join(t.TempDir(), "base")
	mk := func(o Owner) *Dir {
		t.Helper()
		d, err := NewDir(base, o)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	live, dead, reused, stuck := host.ProcID{PID: 10, Start: 1}, host.ProcID{PID: 11, Start: 1}, host.ProcID{PID: 10, Start: 99}, host.ProcID{PID: 12, Start: 1}
	running := mk(Owner{Proc: live})
	crashed := mk(Owner{Proc: dead})
	again := mk(Owner{Proc: reused, Execute: "/elsewhere"})
	kept := mk(Owner{Proc: dead, Keep: true})
	unclear := mk(Owner{})
	broken := mk(Owner{Proc: stuck, Execute: "/stuck"})
	if err := os.WriteFile(filepath.Join(base, "run-x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}

	var swept []string
	removed, err := SweepDirs(base, func(p host.ProcID) bool { return p == live }, func(execute string) error {
		swept = append(swept, execute)
		if execute == "/stuck" {
			return errors.New("busy")
		}
		return nil
	})
	if err == nil || err.Error() != "busy" {
		t.Errorf("what could not be swept must be told, got %v", err)
	}
	if d := cmp.Diff([]string{crashed.Path, again.Path}, removed); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{crashed.Execute(), "/elsewhere", kept.Execute(), "/stuck"}, swept); d != "" {
		t.Error(d)
	}
	for _, d := range []*Dir{running, kept, unclear, broken} {
		if _, err := os.Stat(d.Path); err != nil {
			t.Errorf("%s must stay: %v", d.Path, err)
		}
	}
	if removed, err := SweepDirs(filepath.Join(base, "nothing"), nil, nil); err != nil || removed != nil {
		t.Errorf("got %v, %v", removed, err)
	}
}

func TestCheckExecute(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := CheckExecute(filepath.Join(dir, "a", "b")); err != nil {
		t.Errorf("a missing directory is made: %v", err)
	}
	if left, _ := os.ReadDir(filepath.Join(dir, "a", "b")); len(left) != 0 {
		t.Errorf("the probe is left: %v", left)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := CheckExecute(filepath.Join(file, "execute")); !errs.Is(err, errs.Denied) {
		t.Errorf("got %v", err)
	}
}
