// Copyright 2026 The execpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/execpoint/execpoint/lib/errs"
	"github.com/execpoint/execpoint/lib/host"
	"github.com/execpoint/execpoint/lib/machine"
)

// someones is a host.PrivateDirs of a system on which the named directories,
// and what is below them, are another user's.
type someones []string

func (s someones) OpenPrivate(path string) (*os.Root, error) {
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, errs.E("someones", errs.NotFound, path, err)
	}
	if err := s.Private(root); err != nil {
		root.Close()
		return nil, err
	}
	return root, nil
}

func (s someones) Private(dir *os.Root) error {
	for _, name := range s {
		if strings.Contains(dir.Name()+"/", name) {
			return errs.E("someones", errs.Denied, dir.Name(), errors.New("it belongs to the user 61234"))
		}
	}
	return nil
}

func TestDirsAreNumberedForEver(t *testing.T) {
	t.Parallel()
	base, temp := filepath.Join(t.TempDir(), "base"), t.TempDir()
	me := Owner{Proc: host.ProcID{PID: 1, Start: 2}}
	a, err := NewDir(someones{}, base, temp, me)
	if err != nil {
		t.Fatal(err)
	}
	b, err := NewDir(someones{}, base, temp, me)
	if err != nil {
		t.Fatal(err)
	}
	if a.Number != 1 || b.Number != 2 || a.Path == b.Path || a.Files == b.Files || filepath.Dir(a.Files) != temp {
		t.Fatalf("got %+v, %+v", a, b)
	}
	if err := errors.Join(a.Remove(), b.Remove()); err != nil {
		t.Fatal(err)
	}
	c, err := NewDir(someones{}, base, temp, me)
	if err != nil || c.Number != 3 {
		t.Errorf("a number must not be given out again: %+v, %v", c, err)
	}
	for _, dir := range []string{base, c.Path, c.Files} {
		st, err := os.Stat(dir)
		if err != nil || st.Mode().Perm() != 0o700 {
			t.Errorf("others can look into %s: %v, %v", dir, st.Mode(), err)
		}
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) != 1 {
		t.Errorf("left among the temporary files: %v, %v", left, err)
	}
}

// Where another user could have written there is no run, and the error says
// where and why.
func TestBaseThatIsNotOurs(t *testing.T) {
	t.Parallel()
	base, temp := filepath.Join(t.TempDir(), "base"), t.TempDir()
	if _, err := NewDir(someones{}, base, temp, Owner{Proc: host.ProcID{PID: 1, Start: 2}}); err != nil {
		t.Fatal(err)
	}
	refused := func(what string, err error, dir string) {
		t.Helper()
		if !errs.Is(err, errs.Denied) || !strings.Contains(err.Error(), dir) || !strings.Contains(err.Error(), "61234") {
			t.Errorf("%s: %v", what, err)
		}
	}
	theirs := someones{"/base/"}
	_, err := NewDir(theirs, base, temp, Owner{})
	refused("a new run", err, base)
	_, _, err = Dirs(theirs, base)
	refused("a list", err, base)
	_, err = SweepDirs(theirs, base, nil, nil)
	refused("a sweep", err, base)
	if _, err := NewDir(someones{"execpoint-run"}, base, temp, Owner{}); !errs.Is(err, errs.Denied) || !strings.Contains(err.Error(), "TMPDIR") {
		t.Errorf("files that are not safe: %v", err)
	}
	if left, err := os.ReadDir(temp); err != nil || len(left) != 1 {
		t.Errorf("left among the temporary files: %v, %v", left, err)
	}

	// One run in ours that another user could have written: nothing is known of it.
	_, owners, err := Dirs(someones{"run-1/"}, base)
	if err != nil || len(owners) != 1 || !owners[0].Proc.IsZero() {
		t.Errorf("%+v, %v", owners, err)
	}
}

func TestSweepDirs(t *testing.T) {
	t.Parallel()
	base, temp := filepath.Join(t.TempDir(), "base"), t.TempDir()
	mk := func(o Owner) *Dir {
		t.Helper()
		d, err := NewDir(someones{}, base, temp, o)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(d.Execute(), 0o755); err != nil {
			t.Fatal(err)
		}
		return d
	}
	other := func(name string) string {
		t.Helper()
		path := filepath.Join(t.TempDir(), name)
		if err := os.Mkdir(path, 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	elsewhere, busy, foreign := other("elsewhere"), other("busy"), other("foreign")
	live, dead, reused, stuck := host.ProcID{PID: 10, Start: 1}, host.ProcID{PID: 11, Start: 1}, host.ProcID{PID: 10, Start: 99}, host.ProcID{PID: 12, Start: 1}
	running := mk(Owner{Proc: live})
	crashed := mk(Owner{Proc: dead})
	again := mk(Owner{Proc: reused, Execute: elsewhere, Elsewhere: []string{filepath.Join(elsewhere, "nothing")}})
	kept := mk(Owner{Proc: dead, Keep: true})
	unclear := mk(Owner{})
	broken := mk(Owner{Proc: stuck, Execute: busy})
	outside := mk(Owner{Proc: dead, Execute: foreign})
	if err := os.WriteFile(filepath.Join(base, "run-x"), nil, 0o600); err != nil {
		t.Fatal(err)
	}

	var swept []string
	sweep := func() ([]string, error) {
		swept = nil
		return SweepDirs(someones{"/foreign/"}, base, func(p host.ProcID) bool { return p == live }, func(execute string) error {
			swept = append(swept, execute)
			if execute == busy {
				return errors.New("busy")
			}
			return nil
		})
	}
	removed, err := sweep()
	if err == nil || !strings.Contains(err.Error(), "busy") {
		t.Errorf("what could not be swept must be told, got %v", err)
	}
	if !strings.Contains(err.Error(), foreign) || !strings.Contains(err.Error(), "61234") {
		t.Errorf("an EXECUTE of another user must be told, got %v", err)
	}
	if d := cmp.Diff([]string{crashed.Path, again.Path, outside.Path}, removed); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{crashed.Execute(), elsewhere, kept.Execute(), busy}, swept); d != "" {
		t.Error(d)
	}
	for _, d := range []*Dir{running, kept, unclear, broken} {
		for _, path := range []string{d.Path, d.Files} {
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s must stay: %v", path, err)
			}
		}
	}
	for _, d := range []*Dir{crashed, again, outside} {
		if _, err := os.Stat(d.Files); err == nil {
			t.Errorf("%s is left", d.Files)
		}
	}
	if _, err := os.Stat(foreign); err != nil {
		t.Errorf("an EXECUTE of another user was touched: %v", err)
	}
	if _, err := sweep(); err == nil || err.Error() != "busy" {
		t.Errorf("what cannot be helped is told once, got %v", err)
	}
	// The record of what was kept stays until the user has removed that.
	if err := os.RemoveAll(kept.Files); err != nil {
		t.Fatal(err)
	}
	if removed, _ := sweep(); len(removed) != 1 || removed[0] != kept.Path {
		t.Errorf("removed %v, want %s", removed, kept.Path)
	}
	if removed, err := SweepDirs(someones{}, filepath.Join(base, "nothing"), nil, nil); err != nil || removed != nil {
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

// A directory of a slot that is not there is not made: it may be a disk that is
// not mounted.
func TestCheckSlotExecutes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, missing := filepath.Join(dir, "file"), filepath.Join(dir, "missing")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	errno := func(err error) (int, string, bool) {
		return 2, "No such file or directory", errors.Is(err, fs.ErrNotExist)
	}
	asked := []machine.SlotExecute{{Slot: 1, Path: dir}, {Slot: 2, Path: missing}, {Slot: 3, Path: file}, {Slot: 4, Path: missing}}
	got := CheckSlotExecutes(asked, errno)
	const access = "Error accessing execute directory %s specified in the configuration setting SLOT%d_EXECUTE: (errno=2) No such file or directory"
	for i, want := range []string{"", fmt.Sprintf(access, missing, 2), "Execute directory " + file + " is invalid: ", fmt.Sprintf(access, missing, 4)} {
		if why := got[i].Unusable; (why == "") != (want == "") || !strings.HasPrefix(why, want) {
			t.Errorf("slot %d: %q, want %q", i+1, why, want)
		}
		if asked[i].Unusable != "" {
			t.Error("what was asked has changed")
		}
	}
	if _, err := os.Stat(missing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory was made: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("the probe is left: %v", left)
	}
}
